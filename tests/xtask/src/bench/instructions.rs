// SPDX-License-Identifier: BSD-3-Clause
//! Instructions of five ways into the kernel and of a program's marks, in a guest that counts them: the same number on
//! every run.

use std::fmt;
use std::path::Path;

use anyhow::{anyhow, Context, Result};

use super::section::{Budget, Limit, Section};
use super::{in_guest, number};
use crate::kernel::Which;
use crate::vm::VmArgs;

/// Largest number of instructions that hooks may add to a kernel without them, off and while recording: by kernel.
type Budgets = [[Option<i64>; 2]; 3];
/// A way that has none.
const ANY: Budgets = [[None; 2]; 3];

/// The name of each in tests/vm/costs.c and in the table, and its budget.
const WAYS: [(&str, &str, Budgets); 9] = [
    (
        "syscall",
        "`getppid`, with argument and return value",
        [[Some(2), Some(48)], [Some(2), Some(48)], [Some(0), Some(125)]],
    ),
    ("wide", "`getuid`, whose value takes more than a byte", ANY),
    ("fault", "page fault, first touch of an anonymous page", [[Some(2), None], [Some(2), None], [Some(0), Some(138)]]),
    ("switch", "`sched_yield` and the context switch it makes", [[None; 2], [None; 2], [Some(0), Some(265)]]),
    ("interrupt", "timer interrupt", [[None; 2], [None; 2], [Some(0), Some(109)]]),
    ("mark", "`kutrace_mark_d`, a mark with a number", ANY),
    ("own_mark", "`KUTRACE_MARK`, into the program's memory", ANY),
    ("own_part", "`KUTRACE_SPAN`, start and end", ANY),
    ("own_value", "`KUTRACE_COUNTER`", ANY),
];
/// Names of the kernels, and the values of `--kernel` for each without hooks and with them; a stock kernel is without
/// the module at first.
const KERNELS: [(&str, &str, &str); 3] = [
    ("small: `CONFIG_KUTRACE=n`", "small-without", "small"),
    ("distribution: `CONFIG_KUTRACE=n`", "distribution-without", "distribution"),
    ("stock 6.12, no module", "stock", "stock"),
];
/// Conditions in which each of them is measured.
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
            for ((way, ..), counts) in WAYS.iter().zip(&mut *counts) {
                counts[column] = number(&text, way)?;
            }
        }
    }
    Ok(Instructions(counts))
}

impl Instructions {
    /// Their section, with the budgets.
    pub fn section(&self) -> Section {
        Section { name: "instructions", tables: self.to_string(), over: self.over() }
    }

    fn over(&self) -> Vec<String> {
        let mut over = Vec::new();
        for (kernel, ((name, ..), counts)) in KERNELS.iter().zip(&self.0).enumerate() {
            for ((_, what, budgets), [without, with @ ..]) in WAYS.iter().zip(counts) {
                for ((state, count), limit) in STATES[1..].iter().zip(with).zip(budgets[kernel]) {
                    let limit = limit.map_or(Limit::Any, |most| Limit::AtMost(most as f64));
                    let what = format!("{name}, {state}: {what}");
                    let measured = (count - without) as f64;
                    over.extend(Budget { what, limit, measured, unit: " instructions" }.over());
                }
            }
        }
        over
    }
}

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "| instructions ")?;
        for (kernel, ..) in KERNELS {
            write!(f, "| {kernel} | off | go ")?;
        }
        writeln!(f, "|\n|---|{}", "---|".repeat(3 * KERNELS.len()))?;
        for ((_, what, budgets), way) in WAYS.iter().zip(0..) {
            write!(f, "| {what} ")?;
            for ([without, off, go], [most_off, most]) in self.0.map(|counts| counts[way]).iter().zip(budgets) {
                let limit = |most: &Option<i64>| most.map_or(String::new(), |most| format!(", budget {most}"));
                write!(f, "| {without} | {:+}{} | {:+}{} ", off - without, limit(most_off), go - without, limit(most))?;
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
    fn a_budget_that_is_missed_is_reported_and_one_that_is_held_is_not() {
        let mut counts = [[[200, 200, 200]; WAYS.len()]; KERNELS.len()];
        counts[0][0] = [217, 219, 265];
        assert_eq!(Instructions(counts).over(), Vec::<String>::new());
        counts[1][0] = [300, 303, 349];
        let over = Instructions(counts).over();
        assert_eq!(over.len(), 2, "{over:?}");
        let way = "over budget: distribution: `CONFIG_KUTRACE=n`, off: `getppid`, with argument and return value";
        assert_eq!(over[0], format!("{way}: 3.00 instructions, at most 2"));
        assert!(over[1].contains(", go: ") && over[1].ends_with(": 49.00 instructions, at most 48"), "{over:?}");
        let shown = Instructions(counts).to_string();
        assert!(shown.contains("| 300 | +3, budget 2 | +49, budget 48 |"), "{shown}");
    }
}
