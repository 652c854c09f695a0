// SPDX-License-Identifier: BSD-3-Clause
//! The page at the sizes of its budget: file, opening, redraw, wheel, search, tables and memory, in a headless Chromium from
//! file://.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::number;
use crate::place;
use crate::progress::{output, tied};

/// Spans of the pages.
const SIZES: [u64; 3] = [1_000_000, 2_000_000, 10_000_000];

/// What is measured: its name in the answers, in the table, and the budget at each of [`SIZES`].
const ROWS: [(&str, &str, [&str; 3]); 21] = [
    ("bytes", "file, bytes per span", ["6", "", "6"]),
    ("openMs", "open to first full picture, ms", ["600", "", "2000"]),
    ("openCpuMs", "the same, CPU time of the page's main thread, ms", ["", "", ""]),
    ("panMs", "redraw while panning, p95, ms", ["16", "", "16"]),
    ("zoomMs", "redraw while zooming, p95, ms", ["16", "", "16"]),
    ("wholeMs", "redraw of the whole range, p95, ms", ["33", "", "33"]),
    ("threadsMs", "the same with the threads open, ms", ["33", "", "33"]),
    ("threadsCpuMs", "the same, CPU time of the main thread for each, ms", ["", "", ""]),
    ("turnMs", "from a turn of the wheel to the second frame after it, threads open, p95, ms", ["", "55", ""]),
    ("nameSearchMs", "search of a name, ms", ["", "", "60"]),
    ("boundsSearchMs", "search of a duration, ms", ["", "", "60"]),
    ("scopeSearchMs", "search of a name by CPU and kind, ms", ["", "", "60"]),
    ("callSearchMs", "search of a returned value, ms", ["", "", "60"]),
    ("textsMs", "numbering calls, when the search box is first used, ms", ["", "", ""]),
    ("tableMs", "table and histogram of all spans, ms", ["", "", "150"]),
    ("groupsMs", "the same by name and thread, ms", ["", "", "150"]),
    ("callsMs", "the same of whole calls, ms", ["", "", "150"]),
    ("tablesCpuMs", "the three, CPU time of the main thread for each, ms", ["", "", ""]),
    ("requests", "requests", ["", "", ""]),
    ("brushMs", "a part of the requests against all others, ms (budget: of 100,000)", ["", "", "100"]),
    ("bytesPerSpan", "memory, bytes per span", ["60", "", "60"]),
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
        let row = |(what, ..): &(&str, &str, [&str; 3])| sizes.iter().map(|size| value(what, *size)).collect();
        let values = ROWS.iter().map(row).collect::<Result<_>>()?;
        Ok(Pages { from: from.to_path_buf(), sizes: sizes.to_vec(), values })
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
        for ((_, what, budget), values) in ROWS.iter().zip(&self.values) {
            let digits = usize::from(values[0] < 100.0);
            let budget =
                self.sizes.iter().map(|size| SIZES.iter().position(|known| known == size).map_or("", |n| budget[n]));
            let cells = budget.zip(values).map(|(budget, value)| format!(" {budget} | {value:.digits$} |"));
            writeln!(f, "| {what} |{}", cells.collect::<String>())?;
        }
        Ok(())
    }
}
