// SPDX-License-Identifier: BSD-3-Clause
//! spantoprof: a profile of the time of each CPU, thread and RPC.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{outcome, spans, Named};
use postprocess::sink::profile::{Adder, Rows};

/// Add up what each CPU, thread and RPC did, as spans that a page shows as bars
#[derive(Parser)]
#[command(version)]
struct Args {
    /// One profile per CPU, thread and RPC (the default)
    #[arg(long)]
    row: bool,
    /// Average profiles with the same name, and among these, profiles of similar duration
    #[arg(long, conflicts_with = "row")]
    group: bool,
    /// With --group, also groups of one
    #[arg(long, requires = "group")]
    all: bool,
    /// The spans as JSON; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] =
    ["spantoprof t.json | spantohtml > prof.html", "spantoprof --group t.json | spantohtml > groups.html"];

fn main() -> ExitCode {
    kutrace_tools::run("spantoprof", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let rows = match (args.group, args.all) {
        (false, _) => Rows::Each,
        (true, false) => Rows::Groups(2),
        (true, true) => Rows::Groups(1),
    };
    let (spans, place) = spans::read_into(args.named.or(&args.file), Adder::new(rows))?;
    spans::write(&spans, &args.form)?;
    Ok(outcome(&place, &spans.meta))
}
