// SPDX-License-Identifier: BSD-3-Clause
//! What system calls are to those who send each other requests, by their names.

use crate::span::{Span, Spans};

/// Calls that send on a descriptor.
const SENDS: [&str; 8] = ["write", "writev", "send", "sendto", "sendmsg", "sendmmsg", "sendfile", "sendfile64"];
/// Calls that receive on one.
const RECEIVES: [&str; 6] = ["read", "readv", "recv", "recvfrom", "recvmsg", "recvmmsg"];
/// Calls that wait for any of several descriptors.
const POLLS: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// What a call with a timeout returns when that is over, if not 0: ETIMEDOUT, EAGAIN.
const OVER: [i64; 2] = [-110, -11];

/// What a call does with its descriptor, as far as requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It sends.
    Send,
    /// It receives.
    Receive,
    /// It waits until one of several is ready.
    Poll,
    /// It opens a file.
    Open,
    /// It closes.
    Close,
    /// It connects.
    Connect,
    /// It accepts a connection.
    Accept,
    /// It waits for another thread, or wakes one.
    Futex,
}

impl Call {
    /// Whether a call of this sort that returned `ret` had waited for as long as it was told to, in vain.
    pub fn timed_out(self, ret: i64) -> bool {
        match self {
            Call::Poll => ret == 0,
            Call::Receive | Call::Accept | Call::Futex => OVER.contains(&ret),
            Call::Send | Call::Open | Call::Close | Call::Connect => false,
        }
    }
}

/// What the names of a trace stand for.
#[derive(Debug)]
pub struct Calls(Vec<Option<Call>>);

impl Calls {
    /// Of the names of these spans.
    pub fn new(spans: &Spans) -> Calls {
        let call = |name: &String| match name.as_str() {
            name if SENDS.contains(&name) => Some(Call::Send),
            name if RECEIVES.contains(&name) => Some(Call::Receive),
            name if POLLS.contains(&name) => Some(Call::Poll),
            "open" | "openat" | "openat2" => Some(Call::Open),
            "close" => Some(Call::Close),
            "connect" => Some(Call::Connect),
            "accept" | "accept4" => Some(Call::Accept),
            "futex" => Some(Call::Futex),
            _ => None,
        };
        Calls(spans.names.iter().map(call).collect())
    }

    /// What the call does that a span shows; none if it is none of these.
    pub fn of(&self, span: &Span) -> Option<Call> {
        self.0.get(span.name.index()).copied().flatten()
    }
}
