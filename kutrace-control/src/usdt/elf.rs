// SPDX-License-Identifier: BSD-3-Clause
//! The notes of probes in an ELF file: section `.note.stapsdt`.
//!
//! ```text
//! note:  name bytes u32 | description bytes u32 | type u32 = 3 | "stapsdt\0" | description   each padded to 4
//! description:  address u64 | base u64 | semaphore u64 | provider \0 name \0 arguments \0
//! ```
//!
//! Addresses are those of the linked file; a later move of the addresses also moved the section `.stapsdt.base`, whose
//! address at link time is `base`. The kernel needs offsets in the file.
//!
//! Invariant: no content makes this panic, or use more memory than the file has bytes.

use anyhow::{Context, Result};

/// A probe at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Provider of the probe.
    pub provider: String,
    /// Name of the probe within the provider.
    pub name: String,
    /// Locations of the arguments, in assembler syntax.
    pub arguments: String,
    /// Place of the probe.
    pub place: Place,
}

/// Offsets in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of the instruction.
    pub offset: u64,
    /// Offset of the semaphore, if the probe has one.
    pub semaphore: Option<u64>,
}

/// A section's header.
struct Section {
    name: u32,
    address: u64,
    offset: u64,
    bytes: u64,
}

/// A loaded segment: offset in the file, address, and size.
struct Segment {
    offset: u64,
    address: u64,
    bytes: u64,
}

/// Type of a segment that is loaded.
const LOAD: u32 = 1;
/// Type of a note of a probe.
const PROBE: u32 = 3;

/// The probes of a file, in the order of their notes.
///
/// # Errors
/// If the file is not an ELF file for x86-64, or is inconsistent.
pub fn notes(file: &[u8]) -> Result<Vec<Note>> {
    let is_elf = file.starts_with(b"\x7fELF\x02\x01") && half(file, 18) == Some(62);
    is_elf.then_some(()).context("not an ELF file for x86-64")?;
    let damaged = "the ELF file is damaged";
    let (segments, sections) = (segments(file).context(damaged)?, sections(file).context(damaged)?);
    let names = half(file, 62).and_then(|n| sections.get(usize::from(n))).and_then(|section| section.content(file));
    let find = |name: &str| {
        let named = |section: &&Section| {
            let text = names.and_then(|names| names.get(section.name as usize..));
            text.and_then(|text| text.split(|&c| c == 0).next()) == Some(name.as_bytes())
        };
        sections.iter().find(named)
    };
    let Some(notes) = find(".note.stapsdt") else { return Ok(Vec::new()) };
    let base = find(".stapsdt.base").map(|section| section.address);
    let mut rest = notes.content(file).context(damaged)?;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (note, after) = note(rest).context("a note of a probe is damaged")?;
        rest = after;
        all.extend(
            note.map(|description| probe(description, base, &segments).context("a probe is damaged")).transpose()?,
        );
    }
    Ok(all)
}

/// The description of the first note, if it describes a probe, and the rest after the note.
fn note(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (name_bytes, description_bytes) = (word(bytes, 0)? as usize, word(bytes, 4)? as usize);
    let name = bytes.get(12..)?.get(..name_bytes)?;
    let rest = bytes.get(12 + name_bytes.next_multiple_of(4)..)?;
    let description = rest.get(..description_bytes)?;
    let is_probe = name == b"stapsdt\0" && word(bytes, 8)? == PROBE;
    let after = rest.get(description_bytes.next_multiple_of(4)..).unwrap_or_default();
    Some((is_probe.then_some(description), after))
}

fn probe(description: &[u8], base: Option<u64>, segments: &[Segment]) -> Option<Note> {
    let (address, linked, semaphore) = (long(description, 0)?, long(description, 8)?, long(description, 16)?);
    let moved = base.unwrap_or(linked).wrapping_sub(linked);
    let offset = |address: u64| {
        let at = address.wrapping_add(moved);
        let segment = segments.iter().find(|one| at.wrapping_sub(one.address) < one.bytes)?;
        Some(at.wrapping_sub(segment.address).wrapping_add(segment.offset))
    };
    let semaphore = if semaphore == 0 { None } else { Some(offset(semaphore)?) };
    let place = Place { offset: offset(address)?, semaphore };
    let mut texts = description.get(24..)?.split(|&c| c == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    Some(Note { provider: texts.next()?, name: texts.next()?, arguments: texts.next()?, place })
}

fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let heads = heads(file, long(file, 32)?, half(file, 54)?, half(file, 56)?)?;
    let loaded = heads.filter(|head| word(head, 0) == Some(LOAD));
    loaded
        .map(|head| Some(Segment { offset: long(head, 8)?, address: long(head, 16)?, bytes: long(head, 32)? }))
        .collect()
}

fn sections(file: &[u8]) -> Option<Vec<Section>> {
    let heads = heads(file, long(file, 40)?, half(file, 58)?, half(file, 60)?)?;
    let read = |head: &[u8]| {
        Some(Section {
            name: word(head, 0)?,
            address: long(head, 16)?,
            offset: long(head, 24)?,
            bytes: long(head, 32)?,
        })
    };
    heads.map(read).collect()
}

/// A table of headers.
fn heads(file: &[u8], at: u64, bytes: u16, count: u16) -> Option<impl Iterator<Item = &[u8]>> {
    let (bytes, at) = (usize::from(bytes).max(1), usize::try_from(at).ok()?);
    let table = file.get(at..)?.get(..bytes * usize::from(count))?;
    Some(table.chunks_exact(bytes))
}

impl Section {
    fn content<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        file.get(usize::try_from(self.offset).ok()?..)?.get(..usize::try_from(self.bytes).ok()?)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a segment from 0x1000 of the file to address 0x401000, and one probe in it; linked 0x40 lower.
    fn file() -> Vec<u8> {
        let names = b"\0.note.stapsdt\0.stapsdt.base\0.names\0";
        let mut description = Vec::new();
        for number in [0x401040_u64 - 0x40, 0x500000, 0x401080 - 0x40] {
            description.extend(number.to_le_bytes());
        }
        description.extend(b"prov\0name\x004@%eax\0");
        let mut note: Vec<u8> = [8, description.len() as u32, PROBE].iter().flat_map(|n| n.to_le_bytes()).collect();
        note.extend(b"stapsdt\0");
        note.extend(&description);
        note.resize(note.len().next_multiple_of(4), 0);
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(64, 0);
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        let (segments, notes) = (64_u64, 64 + 56);
        let names_at = notes + note.len() as u64;
        let sections = names_at + names.len() as u64;
        put(18, &62_u16.to_le_bytes());
        put(32, &segments.to_le_bytes());
        put(40, &sections.to_le_bytes());
        for (at, number) in [(54, 56_u16), (56, 1), (58, 64), (60, 3), (62, 2)] {
            put(at, &number.to_le_bytes());
        }
        let mut segment = [0; 56];
        segment[0] = LOAD as u8;
        for (at, number) in [(8, 0x1000_u64), (16, 0x401000), (32, 0xf0)] {
            segment[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        file.extend(segment);
        file.extend(&note);
        file.extend(names);
        for (name, address, offset, bytes) in
            [(1, 0, notes, note.len() as u64), (15, 0x500040, 0, 0), (29, 0, names_at, names.len() as u64)]
        {
            let mut section = [0; 64];
            section[0] = name;
            for (at, number) in [(16, address), (24, offset), (32, bytes)] {
                section[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            file.extend(section);
        }
        file
    }

    #[test]
    fn a_probe_is_found_where_the_file_has_it() {
        let found = notes(&file()).unwrap();
        let place = Place { offset: 0x1040, semaphore: Some(0x1080) };
        let (provider, name, arguments) = ("prov".into(), "name".into(), "4@%eax".into());
        assert_eq!(found, [Note { provider, name, arguments, place }]);
    }

    #[test]
    fn no_file_stops_the_reader() {
        let whole = file();
        for len in 0..whole.len() {
            assert!(notes(&whole[..len]).is_err(), "{len}");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = notes(&damaged);
            }
        }
    }
}
