// SPDX-License-Identifier: BSD-3-Clause
//! Recordings of tracepoints by others, as `tests/golden/others` has them: of the same load, at the same time, on
//! Debian's kernel, by our module, by ftrace, trace-cmd and perf, on the clock CLOCK_MONOTONIC. What both can see is
//! the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use kutrace_format::capability::{Capability, Unseen};
use postprocess::event::number::Level;
use postprocess::event::point::Point;
use postprocess::event::what::What;
use postprocess::event::work::Work;
use postprocess::event::{Event, Events};
use postprocess::source::events::read;
use postprocess::span::what::Activity;
use postprocess::span::{build, Meta, Span, Spans};
use postprocess::time::Time;

/// The probes of a tracepoint run one after the other, and the virtual machine may stand still between two: by as much
/// the times differ.
const SKEW: Time = Time(2_000_000);

/// A file of the folder, unpacked.
fn text(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/others/{name}.gz"));
    let mut text = Vec::new();
    GzDecoder::new(std::fs::File::open(path).expect(name)).read_to_end(&mut text).expect(name);
    text
}

fn events(name: &str) -> Events {
    read(&text(name)[..]).unwrap()
}

/// Ours, and another tool's recording of the same time.
const PAIRS: [(&str, &str); 3] =
    [("load.events", "load.ftrace"), ("load.events", "load.trace-cmd"), ("pipes.events", "pipes.perf")];

/// The range of time that both have of every CPU.
fn common(both: [&Events; 2]) -> (Time, Time) {
    let (mut from, mut to) = (Time::MIN, Time::MAX);
    for events in both {
        let of_cpus = |e: &&Event| e.what.is_event();
        let cpus: BTreeSet<_> = events.events.iter().filter(of_cpus).map(|e| e.cpu).collect();
        for cpu in cpus {
            let mut own = events.events.iter().filter(of_cpus).filter(|e| e.cpu == cpu).map(|e| e.ts);
            from = from.max(own.next().unwrap());
            to = to.min(own.next_back().unwrap());
        }
    }
    (from + SKEW, to - SKEW)
}

/// Number of starts of each activity that both see, by its name.
fn begun(events: &Events, (from, to): (Time, Time)) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for e in events.events.iter().filter(|e| (from..to).contains(&e.ts)) {
        let seen = match e.what {
            What::Call(work) => work.is_call() || matches!(work.level(), Level::Irq | Level::Softirq),
            What::Switch => e.dur == Time::ZERO,
            What::Point(point) => matches!(point, Point::Runnable | Point::Ipi | Point::Exit),
            _ => false,
        };
        // No other name precedes a softirq's number. Our module's call is not one for it.
        if seen && e.what.work() != Some(Work::UnknownCall) {
            let name = events.names.text(e.name);
            let name = if e.what == What::Switch { "switch" } else { name };
            *counts.entry(name.to_string()).or_default() += 1;
        }
    }
    counts
}

/// The part of the time for which both agree that a CPU runs the same thread, and does the same, as far as the other
/// can show.
fn agreement(ours: &Spans, other: &Spans, (from, to): (Time, Time)) -> (f64, f64) {
    let (mut all, mut threads, mut same) = (Time::ZERO, Time::ZERO, Time::ZERO);
    let cpus: BTreeSet<_> = ours.spans.iter().filter_map(|s| s.cpu).collect();
    for cpu in cpus {
        let of = |spans: &Spans| -> Vec<Span> {
            spans
                .spans
                .iter()
                .filter(|s| s.cpu == Some(cpu) && s.is_execution() && s.dur > Time::ZERO)
                .copied()
                .collect()
        };
        let (ours_here, others_here) = (of(ours), of(other));
        let mut others_here = others_here.iter().peekable();
        for a in &ours_here {
            while let Some(b) = others_here.peek() {
                let (a_end, b_end) = (a.start + a.dur, b.start + b.dur);
                let both = a_end.min(b_end).min(to) - a.start.max(b.start).max(from);
                if both > Time::ZERO {
                    all += both;
                    threads += if a.pid == b.pid { both } else { Time::ZERO };
                    same += if says_the_same(ours, a, other, b) { both } else { Time::ZERO };
                }
                if b_end > a_end {
                    break;
                }
                others_here.next();
            }
        }
    }
    (threads.0 as f64 / all.0 as f64, same.0 as f64 / all.0 as f64)
}

fn says_the_same(ours: &Spans, a: &Span, other: &Spans, b: &Span) -> bool {
    let untold = match a.activity() {
        // Duration of faults, low-power states, work on the way out, which comes from samples.
        Some(Activity::Call(Work::Trap(_) | Work::ExitWork) | Activity::Idle | Activity::Thread(_)) => true,
        // It begins with the last event before it, and those of the other are others.
        Some(Activity::Stalled) => true,
        _ => false,
    };
    a.pid == b.pid && (untold || ours.names[a.name] == other.names[b.name] || b.activity() == Some(Activity::Stalled))
}

#[test]
fn recordings_of_others_say_what_ours_says() {
    for (ours, other) in PAIRS {
        let (a, b) = (events(ours), events(other));
        assert_eq!((&a.meta.quality[..], &b.meta.quality[..], b.meta.lost), (&[][..], &[][..], 0), "{other}");
        let range = common([&a, &b]);
        let (counted, read) = (begun(&a, range), begun(&b, range));
        let all: i64 = counted.values().sum();
        assert!(all > 1500, "{other}: {all}");
        let names: BTreeSet<&String> = counted.keys().chain(read.keys()).collect();
        let number = |counts: &BTreeMap<String, i64>, name: &String| counts.get(name).copied().unwrap_or(0);
        for name in names.into_iter().filter(|name| *name != "irq_work_ipi") {
            let (ours, theirs) = (number(&counted, name), number(&read, name));
            // Activities under way at either end are within one range, and not in the other.
            assert!((ours - theirs).abs() <= 2 + ours / 100, "{other}: {name}: {ours} and {theirs}");
        }
        let ((a, told), (b, read)) = (build(a), build(b));
        assert_eq!((told.unknown, read.unknown, read.late), (0, 0, 0), "{other}");
        let (threads, same) = agreement(&a, &b, range);
        assert!(threads > 0.98 && same > 0.96, "{other}: {threads} {same}");
    }
}

#[test]
fn what_was_not_recorded_is_said() {
    let unseen = |name: &str, keep: fn(&str) -> bool| {
        let text = String::from_utf8(text(name)).unwrap();
        let kept: String = text.split_inclusive('\n').filter(|line| keep(line)).collect();
        read(kept.as_bytes()).unwrap().meta.unseen()
    };
    let all = unseen("load.trace-cmd", |_| true);
    for seen in [Capability::Calls, Capability::Softirqs, Capability::Wakeups, Capability::Births, Capability::Faults] {
        assert!(!all.has(seen), "{seen:?}");
    }
    for never in [Capability::Tasks, Capability::Scheduler, Capability::EntryCode, Capability::IdleStates] {
        assert!(all.has(never), "{never:?}");
    }
    // ftrace's own text has microseconds; perf does not show where events are missing.
    assert!(unseen("load.ftrace", |_| true) == all.and(Unseen::of(&[Capability::Moments])));
    assert!(unseen("pipes.perf", |_| true).has(Capability::Losses));
    for (event, lost) in [
        ("sys_", Capability::Calls),
        ("softirq_", Capability::Softirqs),
        ("sched_waking", Capability::Wakeups),
        ("sched_wakeup_new", Capability::Births),
        ("page_fault", Capability::Faults),
        ("ipi_send", Capability::Senders),
    ] {
        let text = String::from_utf8(text("load.trace-cmd")).unwrap();
        let kept: String = text.split_inclusive('\n').filter(|line| !line.contains(event)).collect();
        let without = read(kept.as_bytes()).unwrap().meta.unseen();
        assert_eq!(without, all.and(Unseen::of(&[lost])), "{event}");
    }
}

/// The spans of lines, as CPU, start, length, name.
fn spans(text: &str) -> (Spans, Vec<(u32, i64, i64, String)>) {
    let (spans, _) = build(read(text.as_bytes()).unwrap());
    let run = spans.spans.iter().filter(|s| s.is_execution() && s.dur > Time::ZERO);
    let rows = run.map(|s| (s.cpu.unwrap().number(), s.start.0, s.dur.0, spans.names[s.name].clone())).collect();
    (spans, rows)
}

fn row(cpu: u32, start: i64, dur: i64, name: &str) -> (u32, i64, i64, String) {
    (cpu, start, dur, name.to_string())
}

#[test]
fn lost_events_are_lost_time_from_the_last_event_of_their_cpu() {
    let (spans, rows) = spans(
        "# tracer: nop\n\
         a-7 [000] d..2.  1.000000: sys_enter: NR 39 (0, 0, 0, 0, 0, 0)\n\
         a-7 [000] d..2.  1.000010: sys_exit: NR 39 = 7\n\
         b-8 [001] d..2.  1.000015: sys_enter: NR 0 (3, 0, 0, 0, 0, 0)\n\
         CPU:0 [LOST 12 EVENTS]\n\
         c-9 [000] d..2.  1.000020: sys_enter: NR 39 (0, 0, 0, 0, 0, 0)\n\
         c-9 [000] d..2.  1.000030: sys_exit: NR 39 = 9\n",
    );
    assert_eq!((spans.meta.lost, spans.meta.quality.len()), (12, 0));
    let expected = [
        row(0, 100_000_000, 1_000, "getpid"),
        row(0, 100_001_000, 1_000, "-lost-"),
        row(1, 100_001_500, 1_500, "read"),
        row(0, 100_002_000, 1_000, "getpid"),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn the_head_of_perf_s_text_says_which_machine_it_was_and_when() {
    let long = format!("# event : name = sched:sched_switch, , id = {{ {} }}\n", "293, ".repeat(2_000));
    let text = |clock: &str| {
        format!(
            "# ========\n# captured on    : Thu Nov 26 14:09:56 2026\n# hostname : box\n# os release : 6.1.0\n\
             # cpudesc : a CPU\n{long}# clockid: {clock} (1)\n# reference time: 2026-11-26 14:09:56.683406 = \
             1795702196.683406 (TOD) = 44419.493061000 ({clock})\n# ========\n#\n \
             a 7 [000] 44420.000000123:  raw_syscalls:sys_enter: NR 39 (0, 0, 0, 0, 0, 0)\n \
             a 7 [000] 44420.000001123:  raw_syscalls:sys_exit: NR 39 = 7\n"
        )
    };
    let (told, rows) = spans(&text("monotonic"));
    let Meta { host, kernel, cpu_model, tracebase, monotonic, quality, .. } = &told.meta;
    assert_eq!([host, kernel, cpu_model, tracebase], ["box", "6.1.0", "a CPU", "2026-11-26_14:09:00"]);
    assert!(quality.is_empty(), "{quality:?}");
    // At 14:09:57.190345123, which is 0.506939123 s after the moment recorded in both clocks.
    assert_eq!(rows, [row(0, 5_719_034_512, 100, "getpid")]);
    assert_eq!(monotonic.unwrap() + 57_190_345_120, 44_420_000_000_120);
    let (other, _) = spans(&text("boottime"));
    assert_eq!((&*other.meta.tracebase, other.meta.monotonic), ("2026-11-26_14:09:00", None));
    // Without the head, times are the clock's.
    let (bare, _) = spans(text("monotonic").rsplit_once("#\n").unwrap().1);
    assert_eq!((&*bare.meta.tracebase, bare.meta.monotonic), ("1970-01-01_12:20:00", None));
}

#[test]
fn calls_by_name_are_those_by_number() {
    let of = |enter: &str, exit: &str| {
        spans(&format!("a-7 [000] d..2.  1.000000: {enter}\na-7 [000] d..2.  1.000010: {exit}\n")).1
    };
    let expected = of("sys_enter: NR 0 (3, 7f, 0, 0, 0, 0)", "sys_exit: NR 0 = -11");
    assert_eq!(expected, [row(0, 100_000_000, 1_000, "read")]);
    assert_eq!(of("sys_read(fd: 3, buf: 7f, count: 0)", "sys_read -> 0xfffffffffffffff5"), expected);
    assert_eq!(of("sys_enter_read: fd: 0x00000003, buf: 0x7f", "sys_exit_read: 0xfffffffffffffff5"), expected);
    assert_eq!(of("sys_enter_newuname: name: 0x7f", "sys_exit_newuname: 0x0")[0].3, "uname");
}

#[test]
fn lines_that_make_no_sense_are_counted() {
    let text = "# tracer: nop\na-7 [000] d..2.  1.000000: sys_enter: NR x\nnonsense\n\
                a-7 [000] d..2.  1.000001: sched_switch: x\n\ta-7 [70000] 1.0: x: y\n\
                a-7 [000] d..2.  1.000002: irq_handler_entry: irq=99999999999 name=x\n\
                a-7 [000] d..2.  1.000003: ipi_send_cpumask: cpumask=0-4294967295 callsite=x\n\
                a-7 [000] d..2.  1.000003: cpu_frequency: state=1 cpu_id=4294967295\n\
                a-7 [000] d..2.  1.000004: softirq_entry: vec=77\n";
    let events = read(text.as_bytes()).unwrap();
    assert_eq!(events.meta.quality, ["6 lines of the text could not be read; the first is line 2"]);
}

#[test]
fn a_damaged_recording_is_read_without_a_panic() {
    let whole = text("pipes.perf");
    for (at, byte) in
        (0..whole.len().min(200_000)).step_by(4_999).zip([0, b'\n', b'[', b':', b' ', 0xff, b'9'].iter().cycle())
    {
        let mut damaged = whole[..200_000.min(whole.len())].to_vec();
        damaged[at] = *byte;
        let from = at.saturating_sub(2_000);
        let part = &damaged[from..(at + 2_000).min(damaged.len())];
        let _ = build(read(part).unwrap());
    }
}
