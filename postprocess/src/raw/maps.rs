// SPDX-License-Identifier: BSD-3-Clause
//! Places of user code samples in programs' files, from the parts of these files that processes had in memory.
//!
//! Only the files can name the function there, and others read them: [`Maps::places`] lists the places to look up, and
//! [`Maps::tell`] takes the functions found.

use std::collections::{BTreeMap, BTreeSet};

use byteorder::{ByteOrder, LittleEndian};
use foldhash::HashMap;
use kutrace_format::abi::event;
use kutrace_format::abi::word;
use kutrace_format::file::{Name, NameKind};

use crate::event::names::{clean, hash_of_sample, in_function};
use crate::id::Pid;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file's path, as the process saw it.
    pub path: String,
    /// Distinguishes the file from others of that path: see docs/format.md.
    pub identity: String,
    /// Byte offset in it.
    pub offset: u64,
}

/// The parts of files that processes had in memory, and the functions there, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// By process, in the order of their start.
    processes: HashMap<Pid, Vec<Map>>,
    functions: HashMap<Place, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Map {
    from: u64,
    to: u64,
    offset: u64,
    /// Start in ns of the monotonic clock; `u64::MAX` if it is only known to be mapped at the end.
    since: u64,
    identity: String,
    path: String,
}

impl Map {
    fn has(&self, pc: u64) -> bool {
        (self.from..self.to).contains(&pc)
    }

    fn place(&self, pc: u64) -> Place {
        let offset = (pc - self.from).wrapping_add(self.offset);
        Place { path: self.path.clone(), identity: self.identity.clone(), offset }
    }
}

impl Maps {
    /// The parts of files among these names; other names are skipped.
    pub fn new(records: &[Name]) -> Maps {
        let mut processes: HashMap<Pid, Vec<Map>> = HashMap::default();
        for record in records.iter().filter(|record| record.kind == NameKind::Map as u16) {
            if let Some(map) = map(&String::from_utf8_lossy(record.text)) {
                processes.entry(Pid::new(record.number)).or_default().push(map);
            }
        }
        processes.values_mut().for_each(|maps| maps.sort_by_key(|map| map.since));
        Maps { processes, functions: HashMap::default() }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// The places where samples of user code at these addresses may lie, in any process.
    pub fn places(&self, sampled: &BTreeSet<u64>) -> BTreeSet<Place> {
        let all = self.processes.values().flatten();
        all.flat_map(|map| sampled.range(map.from..map.to.max(map.from)).map(move |pc| map.place(*pc))).collect()
    }

    /// Takes the functions at some of the places.
    pub fn tell(&mut self, functions: &BTreeMap<Place, String>) {
        let known = functions.iter().map(|(place, function)| (place.clone(), clean(function.as_bytes())));
        self.functions.extend(known.filter(|(_, function)| !function.is_empty()));
    }

    /// Name and argument of a sample of this process; `since` is its time in ns of the monotonic clock.
    pub fn sample(&self, process: Pid, pc: u64, since: u64) -> Option<(String, u16)> {
        let mut maps = self.processes.get(&process)?.iter().filter(|map| map.has(pc)).peekable();
        // If no map came before the sample, the first that came after it is used: clocks differ by a little.
        let mut found = maps.next()?;
        while let Some(later) = maps.next_if(|later| later.since <= since) {
            found = later;
        }
        let place = found.place(pc);
        if let Some(function) = self.functions.get(&place) {
            return Some(in_function(function));
        }
        let file = format!("PC={}", clean(place.path.rsplit('/').next().unwrap_or_default().as_bytes()));
        Some((format!("{file}+{:#x}", place.offset), hash_of_sample(&file)))
    }
}

/// A part of a file, from the text of its name.
fn map(text: &str) -> Option<Map> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut fields = text.splitn(5, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let offset = hex(fields.next()?)?;
    let since = fields.next().map(|since| if since == "-" { Some(u64::MAX) } else { hex(since) })??;
    let (identity, path) = (fields.next()?.to_string(), fields.next()?.to_string());
    Some(Map { from: hex(from)?, to: hex(to)?, offset, since, identity, path })
}

/// The addresses of sampled user code in the entries of a block.
pub fn sampled(entries: &[u8], found: &mut BTreeSet<u64>) {
    let at = |word: usize| entries.get(4 * word..4 * word + 4).map(LittleEndian::read_u32);
    let mut next = 0;
    while let Some(number) = at(next).map(word::event) {
        if let (event::PC_USER, Some(low), Some(high)) = (number, at(next + 1), at(next + 2)) {
            found.insert(u64::from(low) | u64::from(high) << 32);
        }
        let Some(arguments) = event::argument_words(number) else { break };
        next += 1 + arguments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [(u32, &str); 5] = [
        (66, "1000-2000 3000 0 abcd /bin/first program"),
        (66, "1800-3000 0 64 - /bin/second"),
        (66, "5000-6000 0 - ef /bin/last"),
        (66, "no map"),
        (70, "1000-2000 0 0 abcd /bin/first program"),
    ];

    fn maps() -> Maps {
        let kind = NameKind::Map as u16;
        let record = |(second, (number, text)): (usize, &(u32, &'static str))| Name {
            kind,
            number: *number,
            second: second as u32,
            text: text.as_bytes(),
        };
        Maps::new(&TEXTS.iter().enumerate().map(record).collect::<Vec<_>>())
    }

    #[test]
    fn a_sample_lies_in_the_part_that_its_process_got_last_before_it() {
        let maps = maps();
        let text = |pid, pc, at| maps.sample(Pid::new(pid), pc, at).map(|(text, _)| text);
        assert_eq!(text(66, 0x1900, 0x63).as_deref(), Some("PC=first_program+0x3900"));
        assert_eq!(text(66, 0x1900, 0x64).as_deref(), Some("PC=second+0x100"));
        assert_eq!(text(66, 0x2900, 0x10).as_deref(), Some("PC=second+0x1100"), "none came before");
        assert_eq!(text(66, 0x5004, 0).as_deref(), Some("PC=last+0x4"));
        assert_eq!([text(66, 0x3000, 9), text(66, 0x10, 9), text(7, 0x1900, 9)], [None, None, None]);
    }

    #[test]
    fn what_is_told_of_a_place_names_the_samples_there_and_those_of_one_file_have_one_argument() {
        let mut maps = maps();
        let places = maps.places(&BTreeSet::from([0x1004, 0x4000]));
        let place = Place { path: "/bin/first program".into(), identity: "abcd".into(), offset: 0x3004 };
        let other = Place { offset: 4, ..place.clone() };
        assert_eq!(places, BTreeSet::from([place.clone(), other]));
        maps.tell(&BTreeMap::from([(place, "inner@outer".to_string())]));
        let sample = |pid, pc| maps.sample(Pid::new(pid), pc, 0).unwrap();
        assert_eq!(sample(66, 0x1004), in_function("inner@outer"));
        assert_eq!(sample(70, 0x1004).0, "PC=first_program+0x4");
        assert_eq!(sample(70, 0x1004).1, sample(70, 0x1008).1);
    }
}
