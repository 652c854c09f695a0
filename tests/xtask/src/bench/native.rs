// SPDX-License-Identifier: BSD-3-Clause
//! Nanoseconds of the recorder's own code as a function of a user program, tests/bench.

use std::fmt;

use anyhow::Result;

use super::number;
use super::section::{Budget, Limit, Section};
use crate::place;
use crate::progress::{output, tied};

/// Budget of an entry, as a multiple of a loop of `rdtsc` alone, apart.
const ENTRY: f64 = 1.1;

/// Medians, in ns.
struct Medians {
    rdtsc: f64,
    entry: f64,
    pair: f64,
    xadd: f64,
    /// Ratio of entry to rdtsc, from paired rounds.
    ratio: f64,
}

/// The two ways in which the functions are called.
pub struct Costs {
    /// One after the other: the processor overlaps them.
    back_to_back: Medians,
    /// Each when the one before is over.
    apart: Medians,
}

/// Builds and runs the program.
pub fn measure() -> Result<Costs> {
    let mut cargo = tied("cargo");
    cargo.args(["run", "--release", "--locked", "--quiet", "--package", "kutrace-bench", "--bin", "kutrace-bench"]);
    let text = output(cargo.current_dir(place::checkout()))?;
    Ok(Costs { back_to_back: Medians::read(&text, "")?, apart: Medians::read(&text, "_apart")? })
}

impl Medians {
    fn read(text: &str, suffix: &str) -> Result<Medians> {
        let number = |name| number(text, &format!("{name}{suffix}"));
        Ok(Medians {
            rdtsc: number("rdtsc")?,
            entry: number("entry")?,
            pair: number("pair")?,
            xadd: number("xadd")?,
            ratio: number("ratio")?,
        })
    }

    /// Name, time and multiple of rdtsc of each function.
    fn rows(&self) -> [(&'static str, f64, f64); 4] {
        let over = |ns: f64| ns / self.rdtsc;
        [
            ("`rdtsc` alone", self.rdtsc, 1.0),
            ("entry of 4 bytes", self.entry, self.ratio),
            ("call and return, folded into 8 bytes", self.pair, over(self.pair)),
            ("entry of 8 bytes by `lock xadd`", self.xadd, over(self.xadd)),
        ]
    }
}

impl Costs {
    /// Its section, with the budget of an entry.
    pub fn section(&self) -> Section {
        let what = "an entry over `rdtsc`, apart".to_owned();
        let measured = self.apart.ratio;
        let over = Budget { what, limit: Limit::AtMost(ENTRY), measured, unit: "" }.over();
        Section { name: "time", tables: self.to_string(), over: over.into_iter().collect() }
    }

    /// ns of a transition at most: an entry, or half a folded call, when nothing overlaps it.
    pub fn per_transition(&self) -> f64 {
        self.apart.entry.max(self.apart.pair / 2.0)
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "| native | back to back, ns | over `rdtsc` | apart, ns | over `rdtsc` |\n|---|---|---|---|---|")?;
        for ((what, ns, over), (_, apart, apart_over)) in self.back_to_back.rows().iter().zip(self.apart.rows()) {
            writeln!(f, "| {what} | {ns:.2} | {over:.2} | {apart:.2} | {apart_over:.2} |")?;
        }
        writeln!(f, "\nBudget: an entry apart takes at most {ENTRY} times as long as `rdtsc`.")
    }
}
