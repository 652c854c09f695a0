// SPDX-License-Identifier: BSD-3-Clause
//! Records in programs' own memory: copied unchanged, with the recorder's description of them.
//!
//! Programs may still write, and in wrap mode the recorder may take a grant away: a grant that is taken away is
//! skipped.

use anyhow::Result;
use kutrace_format::abi::programs::{Granted, Program, KIND_DONE, PAGE_BYTES, PAYLOAD_MAX};
use kutrace_format::file::{Section, PROGRAM, REFUSED};
use kutrace_format::program::{whole, Entries, GRANTS_ALONE};
use postprocess::raw::refused;

use crate::device::Recorder;

/// A copy of a grant, or of the rest of one: bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The recorder's description of the grant.
    pub grant: Granted,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Part {
    /// Removes the zeros at the end, which are neither words nor names, except those that an entry's payload may have.
    pub fn trim(&mut self) {
        let mut used = self.bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if used > 0 {
            used = used.next_multiple_of(8) + 8 * PAYLOAD_MAX;
        }
        self.bytes.truncate(used);
    }

    /// Removes the entries before the TSC `oldest`. The rest has its own time as the start.
    pub fn leave_out(&mut self, oldest: u64) {
        let (bytes, tsc) = Entries::before(&self.bytes, self.grant.tsc, oldest);
        self.bytes.drain(..bytes);
        self.grant = Granted { offset: self.grant.offset + bytes as u32, tsc, ..self.grant };
    }
}

/// Copies a grant that is no longer written, or a grant of names: words copied before it refer only to complete names.
///
/// # Errors
/// The recorder's error; the same for the functions below. `None` if the grant was taken away in the meantime.
pub fn copy(recorder: &impl Recorder, serial: u32, grant: Granted) -> Result<Option<Part>> {
    Ok(read(recorder, serial, &grant, true)?.map(|bytes| Part { grant, bytes }))
}

/// Copies a grant that is being filled: all of it, or up to a page with an empty end, as far as words are complete.
pub fn copy_filling(recorder: &impl Recorder, serial: u32, grant: Granted, all: bool) -> Result<Option<Part>> {
    let Some(before) = read(recorder, serial, &grant, all)? else { return Ok(None) };
    let begun = Granted { bytes: before.len() as u32, ..grant };
    Ok(read(recorder, serial, &begun, true)?.map(|mut bytes| {
        bytes.truncate(whole(&before, &bytes));
        Part { grant, bytes }
    }))
}

fn read(recorder: &impl Recorder, serial: u32, grant: &Granted, all: bool) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; grant.bytes as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        let step = if all { bytes.len() } else { bytes.len().min(filled + PAGE_BYTES as usize) };
        let rest = Granted { offset: grant.offset + filled as u32, ..*grant };
        if !recorder.copy(serial, &rest, &mut bytes[filled..step])? {
            return Ok(None);
        }
        filled = step;
        if !all && bytes[..filled].ends_with(&[0; 8]) {
            break;
        }
    }
    bytes.truncate(filled);
    Ok(Some(bytes))
}

/// Losses of programs, and programs that got no memory, from sections made by [`crate::areas::sections`].
pub fn losses(mut sections: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((head, rest)) = sections.split_first_chunk() {
        let head = Section::from_bytes(head);
        let Some((payload, rest)) = rest.split_at_checked(head.bytes as usize) else { break };
        sections = rest;
        if head.tag == PROGRAM {
            found.extend(postprocess::raw::program::parse(0, payload).iter().flat_map(|program| program.losses()));
        }
        if head.tag == REFUSED {
            found.extend(sentences(payload));
        }
    }
    found
}

/// One sentence for each refused program, with the number of refusals, from a section's payload.
pub fn sentences(refused: &[u8]) -> Vec<String> {
    refused::parse(refused).unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// The section of a program with these parts.
pub fn section(told: &Program, parts: &[Part]) -> Vec<u8> {
    let bytes: usize = parts.iter().map(|part| part.bytes.len()).sum();
    let mut payload = Vec::with_capacity(64 + 32 * parts.len() + bytes);
    for number in [told.serial, told.tgid, parts.len() as u32, GRANTS_ALONE] {
        payload.extend_from_slice(&number.to_le_bytes());
    }
    payload.extend_from_slice(&told.refused.to_le_bytes());
    payload.extend_from_slice(&(bytes as u64).to_le_bytes());
    payload.extend_from_slice(&told.comm);
    for Part { grant, bytes } in parts {
        for number in [grant.offset, bytes.len() as u32, grant.tid, grant.kind & !KIND_DONE] {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        payload.extend_from_slice(&grant.sequence.to_le_bytes());
        payload.extend_from_slice(&grant.tsc.to_le_bytes());
    }
    parts.iter().for_each(|part| payload.extend_from_slice(&part.bytes));
    with_head(PROGRAM, &payload, parts.len())
}

/// A section with this payload.
pub fn with_head(tag: [u8; 4], payload: &[u8], items: usize) -> Vec<u8> {
    let (crc32, bytes) = (crc32fast::hash(payload), payload.len() as u64);
    [&Section { tag, crc32, bytes, items: items as u64 }.to_bytes()[..], payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::abi::programs::{word, FULL_TIME, MARK, OPEN, VALUE};
    use kutrace_format::file::SECTION_BYTES;
    use kutrace_format::program::{GRANT_BYTES, HEAD_BYTES};

    #[test]
    fn a_copy_ends_before_the_entry_that_came_while_it_was_made() {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let (value, mark) = (word(VALUE, 1, 8) | 5, word(MARK, 0, 9) | 6);
        // The first copy has nothing of the last entry, the second a part; the others are complete, and so is their
        // payload.
        let torn = mark & !0xffff;
        let copies = (words(&[value | OPEN, 0, 0, mark, 0]), words(&[value, 0, 0, mark, torn]));
        assert_eq!(whole(&copies.0, &copies.1), 32);
        assert_eq!(whole(&words(&[mark & !0xff, 0]), &words(&[mark, 0])), 16);
        assert_eq!(whole(&[], &words(&[mark])), 0);
        // An entry whose length is larger than the rest has no word after it.
        assert_eq!(whole(&words(&[value]), &words(&[value])), 8);
    }

    #[test]
    fn a_payload_of_zero_is_kept() {
        let grant = Granted::default();
        let words = [word(VALUE, 1, 8) | 5, 0, 0].map(u64::to_le_bytes).concat();
        let mut part = Part { grant, bytes: [&words[..], &[0; 4096]].concat() };
        part.trim();
        assert!(part.bytes.len() < 200);
        let said: Vec<_> = Entries::new(&part.bytes, 0).map(|entry| (entry.kind, entry.value)).collect();
        assert_eq!(said, [(VALUE, 0)]);
        let mut empty = Part { grant, bytes: vec![0; 4096] };
        empty.trim();
        assert!(empty.bytes.is_empty());
    }

    #[test]
    fn what_is_too_old_is_left_out_and_the_rest_stays_where_and_when_it_was() {
        let start = 5 << 32;
        let mark = |name: u32, at: u64| word(MARK, 0, name) | (start + at) & 0xffff_ffff;
        let full = word(FULL_TIME, 1, 0) | (start + 20) & 0xffff_ffff;
        let words = [full, start + 20, mark(1, 20), mark(2, 30), mark(3, 40), 0].map(u64::to_le_bytes).concat();
        let whole = Part { grant: Granted { offset: 4096, tsc: start, ..Granted::default() }, bytes: words };
        for (oldest, offset, left) in [(0, 16, 3), (20, 16, 3), (21, 24, 2), (40, 32, 1), (41, 48, 0)] {
            let mut part = whole.clone();
            part.leave_out(start + oldest);
            assert_eq!(part.grant.offset, 4096 + offset, "{oldest}");
            let said: Vec<_> =
                Entries::new(&part.bytes, part.grant.tsc).map(|entry| (entry.name, entry.tsc - start)).collect();
            assert_eq!(said, [(1, 20), (2, 30), (3, 40)][3 - left..], "{oldest}");
        }
    }

    #[test]
    fn a_section_has_the_layout_of_the_format() {
        let grant = Granted { offset: 64, bytes: 4096, tid: 7, kind: KIND_DONE | 1, sequence: 0, tsc: 9 };
        let told =
            Program { serial: 3, tgid: 6, refused: 2, comm: *b"web\0\0\0\0\0\0\0\0\0\0\0\0\0", ..Program::default() };
        let bytes = section(&told, &[Part { grant, bytes: vec![5; 16] }, Part { grant, bytes: vec![6; 8] }]);
        let head = Section::from_bytes(bytes[..SECTION_BYTES].try_into().unwrap());
        let payload = &bytes[SECTION_BYTES..];
        assert_eq!((head.tag, head.items, head.bytes), (PROGRAM, 2, payload.len() as u64));
        assert_eq!(head.crc32, crc32fast::hash(payload));
        assert_eq!(payload.len(), HEAD_BYTES + 2 * GRANT_BYTES + 24);
        let (numbers, grant) = ([payload[0], payload[4], payload[8], payload[12], payload[16]], &payload[HEAD_BYTES..]);
        assert_eq!((numbers, &payload[32..35]), ([3, 6, 2, 1, 2], &b"web"[..]));
        assert_eq!([grant[0], grant[4], grant[8], grant[12], grant[15], grant[24]], [64, 16, 7, 1, 0, 9]);
        assert!(payload.ends_with(&[5, 6, 6, 6, 6, 6, 6, 6, 6]));
    }
}
