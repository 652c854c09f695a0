// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask bench`: what tracing, the stages and the page cost, as the tables of docs/overhead.md.

mod instructions;
mod others;
mod marks;
mod lttng;
mod native;
mod traces;
mod content;
mod dump;
mod stages;
mod page;
mod machines;
mod why;
mod fleet;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use why::Judged;

use crate::vm::{self, VmArgs};
use crate::{place, progress, tools};

/// Transitions per second and core for which the share of CPU and memory is computed.
const BUSY: f64 = 200_000.0;

/// What to measure.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// One part only
    part: Option<Part>,
    /// The raw trace whose blocks the stages and the page get [default: the longest that earlier commands have left]
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    /// With `why`, `diff` and `fleet`: what their random numbers begin with [default: the time; of `fleet` the same always]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// With `why` and `diff`: only cases whose names begin so
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// With `fleet`: how many traces, of a million spans each [default: 1000]
    #[arg(long, value_name = "N")]
    traces: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Part {
    /// Instructions of tracing, in guests that count them
    Instructions,
    /// What other tracers add, in the same guest as ours; only when asked for
    Others,
    /// What programs record into their own memory; needs no VM
    Marks,
    /// From raw file to page; needs no VM
    Stages,
    /// The page in a browser; needs no VM
    Page,
    /// The page of two machines with five million spans each; only when asked for
    Machines,
    /// How often `why` is right, of causes that are planted; only when asked for
    Why,
    /// How often `diff` tells two recordings of the same load apart; only when asked for
    Diff,
    /// What DuckDB and Spark answer about a thousand traces, and how fast; only when asked for
    Fleet,
}

/// Measures everything, or one part, and prints the tables.
pub fn run(args: &BenchArgs) -> Result<()> {
    let dir = place::made(place::target().join("bench"))?;
    let asked = |part| args.part.is_none_or(|asked| asked == part);
    let mut over = Vec::new();
    // Not locked: what guests print meanwhile goes there, too.
    let mut out = std::io::stdout();
    let judged = match args.part {
        Some(Part::Why) => Some(Judged::Why),
        Some(Part::Diff) => Some(Judged::Diff),
        _ => None,
    };
    if let Some(judged) = judged {
        return Ok(write!(out, "{}\n{}", title()?, why::measure(judged, args.seed, &args.case, &dir)?)?);
    }
    if args.part == Some(Part::Fleet) {
        let table = fleet::measure(args.raw.as_deref(), args.traces, args.seed, &dir)?;
        return Ok(write!(out, "{}\n{table}", title()?)?);
    }
    if args.part == Some(Part::Machines) {
        let (said, pages) = machines::measure(args.raw.as_deref(), &dir)?;
        return Ok(write!(out, "{}\n{said}\n{pages}", title()?)?);
    }
    if args.part == Some(Part::Others) {
        let costs = compile(&place::checkout().join("tests/vm/costs.c"), &dir)?;
        return Ok(write!(out, "{}\n{}", title()?, others::measure(&costs, &dir)?)?);
    }
    if asked(Part::Instructions) {
        let costs = compile(&place::checkout().join("tests/vm/costs.c"), &dir)?;
        let counts = instructions::measure(&costs, &dir)?;
        writeln!(out, "{}\n{counts}", title()?)?;
        over = counts.over()?;
    }
    if asked(Part::Marks) {
        writeln!(out, "{}\n{}", title()?, marks::measure(&dir)?)?;
    }
    if args.part.is_none() {
        tracing(&dir)?;
    }
    if asked(Part::Stages) {
        writeln!(out, "{}\n{}", title()?, stages::measure(args.raw.as_deref(), &dir)?)?;
    }
    if asked(Part::Page) {
        write!(out, "{}\n{}", title()?, page::measure(args.raw.as_deref(), &dir)?)?;
    }
    match over.is_empty() {
        true => Ok(()),
        false => bail!("bench: {}", over.join("\n")),
    }
}

/// What tracing costs in time and memory.
fn tracing(dir: &Path) -> Result<()> {
    let costs = compile(&place::checkout().join("tests/vm/costs.c"), dir)?;
    let mut out = std::io::stdout();
    let native = native::measure()?;
    writeln!(out, "{native}")?;
    let traces = traces::record(&costs, dir)?;
    writeln!(out, "{traces}\n{}", share(&native, &traces))?;
    Ok(writeln!(out, "{}", dump::measure(dir)?)?)
}

/// Date and machine.
fn title() -> Result<String> {
    let date = progress::output(Command::new("date").args(["--utc", "+%F"]))?;
    Ok(format!("{date}, {}\n", machine()?))
}

/// What [`BUSY`] transitions per second take of a core and of memory.
fn share(native: &native::Costs, traces: &traces::Traces) -> String {
    let (cpu, memory) = (native.per_transition() * BUSY / 1e9, traces.redis_bytes() * BUSY);
    format!(
        "| at {BUSY} transitions/s and core | |\n|---|---|\n| CPU | {:.2} % |\n| memory | {:.2} MB/s |\n",
        cpu * 100.0,
        memory / 1e6
    )
}

fn machine() -> Result<String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).unwrap_or_default().1;
    let cores = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    Ok(format!("{model}, {cores} cores"))
}

/// Compiles a program with the library of marks.
fn compile(source: &Path, dir: &Path) -> Result<PathBuf> {
    let program = dir.join(source.file_stem().context("a source has a name")?);
    let mut gcc = Command::new(if source.extension().is_some_and(|ending| ending == "cc") { "g++" } else { "gcc" });
    gcc.arg("-I").arg(place::checkout().join("kutrace-control/kutrace/include"));
    gcc.args(["-O2", "-static", "-pthread", "-Wall", "-Werror", "-o"]).arg(&program).arg(source);
    gcc.arg(tools::ensure()?.join("libkutrace.a"));
    // The linker warns of what else is in there; the log takes that.
    progress::run("bench: compiling", &mut gcc, &dir.join("gcc.log"))?;
    Ok(program)
}

/// Runs a script in the guest, where `dir` is /mnt/share and `$1` and so on are `words`; it must succeed.
fn in_guest(script: &str, words: &[&Path], dir: &Path, how: VmArgs) -> Result<()> {
    let mut command: Vec<OsString> = ["bash", "-ec", script, "bench"].map(OsString::from).to_vec();
    command.extend(words.iter().map(OsString::from));
    match vm::run(&VmArgs { share: Some(dir.to_path_buf()), command, ..how })? {
        0 => Ok(()),
        status => bail!("bench: the guest's script ended with status {status}"),
    }
}

/// The number on the line of `text` that begins with `name` and a blank.
fn number<T: std::str::FromStr>(text: &str, name: &str) -> Result<T> {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
    found.with_context(|| format!("bench: no {name} in:\n{text}"))
}
