// SPDX-License-Identifier: BSD-3-Clause
//! Spans built from events, as `eventtospan`, `ftracetospan`, `perftospan`, `perfettotospan` and `systingtospan` do.

use std::path::PathBuf;

use anyhow::{bail, Result};
use kutrace_cli::{say, Exit};
use postprocess::direct;
use postprocess::event::names::Names;
use postprocess::readable::count;
use postprocess::source::Stage;
use postprocess::span::check::Check;
use postprocess::span::{stall, steal, Span, Tally};
use postprocess::time::Time;

use crate::{outcome, spans, Common, Input, Named, Reader};

/// Input of the spans, and options.
#[derive(Clone, Debug, clap::Args)]
pub struct Build {
    /// The events; standard input to its end if absent
    file: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    how: How,
}

/// Options of building spans.
#[derive(Clone, Debug, clap::Args)]
pub struct How {
    /// Title of the page
    #[arg(long)]
    title: Option<String>,
    /// Fail if the spans do not cover every CPU's time exactly
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    form: spans::Form,
}

/// Builds the spans of a file and writes them.
///
/// # Errors
/// As [`spans_of`].
pub fn run(args: Build) -> Result<Exit> {
    spans_of(crate::open(args.named.or(&args.file), Stage::Events)?, args.how, Vec::new())
}

/// Builds the spans of `input` and writes them; `damage` lists faults of the input known before it is read.
///
/// # Errors
/// If the events cannot be read, there are none, or the spans cannot be written or are not sound.
pub fn spans_of(input: Input, args: How, damage: Vec<String>) -> Result<Exit> {
    let place = input.name.clone();
    let common = args.form.common.clone();
    let mut sink = spans::Sink::new(&args.form)?;
    let (room, mut taken, mut check) = (sink.room(), 0, Check::default());
    let away = |spans: Vec<Span>, names: &Names| {
        taken += spans.len();
        spans.iter().filter(|_| args.check).for_each(|span| check.span(span));
        sink.take(spans, names.since(0))
    };
    let events = input.events()?;
    let (mut spans, tally, meta) = direct::build_from(events, room, away).map_err(|e| match e.chain().len() {
        1 => e.context(place.clone()),
        _ => e,
    })?;
    let written = taken + spans.spans.len();
    if written == 0 {
        bail!("{place}: no events");
    }
    spans.meta.title = args.title.unwrap_or_default();
    spans.meta.quality.extend(damage);
    if tally.unknown > 0 {
        let events =
            count(tally.unknown, "event has an impossible number or CPU", "events have an impossible number or CPU");
        spans.meta.quality.push(format!("{events}; skipped"));
    }
    if args.check {
        spans.spans.iter().for_each(|span| check.span(span));
        let violations = check.finish(&meta.intervals, &tally);
        for sentence in &violations {
            say(format_args!("{place}: {sentence}"));
        }
        if !violations.is_empty() {
            bail!("{place}: the spans do not cover every CPU's time exactly");
        }
    }
    if sink.finish(&spans)? == Reader::Stayed {
        tell(&common, written, &tally, &spans.names);
    }
    Ok(outcome(&place, &spans.meta))
}

fn tell(common: &Common, spans: usize, tally: &Tally, names: &[String]) {
    let all = (tally.user + tally.system + tally.idle + tally.lost + tally.stalled).0.max(1) as f64;
    let percent = |part: Time| part.0 as f64 * 100.0 / all;
    let (user, system, idle) = (percent(tally.user), percent(tally.system), percent(tally.idle));
    let lost = percent(tally.lost);
    let spans = count(spans as u64, "span", "spans");
    common.tell(format_args!("{spans}, {user:.0}% usr, {system:.0}% sys, {idle:.0}% idle, {lost:.0}% lost"));
    if let Some(stalls) = stall::sentence(tally.stalls, tally.stalled) {
        common.tell(format_args!("{stalls}"));
    }
    if let Some(stolen) = steal::sentence(tally.steals, tally.stolen) {
        common.tell(format_args!("{stolen}"));
    }
    let [repairs, unknown] = [(tally.repairs, "repair", "repairs"), (tally.unknown, "unknown event", "unknown events")]
        .map(|(number, one, many)| count(number, one, many));
    common.tell(format_args!("{repairs}, {} late, {unknown}", tally.late));
    if let Some(first) = tally.first {
        common.tell(format_args!("the first repair: {}", first.text(names)));
    }
    let Tally { wakeups, runs, repeated, pending, .. } = *tally;
    let wakeups = count(wakeups, "wakeup", "wakeups");
    common.tell(format_args!("{wakeups}: {runs} led to a run, {repeated} repeated, {pending} pending at the end"));
}
