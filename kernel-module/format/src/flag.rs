// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The original's flag byte, which events and spans keep: the low bits are the version of the raw format.

/// The bits of the version.
pub const VERSION: u32 = 0x0f;
/// Last-level cache misses were counted.
pub const LLC: u32 = 0x20;
/// The trace is the end of a longer recording.
pub const WRAPPED: u32 = 0x40;
/// Instructions per cycle were counted.
pub const IPC: u32 = 0x80;
/// Anything was counted.
pub const COUNTERS: u32 = IPC | LLC;
