// SPDX-License-Identifier: BSD-3-Clause
//! Spans drawn for Perfetto, shared by `spantoperfetto` and `kutrace_control export`.

use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use kutrace_cli::Exit;
use postprocess::event::names::NameId;
use postprocess::readable::count;
use postprocess::sink::perfetto::Drawing;
use postprocess::sink::track::LeftOut;
use postprocess::span::{Meta, Spans};
use postprocess::why::request::{Found, Request};

use crate::spans::{self, InOrder};
use crate::{outcome, Common, Output};

/// Draws the spans of `file`, or of standard input, and lists the omissions of the Perfetto trace.
///
/// # Errors
/// If the spans cannot be read or kept, or the output cannot be written.
pub fn run(file: Option<&PathBuf>, common: &Common) -> Result<Exit> {
    let (spans, place) = spans::in_order(file)?;
    let (meta, untold) = draw(spans, common.open()?)?;
    untold.iter().for_each(|line| common.tell(line));
    Ok(outcome(&place, &meta))
}

/// Draws all spans; returns the data about the trace, and a line for each thing that the Perfetto trace omits.
///
/// # Errors
/// If the output cannot be written, or the spans cannot be read again.
pub fn draw(spans: InOrder, out: Output) -> Result<(Meta, Vec<String>)> {
    let to = out.name();
    let (searched, found) = (spans.whole().is_some(), spans.requests());
    let (last, threads, runs) = spans.split();
    let Spans { meta, mut names, spans } = last;
    let requests = found.map(|Found { asked, mut requests, .. }| {
        requests.sort_unstable_by_key(|r| (r.start, r.end, r.pid));
        names.push(asked);
        (NameId(names.len() as u32 - 1), requests)
    });
    let drawn = || {
        let mut drawing = Drawing::new(&meta, &names, &threads, out)?;
        runs.merge(&spans, |span| drawing.span(span))?;
        for (name, Request { pid, start, end }) in
            requests.into_iter().flat_map(|(name, requests)| requests.into_iter().map(move |request| (name, request)))
        {
            drawing.request((pid, start, end), name)?;
        }
        let (out, left_out) = drawing.finish()?;
        out.finish()?;
        Ok::<_, io::Error>(left_out)
    };
    let left_out = drawn().context(to)?;
    let missing = untold(&meta, left_out, searched);
    Ok((meta, missing))
}

/// Returns a line for each thing that the Perfetto trace omits.
fn untold(meta: &Meta, left_out: LeftOut, searched: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if meta.processes.is_empty() {
        lines
            .push("the trace has no process with several threads: each thread is shown as its own process".to_string());
    }
    lines.push("priorities are unknown and shown as 120; states (R, S, D, T, t or X) come from the waits".to_string());
    let of = |n: u64, one: &str, many: &str| (n > 0).then(|| count(n, one, many));
    lines.extend(of(left_out.notes, "label of a row or callout is omitted", "labels of rows and callouts are omitted"));
    lines.extend(of(left_out.rpcs, "span does not name its RPC", "spans do not name their RPC"));
    lines.extend(of(
        left_out.open,
        "slice is still open at the end of the trace, and ends there",
        "slices are still open at the end of the trace, and end there",
    ));
    lines.extend((!meta.machines.is_empty()).then(|| "the machine of each thread is omitted".to_string()));
    lines.extend((!meta.cgroups.is_empty()).then(|| "control groups are omitted".to_string()));
    if !meta.saved_views.is_empty() || !meta.added.is_null() {
        lines.push("saved views and notes are omitted".to_string());
    }
    if !searched {
        lines.push("there are too many spans to look for requests".to_string());
    }
    lines
}
