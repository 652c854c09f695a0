// SPDX-License-Identifier: BSD-3-Clause
//! Places in a program that record by their names: moments, parts, values.
//!
//! They go into memory that the recorder grants, without a system call ([`crate::stream`]). Where the recorder grants
//! none they become what system call 1023 can carry, but for values.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use kutrace_format::abi::programs::{word, BEGIN, END, MARK, VALUE};

use crate::area::{self, Stream};
use crate::event::MARK_A;
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
    /// A place of this name.
    pub const fn new(name: &'static str) -> Site {
        Site { id: AtomicU64::new(0), name: Text::new(name) }
    }

    /// This thread is here now; whether that is in the trace.
    #[inline]
    pub fn mark(&self) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, MARK, []).unwrap_or_else(|| self.mark_by_call()),
        }
    }

    /// This thread begins with a part of the program; [`Site::end`] ends it, in the same thread. Parts nest.
    #[inline]
    pub fn begin(&self) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, BEGIN, []).unwrap_or_else(|| self.begin_by_call() != 0),
        }
    }

    /// And ends it, and every part that was begun inside.
    #[inline]
    pub fn end(&self) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, END, []).unwrap_or_else(|| rpc::turn_to(0) > 0),
        }
    }

    /// What is counted here is this much now. Where the recorder grants no memory it is not recorded.
    #[inline]
    pub fn value(&self, value: i64) -> bool {
        match state::trace() {
            0 => false,
            trace => put(self, trace, VALUE, [value as u64]).unwrap_or(false),
        }
    }

    /// This thread is in a part of the program until the answer is dropped.
    #[inline]
    pub fn scope(&'static self) -> Scope {
        let trace = state::trace();
        if trace == 0 {
            return Scope { site: self, token: OFF, thread: PhantomData };
        }
        let token = match put(self, trace, BEGIN, []) {
            Some(true) => RECORDED,
            Some(false) => OFF,
            None => self.begin_by_call(),
        };
        Scope { site: self, token, thread: PhantomData }
    }

    #[cold]
    fn mark_by_call(&self) -> bool {
        insert::event(MARK_A, text::base40(self.name.bytes())) > 0
    }

    #[cold]
    fn begin_by_call(&self) -> u64 {
        rpc::begin_span(self.name.bytes())
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
fn put<const N: usize>(site: &Site, trace: u32, kind: u32, payload: [u64; N]) -> Option<bool> {
    let stream = area::stream();
    let id = site.id.load(Ordering::Relaxed);
    match stream.serial(trace) {
        Some(serial) if (id >> 32) as u32 == serial => Some(record(stream, word(kind, N, id as u32), payload)),
        _ => put_slow(site, trace, kind, payload),
    }
}

/// The first time in a thread, at a place, or in a trace.
#[cold]
#[inline(never)]
fn put_slow<const N: usize>(site: &Site, trace: u32, kind: u32, payload: [u64; N]) -> Option<bool> {
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
    Some(record(stream, word(kind, N, number), payload))
}

/// Marks this moment with a name: `kutrace::mark!("parsed")`.
#[macro_export]
macro_rules! mark {
    ($name:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        SITE.mark()
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
