// SPDX-License-Identifier: BSD-3-Clause
//! The file around the blocks: header, sections, names. Blocks are found even if a section header is damaged.

use kutrace_format::abi::block;
use kutrace_format::abi::command::Moment;
use kutrace_format::file::{self, Header, Name, Section};
use kutrace_format::reading::Reading;

use super::damage::{Damage, NotATrace};
use super::sequence::{self, is_block, is_tag};
use super::{original, program, refused};

/// A file taken apart; its blocks are not parsed yet.
#[derive(Debug)]
pub struct Layout<'a> {
    /// The header, as found.
    pub header: Header,
    /// True if the header's checksum is right.
    pub header_sound: bool,
    /// All name records of undamaged sections.
    pub names: Vec<Name<'a>>,
    /// All readings of the kernel's counters, from undamaged sections.
    pub readings: Vec<Reading<'a>>,
    /// Recordings of programs in memory of their own.
    pub programs: Vec<program::Program<'a>>,
    /// Programs that were refused something.
    pub refused: Vec<refused::Refused<'a>>,
    /// Offset and bytes of each block; the last may be cut short.
    pub blocks: Vec<(usize, &'a [u8])>,
    /// True if this is a stream without its end.
    pub cut: bool,
    /// Damage found.
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
        programs: Vec::new(),
        refused: Vec::new(),
        blocks: Vec::new(),
        cut: false,
        damage: Vec::new(),
    };
    if !header_sound {
        layout.damage.push(Damage::at(
            file::CRC_AT,
            "the checksum of the file header does not match; only its plausible fields are used",
        ));
    }
    if header_sound && header.block_bytes as usize != block::BYTES {
        layout
            .damage
            .push(Damage::at(36, format!("blocks of {} bytes, {} expected", header.block_bytes, block::BYTES)));
    }
    let is_stream = header_sound && header.flags & file::FLAG_STREAM != 0;
    match is_stream {
        true => layout.sequence(bytes),
        false => layout.sections(bytes),
    }
    let (found, said) = (layout.blocks.len() as u64, layout.header.blocks);
    if let Some(behind) =
        size(bytes).filter(|_| !is_stream).and_then(|size| bytes.get(size..)).filter(|behind| !behind.is_empty())
    {
        let what = if behind.starts_with(&file::MAGIC) { "another trace" } else { "something" };
        let at = bytes.len() - behind.len();
        layout.damage.push(Damage::at(at, format!("{what} follows the last block; skipped: a file holds one trace")));
    }
    if header_sound && found != said {
        layout.damage.push(Damage::at(40, format!("the header counts {said} blocks, the file has {found}")));
    }
    Ok(layout)
}

/// Bytes that identify a file of format 5.
pub const MAGIC_BYTES: usize = file::MAGIC.len();

/// Size of a file that begins with these bytes, if its header is sound and the section of its blocks agrees with it.
pub fn size(bytes: &[u8]) -> Option<usize> {
    let head = head(bytes).ok()?;
    let header =
        Header::from_bytes(head).filter(|_| checksum_without(head, file::CRC_AT) == stored(head, file::CRC_AT))?;
    if header.flags & file::FLAG_STREAM != 0 {
        return sequence::end(bytes);
    }
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
        return Err(match bytes {
            _ if original::is_original(bytes) => NotATrace::Original,
            _ if bytes.starts_with(&file::MACHINES_MAGIC) => NotATrace::Machines,
            _ => NotATrace::Unknown,
        });
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
            let known =
                matches!(section.tag, file::NAMES | file::COUNTERS | file::PROGRAM | file::REFUSED | file::BLOCKS);
            if section.tag == file::BLOCKS || (!known && (section.bytes > room as u64 || !is_tag(section.tag))) {
                return self.blocks_from(bytes, at, section);
            }
            if section.bytes > room as u64 {
                let what = match section.tag {
                    file::NAMES => "names section",
                    file::COUNTERS => "section of the kernel's counters",
                    file::REFUSED => "section of refused programs",
                    _ => "program section",
                };
                self.damage.push(Damage::at(at + 8, format!("the {what} reaches beyond the file's end")));
                return self.search(bytes);
            }
            match section.tag {
                file::NAMES => self.names(at, section, &bytes[start..start + len]),
                file::COUNTERS => self.readings(at, section, &bytes[start..start + len]),
                file::PROGRAM => self.program(at, section, &bytes[start..start + len]),
                file::REFUSED => self.refused(at, section, &bytes[start..start + len]),
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

    /// Takes the names of a section. If its checksum is wrong, none of it is believed.
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

    /// Takes the readings of a section, if its checksum is right.
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

    /// Takes a program's recording, if its checksum is right and it makes sense.
    fn program(&mut self, at: usize, section: Section, payload: &'a [u8]) {
        if crc32fast::hash(payload) != section.crc32 {
            return self.damage.push(Damage::at(at, "the checksum of a program's section does not match; skipped"));
        }
        match program::parse(at, payload) {
            Ok(program) => self.programs.push(program),
            Err(fact) => self.damage.push(Damage::at(at, format!("{fact}; skipped"))),
        }
    }

    /// Takes the list of programs that were refused something; a later list in a stream replaces an earlier one.
    fn refused(&mut self, at: usize, section: Section, payload: &'a [u8]) {
        if crc32fast::hash(payload) != section.crc32 {
            return self.damage.push(Damage::at(at, "the checksum of the refused programs does not match; skipped"));
        }
        match refused::parse(payload) {
            Ok(refused) => self.refused = refused,
            Err(fact) => self.damage.push(Damage::at(at, format!("{fact}; skipped"))),
        }
    }

    /// Takes the bytes after the section header at `at` as blocks, up to the largest number that the header, the
    /// section or its size gives: if these contradict each other, one of them is damaged, and blocks prove themselves.
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

    /// Looks for the first block header in the file, and takes everything after it as blocks.
    fn search(&mut self, bytes: &'a [u8]) {
        let found = (file::HEADER_BYTES..bytes.len()).find(|&at| is_block(&bytes[at..]));
        if let Some(at) = found {
            self.take(bytes, at, u64::MAX);
        }
    }
}

impl<'a> Layout<'a> {
    /// Takes the sections of a stream, which are in the order in which they were written, up to its end or to where its
    /// writer was cut off. After a damaged section, reading continues at the next block.
    fn sequence(&mut self, bytes: &'a [u8]) {
        let (mut at, mut ended, mut last) = (file::HEADER_BYTES, false, None);
        while let Some((section, after)) = sequence::section(bytes, at) {
            let start = at + file::SECTION_BYTES;
            let payload = &bytes[start..after.unwrap_or(bytes.len())];
            match (section.tag, after) {
                (file::BLOCKS, _) => self.take_whole(start, payload),
                (tag, None) if is_tag(tag) => {}
                (file::NAMES, _) => {
                    let before = std::mem::take(&mut self.names);
                    self.names(at, section, payload);
                    if self.names.is_empty() {
                        self.names = before;
                    }
                }
                (file::COUNTERS, _) => {
                    self.readings.clear();
                    self.readings(at, section, payload);
                }
                (file::PROGRAM, _) => self.program(at, section, payload),
                (file::REFUSED, _) => self.refused(at, section, payload),
                (file::MOMENT, _) => last = moment(section, payload).or(last),
                (file::STOP, _) => {
                    ended = self.stop(at, payload);
                    at = after.unwrap_or(bytes.len());
                    break;
                }
                (tag, _) if is_tag(tag) => self.unknown(at, tag),
                _ => {
                    self.damage.push(Damage::at(at, "the section header is damaged; looking for blocks after it"));
                    at = self.resume(bytes, start);
                    continue;
                }
            }
            let Some(after) = after else { break };
            at = after;
        }
        if !ended {
            self.cut = true;
            // Without a later moment, the processor's clock rate is used.
            let after_start = |start: Moment| Moment { tsc: start.tsc.saturating_add(1), ..start };
            self.header.stop = last.unwrap_or(after_start(self.header.start));
            self.header.blocks = self.blocks.len() as u64;
        }
        if ended && at < bytes.len() {
            let what = if bytes[at..].starts_with(&file::MAGIC) { "another trace" } else { "something" };
            self.damage.push(Damage::at(at, format!("{what} follows the end; skipped: a file holds one trace")));
        }
    }

    /// Takes the blocks of a section, except a last one that its writer did not complete.
    fn take_whole(&mut self, start: usize, payload: &'a [u8]) {
        let whole = payload.chunks_exact(block::BYTES).enumerate();
        self.blocks.extend(whole.map(|(n, one)| (start + n * block::BYTES, one)));
    }

    /// Takes the header at the end, if it is sound and of the same trace.
    fn stop(&mut self, at: usize, payload: &[u8]) -> bool {
        let sound =
            |head: &[u8; file::HEADER_BYTES]| checksum_without(head, file::CRC_AT) == stored(head, file::CRC_AT);
        let head = payload.first_chunk().filter(|head| sound(head)).and_then(Header::from_bytes);
        match head.filter(|head| head.uuid == self.header.uuid) {
            Some(head) => self.header = head,
            None => self.damage.push(Damage::at(at, "the end of the stream is damaged")),
        }
        head.is_some_and(|head| head.uuid == self.header.uuid)
    }

    /// Takes the blocks from the start of the next one, and returns their end.
    fn resume(&mut self, bytes: &'a [u8], from: usize) -> usize {
        let Some(mut at) = (from..bytes.len()).find(|&at| is_block(&bytes[at..])) else { return bytes.len() };
        while let Some(one) = bytes.get(at..).filter(|rest| is_block(rest)).and_then(|rest| rest.get(..block::BYTES)) {
            self.blocks.push((at, one));
            at += block::BYTES;
        }
        // A block that is cut short is the last of the file.
        if is_block(&bytes[at..]) {
            bytes.len()
        } else {
            at
        }
    }
}

fn moment(section: Section, payload: &[u8]) -> Option<Moment> {
    let bytes = payload.first_chunk()?;
    (crc32fast::hash(payload) == section.crc32).then(|| file::moment_from_bytes(bytes))
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
