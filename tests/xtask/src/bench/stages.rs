// SPDX-License-Identifier: BSD-3-Clause
//! The stages: how many entries a second go from a raw file to a page, or to the causes of slow requests, and how much
//! memory that takes.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};

use super::number;
use super::section::{self, Budget, Limit, Section};
use crate::progress::{output, tied};
use crate::{place, tools};

/// Entries of the long traces.
const LENGTHS: [u64; 2] = [1_500_000, 20_000_000];
/// Bytes of the longest.
const LONGEST: u64 = 1 << 30;
/// Runs below this many entries are repeated, and the fastest counts.
const SHORT: u64 = 5_000_000;
const RUNS: usize = 5;
/// Interval of reading the memory of the processes; the kernel keeps the peak of each until it ends.
const LOOK: Duration = Duration::from_millis(2);

/// A way from a raw file to a page.
struct Way {
    name: &'static str,
    /// One program a process; `RAW` and `PAGE` in their place.
    processes: &'static [&'static [&'static str]],
}

const ONE: Way = Way { name: "one process", processes: &[&["stages", "page", "RAW", "PAGE"]] };
const TEXT: Way = Way { name: "three, text", processes: &[&["rawtoevent", "RAW"], &["eventtospan"], &["spantohtml"]] };
const FRAMES: Way = Way {
    name: "three, `--binary`",
    processes: &[&["rawtoevent", "--binary", "RAW"], &["eventtospan", "--binary"], &["spantohtml"]],
};
/// From 1.3 spans for each entry.
const WHY: Way = Way { name: "`why`, one process", processes: &[&["kutrace_control", "why", "RAW"]] };
/// Entries of the trace whose requests are explained: ten million spans.
const EXPLAINED: u64 = 7_500_000;

/// Budget of a way for the shortest trace of [`LENGTHS`].
const RATES: [(&str, f64); 3] = [(ONE.name, 2.5), (TEXT.name, 1.25), (FRAMES.name, 2.0)];
/// Budget of one process for the longest trace, and of `why` for the one that it explains: seconds, and MB of memory.
const LONG: [(&str, f64, f64); 2] = [(ONE.name, 10.0, 1074.0), (WHY.name, 10.0, 2147.0)];

/// Values measured for one way.
struct Row {
    trace: String,
    way: &'static str,
    entries: u64,
    seconds: f64,
    /// Peak KiB of each process.
    peaks: Vec<u64>,
    page: u64,
}

/// All rows.
pub struct Stages {
    from: PathBuf,
    rows: Vec<Row>,
}

/// Makes long traces of `from`, or of a recorded one that is at hand, and takes each through the stages.
pub fn measure(from: Option<&Path>, dir: &Path) -> Result<Stages> {
    let from = from.map_or_else(recorded, |given| Ok(given.to_path_buf()))?;
    let programs = tools::ensure()?;
    let mut cargo = tied("cargo");
    cargo.args(["build", "--release", "--locked", "--quiet", "--package", "kutrace-bench", "--bin", "stages"]);
    output(cargo.current_dir(place::checkout()))?;
    let bench = Bench { programs, dir: dir.to_path_buf() };
    let mut rows = Vec::new();
    for entries in LENGTHS {
        let (raw, entries) = bench.repeat(&from, entries)?;
        for way in [ONE, TEXT, FRAMES] {
            rows.push(bench.best(&raw, entries, way)?);
        }
        fs::remove_file(raw)?;
    }
    let bytes = fs::metadata(&from).with_context(|| from.display().to_string())?.len();
    let (raw, entries) = bench.repeat(&from, EXPLAINED)?;
    rows.push(bench.best(&raw, entries, WHY)?);
    fs::remove_file(raw)?;
    let (once, of_one) = bench.repeat(&from, 1)?;
    fs::remove_file(once)?;
    let (raw, entries) = bench.repeat(&from, (LONGEST * of_one).div_ceil(bytes))?;
    for way in [ONE, FRAMES] {
        rows.push(bench.best(&raw, entries, way)?);
    }
    fs::remove_file(raw)?;
    Ok(Stages { from, rows })
}

/// The longest recorded trace that earlier commands have left.
fn recorded() -> Result<PathBuf> {
    let target = place::target();
    let known = [
        target.join("bench/redis.trace"),
        target.join("demo/t.trace"),
        place::checkout().join("samples/pipeline.trace"),
    ];
    known.into_iter().find(|path| path.exists()).context("bench: no raw trace at hand\nhint: cargo xtask demo")
}

struct Bench {
    programs: PathBuf,
    dir: PathBuf,
}

impl Bench {
    /// Writes a trace of whole rounds of `from`, of `entries` entries or more: of one, `from` itself.
    fn repeat(&self, from: &Path, entries: u64) -> Result<(PathBuf, u64)> {
        let to = self.dir.join(format!("{entries}.trace"));
        let mut stages = tied(&self.program("stages"));
        let text = output(stages.arg("repeat").arg(from).arg(entries.to_string()).arg(&to))?;
        Ok((to, number(&text, "entries")?))
    }

    fn program(&self, name: &str) -> String {
        self.programs.join(name).display().to_string()
    }

    /// The fastest of a few runs.
    fn best(&self, raw: &Path, entries: u64, way: Way) -> Result<Row> {
        let runs = if entries < SHORT { RUNS } else { 1 };
        let rows = (0..runs).map(|_| self.run(raw, entries, &way)).collect::<Result<Vec<Row>>>()?;
        let best = rows.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        best.context("bench: there is a run")
    }

    fn run(&self, raw: &Path, entries: u64, way: &Way) -> Result<Row> {
        let page = self.dir.join("stages.html");
        let began = Instant::now();
        let children = self.start(raw, &page, way)?;
        let peaks = wait(children, way.name)?;
        let seconds = began.elapsed().as_secs_f64();
        let bytes = fs::metadata(raw)?.len();
        let trace = format!("{:.1} M entries, {:.0} MB", entries as f64 / 1e6, bytes as f64 / 1e6);
        let made = fs::metadata(&page).context("bench: no page")?.len();
        fs::remove_file(page)?;
        let min = if way.name == WHY.name { 100 } else { 100_000 };
        ensure!(made > min, "bench: {}: {made} bytes came of it", way.name);
        Ok(Row { trace, way: way.name, entries, seconds, peaks, page: made })
    }

    /// Starts the processes of a way, each reading the output of the one before; the last writes the page, unless it is
    /// given another output.
    fn start(&self, raw: &Path, page: &Path, way: &Way) -> Result<Vec<Child>> {
        let mut children: Vec<Child> = Vec::new();
        for (number, words) in way.processes.iter().enumerate() {
            let mut command = tied(&self.program(words[0]));
            command.args(words[1..].iter().map(|&word| match word {
                "RAW" => raw.as_os_str(),
                "PAGE" => page.as_os_str(),
                word => word.as_ref(),
            }));
            if let Some(before) = children.last_mut().and_then(|child| child.stdout.take()) {
                command.stdin(before);
            }
            let last = number + 1 == way.processes.len();
            let piped = if last { page_or_nothing(words, page)? } else { Stdio::piped() };
            let child = command.stdout(piped).stderr(Stdio::null()).spawn();
            children.push(child.with_context(|| format!("bench: {}", words[0]))?);
        }
        Ok(children)
    }
}

fn page_or_nothing(words: &[&str], page: &Path) -> Result<Stdio> {
    match words.contains(&"PAGE") {
        true => Ok(Stdio::null()),
        false => Ok(File::create(page)?.into()),
    }
}

/// Waits for the end of all, and returns the peak of each one's memory in KiB.
fn wait(mut children: Vec<Child>, way: &str) -> Result<Vec<u64>> {
    let mut peaks = vec![0; children.len()];
    let mut running = children.len();
    while running > 0 {
        running = 0;
        for (child, peak) in children.iter_mut().zip(&mut peaks) {
            *peak = peak_of(child).unwrap_or(*peak);
            match child.try_wait()? {
                None => running += 1,
                // 3: the trace was coarsened to fit, or a stage before reported a loss.
                Some(status) if matches!(status.code(), Some(0 | 3)) => {}
                Some(status) => bail!("bench: {way}: {status}"),
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(peaks)
}

fn peak_of(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
}

impl Stages {
    /// Their section, with the budgets.
    pub fn section(&self) -> Section {
        let budgets = self.budgets();
        let tables = format!("{self}\n{}", section::table("budgets", &budgets));
        Section { name: "stages", tables, over: section::over(&budgets) }
    }

    fn budgets(&self) -> Vec<Budget> {
        let mut budgets = Vec::new();
        let name = |row: &Row| format!("{}: {}", row.trace, row.way);
        for (way, least) in RATES {
            let row = self.rows.iter().find(|row| row.way == way).expect("every way is measured");
            let limit = Limit::AtLeast(least);
            budgets.push(Budget { what: name(row), limit, measured: row.rate(), unit: " M entries/s" });
        }
        for (way, seconds, megabytes) in LONG {
            let row = self.rows.iter().rfind(|row| row.way == way).expect("every way is measured");
            let peak = row.megabytes().fold(0.0, f64::max);
            budgets.push(Budget { what: name(row), limit: Limit::AtMost(seconds), measured: row.seconds, unit: " s" });
            budgets.push(Budget { what: name(row), limit: Limit::AtMost(megabytes), measured: peak, unit: " MB" });
        }
        budgets
    }
}

impl Row {
    /// Million entries a second.
    fn rate(&self) -> f64 {
        self.entries as f64 / 1e6 / self.seconds
    }

    /// The peak of each process.
    fn megabytes(&self) -> impl Iterator<Item = f64> + '_ {
        self.peaks.iter().map(|kib| *kib as f64 * 1024.0 / 1e6)
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let from = self.from.file_name().unwrap_or_default().display();
        writeln!(
            f,
            "| raw to HTML, blocks of {from} | way | s | M entries/s | peak MB of each process | MB that it wrote |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let peaks: Vec<String> = row.megabytes().map(|peak| format!("{peak:.0}")).collect();
            let (seconds, rate, peaks, page) = (row.seconds, row.rate(), peaks.join(", "), row.page as f64 / 1e6);
            writeln!(f, "| {} | {} | {seconds:.2} | {rate:.2} | {peaks} | {page:.1} |", row.trace, row.way)?;
        }
        Ok(())
    }
}
