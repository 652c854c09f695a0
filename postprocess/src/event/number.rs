// SPDX-License-Identifier: BSD-3-Clause
//! Event numbers in the text and in spans: the original's, and the few that are ours, from the format crate's table.
//!
//! The bit 0x200 marks a return. The middle digit of a name's number is its length in the original's files; here it is
//! always 0.

use crate::id::Pid;
pub use kutrace_format::abi::event::line::*;
use kutrace_format::abi::word::EVENT_BITS;
pub use kutrace_format::event::{class, level, Class, Level, RETURN_BIT};

/// Upper limit, exclusive, of the numbers of the text and of spans, except for whole times: user code, idle, lost and
/// the like.
pub const NUMBERS: u32 = 1 << EVENT_BITS;

/// The event number of `pid` in user mode. No thread but idle gets idle's number.
pub const fn user(pid: Pid) -> u32 {
    match (pid.number(), pid.number() & 0xffff) {
        (0, _) => USER,
        (_, 0) => USER | 0xffff,
        (_, low) => USER | low,
    }
}

/// The event number of `pid`, a thread of the kernel.
pub const fn kernel(pid: Pid) -> u32 {
    KERNEL | pid.number() & 0xffff
}
