// SPDX-License-Identifier: BSD-3-Clause
//! The common part of the raw formats: a trace is opened, then decoded event by event.

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

/// A raw trace of any format, checked but not decoded.
pub trait Trace: Sync {
    /// The facts that the text has before all events.
    fn head(&self) -> Head;

    /// A decoder of all events; names are kept in `names`.
    fn decoder<'t>(&'t self, names: &mut Names) -> Box<dyn Decode + 't>;

    /// One CPU's blocks of a time range, and the one before them, as if the trace had wrapped.
    fn part<'t>(&'t self, cpu: CpuId, range: (Time, Time)) -> Box<dyn Trace + 't>;

    /// The counter that its times are made from, if that is known.
    fn counter(&self) -> Option<Counter> {
        None
    }

    /// The sentences of [`Meta::quality`] that report no damage, but deviations that the recorder itself states.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Idle times of the CPUs, by the kernel's count.
    fn idle(&self) -> Vec<IdleTime> {
        Vec::new()
    }

    /// Places in programs' files where samples may lie, as far as the programs' memory is known.
    fn places(&self) -> BTreeSet<Place> {
        BTreeSet::new()
    }

    /// Takes the functions at some of these places: samples there are named after them.
    fn tell(&mut self, _functions: &BTreeMap<Place, String>) {}

    /// Forgets the names of functions, of the kernel and of programs: samples are named by their addresses.
    fn forget_functions(&mut self) {}
}

/// The processor's counter, from which times are made.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Conversion to time.
    pub clock: Clock,
    /// Counter value when the recording began.
    pub from: u64,
}

/// Decoder of a [`Trace`] into events.
pub trait Decode: Send {
    /// The next event in time order; `None` at the end.
    fn next(&mut self, names: &mut Names) -> Option<Event>;

    /// The next events, `max` of them or all that are left.
    fn batch(&mut self, names: &mut Names, max: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.next(names)).take(max).collect()
    }

    /// Counts so far.
    fn counts(&self) -> Counts;

    /// Like [`Trace::notes`], for facts that are only known once [`Decode::next`] has come to the end.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Facts about the whole trace; complete once [`Decode::next`] has come to the end.
    fn meta(&self) -> Meta;
}

/// Indexes of the blocks that reach into a time range, from the start of each, and of the one before them.
pub(crate) fn within(begins: impl Iterator<Item = Time>, (from, to): (Time, Time)) -> Range<usize> {
    let (mut first, mut end) = (0usize, 0);
    for (n, begin) in begins.take_while(|&begin| begin < to).enumerate() {
        (first, end) = (if begin <= from { n } else { first }, n + 1);
    }
    first.saturating_sub(1)..end
}

/// Facts about a trace that are known before it is decoded.
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
    /// The blocks in use, in the order of their begin.
    pub blocks: Vec<BlockLine>,
}
