// SPDX-License-Identifier: BSD-3-Clause
//! The page at the sizes of its budget: file, opening, redraw, wheel, search, tables and memory, in a headless Chromium from
//! file://.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::number;
use super::section::{self, Budget, Limit, Section};
use crate::place;
use crate::progress::{output, tied};

/// Spans of the pages.
const SIZES: [u64; 3] = [1_000_000, 2_000_000, 10_000_000];

/// Marks a value without a budget.
const ANY: f64 = f64::INFINITY;
const NONE: [f64; 3] = [ANY; 3];
/// A measured value: its name in the answers, in the table, and its budget at each of [`SIZES`].
const ROWS: [(&str, &str, [f64; 3]); 21] = [
    ("bytes", "file, bytes per span", [5.0, ANY, 5.0]),
    ("openMs", "open to first full picture, ms", [300.0, ANY, 1000.0]),
    ("openCpuMs", "the same, CPU time of the page's main thread, ms", NONE),
    ("panMs", "redraw while panning, p95, ms", [16.0, ANY, 16.0]),
    ("zoomMs", "redraw while zooming, p95, ms", [16.0, ANY, 16.0]),
    ("wholeMs", "redraw of the whole range, p95, ms", [33.0, ANY, 33.0]),
    ("threadsMs", "the same with the threads open, ms", [33.0, ANY, 33.0]),
    ("threadsCpuMs", "the same, CPU time of the main thread for each, ms", NONE),
    ("turnMs", "from a turn of the wheel to the second frame after it, threads open, p95, ms", [ANY, 55.0, ANY]),
    ("nameSearchMs", "search of a name, ms", [ANY, ANY, 60.0]),
    ("boundsSearchMs", "search of a duration, ms", [ANY, ANY, 60.0]),
    ("scopeSearchMs", "search of a name by CPU and kind, ms", [ANY, ANY, 60.0]),
    ("callSearchMs", "search of a returned value, ms", [ANY, ANY, 60.0]),
    ("textsMs", "numbering calls, when the search box is first used, ms", NONE),
    ("tableMs", "table and histogram of all spans, ms", [ANY, ANY, 150.0]),
    ("groupsMs", "the same by name and thread, ms", [ANY, ANY, 150.0]),
    ("callsMs", "the same of whole calls, ms", [ANY, ANY, 150.0]),
    ("tablesCpuMs", "the three, CPU time of the main thread for each, ms", NONE),
    ("requests", "requests", NONE),
    ("brushMs", "a part of the requests against all others, ms (budget: of 100,000)", [ANY, ANY, 100.0]),
    ("bytesPerSpan", "memory, bytes per span", [60.0, ANY, 60.0]),
];

/// By row and size.
pub struct Pages {
    from: PathBuf,
    sizes: Vec<u64>,
    values: Vec<Vec<f64>>,
}

/// Makes the pages of `from`, or of a recorded trace that is at hand, and uses them.
pub fn measure(from: Option<&Path>, dir: &Path) -> Result<Pages> {
    let from = from.map_or_else(recorded, |given| Ok(given.to_path_buf()))?;
    Pages::measure(&from, dir, &SIZES)
}

impl Pages {
    /// Those of some of [`SIZES`].
    pub fn measure(from: &Path, dir: &Path, sizes: &[u64]) -> Result<Pages> {
        let mut cargo = tied("cargo");
        cargo.args(["run", "--release", "--locked", "--quiet", "--package", "kutrace-bench", "--bin", "pages", "--"]);
        cargo.arg(from).arg(dir).args(sizes.iter().map(u64::to_string));
        let text = output(cargo.current_dir(place::checkout()))?;
        let value = |what: &str, size: u64| {
            // Not every trace has requests.
            let has = !["requests", "brushMs"].contains(&what) || text.contains(&format!("{size} {what} "));
            if has {
                number(&text, &format!("{size} {what}"))
            } else {
                Ok(0.0)
            }
        };
        let row = |(what, ..): &(&str, &str, [f64; 3])| sizes.iter().map(|size| value(what, *size)).collect();
        let values = ROWS.iter().map(row).collect::<Result<_>>()?;
        Ok(Pages { from: from.to_path_buf(), sizes: sizes.to_vec(), values })
    }

    /// Their section, with the budgets.
    pub fn section(&self, name: &'static str) -> Section {
        let budget = |(row, size): (usize, usize)| Budget {
            what: format!("page of {} M spans: {}", self.sizes[size] / 1_000_000, ROWS[row].1),
            limit: Limit::AtMost(self.most(row, size)),
            measured: self.values[row][size],
            unit: "",
        };
        let all = (0..ROWS.len()).flat_map(|row| (0..self.sizes.len()).map(move |size| (row, size)));
        let budgets: Vec<Budget> = all.map(budget).collect();
        Section { name, tables: self.to_string(), over: section::over(&budgets) }
    }

    /// The most that a row may be at one of the sizes.
    fn most(&self, row: usize, size: usize) -> f64 {
        SIZES.iter().position(|known| *known == self.sizes[size]).map_or(ANY, |known| ROWS[row].2[known])
    }
}

/// A recorded trace that earlier commands have left, the longest first.
fn recorded() -> Result<PathBuf> {
    let known = [place::target().join("bench/redis.trace"), place::target().join("demo/t.trace")];
    known.into_iter().find(|path| path.exists()).context("bench: no raw trace at hand\nhint: cargo xtask demo")
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = self.from.strip_prefix(place::checkout()).unwrap_or(&self.from);
        writeln!(f, "Page of {}, repeated\n", name.display())?;
        let heads = self.sizes.iter().map(|size| format!(" budget | {} M spans |", size / 1_000_000));
        writeln!(f, "| page |{}\n|---|{}", heads.collect::<String>(), "---|---|".repeat(self.sizes.len()))?;
        for (row, values) in self.values.iter().enumerate() {
            let digits = usize::from(values[0] < 100.0);
            let budget = |size| match self.most(row, size) {
                ANY => String::new(),
                most => most.to_string(),
            };
            let cell = |(size, value): (usize, &f64)| format!(" {} | {value:.digits$} |", budget(size));
            writeln!(f, "| {} |{}", ROWS[row].1, values.iter().enumerate().map(cell).collect::<String>())?;
        }
        Ok(())
    }
}
