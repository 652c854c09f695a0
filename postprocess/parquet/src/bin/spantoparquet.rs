// SPDX-License-Identifier: BSD-3-Clause
//! spantoparquet: spans to tables of Parquet.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::{say, Exit};
use kutrace_parquet::write::tables;
use kutrace_tools::ask::Requests;
use kutrace_tools::folder::Paths;
use kutrace_tools::{outcome, spans};

/// Add a trace to a folder of Parquet tables, for DuckDB, pandas and Spark
///
/// docs/data.md describes the tables and their columns.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(flatten)]
    paths: Paths,
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
    let (file, dir) = args.paths.split::<Args>()?;
    let (spans, place) = spans::in_order(file)?;
    let (meta, told) = tables(spans, dir, Some(&args.requests)).with_context(|| place.clone())?;
    told.iter().filter(|_| !args.quiet).for_each(say);
    Ok(outcome(&place, &meta))
}
