// SPDX-License-Identifier: BSD-3-Clause
//! Batches of events from our text or frames, or from the text of other tools, whichever the input has.

use std::io::{self, BufRead, Read};

use super::kind::Kind;
use super::{open, perfetto, tracepoint};
use crate::event::batch::{Batch, Renumber};
use crate::event::names::Names;
use crate::event::read::Text;
use crate::event::{Event, Events, Meta};
use crate::frame;
use crate::readable::count;
use crate::time::Time;

/// Reads all events, from text or frames.
///
/// # Errors
/// Any error of `input`, or that the frames are of an unknown version.
pub fn read(input: impl Read) -> io::Result<Events> {
    let mut batches = open(input)?.events()?;
    let (mut names, mut events, mut renumber) = (Names::default(), Vec::new(), Renumber::default());
    while let Some(mut batch) = batches.batch()? {
        renumber.receive(&mut batch, &mut names);
        events.append(&mut batch.rows);
    }
    Ok(Events { meta: batches.finish(), names, events })
}

/// Events in time order: an event with an earlier time than one before it gets the later time.
#[derive(Debug)]
pub struct Batches<R> {
    form: Form<R>,
    /// Time of the last event, and the number of events that came with an earlier one.
    last: Time,
    late: u64,
}

#[derive(Debug)]
enum Form<R> {
    Text(Box<Text<R>>),
    Frames(Box<frame::Reader<R, Event>>),
    Tracepoints(Box<tracepoint::Text<R>>),
    Perfetto(Box<perfetto::Packets>),
}

impl<R: BufRead> Batches<R> {
    /// Detects the form of `input`, and reads the facts before the events.
    ///
    /// # Errors
    /// Any error of `input`, here and below; or that the frames are of an unknown version.
    pub(super) fn open(kind: Kind, mut input: R) -> io::Result<Batches<R>> {
        let form = match frame::begins::<Event>(&mut input)? {
            true => Form::Frames(Box::new(frame::Reader::new(input)?)),
            false if kind == Kind::Tracepoints => Form::Tracepoints(Box::new(tracepoint::Text::new(input)?)),
            false if kind == Kind::Perfetto => Form::Perfetto(Box::new(perfetto::Packets::new(input)?)),
            false => Form::Text(Box::new(Text::new(input)?)),
        };
        Ok(Batches { form, last: Time::MIN, late: 0 })
    }

    /// Facts about the whole trace so far.
    pub fn meta(&self) -> &Meta {
        match &self.form {
            Form::Text(text) => text.meta(),
            Form::Frames(frames) => frames.about(),
            Form::Tracepoints(text) => text.meta(),
            Form::Perfetto(packets) => packets.meta(),
        }
    }

    /// The next events; `None` at the end.
    ///
    /// # Errors
    /// Any error of the input.
    pub fn batch(&mut self) -> io::Result<Option<Batch<Event>>> {
        let mut batch = match &mut self.form {
            Form::Text(text) => text.batch()?,
            Form::Frames(frames) => frames.batch()?,
            Form::Tracepoints(text) => text.batch()?,
            Form::Perfetto(packets) => packets.batch(),
        };
        for event in batch.iter_mut().flat_map(|batch| &mut batch.rows) {
            self.late += u64::from(event.ts < self.last);
            event.ts = event.ts.max(self.last);
            self.last = event.ts;
        }
        Ok(batch)
    }

    /// Facts about the whole trace at the end.
    pub fn finish(self) -> Meta {
        let mut meta = match self.form {
            Form::Text(text) => text.finish(),
            Form::Frames(frames) => (*frames).finish(),
            Form::Tracepoints(text) => text.finish(),
            Form::Perfetto(packets) => packets.finish(),
        };
        if self.late > 0 {
            let one = "event is out of order; its time is clamped";
            meta.quality.push(count(self.late, one, "events are out of order; their times are clamped"));
        }
        meta
    }
}
