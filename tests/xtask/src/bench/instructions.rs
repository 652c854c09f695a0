// SPDX-License-Identifier: BSD-3-Clause
//! Instructions of four ways into the kernel and of a program's mark, in a guest that counts them: the same number on every run.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

use super::{in_guest, number};
use crate::kernel::Variant;
use crate::vm::VmArgs;

/// What tests/vm/costs.c calls each of them, and what the table does.
const WAYS: [(&str, &str); 5] = [
    ("syscall", "`getppid`, with argument and return value"),
    ("fault", "page fault, first touch of an anonymous page"),
    ("switch", "`sched_yield` and the context switch it makes"),
    ("interrupt", "timer interrupt"),
    ("mark", "`kutrace_mark_d`, a mark with a number"),
];
/// The kernels and their states, in the order of the table's columns.
const STATES: [&str; 3] = ["without", "off", "go"];

/// Instructions, by way and state.
pub struct Instructions([[i64; 3]; 5]);

/// Boots one guest per kernel.
pub fn measure(program: &Path, dir: &Path) -> Result<Instructions> {
    let how = VmArgs { icount: true, ..VmArgs::new(Vec::new()) };
    in_guest(r#""$1" >/mnt/share/without"#, program, dir, VmArgs { kernel: Variant::SmallWithout, ..how.clone() })?;
    let script = r#"
        "$1" >/mnt/share/off
        kutrace_control go
        "$1" >/mnt/share/go
        kutrace_control stop /tmp/t.raw"#;
    in_guest(script, program, dir, how)?;
    let mut counts = [[0; 3]; 5];
    for (state, column) in STATES.iter().zip(0..) {
        let text = std::fs::read_to_string(dir.join(state)).with_context(|| format!("bench: {state}"))?;
        for ((way, _), counts) in WAYS.iter().zip(&mut counts) {
            counts[column] = number(&text, way)?;
        }
    }
    Ok(Instructions(counts))
}

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "| instructions | `CONFIG_KUTRACE=n` | off | added | go | added |\n|---|---|---|---|---|---|")?;
        for ((_, what), [without, off, go]) in WAYS.iter().zip(self.0) {
            writeln!(f, "| {what} | {without} | {off} | {} | {go} | {} |", off - without, go - without)?;
        }
        Ok(())
    }
}
