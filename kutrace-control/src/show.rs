// SPDX-License-Identifier: BSD-3-Clause
//! What is in a raw file: its page, its summary, why requests took so long.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::Path;

use anyhow::{anyhow, Context, Result};
use postprocess::direct;
use postprocess::html::{self, Error};
use postprocess::input::Input;
use postprocess::kind::{self, Kind};
use postprocess::line::count;
use postprocess::progress::Watch;
use postprocess::span::held::Held;
use postprocess::span::{Meta, Spans};
use postprocess::standard;
use postprocess::summary::Summary;

use crate::arguments::{Diff, Why};
use crate::report::{self, say, Exit, Failure};
use crate::target::Target;

/// Waits for a CPU that are told in full.
const WORST: usize = 5;
/// Sentences about damage shown before the rest is only counted.
const SHOWN: usize = 20;

/// Writes the page of a raw file.
pub fn page(file: &Path, title: Option<String>, target: &Target) -> Result<Exit> {
    let input = open(file, "html")?;
    target.check()?;
    let watch = Watch::at_terminal("kutrace_control");
    let (mut spans, _) = direct::spans_for_page(&input.read()?).with_context(|| name(file))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    spans.meta.title = title.unwrap_or_else(|| stem.into_owned());
    let written = target.write(|out| {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        html::render(&spans, &mut out).and_then(|()| out.flush().map_err(Error::Write)).map_err(|error| match error {
            Error::Write(error) => error.into(),
            error => anyhow::Error::from(error),
        })
    });
    drop(watch);
    // A reader that goes away wants no more: that is no fault of the trace, and hides none.
    if let Err(error) = written {
        return if report::is_broken_pipe(&error) { Ok(outcome(file, &spans.meta)) } else { Err(error) };
    }
    say(format_args!("{target}: {}", count(spans.spans.len() as u64, "span", "spans")));
    Ok(outcome(file, &spans.meta))
}

/// Prints what a raw file tells at a glance, told as text or JSON.
pub fn summary(file: &Path, told: impl Fn(&Summary) -> Result<String>) -> Result<Exit> {
    let watch = Watch::at_terminal("kutrace_control");
    let summary = direct::summary_of_raw(&open(file, "summary")?.read()?, WORST).with_context(|| name(file))?;
    drop(watch);
    report::print(&told(&summary)?)?;
    Ok(outcome(file, &summary.meta))
}

/// Prints where the time of requests went.
pub fn why(asked: &Why) -> Result<Exit> {
    let file = asked.trace.file();
    let watch = Watch::at_terminal("kutrace_control");
    let (spans, _) =
        direct::spans_of_raw(&open(file, "why")?.read()?, Held::new(usize::MAX)).with_context(|| name(file))?;
    let named = Some(file).filter(|file| *file != Path::new("-"));
    let answer = asked.asked.answer(&spans, named);
    drop(watch);
    report::print(&answer.map_err(|fact| unanswered(file, &spans.meta, fact))?)?;
    Ok(outcome(file, &spans.meta))
}

/// Prints how two raw files differ. What keeps it from an answer is no difference, and has a status of its own.
pub fn diff(diff: &Diff) -> Exit {
    match differ(diff) {
        Ok(exit) => exit,
        Err(error) => match report::fail(&error) {
            Exit::Failed => Exit::Usage,
            exit => exit,
        },
    }
}

fn differ(Diff { before, after, between }: &Diff) -> Result<Exit> {
    if before == after && before == Path::new("-") {
        return Err(anyhow!("standard input is one trace, not two"));
    }
    let spans = |file: &Path| -> Result<Spans> {
        let bytes = open(file, "diff")?.read()?;
        Ok(direct::spans_of_raw(&bytes, Held::new(usize::MAX)).with_context(|| name(file))?.0)
    };
    let watch = Watch::at_terminal("kutrace_control");
    let named = Some(after.as_path()).filter(|file| *file != Path::new("-"));
    let first = spans(before)?;
    let kept = between.before(&first, named).map_err(|fact| unanswered(before, &first.meta, fact))?;
    let meta = first.meta;
    drop(first.spans);
    let second = spans(after)?;
    let answer = between.answer(kept, &second).map_err(|fact| unanswered(after, &second.meta, fact))?;
    drop(watch);
    report::print(&answer.text)?;
    let whole = outcome(before, &meta).max(outcome(after, &second.meta));
    Ok(if answer.differs { Exit::Failed } else { whole })
}

/// Why there is no answer; what is missing from the trace, said before, may be the reason.
fn unanswered(file: &Path, meta: &Meta, fact: String) -> anyhow::Error {
    outcome(file, meta);
    anyhow!("{}: {fact}", name(file))
}

/// A raw file, and its bytes as far as they are known.
struct Opened {
    name: String,
    input: Input<Box<dyn Read>>,
    size: u64,
}

impl Opened {
    fn read(mut self) -> Result<Vec<u8>> {
        self.input.raw(self.size).context(self.name)
    }
}

/// Opens a raw file, or standard input for `-`, for this command.
fn open(file: &Path, command: &str) -> Result<Opened> {
    let name = name(file);
    let (size, input): (u64, Box<dyn Read>) = match file == Path::new("-") {
        true => {
            standard::input().context(name.clone())?;
            if io::stdin().is_terminal() {
                say("reading standard input; Ctrl-D ends it");
            }
            (0, Box::new(io::stdin().lock()))
        }
        false => {
            let file = File::open(file).context(name.clone())?;
            (file.metadata().map_or(0, |m| m.len()), Box::new(file))
        }
    };
    let input = Input::new(input).context(name.clone())?;
    if let Err(wrong) = input.expect(Kind::Raw, &format!("kutrace_control {command}"), &name) {
        let fact = format!("{name}: {wrong}");
        // A page can be made of more than a raw trace, and of a page there is no need to.
        let file = if file == Path::new("-") { "FILE" } else { &name };
        let hint = match (command, input.kind) {
            ("html", Kind::Page) => Some("open it in a browser".to_string()),
            ("html", Kind::Events | Kind::Spans) => kind::way(input.kind, Kind::Page, "", file),
            _ => wrong.hint,
        };
        return Err(hint.map_or_else(|| anyhow!(fact.clone()), |hint| Failure::new(&fact, hint).into()));
    }
    Ok(Opened { name, input, size })
}

/// What to call a file in a message.
fn name(file: &Path) -> String {
    if file == Path::new("-") {
        return "standard input".to_string();
    }
    file.display().to_string()
}

/// Says what is missing.
fn outcome(file: &Path, meta: &Meta) -> Exit {
    let place = name(file);
    for sentence in meta.quality.iter().take(SHOWN) {
        say(format_args!("{place}: {sentence}"));
    }
    if let Some(more @ 1..) = meta.quality.len().checked_sub(SHOWN) {
        say(format_args!("{place}: and {more} more"));
    }
    if meta.lost > 0 {
        let lost = count(meta.lost, "event was", "events were");
        say(format_args!("{place}: {lost} lost while recording"));
    }
    match meta.lost == 0 && meta.quality.is_empty() {
        true => Exit::Done,
        false => Exit::Lost,
    }
}

/// Writes manual page and completions of this program below a folder, for packages.
pub fn manual(command: clap::Command, folder: &Path) -> Result<Exit> {
    for (path, bytes) in postprocess::manual::files(command) {
        let path = folder.join(path);
        let context = || path.display().to_string();
        path.parent().map_or(Ok(()), fs::create_dir_all).with_context(context)?;
        fs::write(&path, bytes).with_context(context)?;
    }
    Ok(Exit::Done)
}
