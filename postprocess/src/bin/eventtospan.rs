// SPDX-License-Identifier: BSD-3-Clause
//! eventtospan: event lines to spans, as JSON.

#![forbid(unsafe_code)]

mod cli;

use std::io::{self, BufReader, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Context};
use clap::Parser;
use postprocess::event::read;
use postprocess::span::{self, json, Tally};

use cli::Outcome;

/// Turns event lines, ours or the original's, sorted or not, into spans as JSON on standard output
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The event lines; standard input if absent
    file: Option<PathBuf>,
    /// Title of the page
    #[arg(long, default_value = "")]
    title: String,
    /// Fail if the spans do not cover every CPU's time exactly
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    cli::end("eventtospan", run(Args::parse()))
}

fn run(args: Args) -> anyhow::Result<Outcome> {
    let input = cli::open(args.file.as_ref())?;
    let events = read::read(&mut BufReader::with_capacity(1 << 16, input.read)).with_context(|| input.name.clone())?;
    if events.events.is_empty() {
        bail!("{}: no event lines", input.name);
    }
    let whole = events.meta.is_whole();
    let intervals = events.meta.intervals.clone();
    let (mut spans, tally) = span::build(events);
    spans.meta.title = args.title;
    if args.check {
        let violations = span::check(&spans, &intervals, &tally);
        for sentence in &violations {
            eprintln!("eventtospan: {}: {sentence}", input.name);
        }
        if !violations.is_empty() {
            bail!("{}: the spans are not sound", input.name);
        }
    }
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    json::write(&spans, &mut out).and_then(|()| io::Write::flush(&mut out)).context("stdout")?;
    say(spans.spans.len(), &tally);
    Ok(if whole { Outcome::Whole } else { Outcome::Damaged })
}

fn say(spans: usize, tally: &Tally) {
    let all = (tally.user + tally.system + tally.idle + tally.lost).max(1) as f64;
    let percent = |part: i64| part as f64 * 100.0 / all;
    let (user, system, idle) = (percent(tally.user), percent(tally.system), percent(tally.idle));
    let lost = percent(tally.lost);
    eprintln!("eventtospan: {spans} spans, {user:.0}% usr, {system:.0}% sys, {idle:.0}% idle, {lost:.0}% lost");
    eprintln!("eventtospan: {} repairs, {} late, {} unknown events", tally.repairs, tally.late, tally.unknown);
    let Tally { wakeups, runs, repeated, pending, .. } = tally;
    eprintln!("eventtospan: {wakeups} wakeups: {runs} led to a run, {repeated} repeated, {pending} pending at the end");
}
