// SPDX-License-Identifier: BSD-3-Clause
//! What the raw formats have in common: a trace that is opened, then decoded event by event.

use super::damage::NotATrace;
use super::decode::{Counts, Decoder};
use super::{original, parse, Raw};
use crate::event::names::Names;
use crate::event::{BlockLine, Event, Events, Meta};

/// A raw trace of any format, checked and not decoded.
pub trait Trace {
    /// What turns it into events.
    type Decoder;

    /// What the text says before all events.
    fn head(&self) -> Head;

    /// A decoder of all events; names are kept in `names`.
    fn decoder(&self, names: &mut Names) -> Self::Decoder;

    /// The next event, ordered by time; `None` at the end.
    fn next(decoder: &mut Self::Decoder, names: &mut Names) -> Option<Event>;

    /// What `decoder` has counted.
    fn counts(decoder: &Self::Decoder) -> Counts;

    /// What is known about the whole trace once `decoder` has come to its end.
    fn finish(&self, decoder: &Self::Decoder) -> Meta;

    /// One CPU's blocks of a range of time, and the one before them, as if the trace had wrapped.
    fn part(&self, cpu: u32, range: (i64, i64)) -> Self;

    /// The sentences of [`Meta::quality`] that speak of no damage: what the recorder itself says is not as asked for.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The numbers of the blocks that reach into a range of time, from when each begins, and of the one before them.
pub(super) fn within(begins: impl Iterator<Item = i64>, (from, to): (i64, i64)) -> std::ops::Range<usize> {
    let (mut first, mut end) = (0usize, 0);
    for (n, begin) in begins.take_while(|&begin| begin < to).enumerate() {
        (first, end) = (if begin <= from { n } else { first }, n + 1);
    }
    first.saturating_sub(1)..end
}

/// What is known of a trace before it is decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// See [`Meta::format`].
    pub format: u32,
    /// See [`Meta::flags`].
    pub flags: u32,
    /// The minute that times count from, in Unix seconds.
    pub base: i64,
    /// The blocks in use, by begin.
    pub blocks: Vec<BlockLine>,
}

impl<'a> Trace for Raw<'a> {
    type Decoder = Decoder<'a>;

    fn head(&self) -> Head {
        Head { format: 5, flags: self.flags(), base: self.clock.base, blocks: self.block_lines() }
    }

    fn decoder(&self, names: &mut Names) -> Decoder<'a> {
        self.decoder(names)
    }

    #[inline]
    fn next(decoder: &mut Decoder<'a>, names: &mut Names) -> Option<Event> {
        decoder.next(names)
    }

    fn counts(decoder: &Decoder<'a>) -> Counts {
        decoder.counts
    }

    fn finish(&self, decoder: &Decoder<'a>) -> Meta {
        self.finish(decoder)
    }

    fn part(&self, cpu: u32, range: (i64, i64)) -> Raw<'a> {
        self.part(cpu, range)
    }

    fn notes(&self) -> Vec<String> {
        self.notes()
    }
}

/// What is known about a raw file, of whichever format, before its events are decoded.
///
/// # Errors
/// If this is no raw trace.
pub fn meta(bytes: &[u8]) -> Result<Meta, NotATrace> {
    fn of<T: Trace>(trace: &T) -> Meta {
        trace.finish(&trace.decoder(&mut Names::default()))
    }
    match parse(bytes) {
        Err(NotATrace::Original) => Ok(of(&original::parse(bytes)?)),
        ours => Ok(of(&ours?)),
    }
}

/// Decodes all of a raw file, of whichever format, at once.
///
/// # Errors
/// If this is no raw trace.
pub fn decode(bytes: &[u8]) -> Result<Events, NotATrace> {
    match parse(bytes) {
        Err(NotATrace::Original) => Ok(all(&original::parse(bytes)?)),
        ours => Ok(all(&ours?)),
    }
}

fn all<T: Trace>(trace: &T) -> Events {
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let events = std::iter::from_fn(|| T::next(&mut decoder, &mut names)).collect();
    Events { meta: trace.finish(&decoder), names, events }
}
