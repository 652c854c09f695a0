// SPDX-License-Identifier: BSD-3-Clause
//! What the raw formats have in common: a trace that is opened, then decoded event by event.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kutrace_format::capability::Unseen;

use super::clock::Clock;
use super::decode::Counts;
use super::idle::IdleTime;
use super::maps::Place;
use crate::event::names::Names;
use crate::event::{BlockLine, Event, Meta};
use crate::id::CpuId;
use crate::time::Time;

/// A raw trace of any format, checked and not decoded.
pub trait Trace: Sync {
    /// What the text says before all events.
    fn head(&self) -> Head;

    /// A decoder of all events; names are kept in `names`.
    fn decoder<'t>(&'t self, names: &mut Names) -> Box<dyn Decode + 't>;

    /// One CPU's blocks of a range of time, and the one before them, as if the trace had wrapped.
    fn part<'t>(&'t self, cpu: CpuId, range: (Time, Time)) -> Box<dyn Trace + 't>;

    /// The counter that its times are made of, where that is known.
    fn counter(&self) -> Option<Counter> {
        None
    }

    /// The sentences of [`Meta::quality`] that speak of no damage: what the recorder itself says is not as asked for.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// How long CPUs were idle, by the kernel's count.
    fn idle(&self) -> Vec<IdleTime> {
        Vec::new()
    }

    /// Where in programs' files samples may lie, as far as it is known what the programs had in memory.
    fn places(&self) -> BTreeSet<Place> {
        BTreeSet::new()
    }

    /// Takes what functions are at some of these places: samples there are called after them.
    fn tell(&mut self, _functions: &BTreeMap<Place, String>) {}

    /// Forgets what names functions, of the kernel and of programs: samples are called by their addresses.
    fn forget_functions(&mut self) {}
}

/// The processor's counter, of which times are made.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// How.
    pub clock: Clock,
    /// Its value when the recording began.
    pub from: u64,
}

/// What turns a [`Trace`] into events.
pub trait Decode: Send {
    /// The next event, ordered by time; `None` at the end.
    fn next(&mut self, names: &mut Names) -> Option<Event>;

    /// The next events, `max` of them or all that are left.
    fn batch(&mut self, names: &mut Names, max: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.next(names)).take(max).collect()
    }

    /// What was counted up to now.
    fn counts(&self) -> Counts;

    /// As [`Trace::notes`], of what is only known once [`Decode::next`] has come to the end.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is known about the whole trace: all, once [`Decode::next`] has come to the end.
    fn meta(&self) -> Meta;
}

/// The numbers of the blocks that reach into a range of time, from when each begins, and of the one before them.
pub(crate) fn within(begins: impl Iterator<Item = Time>, (from, to): (Time, Time)) -> Range<usize> {
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
    /// See [`Meta::unseen`].
    pub unseen: Unseen,
    /// The minute that times count from, in Unix seconds.
    pub base: i64,
    /// The blocks in use, by begin.
    pub blocks: Vec<BlockLine>,
}
