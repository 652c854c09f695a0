// SPDX-License-Identifier: BSD-3-Clause
//! Programs' own records in an image: the module's lists of processes and of their grants are followed, and the pages
//! of a grant are found by their frame numbers.
//!
//! Invariant: no address and no page is taken twice. Therefore every list ends, whatever the image contains, and the
//! result is not larger than the image.

use std::collections::HashSet;
use std::io;
use std::mem::offset_of;

use kutrace_format::abi::landmark::{Programs as Places, PAGE};
use kutrace_format::abi::programs::{
    Granted, Program, AREA_BYTES, KIND_NAMES, KIND_WORDS, OTHERS, RUN_BYTES, WORDS_AT,
};
use kutrace_format::program::Entries;
use postprocess::readable::count;

use super::memory::Memory;
use crate::programs::{section, Part};

/// The records found.
#[derive(Debug, Default)]
pub struct Found {
    /// A section for each program, in sequence as in a file.
    pub sections: Vec<u8>,
    /// Time of the newest entry as a full TSC.
    pub last: u64,
    /// Number of pages granted to programs.
    pages: u64,
    /// Number of these pages that are not in the image.
    missing: u64,
    /// Number of programs whose lists in the module are damaged; a damaged list of all programs counts as one.
    damaged: u64,
}

/// Finds the records of programs. Entries later than `until` do not belong to the trace.
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
    /// Losses, one sentence each.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        if self.missing > 0 {
            losses.push(format!(
                "of the memory of programs' marks, {} of {} not in the image",
                self.missing,
                count(self.pages, "page is", "pages are")
            ));
        }
        if self.damaged > 0 {
            let lists = count(self.damaged, "list is", "lists are");
            losses.push(format!("{lists} damaged in the memory of programs' marks: some marks are missing"));
        }
        losses
    }
}

/// State of the search: its input, and the addresses visited so far.
struct Reader<'a> {
    memory: &'a Memory<'a>,
    places: &'a Places,
    until: u64,
    /// Addresses of links.
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
        let (links, mut is_whole) = self.links(at(process, self.places.process.grants))?;
        for link in links {
            let part = self.part(link.wrapping_sub(self.places.grant.list.into()))?;
            is_whole &= part.is_some();
            parts.extend(part);
        }
        let count = self.int(at(process, self.places.process.count))?;
        is_whole &= count.is_some_and(|count| parts.len() >= count as usize);
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

    /// A grant of a thread; `None` if its description is invalid.
    fn part(&mut self, grant: u64) -> io::Result<Option<Part>> {
        let places = self.places.grant;
        let [offset, bytes, tid] = [places.offset, places.bytes, places.tid].map(|field| self.int(at(grant, field)));
        let [sequence, tsc] = [places.sequence, places.tsc].map(|field| self.memory.number::<8>(at(grant, field)));
        let (Some(offset), Some(bytes), Some(tid)) = (offset?, bytes?, tid?) else { return Ok(None) };
        let (Some(sequence), Some(tsc)) = (sequence?, tsc?) else { return Ok(None) };
        let end = u64::from(offset) + u64::from(bytes);
        if !((offset | bytes) as usize).is_multiple_of(PAGE) || bytes > RUN_BYTES || end > AREA_BYTES {
            return Ok(None);
        }
        let Some(pages) = self.pages(at(grant, places.frames), bytes)? else { return Ok(None) };
        let kind = if offset < WORDS_AT { KIND_NAMES } else { KIND_WORDS };
        // Words can only be read in sequence: up to the first missing page.
        let bytes_there = pages.into_iter().map_while(|page| page).flatten().collect();
        Ok(Some(Part { grant: Granted { offset, bytes, tid, kind, sequence, tsc }, bytes: bytes_there }))
    }

    /// Content of a grant's pages, as far as they are in the image.
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

    /// The module's description of a process.
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

/// Address of a field.
fn at(start: u64, field: u32) -> u64 {
    start.wrapping_add(field.into())
}
