// SPDX-License-Identifier: BSD-3-Clause
//! Places in a program that record under their names: moments, spans, counters.
//!
//! Records go into memory that the recorder grants, without a system call ([`crate::stream`]). Records for which it
//! grants no memory are lost, and counted.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use kutrace_format::abi::programs::{
    word, ASYNC_BEGIN, ASYNC_END, BEGIN, END, MARK, NAME_MAX, PAYLOAD_MAX, TEXT_MAX, VALUE,
};

use crate::area::{self, Stream};
use crate::fields::{Fields, Integer, Kinds, List, Typed};
use crate::state;
use crate::stream::{record, record_slowly};
use crate::sys::{is_zero, Text};

/// A place in the program and its name. The macros create it as a static; a place whose name is built at run time is
/// leaked.
#[derive(Debug)]
#[repr(C)]
pub struct Site {
    /// The attachment in which the place has a number, and that number from bit 40 on, as in a word.
    id: AtomicU64,
    /// The name of up to 119 bytes, then the names of its fields, each after a zero byte; the field types come before
    /// the names, in the encoding of the format, if they are already known.
    name: Text,
}

impl Site {
    /// A place with this name, followed by the names of its fields, each after a zero byte.
    pub const fn new(name: &'static str) -> Site {
        Site { id: AtomicU64::new(0), name: Text::new(name) }
    }

    /// A place whose name is built at run time. It is never freed, so the number of these places must be bounded.
    pub fn leaked(name: &str) -> &'static Site {
        Box::leak(Box::new(Site::new(Box::leak(Box::from(name)))))
    }

    /// Records that this thread is here now. Returns true if the record is in the trace.
    #[inline]
    pub fn mark(&self) -> bool {
        self.put(MARK, Kinds::KNOWN, &[]) > 0
    }

    /// Like [`Site::mark`], with fields.
    #[inline]
    pub fn mark_with<L: List>(&self, values: &Typed<L>) -> bool {
        self.put(MARK, L::KINDS, values.fields.words()) > 0
    }

    /// Like [`Site::mark`], with fields whose types are in the name.
    #[inline]
    pub fn mark_as_typed(&self, fields: &Fields) -> bool {
        self.put(MARK, Kinds::KNOWN, fields.words()) > 0
    }

    /// Begins a span of this thread; [`Site::end`] ends it, in the same thread. Spans nest.
    #[inline]
    pub fn begin(&self) -> bool {
        self.put(BEGIN, Kinds::KNOWN, &[]) > 0
    }

    /// Like [`Site::begin`], with fields whose types are in the name.
    #[inline]
    pub fn begin_as_typed(&self, fields: &Fields) -> bool {
        self.put(BEGIN, Kinds::KNOWN, fields.words()) > 0
    }

    /// Ends the span, and every span that was begun inside it.
    #[inline]
    pub fn end(&self) -> bool {
        self.put(END, Kinds::KNOWN, &[]) > 0
    }

    /// Records the current value of the counter.
    #[inline]
    pub fn counter(&self, value: impl Integer) -> bool {
        self.put(VALUE, Kinds::KNOWN, &[value.counted() as u64]) > 0
    }

    /// Begins a span that any thread may end, by [`Site::async_end`] of a place with the same name and the same number;
    /// the types of its fields are in the name.
    pub fn async_begin(&self, id: u64, fields: &Fields) -> bool {
        self.put_numbered(id, Kinds::KNOWN, fields) > 0
    }

    /// Ends the span with this number.
    pub fn async_end(&self, id: u64) -> bool {
        self.put(ASYNC_END, Kinds::KNOWN, &[id]) > 0
    }

    /// Begins a span that any thread may end. The fields take at most 14 words here: words beyond that are dropped.
    pub(crate) fn put_numbered(&self, id: u64, kinds: Kinds, fields: &Fields) -> i64 {
        if is_zero(state::word()) {
            return 0;
        }
        let mut words = [id; PAYLOAD_MAX];
        let fields = &fields.words()[..fields.words().len().min(PAYLOAD_MAX - 1)];
        words[1..=fields.len()].copy_from_slice(fields);
        self.put(ASYNC_BEGIN, kinds, &words[..=fields.len()])
    }

    /// This thread is in a span until the result is dropped.
    #[inline]
    pub fn span(&'static self) -> Span {
        Span { site: self.begin().then_some(self), thread: PhantomData }
    }

    /// Like [`Site::span`], with fields.
    #[inline]
    pub fn span_with<L: List>(&'static self, values: &Typed<L>) -> Span {
        let is_recorded = self.put(BEGIN, L::KINDS, values.fields.words()) > 0;
        Span { site: is_recorded.then_some(self), thread: PhantomData }
    }

    /// A span that is not recorded.
    #[inline]
    pub fn no_span(&'static self) -> Span {
        Span { site: None, thread: PhantomData }
    }

    /// Begins a span that any thread may end by dropping the result.
    #[inline]
    pub fn async_span<L: List>(&'static self, id: u64, values: &Typed<L>) -> AsyncSpan {
        let is_recorded = self.put_numbered(id, L::KINDS, &values.fields) > 0;
        AsyncSpan { site: is_recorded.then_some(self), id }
    }

    /// A span that is not recorded.
    #[inline]
    pub fn no_async_span(&'static self) -> AsyncSpan {
        AsyncSpan { site: None, id: 0 }
    }

    /// Records an entry, with fields of these types. Returns 1 if it is in the trace, else 0, as in C.
    #[inline(always)]
    pub(crate) fn put(&self, kind: u32, kinds: Kinds, payload: &[u64]) -> i64 {
        let word = state::word();
        if is_zero(word) {
            0
        } else if self.put_at_once(word.load(Ordering::Relaxed), kind, payload) {
            1
        } else {
            self.put_slowly(kind, kinds, payload)
        }
    }

    /// Records into this thread's memory on the fast path. Returns false, with nothing recorded, if that is not
    /// possible; always so for trace 0, in which a stream has no memory.
    #[inline(always)]
    fn put_at_once(&self, trace: u32, kind: u32, payload: &[u64]) -> bool {
        let stream = area::stream();
        let id = self.id.load(Ordering::Relaxed);
        stream.serial(trace).is_some_and(|serial| {
            id as u32 == serial && record(stream, word(kind, payload.len(), 0) | (id ^ u64::from(serial)), payload)
        })
    }

    /// Slow path: the first record of a thread, of a place, or in a trace; and records that the fast path could not
    /// make.
    #[cold]
    #[inline(never)]
    fn put_slowly(&self, kind: u32, kinds: Kinds, payload: &[u64]) -> i64 {
        match state::trace() {
            0 => 0,
            trace => self.put_prepared(trace, kind, kinds, payload).unwrap_or(false).into(),
        }
    }

    /// Records into this thread's memory. Returns whether there was room, or `None` if the thread gets no memory.
    fn put_prepared(&self, trace: u32, kind: u32, kinds: Kinds, payload: &[u64]) -> Option<bool> {
        let stream = area::prepare(trace)?;
        let serial = stream.serial(trace)?;
        let known = self.id.load(Ordering::Relaxed);
        let number = if known as u32 == serial {
            (known >> 40) as u32
        } else {
            // An end does not know the types of the fields of its start; an end is rarely the first record of a place.
            let is_end = kind == END || kind == ASYNC_END;
            let text = if is_end { self.plain() } else { self.name.bytes() };
            // If there is no room for the name, the entry has no name.
            let number = match kinds {
                Kinds::KNOWN => area::define(stream, text),
                kinds => define_typed(stream, text, kinds),
            };
            let number = number.unwrap_or(0);
            if !is_end || text.len() == self.name.bytes().len() {
                self.id.store(u64::from(number) << 40 | u64::from(serial), Ordering::Relaxed);
            }
            number
        };
        Some(record_slowly(stream, word(kind, payload.len(), number), payload))
    }

    /// The name without fields.
    fn plain(&self) -> &[u8] {
        let name = self.name.bytes();
        let end = name.iter().position(|&c| c == 0).unwrap_or(name.len());
        &name[..end.min(NAME_MAX)]
    }
}

/// Writes a name with the types of its fields. A function of its own, since signal handlers have little stack and this
/// takes some.
#[inline(never)]
fn define_typed(stream: &Stream, name: &[u8], kinds: Kinds) -> Option<u32> {
    area::define(stream, kinds.before(name, &mut [0; TEXT_MAX]))
}

/// A thread is in a part of the program, from [`crate::span!`] until this is dropped.
#[derive(Debug)]
#[must_use = "a span ends where it is dropped: let _span = ..."]
pub struct Span {
    /// The place that recorded its start, if it was recorded.
    site: Option<&'static Site>,
    /// A span ends in the thread that began it.
    thread: PhantomData<*const ()>,
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if let Some(site) = self.site {
            site.end();
        }
    }
}

/// An activity of the program, from [`crate::async_span!`] until this is dropped, in any thread.
#[derive(Debug)]
#[must_use = "a span ends where it is dropped: let upload = ..."]
pub struct AsyncSpan {
    /// The place that recorded its start, if it was recorded.
    site: Option<&'static Site>,
    id: u64,
}

impl Drop for AsyncSpan {
    #[inline]
    fn drop(&mut self) {
        if let Some(site) = self.site {
            site.async_end(self.id);
        }
    }
}
