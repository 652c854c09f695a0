// SPDX-License-Identifier: BSD-3-Clause
//! kutrace_sql: a query on folders of Parquet, which [`tables`] finds and the engine answers; [`answer`] prints it.
//!
//! Invariant: nothing is written but the answer: no statement that changes tables or writes files is taken.

#![forbid(unsafe_code)]

mod tables;
mod answer;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, Context, Result};
use clap::{CommandFactory, Parser};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use kutrace_cli::{arguments, standard, Exit, Failure};

use answer::Form;

/// Answer a query in SQL about traces in folders of Parquet tables
///
/// docs/data.md describes the tables and has examples. `kutrace_control sql` takes raw traces, too.
#[derive(Parser)]
#[command(name = "kutrace_sql", version, max_term_width = 80, after_help = AFTER)]
struct Args {
    /// Folders that spantoparquet or `kutrace_control export` wrote, or files in them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The query
    #[arg(required = true, value_name = "QUERY")]
    query: String,
    /// Print a JSON object for each row
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
}

const AFTER: &str = "\
Examples:
  kutrace_sql fleet 'select kind, sum(dur_ns) from spans group by kind'
  kutrace_sql --csv fleet 'select * from traces' > traces.csv";

fn main() -> ExitCode {
    kutrace_cli::run("kutrace_sql", || {
        let args: Args = arguments::parse(Args::command());
        let engine = tokio::runtime::Builder::new_multi_thread().build().context("threads")?;
        engine.block_on(run(args))
    })
}

async fn run(args: Args) -> Result<Exit> {
    standard::output()?;
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    };
    let context = SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
    let tables = tables::register(&context, &args.files).await?;
    let only_reads = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let planned = context.sql_with_options(&args.query, only_reads).await;
    let rows = match planned {
        Ok(plan) => plan.execute_stream().await,
        Err(error) => Err(error),
    };
    answer::print(rows.map_err(|error| wrong(&error, &tables))?, form).await?;
    Ok(Exit::Done)
}

/// What is wrong with a query, and which tables there are if it asks for another.
fn wrong(error: &DataFusionError, tables: &[&str]) -> anyhow::Error {
    let fact = said(error);
    let absent = fact.split_once("table 'datafusion.public.").and_then(|(_, rest)| rest.split_once("' not found"));
    match absent {
        Some((name, _)) => {
            Failure::new(format_args!("query: no table {name}"), format_args!("there are {}", tables.join(", "))).into()
        }
        None => anyhow!("query: {fact}"),
    }
}

/// What the engine says, in one line.
fn said(error: &DataFusionError) -> String {
    error.strip_backtrace().split_whitespace().collect::<Vec<_>>().join(" ")
}
