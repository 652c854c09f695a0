// SPDX-License-Identifier: BSD-3-Clause
//! Programs' records in their own memory, natively: time against a loop of `rdtsc` in the same run, instructions, and
//! the cost of the first mark of a process. A stand-in plays the recorder. [`lttng`] is measured next to it, if that
//! can be installed.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{bail, Context, Result};

use super::section::{self, Budget, Limit, Limit::AtMost, Section};
use super::{lttng, number};
use crate::place;
use crate::progress::{self, output, tied};

/// Name of each way in the program and in the table.
const PLAIN: [(&str, &str); 9] = [
    ("rdtsc", "`rdtsc` alone"),
    ("mark", "`mark!`"),
    ("span", "`span!`, start and end"),
    ("counter", "`counter!`"),
    ("fields", "`mark!` with three numbers"),
    ("c_mark", "`KUTRACE_MARK`, from C"),
    ("nothing", "an empty loop"),
    ("off_mark", "`mark!` while nothing is traced"),
    ("off_span", "`span!` while nothing is traced"),
];
/// The same for a span of `tracing`, by the program's choice of subscriber.
const SUBSCRIBED: [(&str, &str, &str); 6] = [
    ("registry", "tracing", "a span of `tracing`, a registry that does nothing"),
    ("own", "tracing", "a span of `tracing`, our subscriber"),
    ("own", "tracing_number", "the same with a number"),
    ("own", "tracing_off", "the same while nothing is traced"),
    ("layer", "tracing", "a span of `tracing`, the registry with our layer"),
    ("layer", "tracing_off", "the same while nothing is traced"),
];
/// Budgets of some of them: over rdtsc apart, and instructions.
const BUDGETS: [(&str, f64, u64); 2] = [("`mark!`", 1.10, 36), ("`span!`, start and end", 1.75, 72)];
/// Processes whose first mark is timed.
const PROCESSES: usize = 51;
/// Calls that the program makes where instructions are counted.
const COUNTED: u64 = 500;

/// A way's times: back to back and apart, in ns and as multiples of rdtsc; and its instructions, where valgrind is.
struct Row {
    what: &'static str,
    times: [f64; 4],
    instructions: Option<u64>,
}

/// Measured values.
pub struct Marks {
    rows: Vec<Row>,
    off: Option<(u64, u64, u64)>,
    /// A span of `tracing` over one with a registry that does nothing: with our subscriber, with our layer.
    own: f64,
    layer: f64,
    with_memory: f64,
    pair: f64,
    first_us: f64,
    calls_us: f64,
    first_kib: f64,
}

/// Builds and runs the program, as often as it takes.
pub fn measure(dir: &Path) -> Result<Marks> {
    let program = build(dir)?;
    let run = |arguments: &[&str]| output(tied("env").arg(&program).args(arguments));
    let plain = run(&[])?;
    let mut rows = Vec::new();
    for (name, what) in PLAIN {
        rows.push(Row { what, times: times(&plain, name)?, instructions: instructions(&program, &["count", name])? });
    }
    match lttng::measure(dir) {
        Ok(said) => {
            for (name, what) in lttng::WAYS {
                rows.push(Row { what, times: times(&said, name)?, instructions: None });
            }
        }
        Err(error) => eprintln!("bench: without LTTng-UST: {error:#}"),
    }
    let subscribed = ["registry", "own", "layer"].map(|with| Ok((with, run(&[with])?)));
    let subscribed = subscribed.into_iter().collect::<Result<HashMap<_, _>>>()?;
    for (with, name, what) in SUBSCRIBED {
        let times = times(&subscribed[with], name)?;
        rows.push(Row { what, times, instructions: instructions(&program, &[with, "count", name])? });
    }
    let over_nothing = |with| {
        Ok::<_, anyhow::Error>(times(&subscribed[with], "tracing")?[0] / times(&subscribed["registry"], "tracing")?[0])
    };
    let middle = |what: &str, name: &str| {
        let said = (0..PROCESSES).map(|_| run(&[what])).collect::<Result<Vec<_>>>()?;
        let mut values = said.iter().map(|text| number(text, name)).collect::<Result<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        Ok::<_, anyhow::Error>(values[values.len() / 2])
    };
    Ok(Marks {
        off: added_while_off(&program, dir)?,
        rows,
        own: over_nothing("own")?,
        layer: over_nothing("layer")?,
        with_memory: number(&plain, "with_memory")?,
        pair: number(&plain, "pair")?,
        first_us: middle("first", "first_ns")? / 1e3,
        calls_us: middle("calls", "calls_ns")? / 1e3,
        first_kib: middle("first", "first_kib")?,
    })
}

/// Instructions that a mark adds to a loop while nothing is traced, in Rust and in C; and a span in C++, at both ends.
fn added_while_off(program: &Path, dir: &Path) -> Result<Option<(u64, u64, u64)>> {
    let sources = place::checkout().join("tests/bench");
    let [c, cpp] = [super::compile(&sources.join("off.c"), dir)?, super::compile(&sources.join("off_span.cc"), dir)?];
    let added = |program: &Path, with: &[&str], without: &[&str]| -> Result<Option<u64>> {
        let (with, without) = (instructions(program, with)?, instructions(program, without)?);
        Ok(with.zip(without).map(|(with, without)| with.saturating_sub(without)))
    };
    let rust = added(program, &["count", "off_mark"], &["count", "nothing"])?;
    let (c, cpp) = (added(&c, &["mark"], &[])?, added(&cpp, &["span"], &[])?);
    Ok(rust.zip(c).zip(cpp).map(|((rust, c), cpp)| (rust, c, cpp)))
}

fn build(dir: &Path) -> Result<PathBuf> {
    let mut cargo = tied("cargo");
    // In a folder of its own: no other program is to have a library with a stand-in for the recorder.
    let target = place::target().join("bench/marks");
    cargo.args(["build", "--release", "--locked", "--package", "kutrace-marks", "--features", "stand-in"]);
    cargo.arg("--target-dir").arg(&target).current_dir(place::checkout());
    progress::run("bench: compiling", &mut cargo, &dir.join("marks.log"))?;
    Ok(target.join("release/marks"))
}

/// The four numbers on the line of `text` that begins with `name`.
fn times(text: &str, name: &str) -> Result<[f64; 4]> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let numbers = line.map(|line| line.split(' ').map(str::parse).collect::<Result<Vec<f64>, _>>()).transpose()?;
    let numbers: Option<[f64; 4]> = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.with_context(|| format!("bench: no {name} in:\n{text}"))
}

/// Instructions of a call and the loop that makes it, by callgrind; `None` if there is no valgrind.
fn instructions(program: &Path, arguments: &[&str]) -> Result<Option<u64>> {
    if !Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let mut valgrind = tied("valgrind");
    valgrind.args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*counted*"]);
    let ended = valgrind.arg("--callgrind-out-file=/dev/null").arg(program).args(arguments).output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
    match collected.filter(|_| ended.status.success()) {
        Some(collected) => Ok(Some((collected + COUNTED / 2) / COUNTED)),
        None => bail!("bench: valgrind: {}:\n{said}", ended.status),
    }
}

impl Marks {
    /// Their section, with the budgets.
    pub fn section(&self) -> Section {
        let others = self.others();
        let tables = format!("{self}\n{}", section::table("marks", &others));
        Section { name: "marks", tables, over: [self.over(), section::over(&others)].concat() }
    }

    fn over(&self) -> Vec<String> {
        let mut over = Vec::new();
        for Row { what, times, instructions } in &self.rows {
            let Some((_, apart, most)) = BUDGETS.iter().find(|(of, ..)| of == what) else { continue };
            let budget = |unit, limit, measured| Budget { what: (*what).to_owned(), limit, measured, unit };
            over.extend(budget(" times `rdtsc`, apart", AtMost(*apart), times[3]).over());
            let count = instructions.map(|count| budget(" instructions", AtMost(*most as f64), count as f64));
            over.extend(count.and_then(|count| count.over()));
        }
        over
    }

    /// Names that are not ways to record.
    fn others(&self) -> Vec<Budget> {
        let number = |what: &str, limit, measured, unit| Budget { what: what.to_owned(), limit, measured, unit };
        let off = self.off.map_or(Vec::new(), |(rust, c, cpp)| {
            [("`mark!`", rust), ("`KUTRACE_MARK`", c), ("`KUTRACE_SPAN`, start and end", cpp)].to_vec()
        });
        let off = off.into_iter().map(|(what, count)| {
            number(&format!("{what} while nothing is traced"), AtMost(3.0), count as f64, " instructions")
        });
        let rest = [
            number("a span of `tracing`, our subscriber, over a registry that does nothing", AtMost(0.6), self.own, ""),
            number("a span of `tracing`, our layer, over the same", AtMost(1.3), self.layer, ""),
            number(
                "a mark over `rdtsc`, back to back, with the memory that it takes",
                Limit::Any,
                self.with_memory,
                "",
            ),
            number("a mark while another CPU marks, too, over one alone", AtMost(1.05), self.pair, ""),
            number("first mark of a process", AtMost(10.0), self.first_us, " us"),
            number("of these, the kernel's calls and page faults alone", Limit::Any, self.calls_us, " us"),
            number("memory of a process with one mark", AtMost(16.0), self.first_kib, " KiB"),
        ];
        off.chain(rest).collect()
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            f,
            "| native | back to back, ns | over `rdtsc` | apart, ns | over `rdtsc` | instructions, with the loop |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for Row { what, times: [ns, over, apart, apart_over], instructions } in &self.rows {
            let budget = BUDGETS.iter().find(|(of, ..)| of == what);
            let most_apart = budget.map_or(String::new(), |(_, most, _)| format!(", budget {most:.2}"));
            let most = budget.map_or(String::new(), |(.., most)| format!(", budget {most}"));
            let count = instructions.map_or("-".to_owned(), |count| count.to_string());
            let apart_over = format!("{apart_over:.2}{most_apart}");
            writeln!(f, "| {what} | {ns:.2} | {over:.2} | {apart:.2} | {apart_over} | {count}{most} |")?;
        }
        Ok(())
    }
}
