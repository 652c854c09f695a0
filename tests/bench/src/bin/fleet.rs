// SPDX-License-Identifier: BSD-3-Clause
//! Data and judgement for `cargo xtask bench fleet`.
//!
//! `fleet make FROM DIR TRACES SEED` writes a data set of varied copies of the recorded trace FROM, with differences
//! planted, which are in DIR/planted.json; prints how many spans it has.
//! `fleet judge DIR DUCKDB SPARK` prints how much of that is in the answers of both.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use anyhow::{anyhow, bail, ensure, Context, Result};
use kutrace_parquet::write::write;
use kutrace_tests::fleet::{self, Base, Plan};
use kutrace_tools::spans::Ordering;
use postprocess::direct::spans_of_raw;
use postprocess::span::limit::{Keep, SpanLimit};
use serde::Deserialize;
use serde_json::Value;

/// Planted differences.
const PLANTED: &str = "planted.json";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", from, dir, traces, seed] => make(from, Path::new(dir), traces.parse()?, seed.parse()?),
        ["judge", dir, duckdb, spark] => judge(Path::new(dir), [duckdb, spark]),
        _ => bail!("fleet make FROM DIR TRACES SEED | fleet judge DIR DUCKDB SPARK"),
    }
}

fn make(from: &str, dir: &Path, traces: usize, seed: u64) -> Result<()> {
    let bytes = fs::read(from).with_context(|| from.to_string())?;
    let (spans, _) = spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).map_err(|e| anyhow!("{from}: {e}"))?;
    let base = Base::new(spans).map_err(|fact| anyhow!("{from}: {fact}"))?;
    let calls = base.calls();
    ensure!(!calls.is_empty(), "{from}: no call waited for a shared CPU often enough");
    let plan = Plan::new(traces, &calls, seed);
    fs::create_dir(dir).with_context(|| dir.display().to_string())?;
    let planted = dir.join(PLANTED);
    fs::write(&planted, plan.planted().to_string()).with_context(|| planted.display().to_string())?;
    let spans = all(&base, &plan, dir)?;
    writeln!(io::stdout(), "traces {}\nspans {spans}", plan.traces())?;
    Ok(())
}

/// Writes all traces, one on each CPU at a time; returns how many spans they have.
fn all(base: &Base, plan: &Plan, dir: &Path) -> Result<u64> {
    let next = AtomicUsize::new(0);
    let some = || -> Result<u64> {
        let mut rows = 0;
        loop {
            let trace = next.fetch_add(1, Relaxed);
            if trace >= plan.traces() {
                return Ok(rows);
            }
            let mut ordering = Ordering::default();
            let last = Keep::finish(&mut ordering, base.vary(plan, trace));
            let (_, written) = write(ordering.finish(last)?, dir, None).with_context(|| format!("trace {trace}"))?;
            rows += written.rows;
        }
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cpus).map(|_| scope.spawn(some)).collect();
        let rows = workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?);
        rows.sum()
    })
}

/// An engine's answer to a query.
#[derive(Deserialize)]
struct Answer {
    query: String,
    seconds: f64,
    rows: Vec<Vec<Value>>,
}

/// Prints how fast both were, whether they agree, and how many of the planted differences they found.
fn judge(dir: &Path, files: [&str; 2]) -> Result<()> {
    let read = |file: &str| -> Result<Vec<Answer>> {
        let text = fs::read_to_string(file).with_context(|| file.to_string())?;
        text.lines().map(|line| serde_json::from_str(line).with_context(|| file.to_string())).collect()
    };
    let [duckdb, spark] = files.map(read);
    let (duckdb, spark) = (duckdb?, spark?);
    ensure!(duckdb.len() == spark.len(), "one of the two answered {}, the other {}", duckdb.len(), spark.len());
    let planted: Value = serde_json::from_str(&fs::read_to_string(dir.join(PLANTED))?)?;
    let mut out = io::stdout().lock();
    writeln!(out, "| question | DuckDB, s | Spark, s | the same rows | planted | found | precision | recall |")?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for (one, other) in duckdb.iter().zip(&spark) {
        let name = Path::new(&one.query).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let found = fleet::found(&name, &one.rows);
        let planted: BTreeSet<Vec<String>> = serde_json::from_value(planted[&name].clone())?;
        let right = found.intersection(&planted).count() as f64;
        let same = if one.rows == other.rows { format!("yes, {}", one.rows.len()) } else { "NO".to_string() };
        let of = |all: usize| if all == 0 { "-".to_string() } else { format!("{:.2}", right / all as f64) };
        let (precision, recall) = (of(found.len()), of(planted.len()));
        let [planted, found] = [planted.len(), found.len()];
        let (duckdb, spark) = (one.seconds, other.seconds);
        writeln!(out, "| {name} | {duckdb:.1} | {spark:.1} | {same} | {planted} | {found} | {precision} | {recall} |")?;
    }
    Ok(())
}
