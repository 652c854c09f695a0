// SPDX-License-Identifier: BSD-3-Clause
//! The file around the blocks: header, sections, names. Finds the blocks even where a section header is damaged.

use kutrace_format::abi::block;
use kutrace_format::file::{self, Header, Name, Section};
use kutrace_format::reading::Reading;

use super::damage::{Damage, NotATrace};
use super::original;

/// A file taken apart; blocks are not looked into yet.
#[derive(Debug)]
pub struct Layout<'a> {
    /// The header, as found.
    pub header: Header,
    /// Whether the header's checksum is right.
    pub header_sound: bool,
    /// All name records of undamaged sections.
    pub names: Vec<Name<'a>>,
    /// All readings of the kernel's counters, of undamaged sections.
    pub readings: Vec<Reading<'a>>,
    /// Offset and bytes of each block; the last may be cut short.
    pub blocks: Vec<(usize, &'a [u8])>,
    /// What was wrong.
    pub damage: Vec<Damage>,
}

/// Takes `bytes` apart.
///
/// # Errors
/// If the file does not begin with a header of format 5.
pub fn split(bytes: &[u8]) -> Result<Layout<'_>, NotATrace> {
    let head = head(bytes)?;
    let header = Header::from_bytes(head).ok_or(NotATrace::HeaderSize)?;
    let header_sound = checksum_without(head, file::CRC_AT) == stored(head, file::CRC_AT);
    let mut layout = Layout {
        header,
        header_sound,
        names: Vec::new(),
        readings: Vec::new(),
        blocks: Vec::new(),
        damage: Vec::new(),
    };
    if !header_sound {
        layout.damage.push(Damage::at(
            file::CRC_AT,
            "the checksum of the file header does not match; it is used where it makes sense",
        ));
    }
    if header_sound && header.block_bytes as usize != block::BYTES {
        layout
            .damage
            .push(Damage::at(36, format!("blocks of {} bytes, {} expected", header.block_bytes, block::BYTES)));
    }
    layout.sections(bytes);
    let (found, said) = (layout.blocks.len() as u64, header.blocks);
    if let Some(behind) = size(bytes).and_then(|size| bytes.get(size..)).filter(|behind| !behind.is_empty()) {
        let what = if behind.starts_with(&file::MAGIC) { "another trace" } else { "something" };
        let at = bytes.len() - behind.len();
        layout.damage.push(Damage::at(at, format!("{what} follows the last block; skipped: a file is one trace")));
    }
    if header_sound && found != said {
        layout.damage.push(Damage::at(40, format!("the header counts {said} blocks, the file has {found}")));
    }
    Ok(layout)
}

/// Bytes that tell a file of format 5.
pub const MAGIC_BYTES: usize = file::MAGIC.len();

/// Bytes of a file that begins so, if its header is sound and the section of its blocks agrees with it.
pub fn size(bytes: &[u8]) -> Option<usize> {
    let head = head(bytes).ok()?;
    let header =
        Header::from_bytes(head).filter(|_| checksum_without(head, file::CRC_AT) == stored(head, file::CRC_AT))?;
    let mut at = file::HEADER_BYTES;
    loop {
        let section = Section::from_bytes(bytes.get(at..)?.first_chunk()?);
        let end = at.checked_add(file::SECTION_BYTES)?.checked_add(usize::try_from(section.bytes).ok()?)?;
        if section.tag == file::BLOCKS {
            return Some(end).filter(|_| header.blocks.checked_mul(block::BYTES as u64) == Some(section.bytes));
        }
        at = Some(end).filter(|_| is_tag(section.tag))?;
    }
}

fn head(bytes: &[u8]) -> Result<&[u8; file::HEADER_BYTES], NotATrace> {
    if !bytes.starts_with(&file::MAGIC) {
        return Err(if original::is_original(bytes) { NotATrace::Original } else { NotATrace::Unknown });
    }
    bytes.first_chunk().ok_or(NotATrace::Cut)
}

impl<'a> Layout<'a> {
    fn sections(&mut self, bytes: &'a [u8]) {
        let mut at = file::HEADER_BYTES;
        while let Some(head) = bytes.get(at..).and_then(|b| b.first_chunk()) {
            let section = Section::from_bytes(head);
            let start = at + file::SECTION_BYTES;
            let room = bytes.len() - start;
            let len = usize::try_from(section.bytes).unwrap_or(usize::MAX).min(room);
            let known = matches!(section.tag, file::NAMES | file::COUNTERS | file::BLOCKS);
            if section.tag == file::BLOCKS || (!known && (section.bytes > room as u64 || !is_tag(section.tag))) {
                return self.blocks_from(bytes, at, section);
            }
            if section.bytes > room as u64 {
                let what =
                    if section.tag == file::NAMES { "names section" } else { "section of the kernel's counters" };
                self.damage.push(Damage::at(at + 8, format!("the {what} reaches beyond the file's end")));
                return self.search(bytes);
            }
            match section.tag {
                file::NAMES => self.names(at, section, &bytes[start..start + len]),
                file::COUNTERS => self.readings(at, section, &bytes[start..start + len]),
                tag => self.unknown(at, tag),
            }
            at = start + len;
        }
        if at < bytes.len() || self.blocks.is_empty() {
            self.damage.push(Damage::at(at.min(bytes.len()), "the file ends here, before its blocks"));
        }
        if self.blocks.is_empty() {
            self.search(bytes);
        }
    }

    fn unknown(&mut self, at: usize, tag: [u8; 4]) {
        let tag = tag.escape_ascii();
        self.damage.push(Damage::at(at, format!("section {tag} is not known to this reader; skipped")));
    }

    /// Takes the names of a section whose checksum is right. Of one whose checksum is wrong nothing is believed.
    fn names(&mut self, at: usize, section: Section, payload: &'a [u8]) {
        if crc32fast::hash(payload) != section.crc32 {
            let fact = "the checksum of the names does not match; names known from the blocks only";
            return self.damage.push(Damage::at(at, fact));
        }
        let (mut rest, mut found) = (payload, 0);
        while let Some((name, after)) = Name::split(rest) {
            self.names.push(name);
            rest = after;
            found += 1;
        }
        if !rest.is_empty() {
            let end = at + file::SECTION_BYTES + payload.len() - rest.len();
            self.damage.push(Damage::at(end, "a name record is cut short"));
        }
        if found != section.items {
            let fact = format!("the section counts {} names, it has {found}", section.items);
            self.damage.push(Damage::at(at + 16, fact));
        }
    }

    /// Takes the readings of a section whose checksum is right.
    fn readings(&mut self, at: usize, section: Section, payload: &'a [u8]) {
        if crc32fast::hash(payload) != section.crc32 {
            let fact = "the checksum of the kernel's counters does not match; nothing is compared with them";
            return self.damage.push(Damage::at(at, fact));
        }
        let (mut rest, before) = (payload, self.readings.len());
        while let Some((reading, after)) = Reading::split(rest) {
            self.readings.push(reading);
            rest = after;
        }
        let found = (self.readings.len() - before) as u64;
        if !rest.is_empty() || found != section.items {
            let fact =
                format!("the section counts {} readings of the kernel's counters, it has {found}", section.items);
            self.damage.push(Damage::at(at + 16, fact));
        }
    }

    /// Takes what follows the section header at `at` as blocks, as many as the header, the section or its size say at
    /// most: if they contradict each other one of them is damaged, and blocks prove themselves.
    fn blocks_from(&mut self, bytes: &'a [u8], at: usize, section: Section) {
        let start = at + file::SECTION_BYTES;
        if section.tag != file::BLOCKS {
            self.damage.push(Damage::at(at, "the section header is damaged; looking for blocks after it"));
            return self.search(bytes);
        }
        let by_size = section.bytes / block::BYTES as u64;
        let mut count = by_size;
        if !section.bytes.is_multiple_of(block::BYTES as u64)
            || by_size != section.items
            || by_size != self.header.blocks
        {
            let (items, header) = (section.items, self.header.blocks);
            let fact =
                format!("the section has {} bytes for {items} blocks, the file header counts {header}", section.bytes);
            self.damage.push(Damage::at(at + 8, fact));
            count = u64::MAX;
        }
        self.take(bytes, start, count);
        let end = start as u64 + self.blocks.len() as u64 * block::BYTES as u64;
        if count != u64::MAX && (self.blocks.len() as u64) < count {
            let missing = count - self.blocks.len() as u64;
            self.damage
                .push(Damage::at(bytes.len(), format!("the file ends here, {missing} of {count} blocks are missing")));
        }
        if count == u64::MAX && end > bytes.len() as u64 {
            self.damage.push(Damage::at(bytes.len(), "the file ends inside a block"));
        }
    }

    /// Takes up to `count` blocks from `start`; the last only if its header is whole.
    fn take(&mut self, bytes: &'a [u8], start: usize, count: u64) {
        let rest = bytes.get(start..).unwrap_or(&[]);
        for (n, one) in rest.chunks(block::BYTES).enumerate() {
            if n as u64 >= count || one.len() < block::HEADER_WORDS * 4 {
                break;
            }
            self.blocks.push((start + n * block::BYTES, one));
        }
    }

    /// Looks for the first block header in the file, and takes all that follows as blocks.
    fn search(&mut self, bytes: &'a [u8]) {
        let magic = block::MAGIC.to_le_bytes();
        let size = (block::BYTES as u64 * 8).to_le_bytes();
        let found = (file::HEADER_BYTES..bytes.len())
            .find(|&at| bytes[at..].starts_with(&magic) && bytes.get(at + 48..at + 56).is_some_and(|b| b == size));
        if let Some(at) = found {
            self.take(bytes, at, u64::MAX);
        }
    }
}

fn is_tag(tag: [u8; 4]) -> bool {
    tag.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// The CRC-32 of `bytes` with the four bytes at `at` zero.
pub fn checksum_without(bytes: &[u8], at: usize) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..at]);
    hasher.update(&[0; 4]);
    hasher.update(&bytes[at + 4..]);
    hasher.finalize()
}

/// The little-endian number at `at`.
pub fn stored(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}
