// SPDX-License-Identifier: BSD-3-Clause
//! What the tools that read spans share: JSON in, JSON out, and the faults that came with it said aloud.

use std::io::{self, BufReader, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{bail, Context};
use postprocess::span::{json, Meta, Spans};

use super::Outcome;

/// Reads spans from a file, or from standard input; answers what to call the input, too.
pub fn read(file: Option<&PathBuf>) -> anyhow::Result<(Spans, String)> {
    let input = super::open(file)?;
    let spans = json::read(&mut BufReader::with_capacity(1 << 16, input.read)).with_context(|| input.name.clone())?;
    if spans.spans.is_empty() && !spans.meta.quality.is_empty() {
        bail!("{}: no spans", input.name);
    }
    Ok((spans, input.name))
}

/// Writes spans to standard output.
pub fn write(spans: &Spans) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    json::write(spans, &mut out).and_then(|()| out.flush()).context("stdout")
}

/// Says what is missing from spans read from `place`.
pub fn outcome(tool: &str, place: &str, meta: &Meta) -> Outcome {
    for sentence in &meta.quality {
        super::say(format_args!("{tool}: {place}: {sentence}"));
    }
    if meta.lost > 0 {
        super::say(format_args!("{tool}: {place}: {} events were lost while recording", meta.lost));
    }
    if meta.lost == 0 && meta.quality.is_empty() {
        Outcome::Whole
    } else {
        Outcome::Damaged
    }
}
