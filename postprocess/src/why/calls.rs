// SPDX-License-Identifier: BSD-3-Clause
//! System calls by their role in an exchange of requests, recognized by name.

use crate::span::{Span, Spans};

/// Calls that send on a descriptor.
const SENDS: [&str; 8] = ["write", "writev", "send", "sendto", "sendmsg", "sendmmsg", "sendfile", "sendfile64"];
/// Calls that receive on a descriptor.
const RECEIVES: [&str; 6] = ["read", "readv", "recv", "recvfrom", "recvmsg", "recvmmsg"];
/// Calls that wait for any of several descriptors.
const POLLS: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// Values other than 0 that a call returns when its timeout expires: ETIMEDOUT, EAGAIN.
const OVER: [i64; 2] = [-110, -11];

/// Effect of a call on its descriptor, as far as requests are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It sends.
    Send,
    /// It receives.
    Receive,
    /// It waits until one of several descriptors is ready.
    Poll,
    /// It opens a file.
    Open,
    /// It closes a descriptor.
    Close,
    /// It connects.
    Connect,
    /// It accepts a connection.
    Accept,
    /// It waits for another thread, or wakes one.
    Futex,
}

impl Call {
    /// True if a call of this kind that returned `ret` had waited in vain until its timeout.
    pub fn timed_out(self, ret: i64) -> bool {
        match self {
            Call::Poll => ret == 0,
            Call::Receive | Call::Accept | Call::Futex => OVER.contains(&ret),
            Call::Send | Call::Open | Call::Close | Call::Connect => false,
        }
    }
}

/// Calls by the names of a trace.
#[derive(Debug)]
pub struct Calls(Vec<Option<Call>>);

impl Calls {
    /// Classifies the names of these spans.
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

    /// Returns the call that a span shows, if it is one of these.
    pub fn of(&self, span: &Span) -> Option<Call> {
        self.0.get(span.name.index()).copied().flatten()
    }
}
