// SPDX-License-Identifier: GPL-2.0
//! Times a program's records in its own memory, next to a loop of `rdtsc`. Prints for each way, by name, medians over
//! many rounds in which each has its turn: ns and multiple of rdtsc back to back, then the same with a wait after each
//! call.
//!
//! The code is the library's, unchanged, with a stand-in for the recorder.
//!
//! The first argument selects more: `registry`, `layer` and `own` time a span of `tracing` with the subscriber of that
//! name, `first` prints ns and KiB of the first mark of a process, `calls` ns of the kernel's work for it, `count NAME`
//! only calls one way in [`counted`].

mod first;
mod pair;

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::ffi::c_long;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kutrace::{sys, Site};
use tracing_subscriber::prelude::*;

const ROUNDS: usize = 1001;
/// Calls of a way in a round: few, so that most rounds are not interrupted and need no new part of the area.
const CALLS: u32 = 500;
/// Calls before any are counted: the first part of an area has been filled after them.
const WARM: u32 = 700;

/// A measurement: this many calls, back to back or apart, with or without a trace running.
struct Way {
    name: &'static str,
    traced: bool,
    together: fn(u32),
    apart: fn(u32),
}

/// Its name, whether a trace runs, and the function called.
macro_rules! way {
    ($name:literal, $traced:literal, $call:expr) => {
        Way {
            name: $name,
            traced: $traced,
            together: |calls| (0..calls).for_each($call),
            apart: |calls| {
                (0..calls).for_each(|n| {
                    $call(n);
                    wait();
                })
            },
        }
    };
}

/// The calls timed without a subscriber, and with one.
const PLAIN: [Way; 9] = [
    way!("rdtsc", true, |_| _ = black_box(sys::tsc())),
    way!("mark", true, |_| _ = kutrace::mark!("mark")),
    way!("span", true, |_| drop(kutrace::span!("span"))),
    way!("counter", true, |n: u32| _ = kutrace::counter!("counter", n)),
    way!("fields", true, |n: u32| _ = kutrace::mark!("fields", a = n, b = 2, c = 3)),
    way!("c_mark", true, |_| _ = call_from_c()),
    way!("nothing", false, |n: u32| _ = black_box(n)),
    way!("off_mark", false, |_| _ = black_box(kutrace::mark!("mark"))),
    way!("off_span", false, |_| drop(black_box(kutrace::span!("span")))),
];
const SUBSCRIBED: [Way; 4] = [
    way!("rdtsc", true, |_| _ = black_box(sys::tsc())),
    way!("tracing", true, |_| drop(tracing::info_span!("span").entered())),
    way!("tracing_number", true, |n: u32| drop(tracing::info_span!("span", n).entered())),
    way!("tracing_off", false, |_| drop(tracing::info_span!("span").entered())),
];

/// A layer that does nothing; without any, a registry keeps spans that were closed.
struct Nothing;

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Nothing {}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["first"] => return first::print(&mut out),
        ["calls"] => return first::print_calls(&mut out),
        ["count", name] => return count(&PLAIN, name),
        ["registry", ref rest @ ..] => {
            tracing_subscriber::registry().with(Nothing).init();
            return subscribed(rest, &mut out);
        }
        ["layer", ref rest @ ..] => {
            tracing_subscriber::registry().with(kutrace_tracing::layer()).init();
            return subscribed(rest, &mut out);
        }
        ["own", ref rest @ ..] => {
            kutrace_tracing::subscriber().install().map_err(io::Error::other)?;
            return subscribed(rest, &mut out);
        }
        _ => {}
    }
    print(&mut out, &PLAIN)?;
    writeln!(out, "with_memory {}", with_memory())?;
    writeln!(out, "pair {}", pair::over_one())
}

fn subscribed(arguments: &[&str], out: &mut impl Write) -> io::Result<()> {
    match arguments {
        ["count", name] => count(&SUBSCRIBED, name),
        _ => print(out, &SUBSCRIBED),
    }
}

fn call_from_c() -> c_long {
    extern "C" {
        fn kutrace_site_mark(site: *const Site) -> c_long;
    }
    static SITE: Site = Site::new("c_mark");
    // SAFETY: the place is a static.
    unsafe { black_box(kutrace_site_mark as unsafe extern "C" fn(*const Site) -> c_long)(&raw const SITE) }
}

/// Sets whether anything is traced.
fn trace(traced: bool) {
    sys::TRACE.store(traced.into(), Ordering::Relaxed);
}

/// Calls one way in [`counted`].
fn count(ways: &[Way], name: &str) -> io::Result<()> {
    let way = ways.iter().find(|way| way.name == name).ok_or(io::ErrorKind::NotFound)?;
    trace(way.traced);
    (way.together)(WARM);
    counted(way.together);
    Ok(())
}

/// The function that a tool that counts instructions looks at.
#[inline(never)]
fn counted(calls: fn(u32)) {
    calls(CALLS);
}

/// Lets all that was begun come to its end, so that a call cannot hide behind the next one.
#[inline(always)]
fn wait() {
    // SAFETY: every x86-64 processor has this instruction.
    unsafe { _mm_lfence() }
}

/// Counts of the time stamp counter that `work` takes.
fn ticks(work: impl FnOnce()) -> f64 {
    let now = || {
        wait();
        // SAFETY: as above.
        let now = unsafe { _rdtsc() };
        wait();
        now
    };
    let begin = now();
    work();
    (now() - begin) as f64
}

/// ns in a count of the time stamp counter.
fn tick() -> f64 {
    let begin = Instant::now();
    let ticks = ticks(|| while begin.elapsed() < Duration::from_millis(100) {});
    begin.elapsed().as_nanos() as f64 / ticks
}

/// Counts of a round of each way.
fn round(ways: &[Way], calls: fn(&Way) -> fn(u32)) -> Vec<f64> {
    let time = |way: &Way| {
        trace(way.traced);
        ticks(|| calls(way)(CALLS)) / f64::from(CALLS)
    };
    ways.iter().map(time).collect()
}

/// Prints for each way its medians, rdtsc's first.
fn print(out: &mut impl Write, ways: &[Way]) -> io::Result<()> {
    let tick = tick();
    ways.iter().for_each(|way| {
        trace(way.traced);
        (way.together)(WARM);
    });
    let both: Vec<_> = (0..ROUNDS).map(|_| [round(ways, |way| way.together), round(ways, |way| way.apart)]).collect();
    for (n, way) in ways.iter().enumerate() {
        let of = |how: usize, over: fn(&[f64], usize) -> f64| median(both.iter().map(|r| over(&r[how], n)).collect());
        let [ns, apart] = [0, 1].map(|how| tick * of(how, |round, n| round[n]));
        let [over, apart_over] = [0, 1].map(|how| of(how, |round, n| round[n] / round[0]));
        writeln!(out, "{} {ns:.2} {over:.3} {apart:.2} {apart_over:.3}", way.name)?;
    }
    Ok(())
}

/// A mark, with its memory, as a multiple of rdtsc: enough of them that parts of the area are granted again.
fn with_memory() -> f64 {
    const MANY: u32 = 200_000;
    trace(true);
    let ratios = (0..21).map(|_| ticks(|| (PLAIN[1].together)(MANY)) / ticks(|| (PLAIN[0].together)(MANY)));
    median(ratios.collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
