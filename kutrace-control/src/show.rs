// SPDX-License-Identifier: BSD-3-Clause
//! What is in a raw file: its page, its summary.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use postprocess::html::{self, Error};
use postprocess::span::Spans;
use postprocess::{direct, summary};

use crate::report::{self, say, Exit};
use crate::target::Target;

/// Waits for a CPU that are told in full.
const WORST: usize = 5;
/// Sentences about damage shown before the rest is only counted.
const SHOWN: usize = 20;

/// Writes the page of a raw file.
pub fn page(file: &Path, title: Option<String>, target: &Target) -> Result<Exit> {
    target.check()?;
    let mut spans = spans(file)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    spans.meta.title = title.unwrap_or_else(|| name.into_owned());
    target.write(|out| {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        html::render(&spans, &mut out).and_then(|()| out.flush().map_err(Error::Write)).map_err(|error| match error {
            Error::Write(error) => error.into(),
            error => anyhow::Error::from(error),
        })
    })?;
    say(format_args!("{target}: {} spans", spans.spans.len()));
    Ok(outcome(file, &spans))
}

/// Prints what a raw file tells at a glance, `top` lines of each kind.
pub fn summary(file: &Path, top: usize) -> Result<Exit> {
    let spans = spans(file)?;
    report::print(&summary::summarize(&spans, WORST).text(top))?;
    Ok(outcome(file, &spans))
}

/// The spans of a raw file, or of standard input for `-`.
fn spans(file: &Path) -> Result<Spans> {
    let place = || file.display().to_string();
    let mut bytes = Vec::new();
    match file == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut bytes).context("standard input")?,
        false => File::open(file).and_then(|mut file| file.read_to_end(&mut bytes)).with_context(place)?,
    };
    Ok(direct::spans_for_page(&bytes).with_context(place)?.0)
}

/// Says what is missing.
fn outcome(file: &Path, spans: &Spans) -> Exit {
    let (place, meta) = (file.display(), &spans.meta);
    for sentence in meta.quality.iter().take(SHOWN) {
        say(format_args!("{place}: {sentence}"));
    }
    if let Some(more @ 1..) = meta.quality.len().checked_sub(SHOWN) {
        say(format_args!("{place}: and {more} more"));
    }
    if meta.lost > 0 {
        say(format_args!("{place}: {} events were lost while recording", meta.lost));
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
