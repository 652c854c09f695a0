// SPDX-License-Identifier: BSD-3-Clause
//! spantotrim: a part of a trace, by time or by label.

#![forbid(unsafe_code)]

mod cli;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Context};
use clap::Parser;
use postprocess::span::trim::{self, Range};
use postprocess::span::{json, Spans};

use cli::{spans, Outcome};

/// Keeps the spans of a range of time; what is open at its edges is cut there
///
/// Times are seconds after the minute that the trace counts from, as the page shows them:
/// spantotrim 39.2 43.9 < t.json > part.json
#[derive(Parser)]
#[command(version, allow_negative_numbers = true)]
struct Args {
    /// Start in seconds; or the text of a mark, for the time from it to the mark `/TEXT`
    start: String,
    /// Stop in seconds; the end of the trace if absent
    stop: Option<f64>,
    /// The spans as JSON; standard input if absent or `-`
    #[arg(short, long)]
    input: Option<PathBuf>,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] =
    ["spantotrim 39.2 43.9 < t.json > part.json", "spantotrim slow -i t.json | spantohtml > slow.html"];

fn main() -> ExitCode {
    cli::end("spantotrim", run(&cli::parse(EXAMPLES)))
}

fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (mut spans, place) = spans::read(args.input.as_ref())?;
    let range = range(args, &spans).with_context(|| place.clone())?;
    let before = extent(&spans);
    trim::trim(&mut spans, range);
    if spans.spans.is_empty() {
        bail!("{place}: no spans there, the trace goes from {:.8} to {:.8}", before.0, before.1);
    }
    spans::write(&spans, args.form)?;
    Ok(spans::outcome("spantotrim", &place, &spans.meta))
}

fn range(args: &Args, spans: &Spans) -> anyhow::Result<Range> {
    let Ok(start) = args.start.parse() else {
        if args.stop.is_some() {
            bail!("a stop goes with a time, and {} is none", args.start);
        }
        return trim::labelled(spans, &args.start).with_context(|| format!("no mark {}", args.start));
    };
    let range = Range { from: json::units(start), to: args.stop.map_or(i64::MAX, json::units) };
    if range.from >= range.to {
        bail!("the stop is not after the start");
    }
    Ok(range)
}

/// Start and end of all spans in seconds.
fn extent(spans: &Spans) -> (f64, f64) {
    let start = spans.spans.first().map_or(0, |s| s.start);
    let end = spans.spans.iter().map(|s| s.start.saturating_add(s.dur)).max().unwrap_or(start);
    (json::seconds(start), json::seconds(end))
}
