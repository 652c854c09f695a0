// SPDX-License-Identifier: BSD-3-Clause
//! What programs recorded themselves, in an image: the module's lists are followed, of processes, of the parts of their
//! areas, and of what threads had of these; and the pages of a part are found by the numbers of their frames.
//!
//! Invariant: no address and no page is taken twice. So every list ends, whatever is in the image, and what comes of it is
//! not larger than that.

use std::collections::HashSet;
use std::io;
use std::mem::offset_of;

use kutrace_format::abi::landmark::{Programs as Places, PAGE};
use kutrace_format::abi::programs::{Granted, Program, AREA_BYTES, KIND_NAMES, KIND_WORDS, OTHERS};
use kutrace_format::program::Entries;
use postprocess::line::count;

use super::memory::Memory;
use crate::programs::{section, Part};

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// A section for each program, one after the other, in a file as they are.
    pub sections: Vec<u8>,
    /// Time of the newest entry, whole TSC.
    pub last: u64,
    /// Pages that programs were granted.
    pages: u64,
    /// How many of these are not in the image.
    missing: u64,
    /// Programs of which the module's lists are damaged, the list of all programs counted as one.
    damaged: u64,
}

/// Finds what programs recorded. Entries later than `until` are none of the trace.
///
/// # Errors
/// If the file cannot be read.
pub fn find(memory: &Memory<'_>, places: &Places, until: u64) -> io::Result<Found> {
    let (taken, frames, found) = (HashSet::new(), HashSet::new(), Found::default());
    let mut reader = Reader { memory, places, until, taken, frames, found };
    if places.processes != 0 {
        reader.processes()?;
    }
    Ok(reader.found)
}

impl Found {
    /// What should be there and is not, a sentence each.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        if self.missing > 0 {
            losses.push(format!(
                "of what programs recorded themselves, {} of {} not in the image; `makedumpfile -d 25` keeps them",
                self.missing,
                count(self.pages, "page is", "pages are")
            ));
        }
        if self.damaged > 0 {
            let lists = count(self.damaged, "list is", "lists are");
            losses.push(format!("{lists} damaged of what programs recorded themselves: some of that is missing"));
        }
        losses
    }
}

/// What is read, and what was read before.
struct Reader<'a> {
    memory: &'a Memory<'a>,
    places: &'a Places,
    until: u64,
    /// Addresses of links and pieces.
    taken: HashSet<u64>,
    frames: HashSet<u64>,
    found: Found,
}

impl Reader<'_> {
    fn processes(&mut self) -> io::Result<()> {
        let (links, is_whole) = self.links(self.places.processes)?;
        self.found.damaged += u64::from(!is_whole);
        let mut before = 0;
        for link in links {
            let process = link.wrapping_sub(self.places.process.list.into());
            match self.told(at(process, self.places.process.told))? {
                Some(told) if told.serial > before && told.serial != OTHERS => {
                    before = told.serial;
                    self.process(process, &told)?;
                }
                _ => self.found.damaged += 1,
            }
        }
        let others = self.told(self.places.others)?.filter(|others| others.serial == OTHERS && others.refused > 0);
        self.found.sections.extend(others.iter().flat_map(|others| section(others, &[])));
        Ok(())
    }

    fn process(&mut self, process: u64, told: &Program) -> io::Result<()> {
        let mut parts = Vec::new();
        let (links, mut is_whole) = self.links(at(process, self.places.process.parts))?;
        for link in links {
            is_whole &= self.part(link.wrapping_sub(self.places.part.list.into()), &mut parts)?;
        }
        let pieces = self.int(at(process, self.places.process.pieces))?;
        is_whole &= pieces.is_some_and(|pieces| parts.len() >= pieces as usize);
        self.found.damaged += u64::from(!is_whole);
        parts.iter_mut().for_each(Part::trim);
        parts.retain(|part| !part.bytes.is_empty());
        parts.sort_by_key(|part| part.grant.kind != KIND_NAMES);
        for Part { grant, bytes } in parts.iter().filter(|part| part.grant.kind == KIND_WORDS) {
            let times = Entries::new(bytes, grant.tsc).map(|entry| entry.tsc);
            self.found.last = times.take_while(|tsc| *tsc <= self.until).fold(self.found.last, u64::max);
        }
        if !parts.is_empty() || told.refused > 0 {
            self.found.sections.extend(section(told, &parts));
        }
        Ok(())
    }

    /// Adds what threads have, or had, of a part; false if not all of it can be as it is.
    fn part(&mut self, part: u64, into: &mut Vec<Part>) -> io::Result<bool> {
        let places = self.places.part;
        let [offset, bytes, kind] = [places.offset, places.bytes, places.kind].map(|field| self.int(at(part, field)));
        let (Some(offset), Some(bytes), Some(kind)) = (offset?, bytes?, kind?) else { return Ok(false) };
        let end = u64::from(offset) + u64::from(bytes);
        let is_one = ((offset | bytes) as usize).is_multiple_of(PAGE)
            && end <= AREA_BYTES
            && [KIND_WORDS, KIND_NAMES].contains(&kind);
        let newest = self.memory.number::<8>(at(part, places.newest))?;
        let (true, Some(mut next)) = (is_one, newest) else { return Ok(false) };
        if next == 0 {
            return Ok(true);
        }
        let Some(pages) = self.pages(at(part, places.frames), bytes)? else { return Ok(false) };
        let mut end = end as u32;
        while next != 0 {
            let before = self.memory.number::<8>(at(next, self.places.piece.before))?;
            let piece = self.piece(next)?.filter(|piece| (offset..=end).contains(&piece.offset));
            let (true, Some(before), Some(piece)) = (self.taken.insert(next), before, piece) else { return Ok(false) };
            let grant = Granted { bytes: end - piece.offset, kind, ..piece };
            into.push(Part { grant, bytes: copy(&pages, piece.offset - offset, end - offset) });
            (next, end) = (before, piece.offset);
        }
        Ok(true)
    }

    /// What a part's pages hold, as far as they are in the image.
    fn pages(&mut self, frames: u64, bytes: u32) -> io::Result<Option<Vec<Option<Vec<u8>>>>> {
        let mut pages = Vec::new();
        for number in 0..u64::from(bytes) / PAGE as u64 {
            let frame = self.memory.number::<8>(frames.wrapping_add(8 * number))?;
            let Some(frame) = frame.filter(|frame| *frame != 0 && self.frames.insert(*frame)) else { return Ok(None) };
            let mut page = vec![0; PAGE];
            let is_there = self.memory.frame(frame, &mut page)?;
            self.found.pages += 1;
            self.found.missing += u64::from(!is_there);
            pages.push(is_there.then_some(page));
        }
        Ok(Some(pages))
    }

    fn piece(&self, piece: u64) -> io::Result<Option<Granted>> {
        let places = self.places.piece;
        let [offset, tid] = [places.offset, places.tid].map(|field| self.int(at(piece, field)));
        let [sequence, tsc] = [places.sequence, places.tsc].map(|field| self.memory.number::<8>(at(piece, field)));
        let (Some(offset), Some(tid), Some(sequence), Some(tsc)) = (offset?, tid?, sequence?, tsc?) else {
            return Ok(None);
        };
        Ok(Some(Granted { offset, tid, sequence, tsc, ..Granted::default() }))
    }

    /// What the module keeps to tell of a process.
    fn told(&self, told: u64) -> io::Result<Option<Program>> {
        let field = |at: usize| told.wrapping_add(at as u64);
        let serial = self.int(field(offset_of!(Program, serial)))?;
        let tgid = self.int(field(offset_of!(Program, tgid)))?;
        let refused = self.memory.number::<8>(field(offset_of!(Program, refused)))?;
        let mut comm = [0; 16];
        let is_named = self.memory.read(field(offset_of!(Program, comm)), &mut comm)? == comm.len();
        let (Some(serial), Some(tgid), Some(refused), true) = (serial, tgid, refused, is_named) else {
            return Ok(None);
        };
        Ok(Some(Program { serial, tgid, refused, comm, ..Program::default() }))
    }

    /// The addresses of the links of a list, and whether it returns to its head.
    fn links(&mut self, head: u64) -> io::Result<(Vec<u64>, bool)> {
        let (mut links, mut link) = (Vec::new(), head);
        loop {
            match self.memory.number::<8>(link)? {
                Some(next) if next == head => return Ok((links, true)),
                Some(next) if self.taken.insert(next) => {
                    links.push(next);
                    link = next;
                }
                _ => return Ok((links, false)),
            }
        }
    }

    fn int(&self, address: u64) -> io::Result<Option<u32>> {
        Ok(self.memory.number::<4>(address)?.map(|number| number as u32))
    }
}

/// Where a field is.
fn at(start: u64, field: u32) -> u64 {
    start.wrapping_add(field.into())
}

/// Bytes of some pages, up to the first page that is not there: words can only be read one after the other.
fn copy(pages: &[Option<Vec<u8>>], from: u32, to: u32) -> Vec<u8> {
    let (mut at, to, mut bytes) = (from as usize, to as usize, Vec::new());
    while at < to {
        let Some(Some(page)) = pages.get(at / PAGE) else { break };
        let end = to.min((at / PAGE + 1) * PAGE);
        bytes.extend_from_slice(&page[at % PAGE..][..end - at]);
        at = end;
    }
    bytes
}
