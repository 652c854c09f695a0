// SPDX-License-Identifier: BSD-3-Clause
//! Events to spans, made to be read: each golden file shows every input event, under it the spans it closed, and at the
//! end the pending spans.
//!
//! A span that was shown and has changed since is marked as changed.
//! A span is shown as `start+duration cpu pid name`, then its event number, and RPC, argument, return value and
//! IPC code where they are not 0.

use std::fmt::Write as _;

use kutrace_format::abi::event::line;
use kutrace_format::abi::event::{EXIT, IDLE_POLL, IPI, IRQ, IRQ_RETURN, MARK_A, MWAIT, PC_KERNEL, PC_USER};
use kutrace_format::abi::event::{MONITOR_EXIT, MONITOR_STORE, RUNNABLE, SCHED, SCHED_RETURN};
use kutrace_format::abi::event::{SOFTIRQ, SOFTIRQ_RETURN, SWITCH, SYSCALL_RETURN, TRAP, TRAP_RETURN};
use kutrace_format::event::{class, Class, RETURN_BIT};
use kutrace_tests::number::on_cpu;
use kutrace_tests::TraceBuilder;
use postprocess::event::names::{NameId, Names};
use postprocess::event::what::What;
use postprocess::event::write::Writer;
use postprocess::event::{Event, Events, Interval, Meta};
use postprocess::id::{CpuId, Pid};
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::build::Builder;
use postprocess::span::{check, Span, NONE};
use postprocess::time::Time;
use proptest::prelude::*;

use crate::golden::assert_golden;
use kutrace_tests::cases::cases;

/// The events of a raw trace.
pub fn decode(trace: &TraceBuilder) -> Events {
    source::decode(&trace.bytes()).unwrap()
}

/// Compares the result of `events` with a golden file, and checks that it is valid.
fn assert_spans(name: &str, events: Events) {
    assert_golden(&format!("spans/{name}.txt"), &told(events, 0));
}

/// The events from a time on, each with the spans it closed, then the pending spans; checks that the spans are valid.
pub fn told(events: Events, from: i64) -> String {
    let mut text = String::new();
    let mut builder = Builder::new(&events.meta, events.names);
    let mut shown: Vec<Span> = Vec::new();
    let closed = |builder: &Builder| builder.held().chain(builder.written()).copied().collect::<Vec<Span>>();
    let (known, events_in_time) = events.events.split_at(events.events.partition_point(|e| e.ts.0 < from));
    known.iter().for_each(|e| builder.push(e));
    for event in events_in_time {
        let line = line(event, &builder.names);
        builder.push(event);
        text.push_str(&line);
        let closed = closed(&builder);
        without(&closed, &shown).iter().for_each(|s| show(&mut text, s, builder.names.text(s.name)));
        for s in without(&shown, &closed) {
            let _ = writeln!(text, "        no longer {}+{} {}", s.start, s.dur, builder.names.text(s.name));
        }
        shown = closed;
    }
    let intervals = events.meta.intervals.clone();
    let (spans, tally) = builder.finish(events.meta);
    text.push_str("pending\n");
    for span in &without(&spans.spans, &shown) {
        show(&mut text, span, &spans.names[span.name]);
    }
    let _ =
        writeln!(text, "{} repairs, {} repeated and {} pending wakeups", tally.repairs, tally.repeated, tally.pending);
    assert_eq!(check(&spans, &intervals, &tally), [""; 0]);
    text
}

/// The spans of `all` that are not in `others`, as often as they are there.
fn without(all: &[Span], others: &[Span]) -> Vec<Span> {
    let mut others = others.to_vec();
    let mut is_new = |s: &&Span| others.iter().position(|o| o == *s).map(|at| others.swap_remove(at)).is_none();
    all.iter().filter(|s| is_new(s)).copied().collect()
}

fn line(event: &Event, names: &Names) -> String {
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    writer.event(event, names).unwrap();
    writer.finish(&Default::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().next().unwrap_or_default().to_string() + "\n"
}

/// Writes one span as a line.
pub fn show(text: &mut String, s: &Span, name: &str) {
    let (cpu, pid) = (CpuId::column(s.cpu), Pid::column(s.pid));
    let _ = write!(text, "        {}+{} cpu {cpu} pid {pid} {name}  event {}", s.start, s.dur, s.event());
    let (arg, ret) = s.values();
    for (what, value) in [("rpc", s.rpc.into()), ("arg", arg), ("ret", ret), ("ipc", s.ipc.into())] {
        match value {
            0 => {}
            NONE => drop(write!(text, " {what} none")),
            _ => drop(write!(text, " {what} {value}")),
        }
    }
    text.push('\n');
}

/// The worked example of the original's state machine (research, section 12). Ours differs where the original's is a
/// fault: waits begin and end on their events, nothing is 10 ns short, and every CPU is covered to the end.
#[test]
fn the_worked_example_of_the_original() {
    let lines = [
        "-1 1 34 100 progA",
        "-1 1 34 200 progB",
        "100 1 512 0  100 0  100 0 0 progA.100 (200)",
        "110 1 512 1  0 0  0 0 0 -idle- (200)",
        "200 0 2250 0  100 0  5 0 0 futex (8ca)",
        "210 0 3583 0  100 0  0 0 0 -sched- (dff)",
        "220 0 512 0  0 0  0 0 0 -idle- (200)",
        "230 0 4095 0  0 0  0 0 0 /-sched- (fff)",
        "235 1 520 0  0 0  16 0 0 mwait (208)",
        "300 0 512 1  200 0  200 0 0 progB.200 (200)",
        "310 0 2250 1  200 0  0 0 0 futex (8ca)",
        "315 1 518 1  200 0  100 0 0 runnable.100 (206)",
        "316 1 519 1  200 0  0 0 0 sendipi (207)",
        "320 0 2762 1  200 0  0 0 0 /futex (aca)",
        "5000 0 1533 0  0 0  0 0 0 reschedule_ipi (5fd)",
        "5010 0 2045 0  0 0  0 0 0 /reschedule_ipi (7fd)",
        "5020 0 3583 0  0 0  0 0 0 -sched- (dff)",
        "5030 0 512 0  100 0  100 0 0 progA.100 (200)",
        "5040 0 4095 0  100 0  0 0 0 /-sched- (fff)",
        "5050 0 2762 0  100 0  0 0 0 /futex (aca)",
        "5100 20 1516 0  100 0  0 0 35 local_timer (5ec)",
        "5200 1 522 0  100 0  39187408 0 0 mark_a=hello (20a)",
        "5300 0 2087 0  100 0  0 0 0 getpid (827)",
    ];
    assert_spans("worked_example", read(&mut lines.join("\n").as_bytes()).unwrap());
}

#[test]
fn an_interrupt_inside_a_softirq_nests() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(70_000, "prog", None);
    cpu.entry(100, IRQ + 0xec, &[]).entry(110, IRQ_RETURN + 0xec, &[]).entry(111, SOFTIRQ + 1, &[]);
    cpu.entry(120, IRQ + 0x21, &[]).entry(130, IRQ_RETURN + 0x21, &[]);
    cpu.entry(150, SOFTIRQ_RETURN + 1, &[]).entry(150, SOFTIRQ + 9, &[]).entry(160, SOFTIRQ_RETURN + 9, &[]);
    assert_spans("irq_in_softirq", decode(&trace));
}

#[test]
fn faults_and_interrupts_inside_a_system_call_come_back_to_it() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(7, "prog", None);
    cpu.call(100, 0, 3).entry(110, TRAP + 14, &[]).entry(115, IRQ + 0xec, &[]).entry(118, TRAP + 2, &[]);
    cpu.entry(119, TRAP_RETURN + 2, &[]).entry(125, IRQ_RETURN + 0xec, &[]).entry(130, TRAP_RETURN + 14, &[]);
    cpu.folded(135, 39, 0, 5, 7).entry(150, SYSCALL_RETURN, &[4096]);
    assert_spans("nesting", decode(&trace));
}

#[test]
fn a_blocked_thread_comes_back_inside_its_call_with_wait_and_wakeup() {
    let mut trace = TraceBuilder::new(2, 3000);
    trace.cpu(0).running(100, "a", None).call(200, 202, 5).switch(210, 0, "").entry(240, MWAIT, &[0x20]);
    let cpu1 = trace.cpu(1).running(70_000, "b", None).call(1000, 202, 1).entry(1010, RUNNABLE, &[100]);
    cpu1.entry(1011, IPI, &[0]).small_return(1020, 1);
    let cpu0 = trace.cpu(0).entry(2900, IRQ + 0xfd, &[]).entry(2910, IRQ_RETURN + 0xfd, &[]);
    cpu0.switch(2920, 100, "a").small_return(2960, 0);
    assert_spans("wakeup", decode(&trace));
}

#[test]
fn a_new_threads_first_run_is_the_return_from_clone() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(100, "sh", None).call(100, 56, 0).task(110, 101, "sh", Some(56));
    cpu.entry(120, RUNNABLE, &[101]).entry(130, SYSCALL_RETURN + 56, &[101]).switch(200, 101, "sh");
    cpu.small_return(240, 0).call(300, 59, 0).task(310, 101, "ls", Some(59)).small_return(320, 0);
    assert_spans("first_run", decode(&trace));
}

#[test]
fn a_thread_known_to_sleep_in_a_call_comes_back_inside_it() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).task(90, 7, "a", Some(202)).switch(100, 7, "a").small_return(200, 0);
    assert_spans("sleeping_in_call", decode(&trace));
}

#[test]
fn a_new_thread_with_an_old_pid_is_not_inside_the_old_ones_exit() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(7, "old", None).call(100, 231, 0).switch(110, 8, "parent").call(200, 56, 0);
    cpu.task(210, 7, "parent", Some(56)).entry(220, SYSCALL_RETURN + 56, &[7]).switch(300, 7, "parent");
    cpu.small_return(340, 0);
    assert_spans("reused_pid", decode(&trace));
}

#[test]
fn a_thread_that_was_killed_is_not_what_the_next_with_its_pid_was_inside_of_or_waited_for() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(7, "old", None).call(100, 0, 3).entry(110, EXIT, &[9]).switch(120, 8, "parent");
    cpu.call(200, 56, 0).task(210, 7, "new", Some(56)).entry(215, RUNNABLE, &[7]);
    cpu.entry(220, SYSCALL_RETURN + 56, &[7]).switch(300, 7, "new").small_return(340, 0);
    assert_spans("killed", decode(&trace));
}

#[test]
fn polling_is_idle_but_no_low_power_state() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.cpu(1).running(9, "b", None).entry(300, MONITOR_STORE, &[0]);
    let cpu = trace.cpu(0).running(0, "", None).entry(100, MWAIT, &[IDLE_POLL]).entry(310, MONITOR_EXIT, &[0]);
    cpu.switch(320, 7, "a");
    assert_spans("polling", decode(&trace));
}

#[test]
fn a_sample_speaks_of_no_time_before_the_cpu_left_idle() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(7, "a", None).entry(10, PC_USER, &[64, 0]).entry(100, PC_USER, &[128, 0]);
    cpu.switch(150, 0, "").entry(180, MWAIT, &[254]).switch(700, 7, "a").entry(800, PC_KERNEL, &[0, 1 << 31]);
    assert_spans("sample_after_idle", decode(&trace));
}

#[test]
fn a_missing_return_is_decided_by_the_next_system_call() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(100, "a", None).call(100, 0, 3).switch(110, 0, "").switch(200, 100, "a");
    cpu.call(300, 1, 4).small_return(320, 1);
    assert_spans("missing_return", decode(&trace));
}

#[test]
fn a_return_without_a_call_gets_the_time_before_it() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(100, "a", None).small_return(50, 0).entry(80, IRQ_RETURN + 0xec, &[]);
    trace.cpu(0).entry(100, SCHED_RETURN, &[]);
    assert_spans("missing_call", decode(&trace));
}

#[test]
fn a_call_ends_what_cannot_be_below_it() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu =
        trace.cpu(0).running(100, "a", None).call(100, 0, 3).entry(110, IRQ + 0xec, &[]).entry(120, SOFTIRQ + 1, &[]);
    cpu.entry(130, SCHED, &[]).entry(140, SWITCH, &[0]).entry(150, SCHED, &[]).entry(160, SWITCH, &[100]);
    cpu.entry(170, SCHED_RETURN, &[]);
    assert_spans("missing_returns", decode(&trace));
}

#[test]
fn a_thread_that_runs_again_without_a_wakeup_waited_for_a_cpu() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(100, "a", None).entry(100, IRQ + 0xec, &[]).entry(110, IRQ_RETURN + 0xec, &[]);
    cpu.switch(120, 200, "b").switch(300, 100, "a");
    assert_spans("preempted", decode(&trace));
}

#[test]
fn of_a_thread_that_may_have_run_where_events_are_missing_no_wait_is_told() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.cpu(0).running(100, "a", None).switch(120, 200, "b").switch(300, 100, "a");
    trace.cpu(1).running(0, "", None).entry(50, RUNNABLE, &[200]).lose(9);
    assert_spans("perhaps_elsewhere", decode(&trace));
}

#[test]
fn a_thread_woken_before_it_could_sleep_waits_for_nothing() {
    let mut trace = TraceBuilder::new(2, 1000);
    let cpu0 = trace.cpu(0).running(100, "a", None).call(50, 202, 0).entry(100, SCHED, &[]);
    cpu0.entry(140, SCHED_RETURN, &[]).small_return(150, 0);
    trace.cpu(1).running(200, "b", None).entry(120, RUNNABLE, &[100]);
    assert_spans("woken_in_time", decode(&trace));
}

#[test]
fn an_interrupt_right_behind_a_switch_shows_the_thread_running() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(100, "a", None).call(50, 202, 0).switch(60, 0, "").entry(100, IRQ + 0x21, &[]);
    cpu.entry(110, RUNNABLE, &[100]).entry(120, IRQ_RETURN + 0x21, &[]).entry(130, SCHED, &[]);
    cpu.entry(150, SWITCH, &[100]).entry(160, IRQ + 0xec, &[]).entry(190, IRQ_RETURN + 0xec, &[]);
    cpu.entry(200, SCHED_RETURN, &[]).small_return(210, 0);
    assert_spans("irq_behind_switch", decode(&trace));
}

#[test]
fn a_switch_ends_an_interrupt_without_a_return_inside_the_scheduler() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(100, "a", None).entry(100, SCHED, &[]).entry(120, IRQ + 0xfd, &[]);
    cpu.entry(150, SWITCH, &[0]).entry(170, SCHED_RETURN, &[]);
    assert_spans("irq_in_scheduler", decode(&trace));
}

#[test]
fn a_sample_tells_of_its_cpu_whatever_others_wrote_since_it_was_interrupted() {
    let mut text = String::from(
        "# ## FORMAT: 5\n-1 1 34 7 a\n0 1 512 0 7 0 7 0 0 a.7\n0 1 512 1 8 0 8 0 0 b.8\n\
         100 1 554 0 7 0 4 0 0 exit_work\n110 1 555 0 7 0 0 0 0 /exit_work\n800 0 1516 0 7 0 0 0 0 local_timer\n",
    );
    // The tick's CPU stands still.
    let calls = (0..30_000).map(|n| format!("{} 10 2087 1 8 0 0 0 0 getpid\n", 800 + 20 * n));
    text.extend(calls);
    text.push_str("600810 0 641 0 7 0 1 0 0 PC=ffffffff81000040\n600820 0 2028 0 7 0 0 0 0 /local_timer\n");
    let events = read(&mut text.as_bytes()).unwrap();
    let mut builder = Builder::new(&events.meta, events.names);
    let mut spans = Vec::new();
    for event in &events.events {
        builder.push(event);
        spans.append(&mut builder.take());
    }
    let name = |s: &Span| builder.names.text(s.name).to_string();
    let of_a: Vec<_> = [&spans[..], builder.written()]
        .concat()
        .iter()
        .filter(|s| s.cpu == on_cpu(0) && (100..800).contains(&s.start.0))
        .map(|s| (s.start.0, s.dur.0, name(s)))
        .collect();
    let expected = [(100, 10, "exit_work"), (110, 590, "a.7"), (700, 100, "exit_work")];
    assert_eq!(of_a, expected.map(|(start, dur, name)| (start, dur, name.to_string())));
}

#[test]
fn who_was_taken_for_a_thread_of_the_kernel_and_is_sampled_in_its_program_has_been_there() {
    let lines = [
        "# ## FORMAT: 5",
        "0 1 512 0  7 0  7 0 0 a.7",
        "0 1 512 1  8 0  8 0 0 b.8",
        "100 0 3583 0  7 0  0 0 0 -sched-",
        "110 0 512 0  0 0  0 0 0 -idle-",
        "120 0 4095 0  0 0  0 0 0 /-sched-",
        "200 1 518 1  8 0  7 0 0 runnable.7",
        "210 0 3583 0  0 0  0 0 0 -sched-",
        "220 0 512 0  7 0  7 0 0 a.7",
        "230 0 4095 0  7 0  0 0 0 /-sched-",
        "300 0 1550 0  7 0  0 0 0 /page_fault",
        "400 0 1516 0  7 0  0 0 0 local_timer",
        "420 0 640 0  7 0  1 0 0 PC=0040",
        "440 0 2028 0  7 0  0 0 0 /local_timer",
    ];
    assert_spans("no_kernel_thread", read(&mut lines.join("\n").as_bytes()).unwrap());
}

#[test]
fn a_thread_woken_on_its_way_off_a_cpu_was_woken_though_others_are_seen_since_then_only() {
    let lines = [
        "# ## FORMAT: 5",
        "# ## CPU: 0 0 1000",
        "# ## CPU: 1 0 1000",
        "# ## CPU: 2 120 1000",
        "0 1 512 0  7 0  7 0 0 a.7",
        "0 1 512 1  8 0  8 0 0 b.8",
        "100 0 3583 0  7 0  0 0 0 -sched-",
        "110 1 518 1  8 0  7 0 0 runnable.7",
        "120 1 512 2  0 0  0 0 0 -idle-",
        "130 0 512 0  0 0  0 0 0 -idle-",
        "140 0 4095 0  0 0  0 0 0 /-sched-",
        "210 0 3583 2  0 0  0 0 0 -sched-",
        "220 0 512 2  7 0  7 0 0 a.7",
        "230 0 4095 2  7 0  0 0 0 /-sched-",
    ];
    assert_spans("woken_on_the_way", read(&mut lines.join("\n").as_bytes()).unwrap());
}

#[test]
fn who_has_quota_again_waits_for_the_idle_cpu_that_has_not_come_to_look() {
    let lines = [
        "# ## FORMAT: 5",
        "-1 1 264 7 2",
        "0 1 512 0  7 0  7 0 0 a.7",
        "1000 0 1516 0  7 0  0 0 0 local_timer",
        "1100 1 547 0  7 0  2 0 0 throttle",
        "1200 0 2028 0  7 0  0 0 0 /local_timer",
        "1210 0 3583 0  7 0  0 0 0 -sched-",
        "1220 0 512 0  0 0  0 0 0 -idle-",
        "1230 0 4095 0  0 0  0 0 0 /-sched-",
        "500000 0 1516 0  0 0  0 0 0 local_timer",
        "500100 1 548 0  0 0  2 0 0 unthrottle",
        "500200 0 2028 0  0 0  0 0 0 /local_timer",
        "590000 0 3583 0  0 0  0 0 0 -sched-",
        "590010 0 512 0  7 0  7 0 0 a.7",
        "590020 0 4095 0  7 0  0 0 0 /-sched-",
    ];
    assert_spans("quota_then_idle", read(&mut lines.join("\n").as_bytes()).unwrap());
}

#[test]
fn lost_time_is_a_span_of_its_own() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.cpu(0).running(100, "a", None).call(100, 0, 3).lose(5).skip(0, 300).entry(450, IRQ + 0xec, &[]);
    trace.cpu(0).entry(460, IRQ_RETURN + 0xec, &[]).lose(2);
    trace.cpu(1).running(200, "b", None).entry(500, RUNNABLE, &[100]);
    assert_spans("lost", decode(&trace));
}

#[test]
fn idle_and_blocking_of_any_length_are_one_span() {
    let mut trace = TraceBuilder::new(1, 2_000_000_000_000);
    let cpu = trace.cpu(0).running(0, "", None).entry(100, MWAIT, &[0x60]).entry(1_500_000_000_000, IRQ + 0xec, &[]);
    cpu.entry(1_500_000_000_010, IRQ_RETURN + 0xec, &[]).entry(1_500_000_000_020, MARK_A, &[39_187_408]);
    assert_spans("long", decode(&trace));
}

#[test]
fn an_rpc_has_messages_and_time_in_a_queue() {
    let lines = [
        "-1 1 34 7 net",
        "-1 1 34 8 work",
        "0 1 512 0  7 0  7 0 0 net.7 (200)",
        "0 1 512 1  8 0  8 0 0 work.8 (200)",
        "100 1 532 0  7 0  305419896 0 0 rx.0000 (214)",
        "120 1 534 0  7 0  305419896 0 0 urx.0000 (216)",
        "130 1 513 0  7 0  4264093 0 0 get.4253 (201)",
        "140 1 538 0  7 0  3 0 0 enq_input (21a)",
        "150 1 513 0  7 0  0 0 0 .0 (201)",
        "300 1 539 1  8 0  3 0 0 deq_input (21b)",
        "310 1 515 1  8 0  4253 0 0 get.4253 (203)",
        "400 1 514 1  8 0  6557853 0 0 get.4253 (202)",
        "410 1 535 1  8 0  2596069104 0 0 utx.0000 (217)",
        "420 1 533 1  8 0  2596069104 0 0 tx.0000 (215)",
        "430 1 514 1  8 0  0 0 0 .0 (202)",
    ];
    assert_spans("rpc", read(&mut lines.join("\n").as_bytes()).unwrap());
}

#[test]
fn a_lock_is_waited_for_and_held() {
    let lines = [
        "-1 1 34 7 a",
        "0 1 512 0  7 0  7 0 0 a.7 (200)",
        "100 1 528 0  7 0  9 0 0 try_mutex (210)",
        "200 1 529 0  7 0  9 0 0 acq_mutex (211)",
        "300 1 530 0  7 0  9 0 0 rel_mutex (212)",
    ];
    assert_spans("lock", read(&mut lines.join("\n").as_bytes()).unwrap());
}

/// Any event, most of them such that they collide: few CPUs, threads, numbers and times.
fn any_event() -> impl Strategy<Value = Event> {
    const NUMBERS: [u32; 32] = [
        line::PID_NAME,
        line::OPEN_CALL,
        line::SWITCH,
        line::RX_PACKET,
        line::RX_USER,
        line::TX_PACKET,
        line::TX_USER,
        line::ENQUEUE,
        line::DEQUEUE,
        line::SWITCH,
        line::RPC_REQUEST,
        line::RUNNABLE,
        line::IPI,
        line::MWAIT,
        line::FREQUENCY,
        line::MARK_A,
        line::LOCK_TRY,
        line::LOCK_ACQUIRED,
        line::LOCK_RELEASED,
        line::FREQUENCY_SET,
        line::MONITOR_EXIT,
        line::PC_KERNEL,
        line::TRAP + 0x0e,
        line::IRQ + 0xec,
        line::SOFTIRQ,
        line::SYSCALL + 4,
        line::SYSCALL + 56,
        line::SCHED_OLD,
        line::SCHED,
        line::SCHED,
        line::LOST,
        line::NAMES + 0x98,
    ];
    let what = (0..NUMBERS.len(), any::<bool>(), 0u32..4, 0u32..5);
    let when = (prop_oneof![0i64..200, Just(1i64 << 58)], prop_oneof![Just(0i64), 0i64..50, Just(1i64 << 58)]);
    (what, when, 0u32..5, 0i32..3).prop_map(|((n, returns, cpu, pid), (ts, dur), arg, ret)| {
        let call = (line::TRAP..=line::SCHED_RETURN).contains(&NUMBERS[n]);
        let event = NUMBERS[n] | if call && returns { RETURN_BIT } else { 0 };
        let name = if event == line::OPEN_CALL { 2 } else { 1 };
        Event {
            ts: Time(ts),
            dur: Time(if matches!(class(event), Class::Point | Class::Switch) { dur & 1 } else { dur }),
            what: What::of(event),
            cpu: CpuId::new(cpu),
            pid: Pid::new(pid),
            arg,
            ret,
            name: NameId(name),
            ..Event::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200) as u32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn spans_of_any_events_cover_all_time(mut list in proptest::collection::vec(any_event(), 1..60), format in 3u32..6) {
        let mut names = Names::default();
        names.id("name");
        names.id("4/stat");
        list.sort_by_key(|e| e.ts);
        let intervals = [0, 1].map(|cpu| Interval { cpu: CpuId::new(cpu), from: Time::ZERO, to: Time(300) }).into();
        let meta = Meta { format, intervals, ..Meta::default() };
        let mut builder = Builder::new(&meta, names);
        list.iter().for_each(|e| builder.push(e));
        let (spans, tally) = builder.finish(meta.clone());
        prop_assert_eq!(check(&spans, &meta.intervals, &tally), [""; 0]);
    }
}
