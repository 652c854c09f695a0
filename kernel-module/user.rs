// SPDX-License-Identifier: GPL-2.0
//! Requests of programs built against the original's library: marks, other events and names.
//!
//! All programs of a machine share the trace: each process has a rate (`user/rate.c`), each CPU a [`crate::budget`] for
//! all of them, and insertions beyond these are counted.
//!
//! Invariant: only requests that [`crate::abi::user::request`] accepts are recorded, and these state their own length.

#![forbid(unsafe_code)]

use kernel::error::code;

use crate::abi::user::{request, Refused, Request, VERSION_ANSWER, WORDS};
use crate::call::TaskLane;
use crate::entry;
use crate::lane::Lane;
use crate::this_cpu::ThisCpu;

/// Handles system call 1023; returns the value, or a negative errno. While tracing is off nothing is inserted, and the
/// value is 0. Programs that may not insert, and those that do so too often, get the same answer.
pub fn call<const COUNTING: bool>(lane: TaskLane<ThisCpu<'_, COUNTING>>, command: u64, words: &[u64; WORDS]) -> i64 {
    let cpu = lane.lane();
    let tracing = cpu.is_open() && ThisCpu::takes_marks(lane);
    match request(command, words) {
        Ok(Request::Test) => tracing.into(),
        Ok(Request::Version) => VERSION_ANSWER,
        Ok(_) if !tracing => 0,
        Ok(Request::Event { .. }) if !ThisCpu::takes_mark(lane) => 0,
        Ok(Request::Name { .. }) if !ThisCpu::takes_name(lane) => 0,
        Ok(Request::Event { event, value }) => {
            cpu.count_call();
            entry::value(cpu, event.into(), value);
            1
        }
        Ok(Request::Name { len, words }) => {
            cpu.count_call();
            entry::name(cpu, words);
            len
        }
        Err(Refused::Control) => code::EPERM.to_errno().into(),
        Err(Refused::Invalid) => code::EINVAL.to_errno().into(),
    }
}
