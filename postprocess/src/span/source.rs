// SPDX-License-Identifier: BSD-3-Clause
//! Spans from JSON or frames, whichever the input has.

use std::io::{self, BufRead};

use super::held::Held;
use super::{json, order, Span, Spans};
use crate::batch::Renumber;
use crate::event::names::Names;
use crate::frame;

/// Reads all spans, as many as `held` holds.
///
/// # Errors
/// Whatever `input` answers, or that the frames are of a version not known.
pub fn read(mut input: impl BufRead, mut held: Held) -> io::Result<Spans> {
    if !frame::begins::<Span>(&mut input)? {
        return json::read_into(&mut input, held);
    }
    let mut frames = frame::Reader::new(input)?;
    let (mut names, mut spans, mut renumber) = (Names::default(), Vec::new(), Renumber::default());
    while let Some(mut batch) = frames.batch()? {
        renumber.receive(&mut batch, &mut names);
        spans.append(&mut batch.rows);
        if spans.len() > held.room() {
            held.add(std::mem::take(&mut spans));
        }
    }
    order::order(&mut spans);
    Ok(held.finish(Spans { meta: frames.finish(), names: names.into_texts(), spans }))
}
