// SPDX-License-Identifier: BSD-3-Clause
//! `spantohtml`: spans as JSON to one self-contained page that draws them.

#![forbid(unsafe_code)]

mod cli;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use postprocess::html::{self, Error};
use postprocess::span::held::Held;

use cli::{spans, Outcome};

/// Make a timeline page from spans.
///
/// Reads what eventtospan writes and makes one HTML file that needs nothing else, not even a network:
/// spantohtml t.json > t.html
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Spans as JSON or frames; standard input if absent or `-`
    file: Option<PathBuf>,
    /// Title of the page, instead of the trace's own
    #[arg(long)]
    title: Option<String>,
}

/// Bytes of memory for spans, at most.
const MEMORY: usize = 2 << 30;

const EXAMPLES: [&str; 2] =
    ["spantohtml t.json > t.html", "rawtoevent t.trace | eventtospan | spantohtml --title 'before' > before.html"];

fn main() -> ExitCode {
    let options: Options = cli::parse(EXAMPLES);
    if io::stdout().is_terminal() {
        cli::say(format_args!("spantohtml: standard output: a terminal cannot show a page"));
        cli::say(format_args!("hint: spantohtml t.json > t.html"));
        return ExitCode::from(2);
    }
    cli::end("spantohtml", run(options))
}

fn run(options: Options) -> anyhow::Result<Outcome> {
    let (mut spans, place) = spans::read_into(options.file.as_ref(), Held::within(MEMORY))?;
    if let Some(title) = options.title {
        spans.meta.title = title;
    }
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    html::render(&spans, &mut out).and_then(|()| out.flush().map_err(Error::Write)).map_err(|e| match e {
        Error::Write(e) => anyhow::Error::from(e).context("stdout"),
        Error::TooMany(_) => anyhow::Error::from(e).context(place.clone()),
    })?;
    Ok(spans::outcome("spantohtml", &place, &spans.meta))
}
