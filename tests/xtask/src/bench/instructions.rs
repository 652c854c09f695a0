// SPDX-License-Identifier: BSD-3-Clause
//! Instructions of five ways into the kernel and of a program's marks, in a guest that counts them: the same number on
//! every run.

use std::fmt;
use std::path::Path;

use anyhow::{anyhow, Context, Result};

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
    ("own_part", "`KUTRACE_SCOPE`, start and end"),
    ("own_value", "`KUTRACE_VALUE`"),
];
/// What the kernels are called, and what `--kernel` calls each without hooks and with them; a stock kernel is without
/// the module at first.
const KERNELS: [(&str, &str, &str); 3] = [
    ("small: `CONFIG_KUTRACE=n`", "small-without", "small"),
    ("distribution: `CONFIG_KUTRACE=n`", "distribution-without", "distribution"),
    ("stock 6.12, no module", "stock", "stock"),
];
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
