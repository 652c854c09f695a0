// SPDX-License-Identifier: GPL-2.0
//! What programs built against the original's library ask of the recorder: marks, other events and names.
//!
//! All programs of a machine share the trace: what a process may insert has a rate (`user/rate.c`), what each CPU takes of
//! all of them a [`crate::budget`], and what is more is counted.
//!
//! Invariant: nothing is recorded but what [`crate::abi::user::request`] accepts, and that says its own length.

#![forbid(unsafe_code)]

use kernel::error::code;

use crate::abi::user::{request, Refused, Request, VERSION_ANSWER, WORDS};
use crate::call::TaskLane;
use crate::entry;
use crate::lane::Lane;
use crate::this_cpu::ThisCpu;

/// Answers system call 1023: the value, or a negative errno. While tracing is off nothing is inserted, which is 0. The
/// same is said to programs that may not insert, and to those that do so too often.
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
