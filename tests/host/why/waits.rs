// SPDX-License-Identifier: BSD-3-Clause
//! A request waits for a thread, and that for another or a device: all of them are named.

use kutrace_format::abi::event::{
    IPI, IRQ, IRQ_RETURN, LOCK_ACQUIRED, LOCK_TRY, RUNNABLE, SOFTIRQ, SOFTIRQ_RETURN, WAIT, WAIT_DIRTY,
};
use kutrace_format::file::{NameKind, FILE_AT_END, FILE_AT_START};
use kutrace_tests::TraceBuilder;
use postprocess::event::number::LOCK_NAME;
use postprocess::id::Pid;
use postprocess::why::request::Ask;
use postprocess::why::timeline::Unseen;
use postprocess::why::{explain, Timeline};

use super::planted::{asked, assert_first, holder_in_fsync, made, made_with, question, trace_of, REQUESTS, SLOW, STEP};
use super::spans;

#[test]
fn a_lock_is_told_with_who_had_it() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
        trace.cpu(1).call(at + 4_000, 202, 1).entry(at + 4_010, RUNNABLE, &[100]).small_return(at + 4_020, 1);
        trace.cpu(0).switch(at + 4_030, 100, "worker").small_return(at + 4_060, 0);
        at + 4_060
    });
    assert_first(&bytes, "waiting for a lock of other.200, meanwhile user code", "other.200");
}

#[test]
fn a_lock_that_its_program_names_is_told_by_its_name() {
    let bytes = trace_of(|trace, at| {
        if at < STEP {
            trace.cpu(0).name(at, LOCK_NAME, 3, "book");
        }
        trace.cpu(0).entry(at + 5, LOCK_TRY, &[3]).call(at + 10, 202, 5).switch(at + 20, 0, "");
        trace.cpu(1).call(at + 4_000, 202, 1).entry(at + 4_010, RUNNABLE, &[100]).small_return(at + 4_020, 1);
        trace.cpu(0).switch(at + 4_030, 100, "worker").small_return(at + 4_060, 0);
        trace.cpu(0).entry(at + 4_070, LOCK_ACQUIRED, &[3]);
        at + 4_070
    });
    assert_first(&bytes, "waiting for the lock book of other.200, meanwhile user code", "other.200");
}

/// The interrupt of a device comes to another CPU than that which waits for it, as those of disks do.
#[test]
fn a_device_is_told_though_it_interrupts_another_cpu() {
    let of = |softirq: bool| {
        trace_of(move |trace, at| {
            if at < STEP {
                trace.name(NameKind::Irq, 0xfb, "call_function_single_ipi");
                trace.name(NameKind::Syscall, 74, "fsync");
            }
            trace.cpu(0).call(at + 10, 74, 4).switch(at + 20, 0, "");
            let device = trace.cpu(1).entry(at + 4_000, IRQ + 0x24, &[]).entry(at + 4_010, IPI, &[0]);
            device.entry(at + 4_020, IRQ_RETURN + 0x24, &[]);
            let left = trace.cpu(0).entry(at + 4_030, IRQ + 0xfb, &[]);
            if softirq {
                left.entry(at + 4_035, IRQ_RETURN + 0xfb, &[]).entry(at + 4_040, SOFTIRQ + 4, &[]);
            }
            left.entry(at + 4_050, RUNNABLE, &[100]);
            left.entry(at + 4_060, if softirq { SOFTIRQ_RETURN + 4 } else { IRQ_RETURN + 0xfb }, &[]);
            left.switch(at + 4_070, 100, "worker").small_return(at + 4_100, 0);
            at + 4_100
        })
    };
    for softirq in [false, true] {
        assert_first(&of(softirq), "waiting for the disk (irq#36)", "irq#36");
    }
}

#[test]
fn a_holder_of_a_lock_that_lost_its_cpu_is_told_with_who_had_that() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
        trace.cpu(1).switch(at + 30, 300, "hog").task(at + 60, 300, "hog", None).switch(at + 4_900, 200, "other");
        trace.cpu(1).call(at + 4_930, 202, 1).entry(at + 4_940, RUNNABLE, &[100]).small_return(at + 4_950, 1);
        trace.cpu(0).switch(at + 4_960, 100, "worker").small_return(at + 4_990, 0);
        at + 4_990
    });
    assert_first(&bytes, "waiting for a lock of other, meanwhile waiting for a CPU that ran hog.300", "hog.300");
}

#[test]
fn a_holder_of_a_lock_that_waits_for_the_disk_is_told_with_the_disk() {
    let bytes = trace_of(holder_in_fsync);
    let cause = "waiting for a lock of other.200, meanwhile waiting for the disk (irq#36)";
    assert_first(&bytes, cause, "other.200");
    let why = asked(&bytes, &Ask::Mark("q".into()));
    assert_eq!(why.compared.unwrap().causes[0].detail, ["asleep in sys#74 100 %", "lock 0x...0005"]);
}

/// A thread that computes starts another one, which answers and ends.
#[test]
fn who_is_not_born_yet_waits_for_whoever_starts_it() {
    let mut pid = 300;
    let bytes = trace_of(|trace, at| {
        pid += 1;
        trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
        let parent = trace.cpu(1).call(at + 4_000, 56, 0).entry(at + 4_010, RUNNABLE, &[pid]);
        let child =
            parent.small_return(at + 4_020, 9).switch(at + 4_030, pid, "child").task(at + 4_055, pid, "child", None);
        child.call(at + 4_060, 202, 1).entry(at + 4_070, RUNNABLE, &[100]).small_return(at + 4_080, 1);
        child.switch(at + 4_090, 200, "other");
        trace.cpu(0).switch(at + 4_120, 100, "worker").small_return(at + 4_150, 0);
        at + 4_150
    });
    let cause = "waiting for a lock of child, which is to be started by other.200, meanwhile user code";
    assert_first(&bytes, cause, "other.200");
}

#[test]
fn who_writes_too_much_is_held_back_until_a_timer() {
    let bytes = trace_of(|trace, at| {
        trace.cpu(0).call(at + 10, 1, 4).entry(at + 15, WAIT, &[WAIT_DIRTY]).switch(at + 20, 0, "");
        trace.cpu(0).entry(at + 4_000, SOFTIRQ + 1, &[]).entry(at + 4_010, RUNNABLE, &[100]);
        trace.cpu(0).entry(at + 4_020, SOFTIRQ_RETURN + 1, &[]).switch(at + 4_030, 100, "worker");
        trace.cpu(0).small_return(at + 4_060, 9);
        at + 4_060
    });
    let cause = "waiting for the disk until a timer: held back while too much is still to be written";
    assert_first(&bytes, cause, "wait_disk");
}

/// A server is waited for that itself waits for the network; once a timeout ends its wait, and it reads a file, sends
/// something or not, and waits again.
fn waiting_again(trace: &mut TraceBuilder, at: u64, sends: bool) -> u64 {
    if at < STEP {
        let calls = [(3, "close"), (44, "sendto"), (45, "recvfrom"), (232, "epoll_wait"), (257, "openat")];
        calls.into_iter().for_each(|(number, name)| trace.name(NameKind::Syscall, number, name));
    }
    trace.cpu(0).call(at + 10, 45, 5).switch(at + 20, 0, "");
    let server = trace.cpu(1).call(at + 25, 232, 5).switch(at + 30, 0, "").entry(at + 2_500, IRQ + 0xec, &[]);
    server.entry(at + 2_505, RUNNABLE, &[200]).entry(at + 2_510, IRQ_RETURN + 0xec, &[]);
    server.switch(at + 2_520, 200, "other").small_return(at + 2_545, 0);
    server.folded(at + 2_550, 257, 7, 2, 3).folded(at + 2_555, 0, 3, 2, 40).folded(at + 2_560, 3, 3, 2, 0);
    if sends {
        server.folded(at + 2_565, 1, 8, 2, 1);
    }
    server.call(at + 2_570, 232, 5).switch(at + 2_580, 0, "").entry(at + 4_500, SOFTIRQ + 3, &[]);
    server.entry(at + 4_510, RUNNABLE, &[200]).entry(at + 4_520, SOFTIRQ_RETURN + 3, &[]);
    server.switch(at + 4_530, 200, "other").small_return(at + 4_555, 1);
    server.call(at + 4_560, 44, 6).entry(at + 4_565, RUNNABLE, &[100]).small_return(at + 4_570, 1);
    trace.cpu(0).switch(at + 4_580, 100, "worker").small_return(at + 4_610, 9);
    at + 4_610
}

#[test]
fn a_wait_that_a_timeout_ends_and_that_is_taken_up_again_is_one_wait() {
    let waits = "waiting for a pipe or socket of other.200, meanwhile waiting for ";
    let message = format!("{waits}a packet whose sender is not in the trace (BH:rx)");
    assert_first(&trace_of(|trace, at| waiting_again(trace, at, false)), &message, "other.200");
    // Who sends something has not only waited.
    let why = asked(&trace_of(|trace, at| waiting_again(trace, at, true)), &Ask::Mark("q".into()));
    let causes = why.compared.unwrap().causes;
    assert_eq!(causes[0].cause, format!("{waits}time to pass: a sleep or a timeout"));
    assert_eq!(causes[1].cause, message);
}

/// A server waits for a condition variable; once a timeout ends its wait, it unlocks the mutex or does not, and waits for the
/// other futex of the variable.
fn waiting_for_a_condition(trace: &mut TraceBuilder, at: u64, unlocks: bool) -> u64 {
    if at < STEP {
        trace.name(NameKind::Syscall, 44, "sendto");
        trace.name(NameKind::Syscall, 45, "recvfrom");
    }
    trace.cpu(0).call(at + 10, 45, 5).switch(at + 20, 0, "");
    let server = trace.cpu(1).call(at + 25, 202, 0x2c).switch(at + 30, 0, "").entry(at + 2_500, IRQ + 0xec, &[]);
    server.entry(at + 2_505, RUNNABLE, &[200]).entry(at + 2_510, IRQ_RETURN + 0xec, &[]);
    server.switch(at + 2_520, 200, "other").small_return(at + 2_545, -110);
    if unlocks {
        server.folded(at + 2_550, 202, 0x30, 2, 0);
    }
    server.call(at + 2_570, 202, 0x28).switch(at + 2_580, 0, "").entry(at + 4_500, SOFTIRQ + 3, &[]);
    server.entry(at + 4_510, RUNNABLE, &[200]).entry(at + 4_520, SOFTIRQ_RETURN + 3, &[]);
    server.switch(at + 4_530, 200, "other").small_return(at + 4_555, 0);
    server.call(at + 4_560, 44, 6).entry(at + 4_565, RUNNABLE, &[100]).small_return(at + 4_570, 1);
    trace.cpu(0).switch(at + 4_580, 100, "worker").small_return(at + 4_610, 9);
    at + 4_610
}

#[test]
fn both_futexes_of_a_condition_variable_are_one_wait() {
    let causes = |unlocks| {
        let why = asked(&trace_of(|trace, at| waiting_for_a_condition(trace, at, unlocks)), &Ask::Mark("q".into()));
        why.compared.unwrap().causes
    };
    let waits = "waiting for a pipe or socket of other.200, meanwhile waiting for ";
    let joined = causes(true);
    assert_eq!(joined[0].cause, format!("{waits}a packet whose sender is not in the trace (BH:rx)"));
    assert!(joined[0].share > 0.9, "{joined:?}");
    // Without a mutex they are two futexes, next to each other.
    assert_eq!(causes(false)[0].cause, format!("{waits}time to pass: a sleep or a timeout"));
}

#[test]
fn an_own_wait_that_is_taken_up_again_after_the_request_is_not_that_of_the_request() {
    let bytes = trace_of(|trace, at| {
        waiting_again(trace, at, false);
        at + 4_610
    });
    let spans = spans(&bytes);
    let why = explain(&Timeline::new(&spans), &question(Ask::Call("epoll_wait".into()))).unwrap();
    let text = |n: usize| why.causes[n].cause.clone();
    assert_eq!(
        [text(0), text(1)],
        [
            "waiting for time to pass: a sleep or a timeout",
            "waiting for a packet whose sender is not in the trace (BH:rx)"
        ]
    );
}

/// A lock is waited for whose holder waits for another one, and so on.
#[test]
fn of_a_long_row_of_waits_it_is_said_how_many_are_left_out() {
    let of = |threads: u32| {
        let called = |cpu: u32| if cpu == 1 { "other".to_string() } else { format!("p{cpu}") };
        let bytes = made_with(threads + 1, REQUESTS, SLOW, |trace, at| {
            let pid = |cpu: u32| 100 + 100 * cpu;
            for cpu in 0..threads {
                if at < STEP && cpu > 0 {
                    trace.cpu(cpu + 1).running(pid(cpu + 1), &called(cpu + 1), None);
                }
                trace.cpu(cpu).call(at + 10 + u64::from(cpu), 202, 5).switch(at + 20 + u64::from(cpu), 0, "");
            }
            let mut now = at + 4_000;
            for cpu in (1..=threads).rev() {
                trace.cpu(cpu).call(now, 202, 1).entry(now + 5, RUNNABLE, &[pid(cpu - 1)]).small_return(now + 10, 1);
                let name = if cpu == 1 { "worker".to_string() } else { called(cpu - 1) };
                trace.cpu(cpu - 1).switch(now + 20, pid(cpu - 1), &name).small_return(now + 50, 0);
                now += 60;
            }
            now
        });
        asked(&bytes, &Ask::Mark("q".into())).compared.unwrap().causes[0].cause.clone()
    };
    let (first, which) = ("waiting for a lock of other, ", "which is waiting for a lock of ");
    assert_eq!(of(3), format!("{first}{which}p2, {which}p3.400, meanwhile user code"));
    assert_eq!(of(4), format!("{first}... 1 more ..., {which}p3, {which}p4.500, meanwhile user code"));
    assert_eq!(of(5), format!("{first}... 2 more ..., {which}p4, {which}p5.600, meanwhile user code"));
}

/// The holder of a lock has slept since before the recording, and wakes last of all when another thread lets it.
#[test]
fn a_thread_that_slept_before_the_recording_is_told_with_who_wakes_it() {
    let mut slow = 0;
    let bytes = made(REQUESTS, REQUESTS, |trace, at| {
        slow += 1;
        trace.cpu(0).call(at + 10, 202, 5).switch(at + 20, 0, "");
        let other = trace.cpu(1).call(at + 4_000, 202, 1).entry(at + 4_010, RUNNABLE, &[300]);
        let holder = other.small_return(at + 4_020, 1).switch(at + 4_030, 300, "holder");
        let holder = holder.task(at + 4_055, 300, "holder", Some(202)).small_return(at + 4_060, 0);
        let holder = holder.call(at + 4_070, 202, 1).entry(at + 4_080, RUNNABLE, &[100]).small_return(at + 4_090, 1);
        holder.switch(at + 4_100, 200, "other");
        trace.cpu(0).switch(at + 4_110, 100, "worker").small_return(at + 4_140, 0);
        at + 4_140
    });
    assert_eq!(slow, 1);
    let why = asked(&bytes, &Ask::Mark("q".into()));
    let cause = "waiting for a lock of holder, which is waiting for other.200, meanwhile user code";
    assert_eq!(why.compared.unwrap().causes[0].cause, cause);
    // One that is born when it is woken has not slept.
    let born = trace_of(|trace, at| {
        if at < STEP {
            trace.cpu(1).call(at + 10, 56, 5).entry(at + 4_010, RUNNABLE, &[300]).small_return(at + 4_020, 1);
            trace.cpu(1).switch(at + 4_030, 300, "child").task(at + 4_055, 300, "child", None);
        }
        at
    });
    let spans = spans(&born);
    let timeline = Timeline::new(&spans);
    let thread = timeline.thread(Pid::new(300)).unwrap();
    assert!(matches!(timeline.unseen(thread, timeline.extent.0), Some(Unseen::Unborn(..))));
}

/// A thread sleeps in a call until a timer ends it: the object of the call's wait is shown next to it.
#[test]
fn the_descriptor_and_the_lock_of_a_call_are_told_in_which_a_thread_sleeps() {
    for (nr, argument, slept) in [(0, 7, "asleep in read(7) 100 %"), (202, 0x9060, "asleep in futex(0x...9060) 100 %")]
    {
        let bytes = trace_of(|trace, at| {
            trace.cpu(0).call(at + 10, nr, argument).switch(at + 20, 0, "").entry(at + 4_900, IRQ + 0xec, &[]);
            trace.cpu(0).entry(at + 4_910, RUNNABLE, &[100]).entry(at + 4_920, IRQ_RETURN + 0xec, &[]);
            trace.cpu(0).switch(at + 4_930, 100, "worker").small_return(at + 4_960, 0);
            at + 4_990
        });
        let first = asked(&bytes, &Ask::Mark("q".into())).compared.unwrap().causes.remove(0);
        assert!(first.detail.contains(&slept.to_string()), "{first:?}");
    }
}

/// The file of a descriptor has a name in waits during which it was certainly the same as at the start or at the end.
#[test]
fn the_file_of_a_call_is_named_if_it_is_certain() {
    let calls @ [(fsync, _), (close, _), (dup2, _)] = [(74, "fsync"), (3, "close"), (33, "dup2")];
    let both = FILE_AT_START | FILE_AT_END;
    for (when, before, after, named) in [
        (both, None, None, true),
        (FILE_AT_START, None, None, true),
        (FILE_AT_START, Some((close, 7)), None, false),
        (FILE_AT_START, Some((close, 8)), None, true),
        (FILE_AT_START, Some((dup2, 8)), None, false),
        (FILE_AT_START, None, Some((close, 7)), true),
        (FILE_AT_END, Some((close, 7)), None, true),
        (FILE_AT_END, None, Some((close, 7)), false),
        (FILE_AT_END, None, Some((dup2, 8)), false),
        (both, Some((close, 7)), Some((close, 7)), false),
    ] {
        let bytes = trace_of(|trace, at| {
            let is_first = at < STEP;
            if is_first {
                calls.into_iter().for_each(|(nr, name)| trace.name(NameKind::Syscall, nr.into(), name));
                trace.file(100, 7 | when, "/data/a b");
                trace.file(100, 9 | both, "/data/other");
                trace.file(200, 7 | both, "/data/of_another");
            }
            if let Some((nr, descriptor)) = before.filter(|_| is_first) {
                trace.cpu(0).call(at + 2, nr, descriptor).small_return(at + 4, 0);
            }
            trace.cpu(0).call(at + 10, fsync, 7).switch(at + 20, 0, "").entry(at + 4_900, IRQ + 0xec, &[]);
            trace.cpu(0).entry(at + 4_910, RUNNABLE, &[100]).entry(at + 4_920, IRQ_RETURN + 0xec, &[]);
            trace.cpu(0).switch(at + 4_930, 100, "worker").small_return(at + 4_960, 0);
            if let Some((nr, descriptor)) = after.filter(|_| at > (REQUESTS - SLOW) * STEP) {
                trace.cpu(0).call(at + 4_970, nr, descriptor).small_return(at + 4_980, 0);
            }
            at + 4_990
        });
        let first = asked(&bytes, &Ask::Mark("q".into())).compared.unwrap().causes.remove(0);
        let slept = if named { "asleep in fsync(7 /data/a_b) 100 %" } else { "asleep in fsync(7) 100 %" };
        assert!(first.detail.contains(&slept.to_string()), "{when:x} {before:?} {after:?}: {first:?}");
    }
}
