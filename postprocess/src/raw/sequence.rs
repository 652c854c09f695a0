// SPDX-License-Identifier: BSD-3-Clause
//! Sequence: one section of a file after the other, each by its own size, and the end of a stream.

use kutrace_format::abi::block;
use kutrace_format::file::{self, Section};

/// Size of a stream up to its end; `None` if it has no end, or none yet.
pub fn end(bytes: &[u8]) -> Option<usize> {
    let mut at = file::HEADER_BYTES;
    while let Some((section, after)) = section(bytes, at) {
        match after {
            Some(after) if section.tag == file::STOP => return Some(after),
            Some(after) if is_tag(section.tag) => at = after,
            _ => break,
        }
    }
    None
}

/// The section at a place, and the place of the next one if the section is whole.
pub fn section(bytes: &[u8], at: usize) -> Option<(Section, Option<usize>)> {
    let section = Section::from_bytes(bytes.get(at..)?.first_chunk()?);
    let after =
        usize::try_from(section.bytes).ok().and_then(|more| at.checked_add(file::SECTION_BYTES)?.checked_add(more));
    Some((section, after.filter(|after| *after <= bytes.len())))
}

/// True if a block seems to begin here.
pub fn is_block(bytes: &[u8]) -> bool {
    let size = (block::BYTES as u64 * 8).to_le_bytes();
    bytes.starts_with(&block::MAGIC.to_le_bytes()) && bytes.get(48..56).is_some_and(|b| b == size)
}

/// True if this may be the tag of a section.
pub fn is_tag(tag: [u8; 4]) -> bool {
    tag.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}
