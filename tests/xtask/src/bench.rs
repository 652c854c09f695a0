// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask bench`: what tracing costs, as instructions per getppid, the same number on every run.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::kernel::Variant;
use crate::place;
use crate::vm::{self, VmArgs};

/// One row of the table.
struct Row {
    what: &'static str,
    kernel: Variant,
    /// Runs in the guest; `$1` is the compiled program.
    script: &'static str,
}

const ROWS: &[Row] = &[
    Row { what: "kernel without the patches", kernel: Variant::Unpatched, script: r#""$1""# },
    Row { what: "patched, tracing off", kernel: Variant::Patched, script: r#""$1""# },
    Row {
        what: "go",
        kernel: Variant::Patched,
        script: r#"kutrace_control go >&2 && "$1" && kutrace_control stop /tmp/t.raw >&2"#,
    },
];

/// Measures every row and prints the table.
pub fn run() -> Result<()> {
    let dir = place::made(place::target().join("bench"))?;
    let program = dir.join("getppid");
    compile(&place::checkout().join("tests/vm/getppid.c"), &program)?;
    let mut counts = Vec::new();
    for row in ROWS {
        counts.push(measure(row, &program, &dir).with_context(|| format!("bench: {}", row.what))?);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "| instructions per getppid | total | added |\n|---|---|---|")?;
    for (row, count) in ROWS.iter().zip(&counts) {
        writeln!(out, "| {} | {count} | {:+} |", row.what, count - counts[0])?;
    }
    Ok(())
}

fn compile(source: &Path, program: &Path) -> Result<()> {
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-static", "-Wall", "-Werror", "-o"]).arg(program).arg(source);
    match gcc.status().context("bench: gcc: cannot be started")?.success() {
        true => Ok(()),
        false => bail!("bench: {}: does not compile", source.display()),
    }
}

fn measure(row: &Row, program: &Path, dir: &Path) -> Result<i64> {
    let script = format!("({}) >/mnt/share/count", row.script);
    let mut command: Vec<OsString> = ["bash", "-c", &script, "bench"].map(OsString::from).to_vec();
    command.push(program.into());
    let args = VmArgs { icount: true, kernel: row.kernel, share: Some(dir.to_path_buf()), ..VmArgs::new(command) };
    match vm::run(&args)? {
        0 => {}
        status => bail!("status {status}"),
    }
    let count = fs::read_to_string(dir.join("count")).context("count")?;
    count.trim().parse().with_context(|| format!("not a number: {}", count.trim()))
}
