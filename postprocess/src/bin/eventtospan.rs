// SPDX-License-Identifier: BSD-3-Clause
//! eventtospan: events to spans, as JSON or frames.

#![forbid(unsafe_code)]

mod cli;

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Context};
use clap::Parser;
use postprocess::event::names::Names;
use postprocess::event::source::Source;
use postprocess::span::check::Check;
use postprocess::span::{self, Span, Tally};

use cli::{spans, Outcome};

/// Turns events, as lines of ours or the original's, sorted or not, or as frames, into spans on standard output
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The events; standard input if absent
    file: Option<PathBuf>,
    /// Title of the page
    #[arg(long, default_value = "")]
    title: String,
    /// Fail if the spans do not cover every CPU's time exactly
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    form: spans::Form,
}

const EXAMPLES: [&str; 2] = [
    "rawtoevent t.trace | eventtospan | spantohtml > t.html",
    "rawtoevent t.trace | eventtospan --check --title 'a slow request' > t.json",
];

fn main() -> ExitCode {
    cli::end("eventtospan", run(cli::parse(EXAMPLES)))
}

fn run(args: Args) -> anyhow::Result<Outcome> {
    let input = cli::open(args.file.as_ref())?;
    let mut sink = spans::Sink::new(args.form).context("stdout")?;
    let (most, mut taken, mut check) = (sink.most(), 0, Check::default());
    let away = |spans: Vec<Span>, names: &Names| {
        taken += spans.len();
        spans.iter().filter(|_| args.check).for_each(|span| check.span(span));
        sink.take(spans, names.since(0))
    };
    let source = Source::open(BufReader::with_capacity(1 << 16, input.read)).with_context(|| input.name.clone())?;
    let (mut spans, tally, meta) = span::build_from(source, most, away).map_err(|e| match e.chain().len() {
        1 => e.context(input.name.clone()),
        _ => e,
    })?;
    let count = taken + spans.spans.len();
    if count == 0 {
        bail!("{}: no events", input.name);
    }
    spans.meta.title = args.title;
    if args.check {
        spans.spans.iter().for_each(|span| check.span(span));
        let violations = check.finish(&meta.intervals, &tally);
        for sentence in &violations {
            cli::say(format_args!("eventtospan: {}: {sentence}", input.name));
        }
        if !violations.is_empty() {
            bail!("{}: the spans are not sound", input.name);
        }
    }
    sink.finish(&spans).context("stdout")?;
    say(count, &tally, &spans.names);
    Ok(spans::outcome("eventtospan", &input.name, &spans.meta))
}

fn say(spans: usize, tally: &Tally, names: &[String]) {
    let all = (tally.user + tally.system + tally.idle + tally.lost).max(1) as f64;
    let percent = |part: i64| part as f64 * 100.0 / all;
    let (user, system, idle) = (percent(tally.user), percent(tally.system), percent(tally.idle));
    let lost = percent(tally.lost);
    cli::say(format_args!(
        "eventtospan: {spans} spans, {user:.0}% usr, {system:.0}% sys, {idle:.0}% idle, {lost:.0}% lost"
    ));
    cli::say(format_args!(
        "eventtospan: {} repairs, {} late, {} unknown events",
        tally.repairs, tally.late, tally.unknown
    ));
    if let Some(first) = tally.first {
        cli::say(format_args!("eventtospan: the first repair: {}", first.text(names)));
    }
    let Tally { wakeups, runs, repeated, pending, .. } = tally;
    cli::say(format_args!(
        "eventtospan: {wakeups} wakeups: {runs} led to a run, {repeated} repeated, {pending} pending at the end"
    ));
}
