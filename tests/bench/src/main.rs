// SPDX-License-Identifier: GPL-2.0
//! Times the recorder's claims and entries as functions of a user program, next to a loop of `rdtsc` and a recorder in
//! the manner of the original. Prints medians over many rounds in which each has its turn, in ns.
//!
//! The code is the module's, unchanged: the recorder, this_cpu.rs, per_cpu.rs, clock.rs, arch. Its needs of the kernel
//! are met by [`pool`], [`counters`], [`ffi`] and [`task`]. A CPU's state is reached through %gs as in the kernel; its
//! base is 0 in a user program, so the per-CPU symbol is an ordinary static.

// What only the kernel uses of the module's files.
#![allow(dead_code, unreachable_pub)]

use kutrace_format::abi;
use kutrace_recorder::{budget, call, entry, lane, owners};

#[path = "../../../kernel-module/arch/x86_64.rs"]
mod arch;
#[path = "../../../kernel-module/clock.rs"]
mod clock;
#[path = "../../../kernel-module/per_cpu.rs"]
mod per_cpu;
#[path = "../../../kernel-module/this_cpu.rs"]
mod this_cpu;

mod pool;
mod counters;
mod ffi;
mod task;
mod original;

use std::arch::x86_64::_mm_lfence;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use call::TaskLane;
use this_cpu::{on_this_cpu, ThisCpu};

const ROUNDS: usize = 501;
/// Calls of each function in a round: short enough that most rounds are not interrupted.
const CALLS: u32 = 20_000;
/// Blocks of each recorder's memory, which is used again when it is full: 16 MiB.
const BLOCKS: usize = 256;

/// Event numbers and values that do not influence the recorder.
const EVENT: u32 = abi::event::line::IRQ + 0xec;
const CALL: u32 = 110;

/// A measurement, and the name it is printed under.
const FUNCTIONS: [&str; 4] = ["rdtsc", "entry", "pair", "xadd"];

fn main() -> io::Result<()> {
    pool::prepare(BLOCKS);
    original::prepare(BLOCKS);
    let mut out = io::stdout().lock();
    print(&mut out, "", (0..ROUNDS).map(|_| round(|| ())).collect())?;
    print(&mut out, "_apart", (0..ROUNDS).map(|_| round(wait)).collect())?;
    // An entry is a word and a folded call two; a full time now and then comes on top.
    let words = 2 * ROUNDS * CALLS as usize * 3;
    let recorded = pool::pool().words();
    assert!((words..words + words / 100).contains(&recorded), "{recorded} words recorded, {words} expected");
    Ok(())
}

/// ns per call of each function, with `between` after each call.
fn round(between: impl Fn() + Copy) -> [f64; FUNCTIONS.len()] {
    [
        time(|_| {
            black_box(arch::tsc());
            between();
        }),
        time(|_| {
            record_event(black_box(EVENT));
            between();
        }),
        time(|n| {
            record_call(black_box(CALL), n.into());
            between();
            record_return(black_box(CALL), black_box(7));
            between();
        }),
        time(|n| {
            original::record(black_box(EVENT), n);
            between();
        }),
    ]
}

/// Lets all that was begun come to its end, so that a call cannot hide behind the next one.
#[inline(always)]
fn wait() {
    // SAFETY: every x86-64 processor has this instruction.
    unsafe { _mm_lfence() }
}

/// ns per call of `function`.
fn time(function: impl Fn(u32)) -> f64 {
    let begin = Instant::now();
    (0..CALLS).for_each(function);
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// Prints the median of each function, and that of the ratio of an entry to rdtsc.
fn print(out: &mut impl Write, suffix: &str, rounds: Vec<[f64; FUNCTIONS.len()]>) -> io::Result<()> {
    for (n, name) in FUNCTIONS.iter().enumerate() {
        writeln!(out, "{name}{suffix} {}", median(rounds.iter().map(|round| round[n]).collect()))?;
    }
    writeln!(out, "ratio{suffix} {}", median(rounds.iter().map(|round| round[1] / round[0]).collect()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Has `work` record on the only CPU there is.
#[inline(always)]
fn record(work: impl FnOnce(TaskLane<ThisCpu<'_, false>>)) {
    // SAFETY: one thread records; nothing takes its place.
    unsafe { on_this_cpu(|cpu| work(TaskLane::new(cpu))) }
}

#[inline(never)]
extern "C" fn record_event(event: u32) {
    record(|lane| entry::event(lane.lane(), event))
}

#[inline(never)]
extern "C" fn record_call(nr: u32, arg: u64) {
    record(|lane| entry::syscall(lane, nr, arg))
}

#[inline(never)]
extern "C" fn record_return(nr: u32, value: i64) {
    record(|lane| entry::syscall_return(lane, value, || nr))
}
