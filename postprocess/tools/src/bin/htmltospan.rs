// SPDX-License-Identifier: BSD-3-Clause
//! htmltospan: a page back to its spans, as JSON.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{outcome, spans, Named};
use postprocess::sink::page;
use postprocess::source::Stage;

/// Extract the spans from a page of spantohtml, or of the original's makeself, as JSON
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The page; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] = ["htmltospan t.html > t.json", "htmltospan t.html | spantoprof | spantohtml > prof.html"];

fn main() -> ExitCode {
    kutrace_tools::run("htmltospan", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    let mut input = kutrace_tools::open(args.named.or(&args.file), Stage::Page)?;
    let page = input.page()?;
    let place = input.name;
    let spans = page::lift(&String::from_utf8_lossy(&page)).with_context(|| place.clone())?;
    spans::write(&spans, &args.form)?;
    Ok(outcome(&place, &spans.meta))
}
