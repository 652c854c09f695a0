// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The 64 KiB block: 128 bytes of header, then entries, of one CPU. It is a CTF 1.8 packet.
//!
//! ```text
//! byte   0 magic u32   4 uuid [16]   20 stream u32          packet header
//!       24 begin u64  32 end u64     40 content bits u64    packet context
//!       48 packet bits u64           56 sequence u64
//!       64 lost u64   72 cpu u32     76 pid u32   80 tgid u32
//!       84 task state u32            88 comm [16]
//!      104 flags u32 108 crc32 u32  112 events u32  116 reserved [12]
//!      128 entries ...
//!    52455 counter bytes, while counters are on
//! ```
//!
//! `begin` and `end` are whole counter values; the first entry is unwrapped from `begin`. `content bits` counts from
//! the start of the block, header included; bytes after these are not part of the trace. `sequence` counts a CPU's
//! blocks from 0, `lost` the events this CPU could not record since the start. pid, tgid, task state and comm are those
//! of the task running when the block began. `uuid` and `crc32` are zero in memory; they are filled in when the block
//! is written to a file. The checksum is the CRC-32 (IEEE) of the whole block with the checksum field zero.
//!
//! While counters are on, every word after the header has a byte (see [`crate::abi::counter`]) at the end of
//! the block, which takes room from the entries: the byte of byte offset `128 + 4 n` is at `52455 + n`.

/// Bytes of a block.
pub const BYTES: usize = 64 * 1024;
/// Four-byte words of a block.
pub const WORDS: usize = BYTES / 4;
/// Words of the header; the first entry follows.
pub const HEADER_WORDS: usize = 32;
/// Entry words of a block with counters: as many as fit with a byte for each.
pub const COUNTED_WORDS: usize = (BYTES - HEADER_WORDS * 4) / 5;
/// Byte offset of the counter byte of the first entry word.
pub const COUNTERS_AT: usize = BYTES - COUNTED_WORDS;

/// Byte offset of the counter byte of the entry word at byte offset `at`.
#[inline(always)]
pub const fn counter_at(at: usize) -> usize {
    (COUNTERS_AT - HEADER_WORDS).wrapping_add(at / 4)
}

/// First word of every block that holds a trace: the magic number of CTF 1.8.
pub const MAGIC: u32 = 0xc1fc_1fc1;
/// [`Header::flags`]: the CPU lost events after the last entry of this block.
pub const FLAG_LOST: u32 = 1;
/// [`Header::flags`]: the CPU went offline at the end of this block.
pub const FLAG_OFFLINE: u32 = 2;
/// [`Header::flags`]: the CPU's counter has stepped back: `begin` may be before all times in its earlier blocks.
pub const FLAG_BACK: u32 = 4;

/// Byte offset of [`Header::uuid`].
pub const UUID_AT: usize = 4;
/// Byte offset of the checksum.
pub const CRC_AT: usize = 108;

/// The header of a block, as the module writes it: the layout above, little-endian.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`MAGIC`], or 0 for a block that was never used.
    pub magic: u32,
    /// Identity of the trace, the same in every block of a file.
    pub uuid: [u32; 4],
    /// CTF stream number, always 0.
    pub stream: u32,
    /// Counter when the block was begun.
    pub begin: u64,
    /// Counter when the block was left; 0 while it is being written.
    pub end: u64,
    /// Bits used, header included; 0 while the block is being written.
    pub content_bits: u64,
    /// Bits of the block.
    pub packet_bits: u64,
    /// Number of this block among its CPU's.
    pub sequence: u64,
    /// Events lost on this CPU from the start to the end of this block.
    pub lost: u64,
    /// The CPU.
    pub cpu: u32,
    /// Thread running at `begin`.
    pub pid: u32,
    /// Its thread group.
    pub tgid: u32,
    /// [`crate::abi::event::TaskState`] of that thread.
    pub task_state: u32,
    /// Its name, NUL-padded, as little-endian words.
    pub comm: [u32; 4],
    /// `FLAG_*` bits.
    pub flags: u32,
    /// CRC-32 of the block; 0 in memory.
    pub crc32: u32,
    /// Events in this block, where the recorder was built to count them (`make COUNT=1`); else 0.
    pub events: u32,
    /// In the pool: the counter when another CPU looked, low half first, and the bytes filled by then. They are valid
    /// while `content_bits` is 0, and if that counter is not before `begin`. Zero in files.
    pub for_now: [u32; 3],
}

const _: () = assert!(core::mem::size_of::<Header>() == HEADER_WORDS * 4);
const _: () = assert!(COUNTERS_AT == 52455);
