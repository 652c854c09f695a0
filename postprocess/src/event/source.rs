// SPDX-License-Identifier: BSD-3-Clause
//! Events from text or frames, whichever the input has, some at a time.

use std::io::{self, BufRead};

use super::read::Text;
use super::{Event, Meta};
use crate::batch::Batch;
use crate::frame;

/// Where events come from.
#[derive(Debug)]
pub enum Source<R> {
    /// Lines of text.
    Text(Box<Text<R>>),
    /// Frames.
    Frames(frame::Reader<R, Event>),
}

impl<R: BufRead> Source<R> {
    /// Looks at what `input` has, and reads what is known before the events.
    ///
    /// # Errors
    /// Whatever `input` answers, here and below; or that the frames are of a version not known.
    pub fn open(mut input: R) -> io::Result<Source<R>> {
        Ok(match frame::begins::<Event>(&mut input)? {
            true => Source::Frames(frame::Reader::new(input)?),
            false => Source::Text(Box::new(Text::new(input)?)),
        })
    }

    /// What is known about the whole trace so far.
    pub fn meta(&self) -> &Meta {
        match self {
            Source::Text(text) => text.meta(),
            Source::Frames(frames) => frames.about(),
        }
    }

    /// The next events, ordered by time; `None` at the end.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn batch(&mut self) -> io::Result<Option<Batch<Event>>> {
        match self {
            Source::Text(text) => text.batch(),
            Source::Frames(frames) => frames.batch(),
        }
    }

    /// What is known about the whole trace at the end.
    pub fn finish(self) -> Meta {
        match self {
            Source::Text(text) => text.finish(),
            Source::Frames(frames) => frames.finish(),
        }
    }
}
