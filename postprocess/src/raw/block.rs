// SPDX-License-Identifier: BSD-3-Clause
//! One block: its header read and checked, its entries still words.

use byteorder::{ByteOrder, LittleEndian};
use kutrace_format::abi::block::{BYTES, COUNTERS_AT, CRC_AT, FLAG_BACK, FLAG_LOST, FLAG_OFFLINE, HEADER_WORDS, MAGIC};
use kutrace_format::abi::event::TaskState;

use super::counter::Counting;
use super::file::{checksum_without, stored};
use crate::id::CpuId;

/// A block that passed its checks.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Index among the blocks of the file.
    pub index: usize,
    /// Byte offset in the file.
    pub offset: usize,
    /// CPU that recorded it.
    pub cpu: CpuId,
    /// Sequence number among its CPU's blocks.
    pub sequence: u64,
    /// Counter at its start.
    pub begin: u64,
    /// Counter at its end; 0 if it was never closed.
    pub end: u64,
    /// Number of events its CPU has lost since the start.
    pub lost: u64,
    /// True if some of them were lost right after this block.
    pub lost_after: bool,
    /// True if the counter may have stepped back before this block.
    pub back: bool,
    /// True if the CPU went offline at its end.
    pub offline: bool,
    /// Thread running at its start.
    pub pid: u32,
    /// First thread of its process.
    pub tgid: u32,
    /// State of that thread.
    pub state: TaskState,
    /// Name of that thread.
    pub comm: &'a [u8],
    /// The entries, four bytes each.
    pub entries: &'a [u8],
    /// A counter byte for each word of `entries`; empty if nothing was counted.
    pub counters: &'a [u8],
}

/// A block that failed its checks, with the fields of its header that seem right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The failed check.
    pub fact: &'static str,
    /// CPU that now misses time, if the header is plausible.
    pub cpu: Option<CpuId>,
    /// Counters at begin and end, if the header is plausible.
    pub span: Option<(u64, u64)>,
}

/// Properties common to every block of a file.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Identity of the trace; `None` if the file header is damaged.
    pub uuid: Option<[u8; 16]>,
    /// Upper limit of CPU numbers, exclusive.
    pub cpus: u32,
    /// Counters that were recorded.
    pub counting: Counting,
}

/// Checks the block in these bytes.
///
/// # Errors
/// The first check that failed; the block must not be used then.
pub fn parse(index: usize, offset: usize, bytes: &[u8], expected: Expected) -> Result<Block<'_>, Rejected> {
    let word = |at: usize| LittleEndian::read_u32(&bytes[at..]);
    let long = |at: usize| LittleEndian::read_u64(&bytes[at..]);
    let (begin, end, cpu) = (long(24), long(32), word(72));
    let reject = |fact| {
        let plausible = word(0) == MAGIC && cpu < expected.cpus;
        let span = (plausible && begin <= end).then_some((begin, end));
        Rejected { fact, cpu: plausible.then_some(CpuId::new(cpu)), span }
    };
    if word(0) != MAGIC {
        let never_used = word(0) == 0;
        return Err(reject(if never_used { "the block was never used" } else { "the block has no magic number" }));
    }
    if bytes.len() < BYTES {
        return Err(reject("the file ends inside the block"));
    }
    if checksum_without(bytes, CRC_AT) != stored(bytes, CRC_AT) {
        return Err(reject("the checksum does not match"));
    }
    if expected.uuid.is_some_and(|uuid| uuid != bytes[4..20]) {
        return Err(reject("the block belongs to another trace"));
    }
    if cpu >= expected.cpus {
        return Err(reject("no such CPU"));
    }
    let header = HEADER_WORDS * 4;
    let end_of_room = header + expected.counting.room();
    let content = match long(40) {
        0 => end_of_room,
        bits if bits % 32 == 0 && (header as u64..=end_of_room as u64).contains(&(bits / 8)) => (bits / 8) as usize,
        _ => return Err(reject("the content size is out of range")),
    };
    if end != 0 && end < begin {
        return Err(reject("the block ends before it begins"));
    }
    let counted = match expected.counting {
        Counting::Nothing => 0,
        _ => (content - header) / 4,
    };
    Ok(Block {
        index,
        offset,
        cpu: CpuId::new(cpu),
        sequence: long(56),
        begin,
        end,
        lost: long(64),
        lost_after: word(104) & FLAG_LOST != 0,
        back: word(104) & FLAG_BACK != 0,
        offline: word(104) & FLAG_OFFLINE != 0,
        pid: word(76),
        tgid: word(80),
        state: TaskState(word(84)),
        comm: &bytes[88..104],
        entries: &bytes[header..content],
        counters: &bytes[COUNTERS_AT..][..counted],
    })
}
