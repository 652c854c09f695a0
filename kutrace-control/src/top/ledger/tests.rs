// SPDX-License-Identifier: BSD-3-Clause
//! Results of the ledger for given points.

use super::*;
use crate::follow::{Begin, Piece};
use kutrace_format::abi::event::{TaskState, EXIT, RUNNABLE, SWITCH};
use kutrace_format::abi::word::Call;

const READ: u16 = SYSCALL;
const NANOSLEEP: u16 = SYSCALL + 230;
const TIMER: u16 = IRQ + 236;

/// The window of CPUs, from points as (time, CPU, event, argument), from time 0 up to `to`.
fn window(points: &[(u64, u32, u16, u32)], to: u64) -> (Window, Ledger) {
    let mut skim = Skim::new([]);
    for pid in [0, 5, 6, 7] {
        let state = if pid == 7 { TaskState::KERNEL } else { TaskState::NO_CALL };
        let begin = Begin { counter: 0, pid, comm: [b'x'; 16], state: TaskState(state.into()), gap: false };
        skim.read(Piece { cpu: 9, begin: Some(begin), words: &[], open: true, lost: false });
    }
    let mut ledger = Ledger::new(Unseen::default(), &[]);
    let points: Vec<Point> =
        points.iter().map(|&(at, cpu, event, argument)| Point { at, cpu, event, argument }).collect();
    ledger.take(&points, &skim);
    (ledger.cut(to), ledger)
}

fn use_of(told: &(Window, Ledger), name: &str) -> Use {
    let (window, ledger) = told;
    let of = window.uses.iter().find(|((_, id), _)| ledger.names.text(*id) == name);
    *of.unwrap_or_else(|| panic!("no {name} in {:?}", window.uses)).1
}

#[test]
fn a_cpus_time_is_that_of_what_is_on_top() {
    let told = window(
        &[
            (0, 0, RUNS, 5),
            (100, 0, READ, Call::open(1)),
            (130, 0, TIMER, 0),
            (150, 0, TIMER - IRQ + IRQ_RETURN, 0),
            (200, 0, SMALL_RETURN + 128, 0),
            (300, 0, READ, Call::fold(Call::open(1), 50, 0).unwrap()),
        ],
        1_000,
    );
    let part = Part { user: 100 + 100 + 650, kernel: 80 + 50, interrupts: 20, ..Part::default() };
    assert_eq!(told.0.cpus[&0], part);
    assert_eq!(use_of(&told, "read"), Use { count: 2, total: 130, longest: 80, slowest: 100 });
    assert_eq!(use_of(&told, "local_timer"), Use { count: 1, total: 20, longest: 20, slowest: 20 });
    assert_eq!(told.0.runs[&5], Run { user: 850, kernel: 130, on_cpu: 1_000, runs: 1, longest: 1_000 });
    assert_eq!(told.0.events, 6);
}

#[test]
fn a_thread_comes_back_to_what_it_blocked_in_and_its_waits_have_their_reasons() {
    let told = window(
        &[
            (0, 0, RUNS, 5),
            (100, 0, NANOSLEEP, Call::open(1)),
            (110, 0, SCHED, 0),
            (120, 0, SWITCH, 0),
            (130, 0, SCHED_RETURN, 0),
            (500, 0, TIMER, 0),
            (510, 0, RUNNABLE, 5),
            (520, 0, TIMER - IRQ + IRQ_RETURN, 0),
            (530, 0, SCHED, 0),
            (560, 0, SWITCH, 5),
            (570, 0, SCHED_RETURN, 0),
            (580, 0, SMALL_RETURN + 128, 0),
            (700, 0, SCHED, 0),
            (710, 0, SWITCH, 7),
            (720, 0, SCHED_RETURN, 0),
            (800, 0, EXIT, 0),
            (810, 0, SCHED, 0),
            (820, 0, SWITCH, 5),
            (830, 0, SCHED_RETURN, 0),
        ],
        1_000,
    );
    let part = Part {
        user: 100 + 120 + 170,
        // The call before and after it slept, three times in the scheduler and once of idle, a thread of the kernel.
        kernel: 10 + 20 + 40 + 10 + 20 + 90 + 20,
        interrupts: 20,
        idle: 370 + 10,
        ..Part::default()
    };
    assert_eq!(told.0.cpus[&0], part);
    assert_eq!(use_of(&told, "clock_nanosleep"), Use { count: 1, total: 20, longest: 20, slowest: 480 });
    let waits: Vec<_> = told.0.waits().collect();
    let expected = [(Reason::Cpu, 1, 110), (Reason::Idle, 1, 60), (Reason::Time, 1, 380)];
    assert_eq!(waits, expected);
    assert_eq!((told.0.woken.longest(), told.0.preempted.longest(), told.0.running), (60, 110, 0));
    assert_eq!(told.0.runs[&5].runs, 3);
    assert_eq!(told.0.runs[&7].kernel, 90 + 20);
}

#[test]
fn time_of_which_events_are_missing_is_nobodys() {
    let told = window(&[(0, 0, RUNS, 5), (100, 0, READ, 0), (400, 0, GAP, 0), (400, 0, RUNS, 6)], 1_000);
    assert_eq!(told.0.cpus[&0], Part { user: 100 + 600, lost: 300, ..Part::default() });
    assert_eq!(told.0.runs[&6].user, 600);
}

#[test]
fn windows_that_follow_each_other_add_up() {
    let points = [(0, 0, RUNS, 5), (100, 0, READ, Call::open(1)), (900, 0, SMALL_RETURN, 0), (950, 0, SCHED, 0)];
    let (whole, _) = window(&points, 1_000);
    let (mut joined, mut ledger) = window(&points[..2], 500);
    let rest = points[2..].iter().map(|&(at, cpu, event, argument)| Point { at, cpu, event, argument });
    ledger.take(&rest.collect::<Vec<_>>(), &Skim::new([]));
    joined.join(&ledger.cut(1_000));
    assert_eq!(joined, whole);
}

#[test]
fn any_points_are_taken_and_the_time_of_each_cpu_is_covered() {
    let (mut seed, mut at) = (1_u32, 0);
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    let mut points = vec![(0, 0, RUNS, 5), (0, 1, RUNS, 6)];
    for _ in 0..20_000 {
        at += u64::from(random(3));
        let event = match random(40) {
            0 => RUNS,
            1 => GAP,
            2..6 => SWITCH,
            6..9 => SCHED,
            9..12 => SCHED_RETURN,
            12..14 => RUNNABLE,
            _ => random(1 << 12) as u16,
        };
        points.push((at, random(2), event, random(8)));
    }
    let (window, _) = window(&points, at + 5_000);
    let folded_at_most = 1 << 12;
    for (cpu, part) in &window.cpus {
        let all = part.total() + part.offline;
        assert!((at + 5_000..at + 5_000 + folded_at_most).contains(&all), "CPU {cpu}: {part:?}");
    }
}
