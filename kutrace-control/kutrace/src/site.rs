// SPDX-License-Identifier: BSD-3-Clause
//! Places in a program that record by their names: moments, parts, values.
//!
//! They go into memory that the recorder grants, without a system call ([`crate::stream`]). What it grants no memory for is
//! lost, and counted.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use kutrace_format::abi::programs::{word, ASYNC_BEGIN, ASYNC_END, BEGIN, END, MARK, PAYLOAD_MAX, VALUE};

use crate::area;
use crate::fields::Fields;
use crate::state;
use crate::stream::{record, record_slowly};
use crate::sys::{is_zero, Text};

/// A place in the program, with its name of up to 119 bytes. It is a static; [`crate::mark!`], [`crate::scope!`] and
/// [`crate::value!`] make one.
#[derive(Debug)]
#[repr(C)]
pub struct Site {
    /// The attachment in which it has a number, and from bit 40 on that, as in a word.
    id: AtomicU64,
    name: Text,
}

impl Site {
    /// A place of this name. After it there may be fields, each after a zero: its type as a letter, then its name (see
    /// [`crate::event!`]).
    pub const fn new(name: &'static str) -> Site {
        Site { id: AtomicU64::new(0), name: Text::new(name) }
    }

    /// A place whose name is made while the program runs. It stays until the program ends, so there must be an end to
    /// how many are made.
    pub fn leaked(name: &str) -> &'static Site {
        Box::leak(Box::new(Site::new(Box::leak(Box::from(name)))))
    }

    /// This thread is here now, with what the fields of the name are.
    #[inline]
    pub fn event(&self, fields: &Fields) -> bool {
        self.put(MARK, fields.words()) > 0
    }

    /// As [`Site::begin`], with what the fields of the name are.
    #[inline]
    pub fn begin_with(&self, fields: &Fields) -> bool {
        self.put(BEGIN, fields.words()) > 0
    }

    /// A part of the program begins that any thread may end, by [`Site::async_end`] of a place with the same name and the
    /// same number. No two parts of a name that overlap in a process may have the same number. The fields take at
    /// most 14 words here.
    pub fn async_begin(&self, id: u64, fields: &Fields) -> bool {
        if is_zero(state::word()) {
            return false;
        }
        let mut words = [id; PAYLOAD_MAX];
        let fields = &fields.words()[..fields.words().len().min(PAYLOAD_MAX - 1)];
        words[1..=fields.len()].copy_from_slice(fields);
        self.put(ASYNC_BEGIN, &words[..=fields.len()]) > 0
    }

    /// And ends.
    pub fn async_end(&self, id: u64) -> bool {
        self.put(ASYNC_END, &[id]) > 0
    }

    /// This thread is here now; whether that is in the trace.
    #[inline]
    pub fn mark(&self) -> bool {
        self.put(MARK, &[]) > 0
    }

    /// This thread begins with a part of the program; [`Site::end`] ends it, in the same thread. Parts nest.
    #[inline]
    pub fn begin(&self) -> bool {
        self.put(BEGIN, &[]) > 0
    }

    /// And ends it, and every part that was begun inside.
    #[inline]
    pub fn end(&self) -> bool {
        self.put(END, &[]) > 0
    }

    /// What is counted here is this much now.
    #[inline]
    pub fn value(&self, value: i64) -> bool {
        self.put(VALUE, &[value as u64]) > 0
    }

    /// This thread is in a part of the program until the answer is dropped.
    #[inline]
    pub fn scope(&'static self) -> Scope {
        Scope { site: self.begin().then_some(self), thread: PhantomData }
    }

    /// Has it recorded: 1 if it is in the trace, else 0, which C is answered as it is.
    #[inline(always)]
    pub fn put(&self, kind: u32, payload: &[u64]) -> i64 {
        let word = state::word();
        if is_zero(word) {
            0
        } else if self.put_at_once(word.load(Ordering::Relaxed), kind, payload) {
            1
        } else {
            self.put_slowly(kind, payload)
        }
    }

    /// Records in this thread's memory, if nothing is in the way: false if something is, and nothing was recorded. That is so
    /// for trace 0, too, of which a stream has no memory.
    #[inline(always)]
    fn put_at_once(&self, trace: u32, kind: u32, payload: &[u64]) -> bool {
        let stream = area::stream();
        let id = self.id.load(Ordering::Relaxed);
        stream.serial(trace).is_some_and(|serial| {
            id as u32 == serial && record(stream, word(kind, payload.len(), 0) | (id ^ u64::from(serial)), payload)
        })
    }

    /// The first time in a thread, at a place, or in a trace; where something is in the way, and where there is no memory.
    #[cold]
    #[inline(never)]
    fn put_slowly(&self, kind: u32, payload: &[u64]) -> i64 {
        match state::trace() {
            0 => 0,
            trace => self.put_prepared(trace, kind, payload).unwrap_or(false).into(),
        }
    }

    /// Records in this thread's memory: whether there was room, or `None` where it gets none.
    fn put_prepared(&self, trace: u32, kind: u32, payload: &[u64]) -> Option<bool> {
        let stream = area::prepare(trace)?;
        let serial = stream.serial(trace)?;
        let known = self.id.load(Ordering::Relaxed);
        let number = if known as u32 == serial {
            (known >> 40) as u32
        } else {
            // Where names have no room the entry has none.
            let number = area::define(stream, self.name.bytes()).unwrap_or(0);
            self.id.store(u64::from(number) << 40 | u64::from(serial), Ordering::Relaxed);
            number
        };
        Some(record_slowly(stream, word(kind, payload.len(), number), payload))
    }
}

/// A part of the program, from [`Site::scope`] to its end.
#[derive(Debug)]
#[must_use = "a part ends where it is dropped: let _part = ..."]
pub struct Scope {
    /// Where it began, if its start is in this thread's memory.
    site: Option<&'static Site>,
    /// It ends in the thread that began it.
    thread: PhantomData<*const ()>,
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(site) = self.site {
            site.end();
        }
    }
}

/// Marks this moment with a name: `kutrace::mark!("parsed")`.
#[macro_export]
macro_rules! mark {
    ($name:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        SITE.mark()
    }};
}

/// Marks this moment with a name and typed fields: `kutrace::event!("request", size: u64 = n, path: str = path)`.
///
/// The types are those of [`Fields`]: `u64`, `i64`, `f64`, `bool`, `hex` and `str`. Nothing is computed while nothing is
/// traced.
#[macro_export]
macro_rules! event {
    ($name:literal $(, $field:ident: $kind:ident = $value:expr)* $(,)?) => {{
        static SITE: $crate::Site =
            $crate::Site::new(concat!($name $(, "\0", $crate::field_type!($kind), stringify!($field))*));
        // A conjunction would have to be used.
        if $crate::is_on() { SITE.event(&$crate::Fields::new()$(.$kind($value))*) } else { false }
    }};
}

/// A letter for a type of field.
#[doc(hidden)]
#[macro_export]
macro_rules! field_type {
    (u64) => {
        "u"
    };
    (i64) => {
        "i"
    };
    (f64) => {
        "f"
    };
    (bool) => {
        "b"
    };
    (hex) => {
        "x"
    };
    (str) => {
        "s"
    };
}

/// Begins a part of the program that any thread may end, by name and number: `kutrace::begin!("request", id)`.
#[macro_export]
macro_rules! begin {
    ($name:literal, $id:expr $(, $field:ident: $kind:ident = $value:expr)* $(,)?) => {{
        static SITE: $crate::Site =
            $crate::Site::new(concat!($name $(, "\0", $crate::field_type!($kind), stringify!($field))*));
        if $crate::is_on() { SITE.async_begin($id, &$crate::Fields::new()$(.$kind($value))*) } else { false }
    }};
}

/// Ends it: `kutrace::end!("request", id)`.
#[macro_export]
macro_rules! end {
    ($name:literal, $id:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        SITE.async_end($id)
    }};
}

/// Records a line of a log: `kutrace::log_line!("disk full")`. What is longer than 118 bytes is cut, and said to be.
#[macro_export]
macro_rules! log_line {
    ($text:expr) => {{
        static SITE: $crate::Site = $crate::Site::new(concat!("log\0=target=", module_path!(), "\0smessage"));
        if $crate::is_on() {
            SITE.event(&$crate::Fields::new().str($text))
        } else {
            false
        }
    }};
}

/// Is in a part of the program until the answer is dropped: `let _part = kutrace::scope!("request");`.
#[macro_export]
macro_rules! scope {
    ($name:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        SITE.scope()
    }};
}

/// Records how much something is now: `kutrace::value!("queued", queue.len() as i64)`.
#[macro_export]
macro_rules! value {
    ($name:expr, $value:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        SITE.value($value)
    }};
}
