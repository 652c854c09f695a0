// SPDX-License-Identifier: BSD-3-Clause
//! The file: header, names, the kernel's counts, blocks (docs/format.md).
//!
//! Invariant: the output depends on the arguments only; no byte after a block's content leaves the pool, except the
//! counter bytes of that content.

use std::io::Write;
use std::mem::offset_of;
use std::sync::atomic::AtomicU32;

use anyhow::{ensure, Result};
use kutrace_format::abi::block::{self, BYTES, COUNTED_WORDS, COUNTERS_AT, CRC_AT, HEADER_WORDS, UUID_AT, WORDS};
use kutrace_format::abi::command::{Info, IPC, LLC, STREAM, WRAP};
use kutrace_format::capability::Unseen;
use kutrace_format::file::{
    self, Header, Section, BLOCKS, FLAG_IPC, FLAG_LLC, FLAG_STREAM, FLAG_WRAP, FLAG_WRAPPED, NAMES,
};

use crate::names::Names;
use crate::pool;
use crate::selection::{Recycling, SelectedBlock, Selection};
use crate::status::has_wrapped;

/// Error if the blocks of a trace no longer exist.
pub const STARTED_AGAIN: &str = "the recorder has been started again since";

/// Number of bytes in a write, at multiples of this number in the file, at which the blocks themselves are not aligned:
/// a file system can then use large folios. On ext4 this saves a third of the CPU time.
const WRITE: usize = 1 << 20;

/// Rule for missing blocks in this state of the recorder: if it reuses blocks, the oldest may be overwritten or read.
pub fn recycling(info: &Info) -> Recycling {
    match info.flags & (WRAP | STREAM) {
        0 => Recycling::Never,
        _ => Recycling::Oldest,
    }
}

/// The header of the file for a trace from the start to the stop in `info`.
pub fn header(info: &Info, selection: &Selection, uuid: [u8; 16], boot_id: [u8; 16]) -> Header {
    let wrap = if info.flags & WRAP != 0 { FLAG_WRAP } else { 0 };
    let wrapped = if has_wrapped(info) { FLAG_WRAPPED } else { 0 };
    let stream = if info.flags & STREAM != 0 { FLAG_STREAM } else { 0 };
    let ipc = if info.flags & IPC != 0 { FLAG_IPC } else { 0 };
    let llc = if info.flags & LLC != 0 { FLAG_LLC } else { 0 };
    Header {
        flags: wrap | wrapped | stream | ipc | llc | info.notes,
        shift: info.shift,
        tsc_hz: u64::from(info.tsc_khz) * 1000,
        cpus: info.cpus,
        block_bytes: BYTES as u32,
        blocks: selection.blocks.len() as u64,
        lost: info.lost,
        start: info.start,
        stop: info.stop,
        uuid,
        boot_id,
        refused_names: info.refused_names,
        refused_marks: info.refused_marks,
        unseen: Unseen(info.unseen),
    }
}

/// Writes a trace: the blocks of `pool` that `selection` lists, after `sections`. Calls `written` with the number of
/// bytes after each write.
///
/// # Errors
/// If `out` or `written` fails, or a block is no longer in the pool.
pub fn write_trace(
    header: &Header,
    pool: &[AtomicU32],
    selection: &Selection,
    names: &Names,
    sections: &[u8],
    out: &mut dyn Write,
    written: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut buffer = head(header, names, sections);
    for choice in &selection.blocks {
        let end = buffer.len();
        buffer.resize(end + BYTES, 0);
        ensure!(copy_block(pool, choice, header, &mut buffer[end..]), STARTED_AGAIN);
        if buffer.len() >= WRITE {
            out.write_all(&buffer[..WRITE])?;
            buffer.drain(..WRITE);
        }
        written(BYTES)?;
    }
    Ok(out.write_all(&buffer)?)
}

/// The bytes before the first block, with `sections` after the names. Their length depends on these arguments only.
pub fn head(header: &Header, names: &Names, sections: &[u8]) -> Vec<u8> {
    let mut head = sealed_header(header);
    head.extend_from_slice(&section(NAMES, &names.payload(), names.len()));
    head.extend_from_slice(sections);
    let section = Section { tag: BLOCKS, crc32: 0, bytes: header.blocks * BYTES as u64, items: header.blocks };
    head.extend_from_slice(&section.to_bytes());
    head
}

/// The header with its checksum.
pub fn sealed_header(header: &Header) -> Vec<u8> {
    let mut head = header.to_bytes().to_vec();
    seal(&mut head, file::CRC_AT);
    head
}

/// A section with its payload.
pub fn section(tag: [u8; 4], payload: &[u8], items: usize) -> Vec<u8> {
    let (crc32, bytes) = (crc32fast::hash(payload), payload.len() as u64);
    [&Section { tag, crc32, bytes, items: items as u64 }.to_bytes(), payload].concat()
}

/// Start of a file's block numbers and loss counts for a CPU, given by the files before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// Number of its first block.
    pub sequence: u64,
    /// Number of events that the CPU had lost before.
    pub lost: u64,
}

/// Copies a block, zero after its content except for counter bytes, with the trace's identity and its checksum; false
/// if the recorder has replaced the block.
pub fn copy_block(pool: &[AtomicU32], choice: &SelectedBlock, header: &Header, copy: &mut [u8]) -> bool {
    copy_block_from(pool, choice, header, Base::default(), copy)
}

/// Like [`copy_block`], for a file that does not begin with the recording.
pub fn copy_block_from(
    pool: &[AtomicU32],
    choice: &SelectedBlock,
    header: &Header,
    base: Base,
    copy: &mut [u8],
) -> bool {
    if !pool::copy(&pool[choice.index * WORDS..][..WORDS], choice.id, copy) {
        return false;
    }
    pool::complete(copy, choice.content);
    let counted = match header.flags & (FLAG_IPC | FLAG_LLC) {
        0 => 0,
        _ => (choice.content / 4 - HEADER_WORDS).min(COUNTED_WORDS),
    };
    let counters = COUNTERS_AT..COUNTERS_AT + counted;
    let behind = copy.iter_mut().enumerate().skip(choice.content);
    behind.filter(|(at, _)| !counters.contains(at)).for_each(|(_, byte)| *byte = 0);
    copy[UUID_AT..][..header.uuid.len()].copy_from_slice(&header.uuid);
    let sequence = choice.id.sequence.saturating_sub(base.sequence);
    copy[offset_of!(block::Header, sequence)..][..8].copy_from_slice(&sequence.to_le_bytes());
    let lost = choice.lost.saturating_sub(base.lost);
    copy[offset_of!(block::Header, lost)..][..8].copy_from_slice(&lost.to_le_bytes());
    seal(copy, CRC_AT);
    true
}

/// Sets the checksum at `at` to that of all the bytes with the checksum zero.
fn seal(bytes: &mut [u8], at: usize) {
    bytes[at..at + 4].fill(0);
    let crc32 = crc32fast::hash(bytes);
    bytes[at..at + 4].copy_from_slice(&crc32.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::selection::tests::{block, pool};
    use kutrace_format::abi::block::Header as Block;
    use kutrace_format::abi::command::Moment;
    use kutrace_format::file::{Name, NameKind, HEADER_BYTES, SECTION_BYTES};

    const UUID: [u8; 16] = *b"0123456789abcdef";

    fn info() -> Info {
        let start = Moment { tsc: 100, realtime_ns: 200, monotonic_ns: 300 };
        let stop = Moment { tsc: 110, realtime_ns: 210, monotonic_ns: 310 };
        Info {
            flags: WRAP,
            shift: 4,
            cpus: 2,
            blocks: 3,
            tsc_khz: 2_592_000,
            blocks_taken: 5,
            lost: 7,
            start,
            stop,
            ..Info::default()
        }
    }

    fn section(file: &[u8]) -> (Section, &[u8], &[u8]) {
        let section = Section::from_bytes(file[..SECTION_BYTES].try_into().unwrap());
        let (payload, rest) = file[SECTION_BYTES..].split_at(section.bytes as usize);
        (section, payload, rest)
    }

    fn is_sealed(bytes: &[u8], at: usize) -> bool {
        let mut copy = bytes.to_vec();
        seal(&mut copy, at);
        copy == bytes
    }

    #[test]
    fn a_written_trace_reads_back() {
        let pool = pool([Some(block(1, 0, 30, 256)), None, Some(block(0, 0, 20, BYTES))]);
        let mut names = Names::default();
        names.add(NameKind::Syscall, 39, 0, b"getpid");
        names.add(NameKind::Task, 7, 6, b"web");
        let selection = Selection::of(&pool, recycling(&info()), u64::MAX);
        let header = header(&info(), &selection, UUID, [9; 16]);
        let (mut file, mut told) = (Vec::new(), 0);
        write_trace(&header, &pool, &selection, &names, &[], &mut file, &mut |bytes| {
            told += bytes;
            Ok(())
        })
        .unwrap();

        let (head, rest) = file.split_at(HEADER_BYTES);
        assert_eq!(Header::from_bytes(head.try_into().unwrap()), Some(header));
        assert_eq!((header.flags, header.blocks, header.lost), (FLAG_WRAP | FLAG_WRAPPED, 2, 7));
        assert_eq!(header.tsc_hz, 2_592_000_000);
        assert!(is_sealed(head, file::CRC_AT));

        let (section_names, payload, rest) = section(rest);
        assert_eq!((section_names.tag, section_names.items), (NAMES, 2));
        assert_eq!(section_names.crc32, crc32fast::hash(payload));
        let (task, payload) = Name::split(payload).unwrap();
        assert_eq!((task.kind, task.number, task.second, task.text), (2, 7, 6, &b"web"[..]));
        let (call, payload) = Name::split(payload).unwrap();
        assert_eq!((call.kind, call.number, call.text), (8, 39, &b"getpid"[..]));
        assert!(payload.is_empty());

        let (section_blocks, blocks, rest) = section(rest);
        assert_eq!((section_blocks.tag, section_blocks.crc32, section_blocks.items), (BLOCKS, 0, 2));
        assert_eq!((blocks.len(), told), (2 * BYTES, 2 * BYTES));
        assert!(rest.is_empty());
        for (written, content) in [(&blocks[..BYTES], BYTES), (&blocks[BYTES..], 256)] {
            assert!(is_sealed(written, CRC_AT));
            assert_eq!(written[UUID_AT..UUID_AT + 16], UUID);
            assert!(written[128..content].iter().all(|byte| *byte == 0xee));
            assert!(written[content..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_block_that_its_cpu_did_not_end_ends_where_another_saw_it() {
        let pool = block(0, 0, 20, 256);
        let put = |at: usize, value: u32| pool[at / 4].store(value, Ordering::Relaxed);
        put(offset_of!(Block, content_bits), 0);
        assert_eq!(Selection::of(&pool, Recycling::Never, u64::MAX).blocks, []);
        for (n, word) in [77, 1, 192].into_iter().enumerate() {
            put(offset_of!(Block, for_now) + 4 * n, word);
        }
        let selection = Selection::of(&pool, Recycling::Never, u64::MAX);
        let copied = || {
            let mut copy = vec![0; BYTES];
            assert!(copy_block(&pool, &selection.blocks[0], &header(&info(), &selection, UUID, UUID), &mut copy));
            assert!(copy[128..192].iter().all(|byte| *byte == 0xee) && copy[192..].iter().all(|byte| *byte == 0));
            assert_eq!(copy[offset_of!(Block, for_now)..][..12], [0; 12]);
            let word = |at: usize| u64::from_le_bytes(copy[at..][..8].try_into().unwrap());
            [offset_of!(Block, end), offset_of!(Block, content_bits)].map(word)
        };
        assert_eq!(copied(), [1 << 32 | 77, 192 * 8]);
        // Now the CPU comes back and ends it: this trace still has the content that was seen.
        put(offset_of!(Block, end), 99);
        put(offset_of!(Block, content_bits), 256 * 8);
        assert_eq!(copied(), [1 << 32 | 77, 192 * 8]);
    }

    #[test]
    fn counter_bytes_of_the_content_are_written_and_no_others() {
        let pool = block(0, 0, 20, 256);
        let selection = Selection::of(&pool, Recycling::Never, u64::MAX);
        for flags in [0, IPC, LLC, IPC | LLC] {
            let header = header(&Info { flags, ..info() }, &selection, UUID, UUID);
            let mut copy = vec![1; BYTES];
            copy_block(&pool, &selection.blocks[0], &header, &mut copy);
            let (words, behind) = copy[COUNTERS_AT..].split_at((256 - 128) / 4);
            assert!(words.iter().all(|byte| *byte == if flags == 0 { 0 } else { 0xee }), "{flags}");
            assert!(copy[256..COUNTERS_AT].iter().chain(behind).all(|byte| *byte == 0), "{flags}");
            assert_eq!(
                (header.flags & FLAG_IPC != 0, header.flags & FLAG_LLC != 0),
                (flags & IPC != 0, flags & LLC != 0)
            );
        }
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let pool = block(0, 0, 20, BYTES);
        let selection = Selection::of(&pool, Recycling::Never, u64::MAX);
        let header = header(&info(), &selection, UUID, UUID);
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let result = write_trace(&header, &pool, &selection, &Names::default(), &[], &mut full, &mut |_| Ok(()));
        let error = result.unwrap_err().downcast::<std::io::Error>().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }
}
