// SPDX-License-Identifier: BSD-3-Clause
//! Work of a thread: a remote procedure call, or a named part of the program.
//!
//! Both are RPCs to the recorder, so that every tool of KUtrace, the original's too, shows the time of the thread that
//! belongs to them, including kernel time and waiting. A span is an RPC whose id is the number of its name. A thread
//! works on one at a time: an inner span replaces the one around it, which continues after it.

use std::cell::Cell;
use std::marker::PhantomData;

use super::event::{RPC_MIDDLE, RPC_REQUEST, RPC_RESPONSE};
use super::insert::{self, Named};
use super::{name, text};
use crate::state;

thread_local! {
    /// Current work of this thread: the number of the trace in the high half, the id in the low one.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// This thread begins with a request of `bytes` bytes; 0 if the size does not matter. Ids are 1 to 65535.
#[inline]
pub fn rpc_request(method: &str, id: u16, bytes: u64) -> bool {
    state::trace() != 0 && begin(RPC_REQUEST, method.as_bytes(), id, bytes) > 0
}

/// This thread begins with the response, of `bytes` bytes.
#[inline]
pub fn rpc_response(method: &str, id: u16, bytes: u64) -> bool {
    state::trace() != 0 && begin(RPC_RESPONSE, method.as_bytes(), id, bytes) > 0
}

/// This thread continues with an RPC that it or another thread began.
#[inline]
pub fn rpc_resume(method: &str, id: u16) -> bool {
    state::trace() != 0 && begin(RPC_MIDDLE, method.as_bytes(), id, 0) > 0
}

/// This thread leaves its RPC: finished, queued, or set aside.
#[inline]
pub fn rpc_end() -> bool {
    state::trace() != 0 && turn_to(0) > 0
}

/// A part of the program, from [`span`] to its end.
#[derive(Debug)]
#[must_use = "a span ends where it is dropped: let _span = ..."]
pub struct Span {
    token: u64,
    /// A span ends in the thread that began it.
    thread: PhantomData<*const ()>,
}

/// This thread is in a part of the program that has a name of up to 56 bytes, until the result is dropped.
///
/// Parts with the same name are the same part, in all threads and programs. They may nest; the innermost is shown.
#[inline]
pub fn span(name: &str) -> Span {
    let token = if state::trace() == 0 { 0 } else { begin_span(name.as_bytes()) };
    Span { token, thread: PhantomData }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if self.token != 0 {
            end_span(self.token);
        }
    }
}

/// Begins with an RPC. Returns 1, 0 if nothing is traced, or a negative errno.
#[cold]
pub fn begin(event: u16, method: &[u8], id: u16, bytes: u64) -> i64 {
    name::tell(Named::Method, id, method);
    CURRENT.set(u64::from(state::trace()) << 32 | u64::from(id));
    insert::event(event, u32::from(text::size_code(bytes)) << 16 | u32::from(id))
}

/// Continues with an RPC whose name is known, or with none for 0. Returns 1, 0 if nothing is traced, or a negative
/// errno.
#[cold]
pub fn turn_to(id: u16) -> i64 {
    CURRENT.set(u64::from(state::trace()) << 32 | u64::from(id));
    insert::event(if id == 0 { RPC_REQUEST } else { RPC_MIDDLE }, id.into())
}

/// Bit that turns the previous work into a token.
const TOKEN: u64 = 1 << 63;

/// Begins a span. Returns a token, never 0, for its end.
#[cold]
pub fn begin_span(name: &[u8]) -> u64 {
    let outer = CURRENT.get();
    // Its message has no size, and it counts as the middle of any messages that the thread exchanges.
    begin(RPC_MIDDLE, name, text::number(name), 0);
    TOKEN | outer
}

/// Ends the span of a token, and continues with the work around it in this trace.
#[cold]
pub fn end_span(token: u64) {
    let outer = token & !TOKEN;
    let trace = state::trace();
    if trace == 0 {
        CURRENT.set(outer);
        return;
    }
    let is_of_this_trace = outer >> 32 == u64::from(trace);
    turn_to(if is_of_this_trace { outer as u16 } else { 0 });
}
