// SPDX-License-Identifier: BSD-3-Clause
//! Spans drawn for the viewers of others: what `spantoperfetto`, `spantochrome` and `kutrace_control export` share.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use kutrace_cli::Exit;
use postprocess::event::names::NameId;
use postprocess::line::count;
use postprocess::sink::track::{Draw, Drawing, LeftOut};
use postprocess::sink::{chrome, perfetto};
use postprocess::span::runs::Runs;
use postprocess::span::{Meta, Span, Spans};
use postprocess::why::request::{Found, Request};

use crate::spans::{self, InOrder};
use crate::{outcome, Common, Output};

/// For whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// Perfetto, by its protobuf schema.
    Perfetto,
    /// Whoever reads Chrome's JSON.
    Chrome,
}

/// What the tools do: draws the spans of `file`, or of standard input, and says what the viewer is not told.
///
/// # Errors
/// If the spans cannot be read or kept, or the output not be written.
pub fn run(viewer: Viewer, file: Option<&PathBuf>, common: &Common) -> Result<Exit> {
    let (spans, place) = spans::in_order(file)?;
    let (meta, untold) = draw(spans, viewer, common.open()?)?;
    untold.iter().for_each(|line| common.tell(line));
    Ok(outcome(&place, &meta))
}

/// Draws all spans; returns what is known about the trace, and a line for each thing that the viewer is not told.
///
/// # Errors
/// If the output cannot be written, or the spans not be read again.
pub fn draw(spans: InOrder, viewer: Viewer, out: Output) -> Result<(Meta, Vec<String>)> {
    let to = out.name();
    let (searched, found) = (spans.whole().is_some(), spans.requests());
    let (last, threads, runs) = spans.split();
    let Spans { meta, mut names, spans } = last;
    let requests = found.map(|Found { asked, mut requests, .. }| {
        requests.sort_unstable_by_key(|r| (r.start, r.end, r.pid));
        names.push(asked);
        (NameId(names.len() as u32 - 1), requests)
    });
    let rest = (runs, &spans[..], requests);
    let drawn = || {
        let (out, left_out) = match viewer {
            Viewer::Perfetto => all(perfetto::Writer::new(&meta, &names, &threads, out)?, meta.flags, rest)?,
            Viewer::Chrome => all(chrome::Writer::new(&meta, &names, &threads, out)?, meta.flags, rest)?,
        };
        out.finish()?;
        Ok::<_, io::Error>(left_out)
    };
    let left_out = drawn().context(to)?;
    let missing = untold(&meta, viewer, left_out, searched);
    Ok((meta, missing))
}

/// The spans, in files and in memory, and the requests with the name of what they are.
type Rest<'a> = (Runs<File>, &'a [Span], Option<(NameId, Vec<Request>)>);

fn all<D: Draw>(to: D, flags: u32, (runs, spans, requests): Rest) -> io::Result<(D::Out, LeftOut)> {
    let mut drawing = Drawing::new(flags, to);
    runs.merge(spans, |span| drawing.span(span))?;
    for (name, Request { pid, start, end }) in
        requests.into_iter().flat_map(|(name, requests)| requests.into_iter().map(move |request| (name, request)))
    {
        drawing.request((pid, start, end), name)?;
    }
    drawing.finish()
}

/// A line for each thing that a viewer is not told.
fn untold(meta: &Meta, viewer: Viewer, left_out: LeftOut, searched: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if meta.processes.is_empty() {
        lines.push(
            "the trace tells of no process with several threads: each thread stands for one of its own".to_string(),
        );
    }
    if viewer == Viewer::Perfetto {
        lines.push("priorities are not known, and states are what waits say: 120, and R, S, D, T, t or X".to_string());
    }
    let of = |n: u64, one: &str, many: &str| (n > 0).then(|| count(n, one, many));
    lines.extend(of(
        left_out.notes,
        "label of a row or callout is left out",
        "labels of rows and callouts are left out",
    ));
    lines.extend(of(left_out.rpcs, "span does not say of which RPC it is", "spans do not say of which RPC they are"));
    lines.extend(of(
        left_out.open,
        "slice is not over at the end of the trace, and ends there",
        "slices are not over at the end of the trace, and end there",
    ));
    lines.extend((!meta.machines.is_empty()).then(|| "which machine a thread is of is left out".to_string()));
    lines.extend((!meta.cgroups.is_empty()).then(|| "control groups are left out".to_string()));
    if !meta.saved_views.is_empty() || !meta.added.is_null() {
        lines.push("saved views and notes are left out".to_string());
    }
    if !searched {
        lines.push("there are too many spans to look for requests".to_string());
    }
    lines
}
