// SPDX-License-Identifier: BSD-3-Clause
//! The streams of all CPUs as one, in time order; equal times by CPU.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

/// An item of a stream, with its time.
pub trait When: Copy {
    /// The unit that all streams share.
    type Time: Ord + Copy + std::fmt::Debug;

    /// The item's time.
    fn when(&self) -> Self::Time;
}

/// All streams, each waiting with its next item.
#[derive(Debug)]
pub struct Merge<S: Iterator<Item: When>> {
    streams: Vec<S>,
    waiting: Vec<Option<S::Item>>,
    /// Time and index of every stream that waits; index order is CPU order.
    order: BinaryHeap<Reverse<(<S::Item as When>::Time, usize)>>,
}

impl<S: Iterator<Item: When>> Merge<S> {
    /// Merges `streams`, which are ordered by CPU.
    pub fn new(mut streams: Vec<S>) -> Merge<S> {
        let waiting: Vec<_> = streams.iter_mut().map(S::next).collect();
        let order = waiting.iter().enumerate().filter_map(|(i, w)| w.map(|w| Reverse((w.when(), i)))).collect();
        Merge { streams, waiting, order }
    }

    /// Merges streams, some of which have a known next item and continue from there.
    pub fn resume(streams: Vec<(S, Option<S::Item>)>) -> Merge<S> {
        let (mut streams, mut waiting): (Vec<S>, Vec<_>) = streams.into_iter().unzip();
        for (stream, waiting) in streams.iter_mut().zip(&mut waiting) {
            *waiting = waiting.take().or_else(|| stream.next());
        }
        let order = waiting.iter().enumerate().filter_map(|(i, w)| w.map(|w| Reverse((w.when(), i)))).collect();
        Merge { streams, waiting, order }
    }

    /// The streams, each with its next item.
    pub fn pause(self) -> Vec<(S, Option<S::Item>)> {
        self.streams.into_iter().zip(self.waiting).collect()
    }

    /// The streams.
    pub fn streams(&self) -> &[S] {
        &self.streams
    }

    /// The time of the next item.
    #[inline]
    pub fn peek(&self) -> Option<<S::Item as When>::Time> {
        self.order.peek().map(|first| first.0 .0)
    }

    /// The next item of a stream.
    pub fn following(&self, index: usize) -> Option<S::Item> {
        self.waiting[index]
    }

    /// The streams, as they are now.
    pub fn into_streams(self) -> Vec<S> {
        self.streams
    }
}

impl<S: Iterator<Item: When>> Iterator for Merge<S> {
    type Item = (usize, S::Item);

    /// The next item, and the index of its stream.
    #[inline]
    fn next(&mut self) -> Option<(usize, S::Item)> {
        let mut first = self.order.peek_mut()?;
        let index = first.0 .1;
        let following = self.streams[index].next();
        let answer = std::mem::replace(&mut self.waiting[index], following)?;
        match following {
            Some(next) => first.0 .0 = next.when(),
            None => drop(PeekMut::pop(first)),
        }
        Some((index, answer))
    }
}
