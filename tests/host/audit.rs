// SPDX-License-Identifier: BSD-3-Clause
//! A trace is compared with the kernel's counters over the same time.

use kutrace_format::abi::event::{IRQ, IRQ_RETURN, RUNNABLE, SOFTIRQ, SOFTIRQ_RETURN, STEAL};
use kutrace_format::capability::Capability;
use kutrace_format::file::{FLAG_WRAP, FLAG_WRAPPED, HEADER_BYTES, SECTION_BYTES};
use kutrace_format::reading::CounterFile;
use kutrace_tests::TraceBuilder;
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use postprocess::source;

/// Counts from the start at which the readings of the start and of the end begin and end.
const EDGES: [(u64, u64); 2] = [(1_000, 2_000), (90_000, 91_000)];

/// The kernel's counters of interrupts: of the timer on two CPUs, and of a device on the first.
fn interrupts(timer: [u64; 2], device: u64) -> String {
    let [first, second] = timer;
    format!(
        "           CPU0       CPU1\n  9: {device:>10}          0   IO-APIC   9-fasteoi   acpi\n\
         LOC: {first:>10} {second:>10}   Local timer interrupts\nERR:          0\n"
    )
}

/// A timer interrupt at a count.
fn tick(trace: &mut TraceBuilder, cpu: u32, at: u64) {
    trace.cpu(cpu).entry(at, IRQ + 0xec, &[]).entry(at + 10, IRQ_RETURN + 0xec, &[]);
}

/// Two CPUs, with 40 timer interrupts on the first and 20 on the second between the readings.
fn ticking() -> TraceBuilder {
    let mut trace = TraceBuilder::new(2, 100_000);
    for (cpu, ticks) in [(0, 40), (1, 20)] {
        (0..ticks).for_each(|n| tick(&mut trace, cpu, 5_000 + 1_000 * n));
    }
    trace
}

/// As [`ticking`], with the kernel's counts on the two CPUs.
fn counted(timer: [u64; 2]) -> TraceBuilder {
    let mut trace = ticking();
    let before = [u64::from(u32::MAX) - 1, 7];
    let after = [0, 1].map(|cpu| u64::from((before[cpu] + timer[cpu]) as u32));
    trace.read(CounterFile::Interrupts, EDGES[0], &interrupts(before, 5));
    trace.read(CounterFile::Stat, EDGES[0], "ctxt 100\nprocesses 9\n");
    trace.read(CounterFile::Interrupts, EDGES[1], &interrupts(after, 5));
    trace.read(CounterFile::Stat, EDGES[1], "ctxt 100\nprocesses 9\n");
    trace
}

fn judged(bytes: &[u8]) -> (Verdict, String) {
    let found = judge(bytes).unwrap();
    (verdict(&found), found.iter().map(|f| format!("{f}\n")).collect())
}

#[test]
fn what_the_kernel_counted_and_the_trace_has_passes() {
    let (verdict, text) = judged(&counted([40, 20]).bytes());
    assert_eq!(verdict, Verdict::Pass, "{text}");
    assert!(text.contains("info  timer interrupts: the kernel counted 60, the trace has 60\n"), "{text}");
}

#[test]
fn an_interrupt_more_or_less_at_each_edge_passes_and_more_fail() {
    for (timer, expected) in [([42, 18], Verdict::Pass), ([43, 20], Verdict::Fail), ([40, 17], Verdict::Fail)] {
        let (verdict, text) = judged(&counted(timer).bytes());
        assert_eq!(verdict, expected, "{timer:?}: {text}");
    }
    let (_, text) = judged(&counted([43, 20]).bytes());
    let fact = "FAIL  timer interrupts on cpu 0: the kernel counted 43, the trace has 40, from ";
    assert!(text.contains(fact) && text.contains(" s: events are missing\n"), "{text}");
}

#[test]
fn what_happens_during_a_reading_may_have_been_counted_or_not() {
    for timer in [[40, 20], [44, 22]] {
        let mut trace = counted(timer);
        for cpu in [0, 1] {
            [90_500, 90_600].into_iter().for_each(|at| tick(&mut trace, cpu, at));
        }
        let (verdict, text) = judged(&trace.bytes());
        assert_eq!(verdict, Verdict::Pass, "{timer:?}: {text}");
        assert!(text.contains(", the trace has 60 to 64\n"), "{text}");
    }
}

#[test]
fn a_cpu_that_lost_events_is_left_out() {
    let mut trace = counted([90, 20]);
    trace.cpu(0).lose(50);
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Incomplete, "{text}");
    let fact =
        "timer interrupts: the kernel counted 20, the trace has 20; without 1 of 2 CPUs, whose trace lacks events";
    assert!(text.contains(fact), "{text}");
}

#[test]
fn what_was_overwritten_is_left_out() {
    let mut trace = TraceBuilder::new(1, 100_000);
    trace.header.flags |= FLAG_WRAP | FLAG_WRAPPED;
    tick(&mut trace, 0, 40_000);
    trace.cpu(0).overwritten();
    tick(&mut trace, 0, 50_000);
    for (edge, count) in EDGES.into_iter().zip([0, 900]) {
        trace.read(CounterFile::Interrupts, edge, &interrupts([count, 0], 0));
        trace.read(CounterFile::Stat, edge, &format!("ctxt {count}\n"));
    }
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Pass, "{text}");
    assert!(text.contains("context switches: the kernel counted 900, the trace has 0; not judged"), "{text}");
}

#[test]
fn what_a_source_cannot_see_is_not_compared() {
    let mut trace = counted([99, 99]);
    trace.header.unseen.0 |= 1 << Capability::Interrupts as u32;
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Pass, "{text}");
    assert!(!text.contains("timer interrupts:"), "{text}");
}

#[test]
fn softirqs_go_by_their_number_and_devices_are_never_too_many() {
    let mut trace = TraceBuilder::new(1, 100_000);
    trace.cpu(0).entry(4_000, SOFTIRQ + 1, &[]).entry(4_010, SOFTIRQ_RETURN + 1, &[]);
    for at in (5_000..6_000).step_by(100) {
        trace.cpu(0).entry(at, IRQ + 0x22, &[]).entry(at + 10, IRQ_RETURN + 0x22, &[]);
    }
    for (edge, timer) in EDGES.into_iter().zip([3, 4]) {
        trace.read(CounterFile::Interrupts, edge, "  CPU0\n 9: 5 IO-APIC acpi\n 40: 7 pinctrl pad\n");
        trace.read(CounterFile::Softirqs, edge, &format!("  CPU0\n HI: 0\n TIMER: {timer}\n RCU: 9\n"));
        trace.read(CounterFile::Stat, edge, "ctxt 0\n");
    }
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Pass, "{text}");
    assert!(text.contains("softirqs TIMER: the kernel counted 1, the trace has 1\n"), "{text}");
    assert!(text.contains("interrupts of devices: the kernel counted 0, the trace has 10\n"), "{text}");
}

#[test]
fn threads_that_are_born_are_counted_by_their_first_wakeup() {
    for (born, expected) in [(2, Verdict::Pass), (5, Verdict::Fail)] {
        let mut trace = TraceBuilder::new(1, 100_000);
        let cpu = trace.cpu(0).running(7, "sh", None);
        for (at, pid) in (5_000..).zip([500, 100, 501, 500, 501]) {
            cpu.entry(at, RUNNABLE, &[pid]);
        }
        for (edge, (processes, last)) in EDGES.into_iter().zip([(10, 499), (10 + born, 520)]) {
            trace.read(CounterFile::Loadavg, edge, &format!("0.1 0.2 0.3 1/80 {last}\n"));
            trace.read(CounterFile::Stat, edge, &format!("ctxt 0\nprocesses {processes}\n"));
        }
        let (verdict, text) = judged(&trace.bytes());
        assert!(text.contains(&format!("new threads: the kernel counted {born}, the trace has 2")), "{text}");
        assert_eq!(verdict, expected, "{text}");
    }
}

/// A CPU that was idle for two seconds, and the kernel's count of its time: idle and waiting for a disk.
fn idling(idle: u64, waiting: u64) -> TraceBuilder {
    let mut trace = TraceBuilder::new(1, 400_000_000);
    trace.cpu(0).running(7, "sh", None).switch(50_000_000, 0, "swapper/0").switch(250_000_000, 7, "sh");
    for (edge, idle, waiting) in [((1_000, 2_000), 0, 0), ((390_000_000, 390_001_000), idle, waiting)] {
        let text = format!("cpu  1 1 1 1 1 1 1 1\ncpu0 5 0 7 {} {} 0 0 0 0 0\n", 1000 + idle, 10 + waiting);
        trace.read(CounterFile::Stat, edge, &text);
    }
    trace
}

/// The trace has 0.3 s between the readings, and 0.1 s of which half is after the last.
#[test]
fn what_the_host_took_is_compared_and_no_verdict() {
    for (counted, said) in [(29, "0.29"), (0, "0.00")] {
        let mut trace = TraceBuilder::new(1, 400_000_000);
        let cpu = trace.cpu(0).running(7, "sh", None);
        cpu.entry(100_000_000, STEAL, &[300_000_000]).entry(395_000_000, STEAL, &[100_000_000]);
        for (edge, counted) in [((1_000, 2_000), 0), ((390_000_000, 390_001_000), counted)] {
            trace.read(CounterFile::Stat, edge, &format!("cpu0 5 0 7 1000 10 0 0 {} 0 0\n", 40 + counted));
        }
        let (verdict, text) = judged(&trace.bytes());
        assert_eq!(verdict, Verdict::Pass, "{text}");
        let fact = format!("info  time that the host took: the kernel counted {said} s, the trace has 0.35 s\n");
        assert!(text.contains(&fact), "{text}");
        assert!(text.contains("info  the host ran something else 2 times, 400.0 ms together, counted as"), "{text}");
    }
    assert!(!judged(&idling(200, 0).bytes()).1.contains("the host"));
}

#[test]
fn idle_time_is_that_of_the_kernel_but_for_ticks_and_no_verdict() {
    for ((idle, waiting), agree) in
        [((200, 0), true), ((201, 0), true), ((195, 0), true), ((100, 100), true), ((203, 0), false), ((180, 0), false)]
    {
        let (verdict, text) = judged(&idling(idle, waiting).bytes());
        assert_eq!(verdict, Verdict::Pass, "{text}");
        let [least, most] = [idle, idle + waiting].map(|hundredths| hundredths as f64 / 100.0);
        let fact = format!("the kernel counted {least:.2} to {most:.2} s, the trace has 2.00 s");
        assert!(text.contains(&format!("info  idle time: {fact}\n")), "{text}");
        assert_eq!(
            !text.contains(&format!("info  idle time on cpu 0: {fact}, from ")),
            agree,
            "{idle} {waiting}: {text}"
        );
    }
    let mut lossy = idling(200, 0);
    lossy.cpu(0).lose(5);
    let (_, text) = judged(&lossy.bytes());
    assert!(text.contains("info  idle time: not compared, since the trace lacks events\n"), "{text}");
    assert!(!judged(&counted([40, 20]).bytes()).1.contains("idle time"), "it was not counted");
}

#[test]
fn a_damaged_section_is_reported_and_nothing_compared() {
    let bytes = counted([40, 20]).bytes();
    let section = bytes.windows(4).position(|tag| tag == b"KCNT").unwrap();
    for at in [4, 8, 16, SECTION_BYTES + 3, SECTION_BYTES + 40] {
        let mut damaged = bytes.clone();
        damaged[section + at] ^= 1;
        let (verdict, text) = judged(&damaged);
        assert_eq!(verdict, Verdict::Fail, "byte {at}: {text}");
        assert!(
            text.contains(&format!("FAIL  byte {}", section + at / 8 * 8)) || text.contains("kernel's counters"),
            "{text}"
        );
    }
    let whole = judged(&bytes).1;
    assert!(whole.contains("timer interrupts"), "{whole}");
    assert!(bytes[HEADER_BYTES..].len() > section, "the section is before the blocks");
}

#[test]
fn readings_of_one_end_only_say_that_nothing_is_compared() {
    let mut trace = ticking();
    trace.read(CounterFile::Interrupts, EDGES[0], &interrupts([1, 2], 3));
    trace.read(CounterFile::Stat, EDGES[0], "ctxt 100\n");
    let (verdict, text) = judged(&trace.bytes());
    assert_eq!(verdict, Verdict::Pass, "{text}");
    assert!(text.contains("info  the kernel's counters were not read at both ends"), "{text}");
}

#[test]
fn what_was_compared_goes_through_every_stage() {
    let bytes = counted([40, 20]).bytes();
    let (spans, _) =
        postprocess::direct::spans_of_raw(&bytes, postprocess::direct::limit_for_page(bytes.len())).unwrap();
    let events = source::decode(&bytes).unwrap();
    assert_eq!(events.meta.counted, spans.meta.counted);
    assert_eq!(spans.meta.counted.len(), 1, "{:?}", spans.meta.counted);
    let mut json = Vec::new();
    postprocess::sink::json::write(&spans, &mut json).unwrap();
    let again = source::json::read(&mut &json[..]).unwrap();
    assert_eq!(again.meta.counted, spans.meta.counted);
}
