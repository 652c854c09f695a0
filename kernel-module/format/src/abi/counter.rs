// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The counter byte that each word of a block has while counters are on.
//!
//! ```text
//!  7      4 3      0
//! |  LLC 4  |  IPC 4  |   a counter that is off leaves its half 0
//! ```
//!
//! The byte of an entry's first word is for the time since the entry before it on the CPU; in a folded system call the
//! byte of the argument word is for the time inside the call. Every other byte is 0. The bytes start at
//! [`crate::abi::block::COUNTERS_AT`].
//!
//! | code | IPC: instructions per cycle, from | LLC: last-level cache misses, from |
//! |---|---|---|
//! | 0-7 | 0, 1/8, 1/4, 3/8, 1/2, 5/8, 3/4, 7/8 | 0, 1, 8, 16, 32, 64, 128, 256 |
//! | 8-15 | 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5 | 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536 |
//!
//! A cycle is a count of the TSC, whatever the core's clock does.

/// The byte of two codes.
#[inline(always)]
pub const fn byte(ipc: u8, llc: u8) -> u8 {
    llc << 4 | ipc
}

/// The IPC code of a byte.
pub const fn ipc(byte: u8) -> u8 {
    byte & 15
}

/// The LLC code of a byte.
pub const fn llc(byte: u8) -> u8 {
    byte >> 4
}

/// The IPC code of this many instructions in this many TSC cycles; 0 for no time.
#[inline(always)]
pub const fn ipc_code(instructions: u64, cycles: u64) -> u8 {
    let eighths = match instructions.saturating_mul(8).checked_div(cycles) {
        Some(eighths) => eighths,
        None => 0,
    };
    match eighths {
        0..=7 => eighths as u8,
        8..=15 => 4 + eighths as u8 / 2,
        16..=27 => 8 + eighths as u8 / 4,
        _ => 15,
    }
}

/// The LLC code of this many misses.
#[inline(always)]
pub const fn llc_code(misses: u64) -> u8 {
    match misses {
        0 => 0,
        1..=7 => 1,
        8..=0xffff => misses.ilog2() as u8 - 1,
        _ => 15,
    }
}
