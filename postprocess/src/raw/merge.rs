// SPDX-License-Identifier: BSD-3-Clause
//! The streams of all CPUs as one, ordered by time; equal times by CPU.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use super::stream::{Stream, Timed};

/// All streams, each waiting with what it says next.
#[derive(Debug)]
pub struct Merge<'a> {
    streams: Vec<Stream<'a>>,
    waiting: Vec<Option<Timed<'a>>>,
    /// Counter and index of every stream that waits; index order is CPU order.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Merge<'a> {
    /// Merges `streams`, which are ordered by CPU.
    pub fn new(mut streams: Vec<Stream<'a>>) -> Merge<'a> {
        let waiting: Vec<_> = streams.iter_mut().map(Stream::next).collect();
        let order = waiting.iter().enumerate().filter_map(|(i, w)| w.map(|w| Reverse((w.at, i)))).collect();
        Merge { streams, waiting, order }
    }

    /// The streams.
    pub fn streams(&self) -> &[Stream<'a>] {
        &self.streams
    }
}

impl<'a> Iterator for Merge<'a> {
    type Item = (usize, Timed<'a>);

    /// What comes next, and the index of its stream.
    #[inline]
    fn next(&mut self) -> Option<(usize, Timed<'a>)> {
        let mut first = self.order.peek_mut()?;
        let index = first.0 .1;
        let following = self.streams[index].next();
        let answer = std::mem::replace(&mut self.waiting[index], following)?;
        match following {
            Some(next) => first.0 .0 = next.at,
            None => drop(PeekMut::pop(first)),
        }
        Some((index, answer))
    }
}
