// SPDX-License-Identifier: BSD-3-Clause
//! Counter bytes: the kinds that a trace has, and the original's four-bit code of each.

use kutrace_format::abi::block::{BYTES, COUNTED_WORDS, HEADER_WORDS};
use kutrace_format::abi::counter::{ipc, llc};
use kutrace_format::file::{FLAG_IPC, FLAG_LLC};
use kutrace_format::flag;

/// Counters that were recorded with a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Nothing: blocks carry no counter bytes.
    Nothing,
    /// Instructions per cycle.
    Ipc,
    /// Last-level cache misses.
    Llc,
    /// Both.
    Both,
}

/// The original's two bits of an LLC code, where IPC needs the other two: from 0, 8, 64, 512 misses.
const COARSE_LLC: [u8; 16] = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3];

impl Counting {
    /// The counters in the flags of a file header.
    pub fn of(flags: u32) -> Counting {
        match (flags & FLAG_IPC != 0, flags & FLAG_LLC != 0) {
            (false, false) => Counting::Nothing,
            (true, false) => Counting::Ipc,
            (false, true) => Counting::Llc,
            (true, true) => Counting::Both,
        }
    }

    /// The original's flag bits.
    pub fn flags(self) -> u32 {
        match self {
            Counting::Nothing => 0,
            Counting::Ipc => flag::IPC,
            Counting::Llc => flag::LLC,
            Counting::Both => flag::COUNTERS,
        }
    }

    /// Bytes of a block that entries can take.
    pub fn room(self) -> usize {
        match self {
            Counting::Nothing => BYTES - HEADER_WORDS * 4,
            _ => COUNTED_WORDS * 4,
        }
    }

    /// The original's code of a counter byte; with both counters, the two highest bits of the IPC code above the
    /// two bits of [`COARSE_LLC`].
    pub fn code(self, byte: u8) -> u8 {
        match self {
            Counting::Nothing => 0,
            Counting::Ipc => ipc(byte),
            Counting::Llc => llc(byte),
            Counting::Both => ipc(byte) & 0b1100 | COARSE_LLC[usize::from(llc(byte))],
        }
    }
}
