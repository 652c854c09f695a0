// SPDX-License-Identifier: BSD-3-Clause
//! Raw files decode to the events that were recorded.

use std::collections::{BTreeMap, BTreeSet};

use kutrace_format::abi::event::{
    self, TaskState, IRQ, IRQ_RETURN, RUNNABLE, SCHED, SCHED_RETURN, SOFTIRQ, SOFTIRQ_RETURN, SWITCH, SYSCALL32,
    SYSCALL_RETURN, TRAP, TRAP_RETURN,
};
use kutrace_format::abi::word::Call;
use kutrace_format::file::{NameKind, FLAG_WRAPPED};
use kutrace_tests::{Random, TraceBuilder};
use postprocess::event::names::Names;
use postprocess::event::what::What;
use postprocess::event::{number, Event, Events, Interval, Meta};
use postprocess::id::CpuId;
use postprocess::raw;
use postprocess::raw::maps::Place;
use postprocess::source;
use postprocess::time::Time;
use proptest::prelude::*;

/// All events of a file but names known from the start, each with its name.
fn decode(trace: &TraceBuilder) -> (Vec<(Event, String)>, Meta) {
    let Events { meta, names, events } = source::decode(&trace.bytes()).unwrap();
    let named = |e: Event| match e.what {
        What::Fact(fact) => (e, fact.text(names.text(e.name)).into_owned()),
        _ => (e, names.text(e.name).to_string()),
    };
    (events.into_iter().filter(|e| e.ts >= Time::ZERO).map(named).collect(), meta)
}

/// `ts dur event arg ret name`, for comparison.
fn brief((e, name): &(Event, String)) -> String {
    format!("{} {} {:x} {} {} {name}", e.ts, e.dur, e.event(), e.arg, e.ret)
}

/// The brief form of all events after the statement of who runs.
fn briefs(trace: &TraceBuilder) -> Vec<String> {
    let (events, meta) = decode(trace);
    assert_eq!(meta.quality, [""; 0]);
    events.iter().skip_while(|(e, _)| e.ts == Time::ZERO && e.dur == Time(1)).map(brief).collect()
}

#[test]
fn a_stream_begins_with_who_runs_at_the_start_of_the_trace() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(4_194_303, "a b", None).entry(700, IRQ + 0xec, &[]);
    let (events, meta) = decode(&trace);
    let all: Vec<String> = events.iter().map(brief).collect();
    assert_eq!(all, ["0 1 2 4194303 0 a_b", "0 1 200 4194303 0 a_b.4194303", "700 0 5ec 0 0 local_timer"]);
    assert_eq!(events[2].0.pid.number(), 4_194_303);
    assert_eq!(meta.intervals, [Interval { cpu: CpuId::new(0), from: Time::ZERO, to: Time(1000) }]);
}

#[test]
fn a_folded_call_keeps_argument_duration_and_small_value() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).folded(10, 39, 5, 20, -2).folded(40, 1, 65_535, 1, 127);
    assert_eq!(briefs(&trace), ["10 20 827 5 -2 getpid", "40 1 801 65535 127 write"]);
}

#[test]
fn a_sent_interrupt_keeps_target_and_vector() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).entry(10, event::IPI, &[0xfd_0003]).entry(20, event::IPI, &[300]);
    assert_eq!(briefs(&trace), ["10 1 207 3 253 sendipi", "20 1 207 300 0 sendipi"]);
}

#[test]
fn reasons_to_wait_quotas_and_work_on_the_way_out_are_named() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(7, "a", None);
    cpu.entry(10, event::WAIT, &[event::WAIT_FROZEN]).entry(20, event::WAIT, &[event::WAIT_SUPERVISOR]);
    cpu.entry(30, event::WAIT, &[99]).entry(40, event::THROTTLE, &[5 << 20 | 70_000]);
    cpu.entry(50, event::UNTHROTTLE, &[5 << 20 | 70_000]).entry(60, event::EXIT_WORK, &[event::WORK_SIGNAL]);
    cpu.entry(70, event::EXIT_WORK_RETURN, &[event::WORK_SIGNAL]);
    let expected = [
        "10 1 225 1 0 wait_frozen",
        "20 1 225 7 0 wait_supervisor",
        "30 1 225 99 0 wait_99",
        "40 1 223 70000 5 throttle",
        "50 1 224 70000 5 unthrottle",
        "60 1 22a 1 0 exit_work",
        "70 1 22b 1 0 /exit_work",
    ];
    assert_eq!(briefs(&trace), expected);
}

#[test]
fn a_threads_control_group_is_said_where_it_is_new() {
    let mut trace = TraceBuilder::new(1, 1000);
    let words = |group: u32| [7, 7, group << 16 | 0xffff, u32::from_le_bytes(*b"a\0\0\0"), 0, 0, 0];
    let cpu = trace.cpu(0).running(7, "a", None).entry(10, event::TASK, &words(0)).entry(20, event::TASK, &words(9));
    cpu.entry(30, event::TASK, &words(9)).entry(40, event::TASK, &words(0));
    assert_eq!(briefs(&trace), ["20 1 108 7 0 9", "40 1 108 7 0 0"]);
}

#[test]
fn a_vector_has_the_name_that_it_has_at_that_time_whoever_says_so() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.name_on(0, 0x21, "net");
    let vector = event::Vector::of(0, 0x21).0;
    let cpu = trace.cpu(0).entry(10, IRQ + 0x21, &[]).entry(20, IRQ_RETURN + 0x21, &[]);
    cpu.entry(40, IRQ + 0x21, &[]).entry(50, IRQ_RETURN + 0x21, &[]);
    cpu.entry(70, IRQ + 0x21, &[]).entry(80, IRQ_RETURN + 0x21, &[]);
    trace.cpu(1).name(30, event::NAME_VECTOR, vector, "disk, other").name(60, event::NAME_VECTOR, vector, "");
    let said = briefs(&trace);
    let named: Vec<_> = said.iter().filter(|line| line.contains(" 521 ")).collect();
    assert_eq!(named, ["10 0 521 0 0 net", "40 0 521 0 0 disk,_other", "70 0 521 0 0 irq#33"]);
}

#[test]
fn an_interrupt_has_the_name_of_its_vector_on_its_cpu() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.name_on(1, 0x21, "disk");
    trace.cpu(0).entry(10, IRQ + 0x21, &[]).entry(20, IRQ_RETURN + 0x21, &[]);
    trace.cpu(1).entry(30, IRQ + 0x21, &[]).entry(40, IRQ_RETURN + 0x21, &[]);
    let said = briefs(&trace);
    let said: Vec<_> = said.iter().filter(|line| !line.starts_with("0 ")).collect();
    assert_eq!(said, ["10 0 521 0 0 irq#33", "20 0 721 0 0 /irq#33", "30 0 521 0 0 disk", "40 0 721 0 0 /disk"]);
}

#[test]
fn a_large_return_value_keeps_its_low_32_bits() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0);
    cpu.call(10, 0, 3).entry(20, SYSCALL_RETURN, &[4096]).call(30, 0, 3).entry(40, SYSCALL_RETURN, &[-200i32 as u32]);
    let said = briefs(&trace);
    assert_eq!(said[1], "20 0 a00 0 4096 /read");
    assert_eq!(said[3], "40 0 a00 0 -200 /read");
}

#[test]
fn a_small_return_belongs_to_the_open_call_of_its_thread_on_any_cpu() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.cpu(0).running(7, "a", None).call(10, 202, 1).switch(20, 8, "b").call(50, 0, 1);
    trace.cpu(1).running(0, "", None).switch(100, 7, "a").small_return(130, -4);
    trace.cpu(0).small_return(140, 3);
    let said = briefs(&trace);
    assert_eq!(said.last().unwrap(), "140 0 a00 0 3 /read");
    assert_eq!(said[said.len() - 2], "130 0 aca 0 -4 /futex");
}

#[test]
fn a_return_without_a_number_belongs_to_the_open_call() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "a", None).call(10, 202, 1).entry(30, event::OPEN_RETURN, &[4096]);
    assert_eq!(briefs(&trace), ["10 0 8ca 1 0 futex", "30 0 aca 0 4096 /futex"]);
}

#[test]
fn a_32_bit_call_has_a_number_of_its_own_and_so_has_its_return() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.name(NameKind::Syscall32, 20, "getpid");
    let open = [Call::open(1)];
    let cpu = trace.cpu(0).running(7, "a", None);
    cpu.entry(10, SYSCALL32 + 20, &open).small_return(20, 7);
    cpu.entry(30, SYSCALL32 + 45, &open).entry(50, event::OPEN_RETURN, &[0x804_b000]);
    cpu.entry(60, SYSCALL32 + 20, &[Call::fold(open[0], 5, 7).unwrap()]);
    let said = briefs(&trace);
    assert_eq!(said[..2], ["10 0 c14 1 0 getpid", "20 0 e14 0 7 /getpid"]);
    assert_eq!(said[2..4], ["30 0 c2d 1 0 s32#45", "50 0 e2d 0 134524928 /s32#45"]);
    assert_eq!(said[4..], ["60 5 c14 1 7 getpid"]);
}

#[test]
fn a_thread_can_be_inside_a_32_bit_call_at_the_start() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.name(NameKind::Syscall32, 240, "futex");
    trace.cpu(0).running(7, "a", Some(TaskState::COMPAT + 240)).small_return(10, 0);
    let (events, _) = decode(&trace);
    let last: Vec<String> = events.iter().skip(1).map(brief).collect();
    assert_eq!(last, ["0 1 200 7 0 a.7", "0 1 107 7 0 1264/futex", "10 0 ef0 0 0 /futex"]);
}

#[test]
fn a_thread_that_ended_leaves_no_call_to_the_next_with_its_pid() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "a", None).call(10, 0, 3).entry(20, event::EXIT, &[9]).switch(30, 8, "b");
    trace.cpu(0).task(60, 7, "c", Some(56)).switch(70, 7, "c").small_return(100, 0);
    let said = briefs(&trace);
    assert_eq!(said[1], "20 1 220 9 0 exit");
    assert_eq!(said.last().unwrap(), "100 0 a38 0 0 /clone");
}

#[test]
fn a_sample_is_named_after_its_address() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).entry(10, event::PC_USER, &[0x401_136, 0]).entry(20, event::PC_KERNEL, &[0x8100_1040, 0xffff_ffff]);
    assert_eq!(briefs(&trace), ["10 0 280 68 0 PC=000000401136", "20 0 281 65 0 PC=ffffffff81001040"]);
}

#[test]
fn a_sample_of_the_kernel_is_named_after_the_function_that_starts_last_before_it() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.symbol(0xffff_ffff_8100_1000, "first");
    trace.symbol(0xffff_ffff_8100_1040, "second");
    let cpu = trace.cpu(0);
    cpu.entry(10, event::PC_KERNEL, &[0x8100_103f, 0xffff_ffff]).entry(
        20,
        event::PC_KERNEL,
        &[0x8100_1040, 0xffff_ffff],
    );
    cpu.entry(30, event::PC_KERNEL, &[0x8100_0fff, 0xffff_ffff]).entry(40, event::PC_USER, &[0x8100_1040, 0xffff_ffff]);
    let expected = [
        "10 0 281 20082 0 PC=first",
        "20 0 281 58510 0 PC=second",
        "30 0 281 63 0 PC=ffffffff81000fff",
        "40 0 280 65 0 PC=ffffffff81001040",
    ];
    assert_eq!(briefs(&trace), expected);
}

#[test]
fn a_sample_of_a_program_is_named_after_its_place_in_a_file_or_the_function_there() {
    let mut trace = TraceBuilder::new(1, 1000);
    // From count 40 on, at 477 ns of the monotonic clock, the process has another file there.
    trace.name(NameKind::Map, 7, "401000-402000 1000 0 ab /bin/before");
    trace.name(NameKind::Map, 7, "401000-402000 2000 1dd cd /bin/after");
    trace.name(NameKind::Map, 8, "500000-501000 0 0 ef /bin/other");
    let cpu = trace.cpu(0).running(7, "a", None);
    cpu.entry(39, event::PC_USER, &[0x401_136, 0]).entry(40, event::PC_USER, &[0x401_136, 0]);
    cpu.entry(50, event::PC_USER, &[0x500_000, 0]).entry(60, event::PC_KERNEL, &[0x401_136, 0]);
    let expected = [
        "39 0 280 43081 0 PC=before+0x1136",
        "40 0 280 61028 0 PC=after+0x2136",
        "50 0 280 16384 0 PC=000000500000",
        "60 0 281 68 0 PC=000000401136",
    ];
    assert_eq!(briefs(&trace), expected);

    let bytes = trace.bytes();
    let mut trace = source::trace(&bytes).unwrap();
    let place = |path: &str, identity: &str, offset| Place { path: path.into(), identity: identity.into(), offset };
    let after = place("/bin/after", "cd", 0x2136);
    let places = [after.clone(), place("/bin/before", "ab", 0x1136), place("/bin/other", "ef", 0)];
    assert_eq!(trace.places(), BTreeSet::from(places));
    trace.tell(&BTreeMap::from([(after, "main::<u8, 3>".to_string())]));
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let samples = std::iter::from_fn(|| decoder.next(&mut names)).filter(|e| e.event() == number::PC_USER);
    let samples: Vec<_> = samples.map(|e| e.name).collect();
    let texts: Vec<_> = samples.into_iter().map(|name| names.text(name)).collect();
    assert_eq!(texts, ["PC=before+0x1136", "PC=main::<u8,_3>", "PC=000000500000"]);
}

#[test]
fn a_return_without_a_known_call_says_so() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "a", None).small_return(10, 0);
    assert_eq!(briefs(&trace), ["10 0 bfe 0 0 /syscall"]);
}

#[test]
fn a_block_header_tells_the_call_a_thread_is_inside_at_the_start() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "a", Some(202)).small_return(10, 0);
    let (events, _) = decode(&trace);
    let last: Vec<String> = events.iter().skip(1).map(brief).collect();
    assert_eq!(last, ["0 1 200 7 0 a.7", "0 1 107 7 0 202/futex", "10 0 aca 0 0 /futex"]);
}

#[test]
fn a_task_record_tells_the_call_a_thread_sleeps_in() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).task(5, 7, "a", Some(202)).switch(10, 7, "a").small_return(40, 0);
    let said = briefs(&trace);
    assert_eq!(said[..2], ["5 1 2 7 0 a", "5 1 107 7 0 202/futex"]);
    assert_eq!(said.last().unwrap(), "40 0 aca 0 0 /futex");
}

#[test]
fn a_record_of_a_call_that_has_returned_is_not_believed() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "a", None).folded(10, 39, 0, 5, 0).switch(30, 8, "b").task(60, 7, "a", Some(39));
    trace.cpu(0).switch(60, 7, "a");
    assert!(!briefs(&trace).iter().any(|e| e.contains(" 107 ")));
}

#[test]
fn a_record_of_another_call_than_the_open_one_tells_of_calls_that_nobody_saw() {
    let mut trace = TraceBuilder::new(2, 1_000);
    trace.cpu(0).running(7, "a", None).call(10, 202, 3).switch(20, 0, "swapper");
    // It ran elsewhere, on a CPU that lost that, and sleeps in `read`.
    trace.cpu(1).task(500, 7, "a", Some(0)).switch(510, 7, "a").small_return(540, 5);
    let said = briefs(&trace);
    assert!(said.iter().any(|line| line.contains("0/read")), "{said:?}");
    assert!(said.last().unwrap().contains("/read"), "{said:?}");
    assert_eq!(said.iter().filter(|line| line.contains("/futex")).count(), 0, "{said:?}");
}

#[test]
fn a_record_of_an_exited_threads_pid_is_another_thread() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "a", None).call(10, 231, 0).switch(30, 8, "b").task(60, 7, "b", Some(56));
    trace.cpu(0).switch(70, 7, "b").small_return(100, 0);
    assert_eq!(briefs(&trace).last().unwrap(), "100 0 a38 0 0 /clone");
}

#[test]
fn events_after_the_stop_belong_to_the_trace_of_every_cpu() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.cpu(0).entry(100, RUNNABLE, &[1]);
    trace.cpu(1).entry(1200, RUNNABLE, &[1]);
    let (_, meta) = decode(&trace);
    assert_eq!(meta.intervals.iter().map(|i| i.to.0).collect::<Vec<_>>(), [1200, 1200]);
}

#[test]
fn a_renamed_thread_has_its_new_name_from_then_on() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "sh", None).call(10, 59, 0).task(20, 7, "ls", Some(59)).small_return(30, 0);
    trace.cpu(0).switch(40, 0, "").switch(70, 7, "ls");
    let said = briefs(&trace);
    assert!(said.contains(&"20 1 2 7 0 ls".to_string()), "{said:?}");
    assert!(said.contains(&"30 0 a3b 0 0 /execve".to_string()), "{said:?}");
    assert!(said.contains(&"80 0 200 7 0 ls.7".to_string()), "{said:?}");
}

#[test]
fn a_switch_between_two_threads_that_load_programs_is_a_switch() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0).running(7, "sh", None).call(10, 59, 4).entry(20, SCHED, &[]);
    cpu.task(25, 8, "sh", Some(59)).entry(25, SWITCH, &[8]).entry(30, SCHED_RETURN, &[]);
    cpu.switch(40, 7, "sh").small_return(70, 0);
    let said = briefs(&trace);
    assert!(!said.iter().any(|e| e.contains(" 1 200 8 ")), "{said:?}");
    assert_eq!(said.last().unwrap(), "70 0 a3b 0 0 /execve");
}

#[test]
fn a_thread_that_loads_a_program_becomes_the_first_of_its_threads() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(8, "sh", None).call(10, 59, 4).task(20, 7, "sh", Some(59)).small_return(30, 0);
    let said = briefs(&trace);
    assert!(said.contains(&"20 1 200 7 0 sh.7".to_string()), "{said:?}");
    assert_eq!(said.last().unwrap(), "30 0 a3b 0 0 /execve");
}

#[test]
fn what_a_program_named_has_its_name_from_then_on() {
    let mut trace = TraceBuilder::new(1, 1000);
    let cpu = trace.cpu(0);
    cpu.entry(10, event::LOCK_TRY, &[70_000]).name(20, number::LOCK_NAME, 70_000, "big lock").entry(
        30,
        event::LOCK_RELEASED,
        &[70_000],
    );
    cpu.name(40, number::METHOD_NAME, 5 << 16, "get").entry(50, event::RPC_REQUEST, &[99 << 16 | 5]);
    cpu.entry(60, event::ENQUEUE, &[3]).name(70, number::QUEUE_NAME, 3, "in").entry(80, event::ENQUEUE, &[3]).entry(
        90,
        event::DEQUEUE,
        &[4],
    );
    cpu.name(100, number::RESOURCE_NAME, 1, &"x".repeat(56)).entry(110, event::RESOURCE, &[1]);
    let said = briefs(&trace);
    assert_eq!(said[..3], ["10 1 210 70000 0 try_70000", "20 1 7 70000 0 big_lock", "30 1 212 70000 0 rel_big_lock"]);
    assert_eq!(said[3..5], ["40 1 3 327680 0 get", "50 1 201 6488069 0 get.5"]);
    assert_eq!(said[5..9], ["60 1 21a 3 0 enq", "70 1 105 3 0 in", "80 1 21a 3 0 enq_in", "90 1 21b 4 0 deq"]);
    assert_eq!(said[10], format!("110 1 219 1 0 res_{}", "x".repeat(56)));
}

#[test]
fn a_program_names_nothing_of_the_kernel() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace
        .cpu(0)
        .running(7, "a", None)
        .name(10, number::PID_NAME, 7, "b")
        .name(20, number::SYSCALL_NAME, 39, "b")
        .folded(30, 39, 0, 5, 1);
    assert_eq!(briefs(&trace), ["30 5 827 0 1 getpid"]);
}

#[test]
fn softirqs_have_the_original_number_and_their_own_names_on_both_ends() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).entry(10, SOFTIRQ + 3, &[]).entry(20, SOFTIRQ_RETURN + 3, &[]);
    assert_eq!(briefs(&trace), ["10 0 5ff 3 0 BH:rx", "20 0 7ff 3 0 /BH:rx"]);
}

#[test]
fn a_gap_longer_than_20_bits_is_bridged() {
    let mut trace = TraceBuilder::new(1, 5_000_000_000);
    trace.cpu(0).entry(1_048_575, IRQ + 0xec, &[]).entry(4_000_000_000, IRQ_RETURN + 0xec, &[]);
    assert_eq!(briefs(&trace), ["1048575 0 5ec 0 0 local_timer", "4000000000 0 7ec 0 0 /local_timer"]);
}

#[test]
fn events_of_all_cpus_come_in_order_of_time_and_equal_times_by_cpu() {
    let mut trace = TraceBuilder::new(3, 1000);
    for cpu in [2, 0, 1] {
        for at in [100, 200, 200 + u64::from(cpu)] {
            trace.cpu(cpu).entry(at, RUNNABLE, &[1]);
        }
    }
    let (events, _) = decode(&trace);
    let order: Vec<_> = events.iter().map(|(e, _)| (e.ts, e.cpu)).collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn lost_events_open_a_gap_that_lasts_to_the_next_block() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.cpu(0).running(7, "a", None).call(10, 0, 3).lose(5).skip(0, 300).running(8, "b", None);
    trace.cpu(0).entry(400, IRQ + 0xec, &[]);
    let (events, meta) = decode(&trace);
    let last: Vec<String> = events.iter().skip(2).map(brief).collect();
    assert_eq!(last[..2], ["10 0 800 3 0 read", "10 0 30000 5 0 -lost-"]);
    assert_eq!(last[2..], ["310 1 2 8 0 b", "310 1 200 8 0 b.8", "400 0 5ec 0 0 local_timer"]);
    assert_eq!((meta.lost, meta.quality.len()), (5, 0), "what was counted as lost is not damage");
}

#[test]
fn an_nmi_that_begins_a_block_before_a_switch_is_done_does_not_bring_the_thread_back() {
    // Between the record of a switch and the switch an NMI may come, but no interrupt.
    for (begin, end, back) in [(TRAP + 2, TRAP_RETURN + 2, 0), (IRQ + 0xec, IRQ_RETURN + 0xec, 1)] {
        let mut trace = TraceBuilder::new(1, 1000);
        let cpu = trace.cpu(0).running(7, "a", None).entry(10, SCHED, &[]).entry(20, SWITCH, &[8]);
        cpu.entry(30, begin, &[]).next_block().entry(40, end, &[]);
        cpu.running(8, "b", None).entry(50, SCHED_RETURN, &[]).entry(60, RUNNABLE, &[9]);
        let (events, meta) = decode(&trace);
        assert_eq!(meta.quality.len(), back, "{:?}", meta.quality);
        let after = events.iter().filter(|(e, _)| e.ts >= Time(40) && e.what.is_event());
        let pid = if back == 0 { 8 } else { 7 };
        assert!(after.clone().count() >= 3 && after.clone().all(|(e, _)| e.pid.number() == pid), "{events:?}");
    }
}

#[test]
fn a_call_known_on_a_cpu_is_forgotten_when_that_cpu_loses_events() {
    let mut trace = TraceBuilder::new(2, 1000);
    trace.cpu(0).running(7, "a", None).call(10, 0, 3).lose(5);
    trace.cpu(1).switch(100, 7, "a").small_return(130, 0);
    let (events, _) = decode(&trace);
    assert_eq!(brief(events.last().unwrap()), "130 0 bfe 0 0 /syscall");
}

#[test]
fn a_wrapped_trace_begins_with_each_cpus_first_block() {
    let mut trace = TraceBuilder::new(1, 1000);
    trace.header.flags = FLAG_WRAPPED;
    trace.cpu(0).entry(300, RUNNABLE, &[1]).overwritten().entry(400, RUNNABLE, &[2]);
    let (events, meta) = decode(&trace);
    assert_eq!(meta.intervals, [Interval { cpu: CpuId::new(0), from: Time(300), to: Time(1000) }]);
    assert_eq!((events[0].0.ts.0, meta.quality.len()), (300, 0));
}

#[test]
fn times_count_from_the_minute_of_the_start_even_if_all_blocks_are_younger() {
    let mut trace = TraceBuilder::new(1, 30_000_000_000);
    trace.header.flags = FLAG_WRAPPED;
    trace.cpu(0).entry(20_000_000_000, RUNNABLE, &[1]).overwritten().entry(20_000_000_001, RUNNABLE, &[2]);
    let bytes = trace.bytes();
    let raw = raw::parse(&bytes).unwrap();
    assert_eq!(raw.block_lines()[0].ts, Time::ZERO);
    let (events, meta) = decode(&trace);
    assert_eq!((meta.base.as_str(), events[0].0.ts.0), ("2026-11-20_15:14:00", 20_000_000_000));
}

/// Entries of every kind that has no meaning for others, by number and argument.
fn plain(random: &mut Random) -> (u16, Vec<u32>) {
    match random.below(4) {
        0 => (event::TRAP + random.below(256) as u16, vec![]),
        1 => (IRQ_RETURN + random.below(255) as u16, vec![]),
        2 => {
            let (number, word) = (event::SPECIAL + 1 + random.below(127) as u16, random.below(1 << 32) as u32);
            (number, vec![if number == event::IPI { word & 0xff_ffff } else { word }])
        }
        _ => (event::SYSCALL_RETURN + random.below(510) as u16, vec![random.below(1 << 32) as u32]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_recorded_is_decoded(seed: u64, count in 1usize..400, words in 40usize..200) {
        let mut random = Random(seed | 1);
        let mut trace = TraceBuilder::new(4, 1 << 40);
        let (mut at, mut recorded) = (0, Vec::new());
        for cpu in 0..4 {
            trace.cpu(cpu).small_blocks(words);
        }
        for _ in 0..count {
            let cpu = random.below(4) as u32;
            at += if random.below(9) == 0 { random.below(1 << 22) } else { random.below(99) };
            let (number, words) = plain(&mut random);
            trace.cpu(cpu).entry(at, number, &words);
            recorded.push((at as i64, cpu, u32::from(number), words.first().copied().unwrap_or(0)));
        }
        recorded.sort_by_key(|r| (r.0, r.1));
        let (events, meta) = decode(&trace);
        prop_assert_eq!(meta.quality, [""; 0]);
        let decoded: Vec<_> = events
            .iter()
            .filter(|(e, _)| e.event() > number::SWITCH)
            .map(|(e, _)| (e.ts.0, e.cpu.number(), e.event(), value(e)))
            .collect();
        prop_assert_eq!(decoded, recorded);
    }
}

/// The argument word of an event made by [`plain`].
fn value(e: &Event) -> u32 {
    let returned = matches!(e.event(), number::SYSCALL_RETURN..=number::SYSCALL_RETURN_LAST);
    match e.ret as u32 {
        vector if e.event() == number::IPI => e.arg | vector << 16,
        cpu if e.event() == number::THROTTLE || e.event() == number::UNTHROTTLE => e.arg | cpu << 20,
        ret if returned => ret,
        _ => e.arg,
    }
}
