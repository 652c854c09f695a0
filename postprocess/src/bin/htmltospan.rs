// SPDX-License-Identifier: BSD-3-Clause
//! htmltospan: from a page back to its spans, as JSON.

#![forbid(unsafe_code)]

mod cli;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use postprocess::html;

use cli::{spans, Outcome};

/// Lifts the spans out of a page, of spantohtml or of the original's makeself, as JSON
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The page; standard input if absent or `-`
    file: Option<PathBuf>,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] = ["htmltospan t.html > t.json", "htmltospan t.html | spantoprof | spantohtml > prof.html"];

fn main() -> ExitCode {
    cli::end("htmltospan", run(&cli::parse(EXAMPLES)))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut input = cli::open(args.file.as_ref())?;
    let mut page = Vec::new();
    input.read.read_to_end(&mut page).with_context(|| input.name.clone())?;
    let spans = html::lift(&String::from_utf8_lossy(&page)).with_context(|| input.name.clone())?;
    spans::write(&spans, args.form)?;
    Ok(spans::outcome("htmltospan", &input.name, &spans.meta))
}
