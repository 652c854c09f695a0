// SPDX-License-Identifier: BSD-3-Clause
//! spantoparquet: spans to tables of Parquet.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::{say, Exit};
use kutrace_parquet::write::tables;
use kutrace_tools::ask::Requests;
use kutrace_tools::{outcome, spans};

/// Add a trace to a folder of Parquet tables, for DuckDB, pandas and Spark
///
/// docs/data.md describes the tables and their columns.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The spans (standard input if absent or `-`), and the folder
    #[arg(required = true, num_args = 1..=2, value_names = ["FILE", "DIR"])]
    paths: Vec<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    requests: Requests,
    /// Print only problems
    #[arg(short, long)]
    quiet: bool,
}

const EXAMPLES: [&str; 2] =
    ["spantoparquet t.json fleet", "rawtoevent --binary t.trace | eventtospan --binary | spantoparquet fleet"];

fn main() -> ExitCode {
    kutrace_tools::run("spantoparquet", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    if args.input.is_some() && args.paths.len() > 1 {
        kutrace_tools::usage::<Args>("--input names FILE already; only DIR follows");
    }
    let (dir, file) = args.paths.split_last().context("no folder")?;
    let (spans, place) = spans::in_order(args.input.as_ref().or(file.first()))?;
    let (meta, told) = tables(spans, dir, Some(&args.requests)).with_context(|| place.clone())?;
    told.iter().filter(|_| !args.quiet).for_each(say);
    Ok(outcome(&place, &meta))
}
