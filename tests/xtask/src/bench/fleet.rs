// SPDX-License-Identifier: BSD-3-Clause
//! A thousand traces at once: varies a recorded one for a fleet of hosts with differences planted, and asks DuckDB and
//! Spark the questions of samples/fleet.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{ensure, Context, Result};

use super::number;
use crate::place;
use crate::progress::{self, output, tied};

/// Default number of traces.
const TRACES: usize = 1000;
/// Default seed of the random numbers.
const SEED: u64 = 22;
/// Entries of the trace that is varied: a million spans.
const ENTRIES: u64 = 800_000;
/// The questions.
const QUERIES: [&str; 3] = ["shared.sql", "wakeups.sql", "causes.sql"];
/// Form of Spark: workers in processes of their own, as on a cluster.
const SPARK: &str = "--master local-cluster[2,1,2048] --driver-memory 2g --conf spark.ui.enabled=false \
                     --conf spark.sql.shuffle.partitions=8 --conf spark.executor.memory=2g pyspark-shell";

/// Makes the data set, asks, and returns the table.
pub fn measure(from: Option<&Path>, traces: Option<usize>, seed: Option<u64>, dir: &Path) -> Result<String> {
    let programs = programs(dir)?;
    let base = from.map_or_else(|| long(&programs, dir), |given| Ok(given.to_path_buf()))?;
    let (python, program) = (python(dir)?, programs.join("fleet"));
    let (set, traces, seed) = (dir.join("fleet"), traces.unwrap_or(TRACES), seed.unwrap_or(SEED));
    if set.exists() {
        fs::remove_dir_all(&set).with_context(|| set.display().to_string())?;
    }
    let mut make = tied(&program.display().to_string());
    make.arg("make").arg(&base).arg(&set).args([traces.to_string(), seed.to_string()]);
    let began = Instant::now();
    let made = output(&mut make)?;
    let seconds = began.elapsed().as_secs_f64();
    let (traces, spans): (u64, u64) = (number(&made, "traces")?, number(&made, "spans")?);
    let bytes = output(Command::new("du").args(["--bytes", "--summarize"]).arg(&set))?;
    let bytes: f64 = bytes.split_whitespace().next().and_then(|n| n.parse().ok()).context("bench: du")?;
    let mut answers = Vec::new();
    for script in ["ask_duckdb.py", "ask_spark.py"] {
        answers.push(ask(&python, script, &set, dir)?);
    }
    let table = output(Command::new(&program).arg("judge").arg(&set).args(&answers))?;
    let rate = spans as f64 / seconds / 1e6;
    Ok(format!(
        "`cargo xtask bench fleet --traces {traces} --seed {seed}`: {spans} spans of {traces} traces, {:.1} GB, \
         made in {seconds:.0} s, {rate:.1} M spans/s\n\n{table}\n",
        bytes / 1e9
    ))
}

/// A long trace from a recorded one: requests to a server, while another program wants the CPU.
fn long(programs: &Path, dir: &Path) -> Result<PathBuf> {
    let (recorded, trace) = (dir.join("hog.trace"), dir.join("fleet.trace"));
    let mut xz = tied("xz");
    xz.args(["--decompress", "--stdout"]).arg(place::checkout().join("tests/golden/causes/hog.trace.xz"));
    xz.stdout(File::create(&recorded).with_context(|| recorded.display().to_string())?);
    ensure!(xz.status().context("bench: xz")?.success(), "bench: xz failed");
    output(Command::new(programs.join("stages")).arg("repeat").arg(recorded).arg(ENTRIES.to_string()).arg(&trace))?;
    Ok(trace)
}

/// Asks one of the two; returns where its answers are.
fn ask(python: &Path, script: &str, set: &Path, dir: &Path) -> Result<PathBuf> {
    let samples = place::checkout().join("samples/fleet");
    let answers = dir.join(script).with_extension("json");
    let mut command = tied(&python.display().to_string());
    command.arg(samples.join(script)).arg(set).args(QUERIES.map(|query| samples.join(query)));
    command.env("PYSPARK_SUBMIT_ARGS", SPARK).env("PYSPARK_PYTHON", python).current_dir(dir);
    let log = dir.join(script).with_extension("log");
    command.stdout(File::create(&answers)?).stderr(File::create(&log)?);
    let status = command.status().with_context(|| format!("bench: {script}"))?;
    ensure!(status.success(), "bench: {script}: {status}\nhint: the log is {}", log.display());
    Ok(answers)
}

/// A Python with DuckDB and Spark; Spark wants a Java.
fn python(dir: &Path) -> Result<PathBuf> {
    let java = Command::new("java").arg("-version").output();
    ensure!(java.is_ok(), "bench: no java\nhint: apt-get install openjdk-17-jre-headless");
    let wanted = place::checkout().join("samples/fleet/requirements.txt");
    let text = fs::read_to_string(&wanted).with_context(|| wanted.display().to_string())?;
    let folder = dir.join("python");
    let (python, made) = (folder.join("bin/python"), folder.join("requirements.txt"));
    if fs::read_to_string(&made).is_ok_and(|made| made == text) {
        return Ok(python);
    }
    let log = dir.join("python.log");
    progress::run("bench: a Python", tied("python3").args(["-m", "venv", "--clear"]).arg(&folder), &log)?;
    let mut pip = tied(&python.display().to_string());
    pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&wanted);
    progress::run("bench: DuckDB and Spark", &mut pip, &log)?;
    fs::write(&made, text).with_context(|| made.display().to_string())?;
    Ok(python)
}

/// Place of the programs that make the trace, vary it and judge.
fn programs(dir: &Path) -> Result<PathBuf> {
    let mut cargo = tied("cargo");
    cargo.args(["build", "--release", "--locked", "--package", "kutrace-bench", "--bin", "fleet", "--bin", "stages"]);
    progress::run("bench: building", cargo.current_dir(place::checkout()), &dir.join("fleet.log"))?;
    Ok(place::target().join("release"))
}
