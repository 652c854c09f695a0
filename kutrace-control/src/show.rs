// SPDX-License-Identifier: BSD-3-Clause
//! Output for a raw file: its page, its summary, the reasons why requests took long, and exports for other tools.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{anyhow, ensure, Context, Result};
use kutrace_cli::progress::Watch;
use kutrace_cli::{exit, say, standard, Exit};
use kutrace_parquet::write::tables;
use kutrace_tools::draw::draw;
use kutrace_tools::spans::{InOrder, Ordering};
use kutrace_tools::{functions, outcome, Common, Input};
use postprocess::direct;
use postprocess::progress::percent;
use postprocess::readable::count;
use postprocess::sink::page::{self, Error};
use postprocess::sink::summary::{By, Summary};
use postprocess::source::Stage;
use postprocess::span::dense::Dense;
use postprocess::span::{Meta, Spans};
use postprocess::why::Timeline;

use crate::arguments::{Diff, Export, Page, Target, Why};

/// Number of waits for a CPU that are reported in full.
const WORST: usize = 5;

/// Writes the page of a raw file.
pub fn page(asked: &Page) -> Result<Exit> {
    let (file, target) = (asked.trace.file(), asked.output());
    let mut input = open(file, "html")?;
    target.check()?;
    let watch = Watch::at_terminal(percent);
    let bytes = input.raw()?;
    let trace = match asked.no_symbols {
        true => functions::forgotten(&bytes, &name(file)),
        false => functions::trace(&bytes, &name(file)),
    }?;
    let (mut spans, _) = direct::spans_of(&*trace, direct::limit_for_page(bytes.len()));
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    spans.meta.title = asked.title.clone().unwrap_or_else(|| stem.into_owned());
    let requests = asked.requests.carried(&spans).map_err(|fact| unanswered(file, &spans.meta, fact))?;
    let written = target.write(|out| {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        page::render_with(&spans, requests.as_ref(), &mut out).and_then(|()| out.flush().map_err(Error::Write)).map_err(
            |error| match error {
                Error::Write(error) => error.into(),
                error => anyhow::Error::from(error),
            },
        )
    });
    drop(watch);
    // A reader that goes away wants no more: the trace is not at fault, and its own faults still count.
    if let Err(error) = written {
        return if standard::is_broken_pipe(&error) { Ok(outcome(&name(file), &spans.meta)) } else { Err(error) };
    }
    say(format_args!("{target}: {}", count(spans.spans.len() as u64, "span", "spans")));
    Ok(outcome(&name(file), &spans.meta))
}

/// Writes a raw file for Perfetto, or as tables.
pub fn export(asked: &Export) -> Result<Exit> {
    let file = asked.trace.file();
    let watch = Watch::at_terminal(percent);
    let mut input = open(file, "export")?;
    let target = asked.target();
    let common = Common { output: None, quiet: asked.quiet };
    let mut spans = || -> Result<InOrder> {
        let mut ordering = Ordering::default();
        let bytes = input.raw()?;
        let (last, _) = direct::spans_of(&*functions::trace(&bytes, &name(file))?, &mut ordering);
        ordering.finish(last)
    };
    let (meta, told) = match target {
        Target::Perfetto(output) => {
            // A destination that cannot be written is reported before the work.
            let out = Common { output, ..common.clone() }.open()?;
            draw(spans()?, out)?
        }
        Target::Tables(folder) => tables(spans()?, &folder, None)?,
    };
    drop(watch);
    told.iter().for_each(|line| common.tell(line));
    Ok(outcome(&name(file), &meta))
}

/// Prints the summary of a raw file, as text or JSON.
pub fn summary(file: &Path, told: impl Fn(&Summary) -> Result<String>) -> Result<Exit> {
    let watch = Watch::at_terminal(percent);
    let summary = direct::summary_of_raw(&open(file, "summary")?.raw()?, WORST).with_context(|| name(file))?;
    drop(watch);
    standard::print(&told(&summary).with_context(|| name(file))?)?;
    Ok(outcome(&name(file), &summary.meta))
}

/// A summary as text, if the trace has the requested data.
pub fn text(told: &Summary, top: usize, by: By) -> Result<String> {
    ensure!(by != By::Cgroup || !told.cgroups.is_empty(), "the trace has no control groups");
    Ok(told.text(top, by))
}

/// Prints where the time of requests went.
pub fn why(asked: &Why) -> Result<Exit> {
    let file = asked.trace.file();
    let watch = Watch::at_terminal(percent);
    let (about, spans) = dense(file, "why")?;
    let named = Some(file).filter(|file| *file != Path::new("-"));
    let answer = asked.asked.answer(&Timeline::dense(&about, &spans), named);
    drop(watch);
    standard::print(&answer.map_err(|fact| unanswered(file, &about.meta, fact))?)?;
    Ok(outcome(&name(file), &about.meta))
}

/// The spans of a raw file in little memory, and separately the rest.
fn dense(file: &Path, command: &str) -> Result<(Spans, Dense)> {
    let mut dense = Dense::default();
    let (about, _) = direct::spans_of_raw(&open(file, command)?.raw()?, &mut dense).with_context(|| name(file))?;
    Ok((about, dense))
}

/// Prints the differences of two raw files. A failure to compare them is not a difference, and has a status of its own.
pub fn diff(diff: &Diff) -> Exit {
    match differ(diff) {
        Ok(exit) => exit,
        Err(error) => match exit::fail(&error) {
            Exit::Failed => Exit::Usage,
            exit => exit,
        },
    }
}

fn differ(Diff { before, after, between }: &Diff) -> Result<Exit> {
    if before == after && before == Path::new("-") {
        return Err(anyhow!("standard input can be only one of the traces"));
    }
    let watch = Watch::at_terminal(percent);
    let named = Some(after.as_path()).filter(|file| *file != Path::new("-"));
    let (first, spans) = dense(before, "diff")?;
    let kept = between.before(&Timeline::dense(&first, &spans), named);
    let kept = kept.map_err(|fact| unanswered(before, &first.meta, fact))?;
    drop(spans);
    let (second, spans) = dense(after, "diff")?;
    let answer = between.answer(kept, &Timeline::dense(&second, &spans));
    let answer = answer.map_err(|fact| unanswered(after, &second.meta, fact))?;
    drop(watch);
    standard::print(&answer.text)?;
    let whole = outcome(&name(before), &first.meta).max(outcome(&name(after), &second.meta));
    Ok(if answer.differs { Exit::Failed } else { whole })
}

/// The error that there is no answer, after the losses of the trace, which may be the reason.
fn unanswered(file: &Path, meta: &Meta, fact: String) -> anyhow::Error {
    outcome(&name(file), meta);
    anyhow!("{}: {fact}", name(file))
}

/// Opens a raw file, or standard input for `-`, for this command.
fn open(file: &Path, command: &str) -> Result<Input> {
    let input = Input::open(Some(file))?;
    // The hint gives the way to a page from a later stage than a raw trace; a page only has to be opened.
    let hint = if command == "html" { input.way_to_page() } else { None };
    input.expect(Stage::Raw, &format!("kutrace_control {command}"), hint)
}

/// Name of a file in a message.
fn name(file: &Path) -> String {
    if file == Path::new("-") {
        return standard::INPUT.to_string();
    }
    file.display().to_string()
}
