// SPDX-License-Identifier: BSD-3-Clause
//! The same program recorded by the hooks of a kernel, and then by its tracepoints: both traces agree about it, except
//! for the facts that the second declares it cannot show.

use std::collections::BTreeMap;
use std::fmt::Debug;

use kutrace_format::capability::{Capability, Unseen};
use postprocess::event::number::{SCHED, SYSCALL, SYSCALL32, SYSCALL_LAST, TRAP, TRAP_LAST};
use postprocess::event::work::Work;
use postprocess::id::Pid;
use postprocess::span::what::{Activity, Arc, What};
use postprocess::span::{Span, NONE};
use postprocess::time::Time;

use crate::guest;
use crate::trace::Recording;

/// The program's marks: calls of sched_get_priority_max.
const MARK: u32 = SYSCALL + 146;
const FIRST: u32 = 40_001;
const LAST: u32 = 40_002;

/// Acts of the program's threads between the marks; a thread is its place in the order of their numbers.
#[derive(Debug)]
struct Story {
    /// For each thread: its activities, one after the other, with argument and value.
    did: Vec<Vec<(u32, i64, i64)>>,
    /// For each thread: the number of events of each number.
    counts: Vec<BTreeMap<u32, usize>>,
    /// Order in which threads ran after each other.
    order: Vec<usize>,
    /// Wakers and woken threads.
    wakeups: Vec<(usize, usize)>,
    /// For each thread: the reasons of its waits, except for the CPU.
    waits: Vec<Vec<String>>,
}

impl Story {
    /// Facts of a trace that a source without these capabilities can show.
    fn of(trace: &Recording, unseen: Unseen) -> Story {
        let pids: Vec<Pid> = trace.pids_of("steady").into_iter().collect();
        let place = |pid: Pid| pids.iter().position(|known| *known == pid);
        let at = |mark| trace.of(MARK).find(|e| e.arg == mark).unwrap_or_else(|| panic!("no mark {mark}")).ts;
        let between = at(FIRST)..at(LAST);
        let spans: Vec<(usize, &Span)> = trace
            .spans
            .spans
            .iter()
            .filter(|s| between.contains(&s.start))
            .filter_map(|s| Some((place(s.pid?)?, s)))
            .collect();
        let mut story = Story {
            did: vec![Vec::new(); pids.len()],
            counts: vec![BTreeMap::new(); pids.len()],
            order: Vec::new(),
            wakeups: Vec::new(),
            waits: vec![Vec::new(); pids.len()],
        };
        // A number that is one of the program's threads is not the same in both traces.
        let value = |value: i64| match u32::try_from(value).ok().and_then(|number| place(Pid::new(number))) {
            Some(place) => -1_000_000 - place as i64,
            None => value,
        };
        for (thread, s) in spans {
            match s.what() {
                What::Run(activity) if s.dur > Time::ZERO => {
                    if story.order.last() != Some(&thread) {
                        story.order.push(thread);
                    }
                    add(&mut story.did[thread], activity, s, &value, unseen);
                }
                // Threads of the kernel take the CPU when they like.
                What::Wait(reason) if !reason.could_run() => story.waits[thread].push(trace.span_name(s).to_owned()),
                // On a busy host a timer may wake the thread that has set it before that sleeps.
                What::Arc(Arc::Wakeup { woken, .. }) => {
                    story.wakeups.extend(place(woken).filter(|woken| *woken != thread).map(|woken| (thread, woken)));
                }
                _ => {}
            }
        }
        let calls = [SYSCALL..SYSCALL_LAST + 1, SYSCALL32..SYSCALL32 + (SYSCALL_LAST - SYSCALL), TRAP..TRAP_LAST + 1];
        // The scheduler has a number among those of the calls.
        let is_counted = |number: u32| number != SCHED && calls.iter().any(|calls| calls.contains(&number));
        for e in trace.events.events.iter().filter(|e| between.contains(&e.ts) && is_counted(e.event())) {
            if let Some(thread) = place(e.pid) {
                *story.counts[thread].entry(e.event()).or_default() += 1;
            }
        }
        story
    }
}

/// Adds the contents of a span: a call continues after the spans inside it, user code after an exception. Interrupts
/// are not the program's; the scheduler, exceptions other than page faults, faults in a call and the way out may be
/// missing from a source.
fn add(did: &mut Vec<(u32, i64, i64)>, activity: Activity, s: &Span, value: &dyn Fn(i64) -> i64, unseen: Unseen) {
    let event = s.event() as u32;
    let in_call = did.last().is_some_and(|last| is_call(last.0));
    match activity {
        Activity::User(_) if did.last().is_none_or(|last| last.0 != 0) => did.push((0, NONE, NONE)),
        Activity::Call(Work::Trap(14)) if !in_call && !unseen.has(Capability::ProgramFaults) => {
            did.push((event, NONE, NONE));
        }
        Activity::Call(work) if work.is_call() => match did.last_mut() {
            Some(last) if last.0 == event && last.2 == NONE => last.2 = value(s.ret),
            _ => did.push((event, value(s.arg), value(s.ret))),
        },
        _ => {}
    }
}

fn is_call(event: u32) -> bool {
    event >= SYSCALL
}

/// Two lists must not differ; the first difference, and its surroundings, are printed.
fn same<T: PartialEq + Debug>(what: &str, these: &[T], those: &[T]) {
    let first = these.iter().zip(those).position(|(one, other)| one != other);
    let around =
        |list: &[T], at: usize| format!("{:?}", &list[at.saturating_sub(4).min(list.len())..list.len().min(at + 4)]);
    let at = first.unwrap_or(these.len().min(those.len()));
    let (one, other) = (around(these, at), around(those, at));
    assert!(
        these == those,
        "{what}: {at} of {} and {}: by hooks {one}, by tracepoints {other}",
        these.len(),
        those.len()
    );
}

#[test]
fn hooks_and_tracepoints_say_the_same_of_a_program() {
    let run = guest::succeed(
        &["--kernel", "distribution", "--cpus", "1", "--no-load"],
        r#"
        cd /tmp
        cp $BIN/steady .
        sysctl -q kernel.sched_rt_runtime_us=-1 kernel.numa_balancing=0 2>/dev/null || true
        # The neighbouring pages that a fault maps depend on the parts of the libraries read so far.
        setarch -R ./steady
        for source in hooks tracepoints; do
            insmod $KUTRACE_MODULE source=$source
            kutrace_control go
            setarch -R ./steady
            kutrace_control stop $SHARE/$source.raw
            rmmod kutrace
        done
        "#,
    );
    let [hooks, tracepoints] =
        ["hooks", "tracepoints"].map(|name| Recording::read_whole(&run.file(&format!("{name}.raw"))));
    // An emulator's stolen time is not recorded, and no ports were chosen.
    assert_eq!(hooks.events.meta.unseen(), Unseen::of(&[Capability::Packets, Capability::Steal]));
    let unseen = tracepoints.events.meta.unseen();
    for lacks in [Capability::Scheduler, Capability::Exceptions, Capability::KernelFaults, Capability::EntryCode] {
        assert!(unseen.has(lacks), "{lacks:?}");
    }
    let (these, those) = (Story::of(&hooks, unseen), Story::of(&tracepoints, unseen));
    same("order", &these.order, &those.order);
    same("wakeups", &these.wakeups, &those.wakeups);
    // A child of each round; that of the first did nothing between the marks.
    assert_eq!((these.did.len(), those.did.len()), (3, 3));
    for thread in 0..3 {
        same(&format!("thread {thread}"), &these.did[thread], &those.did[thread]);
        same(&format!("waits of thread {thread}"), &these.waits[thread], &those.waits[thread]);
    }
    assert_eq!(these.counts, those.counts);
    // The program has records.
    let (spans, wakeups, order) = (these.did[0].len(), these.wakeups.len(), these.order.len());
    assert!(spans > 500 && wakeups >= 100 && order >= 100, "{spans} spans, {wakeups} wakeups, {order} changes");
}
