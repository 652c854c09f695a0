// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask bench`: what tracing, the stages and the page cost, as the tables of docs/overhead.md and docs/marks.md.

mod section;
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

use section::{Budget, Limit, Limit::AtMost, Section};
use why::Judged;

use crate::vm::{self, VmArgs};
use crate::{place, progress, tools};

/// Transitions per second and core for which the share of CPU and memory is computed.
const BUSY: f64 = 200_000.0;

/// Parts to measure.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// One part only
    part: Option<Part>,
    /// The raw trace whose blocks the stages and the page get [default: the longest that earlier commands have left]
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    /// Put the tables into the documents that have them, in place of the ones before
    #[arg(long)]
    write: bool,
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
    /// Other tracers, in the same guest as ours; only on request
    Others,
    /// Programs' records in their own memory; needs no VM
    Marks,
    /// Time and bytes of tracing, and how fast a trace gets to the disk
    Tracing,
    /// From raw file to page; needs no VM
    Stages,
    /// The page in a browser; needs no VM
    Page,
    /// The page of two machines with five million spans each; only when asked for
    Machines,
    /// Accuracy of `why` with planted causes; only on request
    Why,
    /// False alarms of `diff` between two recordings of the same load; only on request
    Diff,
    /// Answers of DuckDB and Spark about a thousand traces, and their speed; only on request
    Fleet,
}

/// Parts that are measured where none is asked for.
const USUAL: [Part; 5] = [Part::Instructions, Part::Marks, Part::Tracing, Part::Stages, Part::Page];

/// Measures everything, or one part, and prints the tables; fails if a budget is missed.
pub fn run(args: &BenchArgs) -> Result<()> {
    let dir = place::made(place::target().join("bench"))?;
    let head = section::head()?;
    let mut over = Vec::new();
    for part in args.part.map_or(USUAL.to_vec(), |part| vec![part]) {
        for section in measure(part, args, &dir)? {
            // Not locked: guests print there at the same time, too.
            writeln!(std::io::stdout(), "{}", section.text(&head))?;
            if args.write {
                section.write(&head)?;
            }
            over.extend(section.over);
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => bail!("bench: {}", over.join("\n")),
    }
}

fn measure(part: Part, args: &BenchArgs, dir: &Path) -> Result<Vec<Section>> {
    let raw = args.raw.as_deref();
    let costs = || compile(&place::checkout().join("tests/vm/costs.c"), dir);
    let told = |name, tables| Section { name, tables, over: Vec::new() };
    Ok(vec![match part {
        Part::Instructions => instructions::measure(&costs()?, dir)?.section(),
        Part::Marks => marks::measure(dir)?.section(),
        Part::Tracing => return tracing(&costs()?, dir),
        Part::Stages => stages::measure(raw, dir)?.section(),
        Part::Page => page::measure(raw, dir)?.section("page"),
        Part::Machines => {
            let (said, pages) = machines::measure(raw, dir)?;
            let section = pages.section("machines");
            Section { tables: format!("{said}\n{}", section.tables), ..section }
        }
        Part::Others => told("others", others::measure(&costs()?, dir)?.to_string()),
        Part::Why => told("why", why::measure(Judged::Why, args.seed, &args.case, dir)?),
        Part::Diff => told("diff", why::measure(Judged::Diff, args.seed, &args.case, dir)?),
        Part::Fleet => told("fleet", fleet::measure(raw, args.traces, args.seed, dir)?),
    }])
}

/// Time and memory that tracing costs.
fn tracing(costs: &Path, dir: &Path) -> Result<Vec<Section>> {
    let native = native::measure()?;
    let traces = traces::record(costs, dir)?;
    let [cpu, memory] = [native.per_transition() * BUSY / 1e9 * 100.0, traces.redis_bytes() * BUSY / 1e6];
    let number = |what: &str, limit, measured, unit| Budget { what: what.to_owned(), limit, measured, unit };
    let share = [number("CPU", AtMost(1.0), cpu, " %"), number("memory", Limit::Any, memory, " MB/s")];
    let share = Section::of("share", &format!("at {BUSY} transitions/s and core"), &share);
    Ok(vec![native.section(), traces.section(), share, dump::measure(dir)?.section()])
}

/// Compiles a program with the library of marks.
fn compile(source: &Path, dir: &Path) -> Result<PathBuf> {
    let program = dir.join(source.file_stem().context("a source has a name")?);
    let mut gcc = Command::new(if source.extension().is_some_and(|ending| ending == "cc") { "g++" } else { "gcc" });
    gcc.arg("-I").arg(place::checkout().join("kutrace-control/kutrace/include"));
    gcc.args(["-O2", "-static", "-pthread", "-Wall", "-Werror", "-o"]).arg(&program).arg(source);
    gcc.arg(tools::ensure()?.join("libkutrace.a"));
    // The linker warns of other content there; the log takes that.
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
