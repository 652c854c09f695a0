// SPDX-License-Identifier: BSD-3-Clause
//! spantotrim: a part of a trace, by time or by label.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use clap::Parser;
use kutrace_cli::Exit;
use kutrace_tools::{outcome, spans, usage};
use postprocess::span::trim::{self, Range};
use postprocess::span::Spans;
use postprocess::time::Time;

/// Keep the spans of a range of time; clip spans that cross its edges
///
/// Times are seconds after the minute that the trace counts from, as the page shows them:
/// spantotrim 39.2 43.9 < t.json > part.json
#[derive(Parser)]
#[command(version, allow_negative_numbers = true)]
struct Args {
    /// Start in seconds; or the text of a mark, for the time from it to the mark `/TEXT`
    #[arg(value_parser = start)]
    start: Start,
    /// Stop in seconds; the end of the trace if absent
    #[arg(value_parser = seconds)]
    stop: Option<f64>,
    /// The spans as JSON; standard input to its end if absent or `-`
    #[arg(short, long)]
    input: Option<PathBuf>,
    #[command(flatten)]
    form: spans::Form,
}

/// Start of the kept range.
#[derive(Clone, Debug)]
enum Start {
    Seconds(f64),
    Mark(String),
}

fn start(text: &str) -> Result<Start, String> {
    match text.parse::<f64>() {
        Ok(_) => seconds(text).map(Start::Seconds),
        Err(_) => Ok(Start::Mark(text.to_string())),
    }
}

/// Parses seconds within the range of a trace; rejects infinities and NaN.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|e: std::num::ParseFloatError| e.to_string())?;
    Some(seconds).filter(|s| s.abs() < 1e9).ok_or_else(|| "not a time in seconds".to_string())
}

const EXAMPLES: [&str; 2] =
    ["spantotrim 39.2 43.9 < t.json > part.json", "spantotrim slow -i t.json | spantohtml > slow.html"];

fn main() -> ExitCode {
    kutrace_tools::run("spantotrim", EXAMPLES, run)
}

fn run(args: Args) -> Result<Exit> {
    match (&args.start, args.stop) {
        (Start::Seconds(start), Some(stop)) if stop <= *start => usage::<Args>("STOP is not after START"),
        (Start::Mark(mark), Some(_)) => usage::<Args>(format_args!("STOP needs a numeric START; '{mark}' is a mark")),
        _ => {}
    }
    let (mut spans, place) = spans::read(args.input.as_ref())?;
    let range = range(&args, &spans).with_context(|| place.clone())?;
    let before = extent(&spans);
    trim::trim(&mut spans, range);
    if spans.spans.is_empty() {
        bail!("{place}: no spans there, the trace goes from {:.8} to {:.8}", before.0, before.1);
    }
    spans::write(&spans, &args.form)?;
    Ok(outcome(&place, &spans.meta))
}

fn range(args: &Args, spans: &Spans) -> Result<Range> {
    match &args.start {
        Start::Mark(mark) => trim::labelled(spans, mark).with_context(|| format!("no mark {mark}")),
        Start::Seconds(start) => {
            Ok(Range { from: Time::of_seconds(*start), to: args.stop.map_or(Time::MAX, Time::of_seconds) })
        }
    }
}

/// Returns start and end of all spans in seconds.
fn extent(spans: &Spans) -> (f64, f64) {
    let start = spans.spans.first().map_or(Time::ZERO, |s| s.start);
    let end = spans.spans.iter().map(|s| s.start.saturating_add(s.dur)).max().unwrap_or(start);
    (start.seconds(), end.seconds())
}
