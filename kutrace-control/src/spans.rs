// SPDX-License-Identifier: BSD-3-Clause
//! Live records in programs' own memory: marks, and spans once they have ended.
//!
//! Invariants: memory is bounded, whatever programs do; if a program's records were overwritten before they were read,
//! nothing is concluded from earlier ones.

use anyhow::Result;
use foldhash::HashMap;
use kutrace_format::abi::programs::{ASYNC_BEGIN, ASYNC_END, BEGIN, END, MARK};
use kutrace_format::program::{fields, Entry};
use postprocess::raw::program::{self, Programs};

use crate::areas::Areas;
use crate::device::Recorder;

/// Maximum number of entries in each map; then all maps are cleared.
const ROOM: usize = 1 << 17;
/// Maximum depth of a thread's open spans; beyond it the outermost are forgotten.
const DEPTH: usize = 256;

/// A thread: the number of its program's attachment, and the thread id.
pub type Thread = (u32, u32);
/// A name, by its index.
type Name = u32;

/// An event, or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happened<'a> {
    /// The thread.
    pub thread: Thread,
    /// Name of the program, NUL-padded.
    pub comm: [u8; 16],
    /// Time as a full TSC.
    pub at: u64,
    /// The event.
    pub what: What<'a>,
}

/// See [`Happened::what`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A mark of this name, without its fields.
    Mark(&'a [u8]),
    /// The end of a span of this name that began at this TSC.
    Span(&'a [u8], u64),
    /// Records of the program were overwritten before they were read.
    Missed,
}

/// State of all programs.
#[derive(Debug, Default)]
pub struct Spans {
    areas: Areas,
    state: State,
    /// Number of times that records of a program were overwritten before they were read.
    pub missed: u64,
}

#[derive(Debug, Default)]
struct State {
    numbers: HashMap<Box<[u8]>, Name>,
    names: Vec<Box<[u8]>>,
    /// By thread: its open spans, the innermost last, with their starts.
    open: HashMap<Thread, Vec<(Name, u64)>>,
    /// By program, name and number: open spans that any thread may end.
    open_async: HashMap<(u32, Name, u64), u64>,
}

impl Spans {
    /// Calls `each` with every event since the last turn, in the order of each thread.
    ///
    /// # Errors
    /// The recorder's error.
    pub fn turn(&mut self, recorder: &impl Recorder, mut each: impl FnMut(Happened)) -> Result<()> {
        let Spans { areas, state, missed } = self;
        areas.news(recorder, |serial, payload| match payload {
            Some(payload) => state.read(payload, &mut each),
            None => {
                *missed += 1;
                state.forget(serial);
                each(Happened { thread: (serial, 0), comm: [0; 16], at: 0, what: What::Missed });
            }
        })
    }
}

impl State {
    /// Reads a section of a program.
    fn read(&mut self, payload: &[u8], each: &mut impl FnMut(Happened)) {
        let Ok(program) = program::parse(0, payload) else { return };
        let (serial, mut comm) = (program.serial, [0; 16]);
        comm.copy_from_slice(program.comm);
        let mut all = Programs::new(vec![program], 0, u64::MAX, u64::MAX);
        while let Some(said) = all.peek() {
            let name = fields(all.name(said.section, said.entry.name).unwrap_or_default(), &[]).0;
            let thread = (serial, said.tid);
            let at = said.entry.tsc;
            self.entry(thread, name, &said.entry, &mut |what| each(Happened { thread, comm, at, what }));
            all.take();
        }
    }

    fn entry(&mut self, thread: Thread, text: &[u8], entry: &Entry, each: &mut impl FnMut(What)) {
        if entry.kind == MARK {
            return each(What::Mark(text));
        }
        let name = self.number(text);
        match entry.kind {
            BEGIN => {
                let open = self.open.entry(thread).or_default();
                if open.len() == DEPTH {
                    open.remove(0);
                }
                open.push((name, entry.tsc));
            }
            END => {
                let Some(open) = self.open.get_mut(&thread) else { return };
                // It also ends the spans inside; an end without a start ends none.
                let Some(place) = open.iter().rposition(|(begun, _)| *begun == name) else { return };
                let ended = open.split_off(place);
                if open.is_empty() {
                    self.open.remove(&thread);
                }
                for (name, since) in ended.into_iter().rev() {
                    each(What::Span(&self.names[name as usize], since));
                }
            }
            ASYNC_BEGIN => drop(self.open_async.insert((thread.0, name, entry.value), entry.tsc)),
            ASYNC_END => {
                if let Some(since) = self.open_async.remove(&(thread.0, name, entry.value)) {
                    each(What::Span(text, since));
                }
            }
            _ => {}
        }
    }

    /// The index of a name.
    fn number(&mut self, text: &[u8]) -> Name {
        if self.names.len().max(self.open.len()).max(self.open_async.len()) >= ROOM {
            *self = State::default();
        }
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.names.len() as Name;
        self.names.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// Records of a program are missing: spans that began before may have ended.
    fn forget(&mut self, serial: u32) {
        self.open.retain(|thread, _| thread.0 != serial);
        self.open_async.retain(|(of, ..), _| *of != serial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans by name and duration, and marks, from entries as (time, thread, kind, name, number).
    fn told(state: &mut State, entries: &[(u64, u32, u32, &str, u64)]) -> Vec<(String, u64)> {
        let mut told = Vec::new();
        for &(tsc, thread, kind, name, value) in entries {
            let entry = Entry { tsc, kind, name: 1, value, fields: &[] };
            state.entry((1, thread), name.as_bytes(), &entry, &mut |what| {
                told.push(match what {
                    What::Span(name, since) => (String::from_utf8_lossy(name).into_owned(), tsc - since),
                    What::Mark(name) => (String::from_utf8_lossy(name).into_owned(), 0),
                    What::Missed => unreachable!("nothing was"),
                });
            });
        }
        told
    }

    #[test]
    fn a_span_ends_with_its_end_or_that_of_one_around_it() {
        let entries = [
            (0, 5, BEGIN, "request", 0),
            (100, 5, BEGIN, "find", 0),
            (150, 6, BEGIN, "find", 0),
            (200, 5, BEGIN, "find", 0),
            (300, 5, MARK, "found", 0),
            (700, 5, END, "find", 0),
            (900, 5, END, "other", 0),
            (1_300, 5, END, "request", 0),
            (1_400, 5, END, "find", 0),
            (1_500, 6, END, "find", 0),
        ];
        let expected = [("found", 0), ("find", 500), ("find", 1_200), ("request", 1_300), ("find", 1_350)];
        let mut state = State::default();
        assert_eq!(told(&mut state, &entries), expected.map(|(name, took)| (name.to_owned(), took)));
        assert!(state.open.is_empty());
    }

    #[test]
    fn an_async_span_is_known_by_its_number_whoever_ends_it() {
        let entries = [
            (0, 5, ASYNC_BEGIN, "upload", 7),
            (100, 5, ASYNC_BEGIN, "upload", 8),
            (900, 6, ASYNC_END, "upload", 7),
            (950, 6, ASYNC_END, "upload", 7),
            (1_000, 6, ASYNC_END, "other", 8),
        ];
        assert_eq!(told(&mut State::default(), &entries), [("upload".to_owned(), 900)]);
    }

    #[test]
    fn nothing_is_concluded_where_something_is_missing_and_memory_is_bounded() {
        let mut state = State::default();
        assert_eq!(told(&mut state, &[(0, 5, BEGIN, "find", 0), (0, 5, ASYNC_BEGIN, "load", 1)]), []);
        state.forget(1);
        assert_eq!(told(&mut state, &[(900, 5, END, "find", 0), (900, 5, ASYNC_END, "load", 1)]), []);
        let deep: Vec<_> = (0..2 * DEPTH as u64).map(|n| (n, 5, BEGIN, "deep", 0)).collect();
        told(&mut state, &deep);
        assert_eq!(state.open[&(1, 5)].len(), DEPTH);
        for n in 0..2 * ROOM as u64 {
            told(&mut state, &[(n, 5, ASYNC_BEGIN, &format!("load {}", n / 2), n)]);
        }
        assert!(state.names.len() <= ROOM && state.open_async.len() <= ROOM);
    }
}
