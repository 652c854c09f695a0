// SPDX-License-Identifier: BSD-3-Clause
//! Reads blocks that the recorder may recycle at the same time: a block is read first, and used if it is then still the
//! same block.
//!
//! The module changes a recycled block in this order: its magic number to zero, the rest of its header, its magic
//! number, its entries. A CPU's sequence numbers are never reused. Therefore, if the header is still that of the same
//! block after a read, the bytes read belong to that block.

use std::mem::offset_of;
use std::sync::atomic::{fence, AtomicU32, Ordering};

use kutrace_format::abi::block::{Header, MAGIC};

/// A block, unique in a trace. Ordered by start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Counter at the start of the block.
    pub begin: u64,
    /// Its CPU.
    pub cpu: u32,
    /// Its number among its CPU's.
    pub sequence: u64,
}

/// Header fields of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Identity of the block.
    pub id: Id,
    /// Number of bits used, unchecked; for a block that has not ended, as another CPU saw it.
    pub content_bits: u64,
    /// Events its CPU lost up to its end.
    pub lost: u64,
}

/// Header fields of a block in the pool; `None` if it was never used or is being recycled.
pub fn summary(block: &[AtomicU32]) -> Option<Summary> {
    let id = id(block)?;
    let content_bits = match u64_at(block, offset_of!(Header, content_bits)) {
        0 => seen(block, id).map_or(0, |(_, bytes)| u64::from(bytes) * 8),
        bits => bits,
    };
    let lost = u64_at(block, offset_of!(Header, lost));
    is_still(block, id).then_some(Summary { id, content_bits, lost })
}

/// The counter at which another CPU looked at block `id`, and the number of filled bytes at that time; `None` if no CPU
/// has looked since the block began.
pub fn seen(block: &[AtomicU32], id: Id) -> Option<(u64, u32)> {
    let at = offset_of!(Header, for_now);
    let (when, bytes) = (u64_at(block, at), u32_at(block, at + 8));
    (bytes > 0 && when >= id.begin).then_some((when, bytes))
}

/// Copies the first `into.len()` bytes of block `id`; false if it was recycled before the copy was complete.
pub fn copy(block: &[AtomicU32], id: Id, into: &mut [u8]) -> bool {
    for (word, bytes) in block.iter().zip(into.chunks_exact_mut(4)) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    is_still(block, id)
}

/// Turns a copied header into one for a file, for a block with this many bytes used. If the header has another number,
/// the CPU had not ended the block when it was chosen: it then ends where another CPU saw it.
pub fn complete(header: &mut [u8], content: usize) {
    let [end, content_bits, for_now] =
        [offset_of!(Header, end), offset_of!(Header, content_bits), offset_of!(Header, for_now)];
    let bits = (content as u64 * 8).to_le_bytes();
    if header[content_bits..][..8] != bits {
        header.copy_within(for_now..for_now + 8, end);
        header[content_bits..][..8].copy_from_slice(&bits);
    }
    header[for_now..][..12].fill(0);
}

/// Returns whether everything read before belongs to this block.
pub fn is_still(block: &[AtomicU32], expected: Id) -> bool {
    fence(Ordering::Acquire);
    id(block) == Some(expected)
}

/// The identity of the block, if it is one. A magic number found before the header was written does not validate the
/// header, and one found afterwards does not validate earlier reads. Therefore it is read before and after.
pub fn id(block: &[AtomicU32]) -> Option<Id> {
    let is_block = || u32_at(block, offset_of!(Header, magic)) == MAGIC;
    let was_block = is_block();
    fence(Ordering::Acquire);
    let begin = u64_at(block, offset_of!(Header, begin));
    let cpu = u32_at(block, offset_of!(Header, cpu));
    let sequence = u64_at(block, offset_of!(Header, sequence));
    fence(Ordering::Acquire);
    (was_block && is_block()).then_some(Id { begin, cpu, sequence })
}

pub fn u32_at(block: &[AtomicU32], at: usize) -> u32 {
    block[at / 4].load(Ordering::Relaxed)
}

pub fn u64_at(block: &[AtomicU32], at: usize) -> u64 {
    u64::from(u32_at(block, at)) | u64::from(u32_at(block, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::tests;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn a_summary_is_of_one_block_while_headers_change() {
        let block = tests::block(1, 0, 0, 128);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in (1..).take_while(|_| !over.load(Ordering::Relaxed)) {
                    let put = |at: usize, value: u32| block[at / 4].store(value, Ordering::Release);
                    put(offset_of!(Header, magic), 0);
                    let mut fields =
                        [offset_of!(Header, begin), offset_of!(Header, sequence), offset_of!(Header, lost)];
                    fields.rotate_left(n as usize % 3);
                    for at in fields {
                        put(at, n);
                    }
                    put(offset_of!(Header, magic), MAGIC);
                }
            });
            let mut mixed = 0;
            for found in (0..3_000_000).filter_map(|_| summary(&block)) {
                mixed += u64::from([found.id.sequence, found.lost] != [found.id.begin; 2] && found.id.begin != 0);
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(mixed, 0);
        });
    }
}
