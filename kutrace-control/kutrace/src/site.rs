// SPDX-License-Identifier: BSD-3-Clause
//! Places in a program that record by their names: moments, parts, values.
//!
//! They go into memory that the recorder grants, without a system call ([`crate::stream`]). Where the recorder grants
//! none they become what system call 1023 can carry, but for values.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use kutrace_format::abi::programs::{word, ASYNC_BEGIN, ASYNC_END, BEGIN, END, MARK, NAME_MAX, PAYLOAD_MAX, VALUE};

use crate::area::{self, Stream};
use crate::event::MARK_A;
use crate::fields::Fields;
use crate::stream::record;
use crate::sys::Text;
use crate::{insert, rpc, state, text};

/// A place in the program, with its name of up to 119 bytes. It is a static; [`crate::mark!`], [`crate::scope!`] and
/// [`crate::value!`] make one.
#[derive(Debug)]
#[repr(C)]
pub struct Site {
    /// The attachment in which it has a number, and that.
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
        match state::trace() {
            0 => false,
            trace => put(self, trace, MARK, fields.words()).unwrap_or_else(|| self.mark_by_call()),
        }
    }

    /// As [`Site::begin`], with what the fields of the name are.
    #[inline]
    pub fn begin_with(&self, fields: &Fields) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, BEGIN, fields.words()).unwrap_or_else(|| self.begin_by_call() != 0),
        }
    }

    /// A part of the program begins that any thread may end, by [`Site::async_end`] of a place with the same name and the
    /// same number. No two parts of a name that overlap in a process may have the same number. The fields take at
    /// most 14 words here. Where the recorder grants no memory it is not recorded.
    pub fn async_begin(&self, id: u64, fields: &Fields) -> bool {
        match state::trace() {
            0 => false,
            trace => {
                let mut words = [id; PAYLOAD_MAX];
                let fields = &fields.words()[..fields.words().len().min(PAYLOAD_MAX - 1)];
                words[1..=fields.len()].copy_from_slice(fields);
                put(self, trace, ASYNC_BEGIN, &words[..=fields.len()]).unwrap_or(false)
            }
        }
    }

    /// And ends.
    pub fn async_end(&self, id: u64) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, ASYNC_END, &[id]).unwrap_or(false),
        }
    }

    /// This thread is here now; whether that is in the trace.
    #[inline]
    pub fn mark(&self) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, MARK, &[]).unwrap_or_else(|| self.mark_by_call()),
        }
    }

    /// This thread begins with a part of the program; [`Site::end`] ends it, in the same thread. Parts nest.
    #[inline]
    pub fn begin(&self) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, BEGIN, &[]).unwrap_or_else(|| self.begin_by_call() != 0),
        }
    }

    /// And ends it, and every part that was begun inside.
    #[inline]
    pub fn end(&self) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, END, &[]).unwrap_or_else(|| rpc::turn_to(0) > 0),
        }
    }

    /// What is counted here is this much now. Where the recorder grants no memory it is not recorded.
    #[inline]
    pub fn value(&self, value: i64) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, VALUE, &[value as u64]).unwrap_or(false),
        }
    }

    /// This thread is in a part of the program until the answer is dropped.
    #[inline]
    pub fn scope(&'static self) -> Scope {
        let trace = state::trace();
        if trace == 0 {
            return Scope { site: self, token: OFF, thread: PhantomData };
        }
        let token = match put(self, trace, BEGIN, &[]) {
            Some(true) => RECORDED,
            Some(false) => OFF,
            None => self.begin_by_call(),
        };
        Scope { site: self, token, thread: PhantomData }
    }

    #[cold]
    fn mark_by_call(&self) -> bool {
        insert::event(MARK_A, text::base40(self.plain())) > 0
    }

    #[cold]
    fn begin_by_call(&self) -> u64 {
        rpc::begin_span(self.plain())
    }

    /// The name without fields.
    fn plain(&self) -> &[u8] {
        let name = self.name.bytes();
        let end = name.iter().position(|&c| c == 0).unwrap_or(name.len());
        &name[..end.min(NAME_MAX)]
    }
}

/// A part of the program, from [`Site::scope`] to its end.
#[derive(Debug)]
#[must_use = "a part ends where it is dropped: let _part = ..."]
pub struct Scope {
    site: &'static Site,
    token: u64,
    /// It ends in the thread that began it.
    thread: PhantomData<*const ()>,
}

/// [`Scope::token`]: its start is not in a trace.
const OFF: u64 = 0;
/// [`Scope::token`]: its start is in this thread's memory. What system calls began has another.
const RECORDED: u64 = 1;

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        match self.token {
            OFF => {}
            RECORDED => {
                self.site.end();
            }
            token => rpc::end_span(token),
        }
    }
}

/// Records in this thread's memory: whether there was room, or `None` where it gets none.
#[inline(always)]
fn put(site: &Site, trace: u32, kind: u32, payload: &[u64]) -> Option<bool> {
    let stream = area::stream();
    let id = site.id.load(Ordering::Relaxed);
    match stream.serial(trace) {
        Some(serial) if (id >> 32) as u32 == serial => {
            Some(record(stream, word(kind, payload.len(), id as u32), payload))
        }
        _ => put_slow(site, trace, kind, payload),
    }
}

/// The first time in a thread, at a place, or in a trace.
#[cold]
#[inline(never)]
fn put_slow(site: &Site, trace: u32, kind: u32, payload: &[u64]) -> Option<bool> {
    let stream: &'static Stream = area::prepare(trace)?;
    let serial = stream.serial(trace)?;
    let known = site.id.load(Ordering::Relaxed);
    let number = if (known >> 32) as u32 == serial {
        known as u32
    } else {
        // Where names have no room the entry has none.
        let number = area::define(stream, site.name.bytes()).unwrap_or(0);
        site.id.store(u64::from(serial) << 32 | u64::from(number), Ordering::Relaxed);
        number
    };
    Some(record(stream, word(kind, payload.len(), number), payload))
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
        $crate::is_on() && SITE.event(&$crate::Fields::new()$(.$kind($value))*)
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
        $crate::is_on() && SITE.async_begin($id, &$crate::Fields::new()$(.$kind($value))*)
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
        $crate::is_on() && SITE.event(&$crate::Fields::new().str($text))
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
