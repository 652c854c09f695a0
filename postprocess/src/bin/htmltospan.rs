// SPDX-License-Identifier: BSD-3-Clause
//! htmltospan: from a page back to its spans, as JSON.

#![forbid(unsafe_code)]

mod cli;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use postprocess::html;
use postprocess::kind::Kind;

use cli::{spans, Outcome};

/// Lifts the spans out of a page, of spantohtml or of the original's makeself, as JSON
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The page; standard input if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    named: cli::Named,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] = ["htmltospan t.html > t.json", "htmltospan t.html | spantoprof | spantohtml > prof.html"];

fn main() -> ExitCode {
    cli::run("htmltospan", || run(&cli::parse(EXAMPLES)))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut input = cli::open(args.named.or(&args.file), Kind::Page)?;
    let page = input.page()?;
    let place = input.name;
    let spans = html::lift(&String::from_utf8_lossy(&page)).with_context(|| place.clone())?;
    spans::write(&spans, &args.form)?;
    Ok(spans::outcome("htmltospan", &place, &spans.meta))
}
