// SPDX-License-Identifier: BSD-3-Clause
//! `spantohtml`: spans as JSON to one self-contained page that draws them.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use postprocess::html::{self, Error};
use postprocess::span::{json, Spans};

/// Make a timeline page from spans.
///
/// Reads JSON from eventtospan and writes one HTML file that needs nothing else, not even a network:
/// spantohtml t.json > t.html
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Spans as JSON; standard input if absent or `-`
    file: Option<PathBuf>,
    /// Title of the page, instead of the trace's own
    #[arg(long)]
    title: Option<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if io::stdout().is_terminal() {
        eprintln!("spantohtml: standard output: a terminal cannot show a page");
        eprintln!("hint: spantohtml t.json > t.html");
        return ExitCode::from(2);
    }
    let place = options.file.as_ref().filter(|f| f.as_os_str() != "-");
    let place = place.map_or("standard input".to_string(), |f| f.display().to_string());
    match run(options, &place) {
        Ok(quality) => {
            for sentence in &quality {
                eprintln!("spantohtml: {place}: {sentence}");
            }
            ExitCode::from(if quality.is_empty() { 0 } else { 3 })
        }
        Err(e) if is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("spantohtml: {e:#}");
            if e.downcast_ref().is_some_and(|e| matches!(e, Error::TooMany(_))) {
                eprintln!("hint: cut a time range with spantotrim, for example `spantotrim 10 12 < t.json`");
            }
            ExitCode::FAILURE
        }
    }
}

/// Writes the page; answers what was damaged or lost in the trace, a sentence each.
fn run(options: Options, place: &str) -> anyhow::Result<Vec<String>> {
    let mut spans = read(&options, place)?;
    if let Some(title) = options.title {
        spans.meta.title = title;
    }
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    html::render(&spans, &mut out).and_then(|()| out.flush().map_err(Error::Write)).map_err(|e| match e {
        Error::Write(e) => anyhow::Error::from(e).context("standard output"),
        Error::TooMany(_) => anyhow::Error::from(e).context(place.to_string()),
    })?;
    let mut quality = spans.meta.quality;
    if spans.meta.lost > 0 {
        quality.push(format!("{} events were lost while recording", spans.meta.lost));
    }
    Ok(quality)
}

fn read(options: &Options, place: &str) -> anyhow::Result<Spans> {
    let mut input: Box<dyn BufRead> = match options.file.as_ref().filter(|f| f.as_os_str() != "-") {
        Some(file) => Box::new(BufReader::new(File::open(file).with_context(|| place.to_string())?)),
        None => Box::new(io::stdin().lock()),
    };
    json::read(&mut input).with_context(|| place.to_string())
}

/// Whether the reader of the page went away, which is its own affair.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
