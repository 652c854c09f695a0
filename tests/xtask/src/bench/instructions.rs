// SPDX-License-Identifier: BSD-3-Clause
//! Instructions of five ways into the kernel and of a program's marks, in a guest that counts them: the same number on
//! every run.

use std::fmt;
use std::path::Path;

use anyhow::{anyhow, bail, Context, Result};

use super::{in_guest, number};
use crate::kernel::Which;
use crate::vm::VmArgs;

/// What tests/vm/costs.c calls each of them, and what the table does.
const WAYS: [(&str, &str); 9] = [
    ("syscall", "`getppid`, with argument and return value"),
    ("wide", "`getuid`, whose value takes more than a byte"),
    ("fault", "page fault, first touch of an anonymous page"),
    ("switch", "`sched_yield` and the context switch it makes"),
    ("interrupt", "timer interrupt"),
    ("mark", "`kutrace_mark_d`, a mark with a number"),
    ("own_mark", "`KUTRACE_MARK`, into the program's memory"),
    ("own_part", "`KUTRACE_SPAN`, start and end"),
    ("own_value", "`KUTRACE_COUNTER`"),
];
/// What the kernels are called, and what `--kernel` calls each without hooks and with them; a stock kernel is without
/// the module at first.
const KERNELS: [(&str, &str, &str); 3] = [
    ("small: `CONFIG_KUTRACE=n`", "small-without", "small"),
    ("distribution: `CONFIG_KUTRACE=n`", "distribution-without", "distribution"),
    ("stock 6.12, no module", "stock", "stock"),
];
/// Where the budgets are: what hooks may add to a kernel without them, by kernel and way, off and while recording.
const BUDGETS: &str = include_str!("../../../../docs/overhead.md");
const BUDGETS_BEGIN: &str = "| instructions added, at most |";
/// What each of them is measured in.
const STATES: [&str; 3] = ["without", "off", "go"];

/// Instructions, by kernel, way and state.
pub struct Instructions([[[i64; 3]; WAYS.len()]; KERNELS.len()]);

/// Boots one guest per kernel.
pub fn measure(program: &Path, dir: &Path) -> Result<Instructions> {
    let how = VmArgs { icount: true, ..VmArgs::new(Vec::new()) };
    let mut counts = [[[0; 3]; WAYS.len()]; KERNELS.len()];
    for ((_, without, with), counts) in KERNELS.into_iter().zip(&mut counts) {
        let kernel = |name| Which::parse(name).map_err(|error| anyhow!(error));
        let bare = VmArgs { kernel: kernel(without)?, no_load: true, ..how.clone() };
        in_guest(r#""$1" >/mnt/share/without"#, &[program], dir, bare)?;
        let script = r#"
            "$1" >/mnt/share/off
            kutrace_control go
            "$1" >/mnt/share/go
            kutrace_control stop /tmp/t.trace"#;
        in_guest(script, &[program], dir, VmArgs { kernel: kernel(with)?, ..how.clone() })?;
        for (state, column) in STATES.iter().zip(0..) {
            let text = std::fs::read_to_string(dir.join(state)).with_context(|| format!("bench: {state}"))?;
            for ((way, _), counts) in WAYS.iter().zip(&mut *counts) {
                counts[column] = number(&text, way)?;
            }
        }
    }
    Ok(Instructions(counts))
}

impl Instructions {
    /// What is over a budget, a line each.
    pub fn over(&self) -> Result<Vec<String>> {
        let budgets = budgets(BUDGETS)?;
        let mut over = Vec::new();
        for (((kernel, ..), counts), budgets) in KERNELS.iter().zip(&self.0).zip(budgets) {
            for (((_, what), [without, with @ ..]), budgets) in WAYS.iter().zip(counts).zip(budgets) {
                for ((state, count), budget) in STATES[1..].iter().zip(with).zip(budgets) {
                    let added = count - without;
                    if let Some(most) = budget.filter(|most| added > *most) {
                        over.push(format!("over budget: {kernel}, {state}: {what}: {added:+} for {most}"));
                    }
                }
            }
        }
        Ok(over)
    }
}

/// The most that is added off and while recording, by kernel and way, of a document that has the table.
type Budgets = [[[Option<i64>; 2]; WAYS.len()]; KERNELS.len()];

fn budgets(document: &str) -> Result<Budgets> {
    let mut budgets = Budgets::default();
    let rows = document.lines().skip_while(|line| !line.starts_with(BUDGETS_BEGIN)).skip(2);
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let way = WAYS.iter().position(|(_, what)| *what == cells[0]);
        let (Some(way), 7) = (way, cells.len()) else { bail!("bench: docs/overhead.md: no row of budgets: {row}") };
        for (n, cell) in cells[1..].iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            budgets[n / 2][way][n % 2] = Some(cell.parse().with_context(|| format!("bench: docs/overhead.md: {row}"))?);
        }
    }
    match budgets == Budgets::default() {
        true => bail!("bench: docs/overhead.md has no budgets of instructions"),
        false => Ok(budgets),
    }
}

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "| instructions ")?;
        for (kernel, ..) in KERNELS {
            write!(f, "| {kernel} | off | go ")?;
        }
        writeln!(f, "|\n|---|{}", "---|".repeat(3 * KERNELS.len()))?;
        for ((_, what), way) in WAYS.iter().zip(0..) {
            write!(f, "| {what} ")?;
            for [without, off, go] in self.0.map(|counts| counts[way]) {
                write!(f, "| {without} | {:+} | {:+} ", off - without, go - without)?;
            }
            writeln!(f, "|")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_missed_is_told_and_one_that_is_held_is_not() {
        let mut counts = [[[200, 200, 200]; WAYS.len()]; KERNELS.len()];
        counts[0][0] = [217, 219, 265];
        assert_eq!(Instructions(counts).over().unwrap(), Vec::<String>::new());
        counts[1][0] = [300, 303, 349];
        let over = Instructions(counts).over().unwrap();
        assert_eq!(over.len(), 2, "{over:?}");
        assert!(
            over[0].starts_with("over budget: distribution: ")
                && over[0].ends_with(", off: `getppid`, with argument and return value: +3 for 2"),
            "{over:?}"
        );
        assert!(over[1].ends_with("+49 for 48"), "{over:?}");
    }

    #[test]
    fn budgets_that_cannot_be_read_are_no_budgets() {
        assert!(budgets("nothing").is_err());
        let row = |row: &str| budgets(&format!("{BUDGETS_BEGIN} ... |\n|---|\n{row}\n"));
        assert!(row("| `getppid`, with argument and return value | 2 | 48 | 2 | 48 | 0 | 150 |").is_ok());
        assert!(row("| getppid | 2 | 48 | 2 | 48 | 0 | 150 |").is_err());
        assert!(row("| timer interrupt | 2 | few | 2 | 48 | 0 | 150 |").is_err());
    }
}
