// SPDX-License-Identifier: GPL-2.0
//! What programs built against the original's library ask of the recorder: marks, other events and names.
//!
//! Invariant: nothing is recorded but what [`crate::abi::user::request`] accepts, and that says its own length.

#![forbid(unsafe_code)]

use kernel::error::code;

use crate::abi::event::NAME;
use crate::abi::user::{request, Refused, Request, VERSION_ANSWER, WORDS};
use crate::claim::Lane;
use crate::entry;
use crate::lane::ThisCpu;

/// Answers system call 1023: the value, or a negative errno. While tracing is off nothing is inserted, which is 0.
pub fn call<const COUNTING: bool>(cpu: ThisCpu<COUNTING>, command: u64, words: &[u64; WORDS]) -> i64 {
    let tracing = cpu.is_open();
    match request(command, words) {
        Ok(Request::Test) => tracing.into(),
        Ok(Request::Version) => VERSION_ANSWER,
        Ok(_) if !tracing => 0,
        Ok(Request::Event { event, value }) => {
            cpu.count_call();
            entry::value(cpu, event.into(), value);
            1
        }
        Ok(Request::Name { len, words }) => {
            cpu.count_call();
            entry::words(cpu, NAME, words);
            len
        }
        Err(Refused::Control) => code::EPERM.to_errno().into(),
        Err(Refused::Invalid) => code::EINVAL.to_errno().into(),
    }
}
