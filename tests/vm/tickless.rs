// SPDX-License-Identifier: BSD-3-Clause
//! Times are right across gaps in which a CPU has no ticks, idle or in a user program.

use postprocess::event::number::SYSCALL;
use postprocess::event::Event;

use crate::guest;
use crate::trace::Recording;

/// The marks of moments.c, by CPU: sched_get_priority_min, sched_get_priority_max.
const MARKS: [u32; 2] = [SYSCALL + 147, SYSCALL + 146];
/// Marks of one CPU between two gaps.
const MARKS_AT_ONCE: usize = 5;
/// Error of the trace's clock against CLOCK_MONOTONIC over the whole trace: the two moments that tie them together are
/// exact to a microsecond, and the kernel corrects its clock by less than 1 in 10^7.
const CLOCK_NS: i64 = 20_000;
/// A mark that took longer, interrupted, would not distinguish one period of the 20-bit time from the next.
const NARROW_NS: i64 = 1_000_000;
/// Longer than any two ticks are apart. Units of 10 ns.
const NO_TICKS: i64 = 10_000_000;

/// A mark: its CPU, its time in the trace, and CLOCK_MONOTONIC before and after it, in ns.
struct Mark {
    cpu: u32,
    traced: i64,
    before: i64,
    after: i64,
}

/// Runs moments.c under a trace in a guest of two CPUs, and compares all of its times. In every gap the CPUs `silent`
/// go without ticks.
fn times_are_right(options: &[&str], gaps: &[&str], silent: &[u32]) {
    let script = format!(
        r#"
        cd /tmp
        cp $BIN/moments .
        kutrace_control go
        ./moments {}
        kutrace_control stop $SHARE/t.raw
        "#,
        gaps.join(" ")
    );
    let run = guest::succeed(&[&["--cpus", "2"], options].concat(), &script);
    let trace = Recording::read_whole(&run.file("t.raw"));
    let marks = marks(&trace, &run.out);
    assert_eq!(marks.len(), 2 * MARKS_AT_ONCE * (1 + gaps.len()));

    let mut nearest = i64::MAX;
    for (n, from) in marks.iter().enumerate() {
        for to in &marks[n + 1..] {
            let traced = to.traced - from.traced;
            let (min, max) = (to.before - from.after, to.after - from.before);
            nearest = nearest.min(traced - min).min(max - traced);
            let place = format!("from cpu {} to cpu {}", from.cpu, to.cpu);
            assert!((min - CLOCK_NS..=max + CLOCK_NS).contains(&traced), "{place}: {traced} in {min}..={max}");
        }
    }
    for at_once in marks.chunks(MARKS_AT_ONCE) {
        let narrowest = at_once.iter().map(|m| m.after - m.before).min();
        assert!(narrowest < Some(NARROW_NS), "all marks on cpu {} were interrupted", at_once[0].cpu);
    }
    eprintln!("tickless {options:?} {gaps:?}: every time is {nearest} ns or more inside of what the program saw");
    for (gap, marks) in gaps.iter().zip(marks[2 * MARKS_AT_ONCE - 1..].chunks(2 * MARKS_AT_ONCE)) {
        for &cpu in silent {
            let longest = silence(&trace, cpu, marks[0].traced / 10, marks[1].traced / 10);
            assert!(longest > NO_TICKS, "{gap}: cpu {cpu} went on ticking: {longest} x 10 ns is its longest silence");
        }
    }
}

/// The marks in the order of time, each with the two readings of the clock that it is between.
fn marks(trace: &Recording, printed: &str) -> Vec<Mark> {
    let program = trace.pids_of("moments");
    let mut calls: [Vec<&Event>; 2] = MARKS.map(|nr| trace.of(nr).filter(|e| program.contains(&e.pid)).collect());
    calls.iter_mut().for_each(|calls| calls.reverse());
    let mark = |line: &str| {
        let numbers: Vec<i64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let [cpu, before, after] = numbers[..] else { panic!("{line}") };
        let call = calls[cpu as usize].pop().expect("every mark is in the trace");
        assert_eq!(i64::from(call.cpu), cpu);
        Mark { cpu: call.cpu.number(), traced: call.ts.0 * 10, before, after }
    };
    printed.lines().map(mark).collect()
}

/// The longest time between two moments for which a CPU recorded nothing. Units of 10 ns.
fn silence(trace: &Recording, cpu: u32, from: i64, to: i64) -> i64 {
    let on_cpu = trace.events.events.iter().filter(|e| e.cpu.number() == cpu && (from..to).contains(&e.ts.0));
    let times: Vec<i64> = std::iter::once(from).chain(on_cpu.map(|e| e.ts.0)).chain([to]).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

#[test]
fn across_idle_gaps_of_seconds() {
    times_are_right(
        &[],
        guest::by_form(&["sleep:1", "sleep:2"], &["sleep:1", "sleep:5"], &["sleep:1", "sleep:5"]),
        &[0, 1],
    );
}

#[cfg(feature = "soak")]
#[test]
fn across_an_idle_minute() {
    times_are_right(&[], &["sleep:1", "sleep:5", "sleep:60"], &[0, 1]);
}

/// CPU 0 ticks for both: it keeps the time.
#[cfg(feature = "soak")]
#[test]
fn without_ticks_in_a_user_program_and_in_idle() {
    let options = ["--kernel", "debug", "--append", "nohz_full=1"];
    times_are_right(&options, &["spin:1", "spin:5", "sleep:1", "sleep:60"], &[1]);
}
