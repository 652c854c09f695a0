// SPDX-License-Identifier: BSD-3-Clause
//! Cost of marks on this machine, in ns: while nothing is traced, or during a trace.
//! `cargo run --release --example cost`

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use kutrace::original;

const ROUNDS: usize = 101;
const CALLS: u32 = 10_000;

fn main() -> io::Result<()> {
    let what = [
        ("nothing", time(|n| n)),
        ("mark", time(|_| kutrace::mark!("mark"))),
        ("span", time(|_| drop(kutrace::span!("span")))),
        ("mark_d", time(original::mark_d)),
        ("mark_a", time(|_| original::mark_a(black_box("label")))),
        ("original span", time(|_| drop(original::span(black_box("part"))))),
        ("test", time(|_| original::test())),
    ];
    let state = if kutrace::is_on() { "tracing" } else { "nothing is traced" };
    let lines: Vec<String> = what.iter().map(|(name, ns)| format!("{name} {ns:.2}")).collect();
    writeln!(io::stdout(), "{state}\n{}", lines.join("\n"))
}

/// Time in ns per call, the median of many rounds.
fn time<T>(call: impl Fn(u32) -> T) -> f64 {
    let round = |_| {
        let begin = Instant::now();
        (0..CALLS).for_each(|n| drop(black_box(call(black_box(n)))));
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(round).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}
