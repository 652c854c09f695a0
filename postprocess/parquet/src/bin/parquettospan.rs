// SPDX-License-Identifier: BSD-3-Clause
//! parquettospan: tables of Parquet back to spans.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Result};
use clap::Parser;
use kutrace_cli::{Exit, Failure};
use kutrace_parquet::read::traces;
use kutrace_tools::{outcome, spans};
use postprocess::span::Spans;

/// Restore the spans of a trace from the tables that spantoparquet wrote
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The folder of the tables
    dir: PathBuf,
    /// Trace to restore, if there are several
    #[arg(short, long)]
    trace: Option<String>,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] =
    ["parquettospan tables | spantohtml > t.html", "parquettospan fleet -t 202611201514-00c0ffee > t.json"];

fn main() -> ExitCode {
    kutrace_tools::run("parquettospan", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let place = args.dir.display().to_string();
    let mut found = traces(&args.dir)?;
    found.retain(|found| args.trace.as_ref().is_none_or(|wanted| found.trace == *wanted));
    let found = match (found.pop(), found.first()) {
        (None, _) => bail!("{place}: no such trace"),
        (Some(one), None) => one,
        (Some(one), Some(_)) => {
            let hint = format!("parquettospan {place} --trace {}", one.trace);
            return Err(Failure::new(format_args!("{place}: has {} traces", found.len() + 1), hint).into());
        }
    };
    let mut sink = spans::Sink::new(&args.form)?;
    let (meta, names) = found.spans(&args.dir, |spans, names| sink.take(spans, names.since(0)))?;
    let last = Spans { meta, names: names.into_texts(), spans: Vec::new() };
    sink.finish(&last)?;
    Ok(outcome(&place, &last.meta))
}
