// SPDX-License-Identifier: BSD-3-Clause
//! Recordings of programs in memory of their own, merged by time.
//!
//! The kernel states which thread a part belongs to, and since when; everything else is written by the program, and is
//! only believed within these bounds. A program can therefore lie about itself, but only within the time in which it
//! ran.
//!
//! Invariant: no content makes the reader fail, or use more memory than the section has bytes.

use std::collections::HashMap;

use kutrace_format::abi::programs::{KIND_NAMES, KIND_WORDS, LOST_AT};
use kutrace_format::program::{name_at, Entries, Entry, GRANTS_ALONE, GRANT_BYTES, HEAD_BYTES, WHOLE_AREA};

use super::damage::Damage;
use crate::merge::{Merge, When};
use crate::readable::count;

/// A process that recorded.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// Byte offset of its section in the file.
    pub offset: usize,
    /// Number of its attachment: a stream has several sections of each.
    pub serial: u32,
    /// The process.
    pub tgid: u32,
    /// Its name when it began.
    pub comm: &'a [u8],
    /// Number of times it was refused memory.
    pub refused: u64,
    grants: Vec<Grant<'a>>,
    /// Parts of its area that contain names, and their start in the area.
    names: Vec<(usize, &'a [u8])>,
}

#[derive(Clone, Copy, Debug)]
struct Grant<'a> {
    words: &'a [u8],
    tid: u32,
    tsc: u64,
}

/// Parses the payload of a section whose checksum is right.
///
/// # Errors
/// The fault of the payload.
pub fn parse(offset: usize, payload: &[u8]) -> Result<Program<'_>, &'static str> {
    let (head, rest) = payload.split_at_checked(HEAD_BYTES).ok_or("the section of a program is cut short")?;
    let bytes = (int(head, 8) as usize).checked_mul(GRANT_BYTES);
    let split = bytes.and_then(|bytes| rest.split_at_checked(bytes));
    let (grants, area) = split.ok_or("the section of a program has fewer grants than it counts")?;
    if area.len() as u64 != long(head, 24) {
        return Err("the area of a program does not have the size that its section states");
    }
    let is_whole = match int(head, 12) {
        WHOLE_AREA => true,
        GRANTS_ALONE => false,
        _ => return Err("the section of a program has an unknown layout"),
    };
    let (mut parts, mut names) = (Vec::new(), Vec::new());
    // A program can make up the target of a word, so its own words may pass for names.
    names.extend(is_whole.then_some((0, area)));
    let mut next = 0;
    for grant in grants.chunks_exact(GRANT_BYTES) {
        let (address, bytes) = (int(grant, 0) as usize, int(grant, 4) as usize);
        let from = if is_whole { address } else { next };
        let part = from.checked_add(bytes).and_then(|end| area.get(from..end));
        let part = part.ok_or("a grant of a program is not in its area")?;
        next += bytes;
        match int(grant, 12) {
            KIND_WORDS => parts.push(Grant { words: part, tid: int(grant, 8), tsc: long(grant, 24) }),
            KIND_NAMES if !is_whole => names.push((address, part)),
            _ => {}
        }
    }
    let [serial, tgid] = [0, 4].map(|at| int(head, at));
    Ok(Program { offset, serial, tgid, comm: &head[32..48], refused: long(head, 16), grants: parts, names })
}

impl<'a> Program<'a> {
    /// Number of entries that the program reports as not recorded.
    pub fn lost(&self) -> u64 {
        let first = self.names.iter().find(|(address, _)| *address == 0);
        let lost = first.and_then(|(_, part)| part.get(LOST_AT as usize..LOST_AT as usize + 8));
        lost.map_or(0, |lost| long(lost, 0))
    }

    /// Losses that the program reports or the recorder knows: a sentence each.
    pub fn losses(&self) -> Vec<String> {
        let refused = self.refused;
        if self.tgid == 0 {
            let times = count(refused, "time", "times");
            let why = "there was too little (--marks-memory gives more), or they were not allowed to mark";
            return vec![format!("programs were refused memory for their marks {times}: {why}")];
        }
        let what = match self.lost() {
            0 if refused == 0 => return Vec::new(),
            0 => format!("was refused memory {}", count(refused, "time", "times")),
            lost => format!("{lost} marks had no room"),
        };
        vec![format!("{}: {what}", self.who())]
    }

    fn who(&self) -> String {
        format!("program {} ({})", self.tgid, text(self.comm).escape_ascii())
    }

    /// Text of one of the program's names.
    pub fn name(&self, number: u32) -> Option<&'a [u8]> {
        let at = 8 * number as usize;
        let (address, part) =
            self.names.iter().find(|(address, part)| (*address..address + part.len()).contains(&at))?;
        name_at(part, number - (address / 8) as u32)
    }
}

/// Losses of programs, a sentence each. Each section of a program counts from the start on, so its last applies.
pub fn losses(programs: &[Program]) -> Vec<String> {
    let last: HashMap<u32, usize> = programs.iter().enumerate().map(|(n, program)| (program.serial, n)).collect();
    let is_last = |(n, program): &(usize, &Program)| last.get(&program.serial) == Some(n);
    programs.iter().enumerate().filter(is_last).flat_map(|(_, program)| program.losses()).collect()
}

/// An entry, with its thread, program and section.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The thread.
    pub tid: u32,
    /// The program's number.
    pub program: u32,
    /// Index of the section among all.
    pub section: usize,
    /// The entry.
    pub entry: Entry<'a>,
}

impl When for Said<'_> {
    type Time = u64;

    fn when(&self) -> u64 {
        self.entry.tsc
    }
}

/// The entries of one grant.
#[derive(Clone, Debug)]
struct Part<'a> {
    program: u32,
    section: usize,
    tid: u32,
    entries: Entries<'a>,
}

impl<'a> Iterator for Part<'a> {
    type Item = Said<'a>;

    fn next(&mut self) -> Option<Said<'a>> {
        let entry = self.entries.next()?;
        Some(Said { tid: self.tid, program: self.program, section: self.section, entry })
    }
}

/// The entries of all programs between two moments, in time order.
#[derive(Debug)]
pub struct Programs<'a> {
    programs: Vec<Program<'a>>,
    merge: Merge<Part<'a>>,
    next: Option<Said<'a>>,
    last: u64,
    /// TSC at which the recording stopped, or its next file began: blocks may end a little later.
    stop: u64,
}

impl<'a> Programs<'a> {
    /// The entries from `first` to `last` of a trace up to `stop`, as whole TSCs.
    pub fn new(programs: Vec<Program<'a>>, first: u64, last: u64, stop: u64) -> Programs<'a> {
        let part = |section: usize, program: u32, grant: &Grant<'a>| Part {
            program,
            section,
            tid: grant.tid,
            entries: Entries::new(grant.words, grant.tsc),
        };
        let parts = (programs.iter().enumerate())
            .flat_map(|(n, program)| program.grants.iter().map(move |grant| part(n, program.serial, grant)));
        let merge = Merge::new(parts.collect());
        let mut all = Programs { programs, merge, next: None, last, stop };
        while all.take().is_some_and(|said| said.entry.tsc < first) {}
        all
    }

    /// The next entry.
    pub fn peek(&self) -> Option<Said<'a>> {
        self.next
    }

    /// Takes the next entry; returns the one after it, which is next then.
    pub fn take(&mut self) -> Option<Said<'a>> {
        self.next = self.merge.next().map(|(_, said)| said).filter(|said| said.entry.tsc <= self.last);
        self.next
    }

    /// True if an entry belongs to the trace only if its CPU has recorded up to its time.
    pub fn is_after_the_stop(&self, entry: &Entry) -> bool {
        entry.tsc > self.stop
    }

    /// Text of a name of the program that this section belongs to.
    pub fn name(&self, section: usize, number: u32) -> Option<&'a [u8]> {
        self.programs[section].name(number)
    }

    /// Faults, by section, once everything was taken.
    pub fn faults(&self) -> Vec<Damage> {
        self.counted(|entries| entries.strange, "invalid words that no library writes; skipped")
    }

    /// Entries that programs did not complete, by section, once everything was taken: not a fault of the trace.
    pub fn unfinished(&self) -> Vec<Damage> {
        self.counted(|entries| entries.unfinished, "marks were incomplete when it ended or was copied; skipped")
    }

    fn counted(&self, what: impl Fn(&Entries) -> u32, text: &str) -> Vec<Damage> {
        let mut counts = vec![0; self.programs.len()];
        for part in self.merge.streams() {
            counts[part.section] += u64::from(what(&part.entries));
        }
        let counted = self.programs.iter().zip(counts).filter(|(_, count)| *count > 0);
        counted.map(|(program, n)| Damage::at(program.offset, format!("{}: {n} {text}", program.who()))).collect()
    }
}

/// The bytes before the first zero.
pub(super) fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|&c| c == 0).next().unwrap_or_default()
}

pub(super) fn int(bytes: &[u8], at: usize) -> u32 {
    super::file::stored(bytes, at)
}

pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(int(bytes, at)) | u64::from(int(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_format::abi::programs::{word, BEGIN, FULL_TIME, MARK, OPEN, VALUE};

    const START: u64 = 7 << 40;

    /// A section with one grant of these words, of thread 8 of process 7, and a name at 64.
    fn section(words: &[u64]) -> Vec<u8> {
        let mut area = vec![0; 128];
        area[0] = 5;
        area[64..72].copy_from_slice(b"\x04\0work\0\0");
        area.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let mut bytes = Vec::new();
        for number in [1, 7, 1, 0] {
            bytes.extend_from_slice(&u32::to_le_bytes(number));
        }
        bytes.extend_from_slice(&2u64.to_le_bytes());
        bytes.extend_from_slice(&(area.len() as u64).to_le_bytes());
        bytes.extend_from_slice(b"web\0\0\0\0\0\0\0\0\0\0\0\0\0");
        for number in [128, words.len() as u32 * 8, 8, KIND_WORDS] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&0u64.to_le_bytes());
        bytes.extend_from_slice(&START.to_le_bytes());
        bytes.extend_from_slice(&area);
        bytes
    }

    fn read(section: &[u8]) -> (Vec<(u64, u32, i64)>, Vec<String>) {
        let program = parse(0, section).unwrap();
        let missing = losses(std::slice::from_ref(&program));
        let mut all = Programs::new(vec![program], START, START + 1000, START + 1000);
        let mut said = Vec::new();
        while let Some(next) = all.peek() {
            assert_eq!(next.tid, 8);
            said.push((next.entry.tsc - START, next.entry.kind, next.entry.value as i64));
            all.take();
        }
        let wrong = [all.faults(), all.unfinished()].concat();
        (said, missing.into_iter().chain(wrong.iter().map(Damage::to_string)).collect())
    }

    fn at(time: u64) -> u64 {
        (START + time) & 0xffff_ffff
    }

    #[test]
    fn entries_are_read_and_what_is_no_entry_is_passed_over() {
        let section = section(&[
            word(FULL_TIME, 1, 0) | at(10),
            START + 10,
            word(BEGIN, 0, 8) | at(10),
            0,
            word(VALUE, 1, 8) | at(20) | OPEN,
            99,
            word(VALUE, 1, 8) | at(30),
            -3_i64 as u64,
            word(5, 0, 8) | at(40),
            word(MARK, 0, 8) | at(50),
            word(MARK, 0, 8) | at(1001),
        ]);
        let (said, damage) = read(&section);
        assert_eq!(said, [(10, BEGIN, 0), (30, VALUE, -3), (50, MARK, 0)]);
        assert_eq!(
            damage,
            [
                "program 7 (web): 5 marks had no room",
                "byte 0: program 7 (web): 1 invalid words that no library writes; skipped",
                "byte 0: program 7 (web): 1 marks were incomplete when it ended or was copied; skipped",
            ]
        );
        assert_eq!(parse(0, &section).unwrap().name(8), Some(&b"work"[..]));
        assert_eq!(parse(0, &section).unwrap().name(u32::MAX), None);
    }

    #[test]
    fn grants_alone_are_known_by_their_places_in_the_area() {
        let mut section = section(&[word(MARK, 0, 4096) | at(10)]);
        section[8] = 2;
        section[12] = GRANTS_ALONE as u8;
        // Names, far behind the words: they come first here, all 128 bytes.
        let mut names = vec![0; GRANT_BYTES];
        names[0..4].copy_from_slice(&(8_u32 * 4096 - 64).to_le_bytes());
        (names[4], names[12]) = (128, KIND_NAMES as u8);
        section.splice(HEAD_BYTES..HEAD_BYTES, names);
        let program = parse(0, &section).unwrap();
        assert_eq!((program.name(4096), program.name(8), program.lost()), (Some(&b"work"[..]), None, 0));
        let refused = "program 7 (web): was refused memory 2 times".to_owned();
        assert_eq!(read(&section), (vec![(10, MARK, 0)], vec![refused]));
    }

    #[test]
    fn who_was_refused_memory_is_told() {
        let mut section = section(&[]);
        section[HEAD_BYTES + GRANT_BYTES] = 0;
        let losses = |section: &[u8]| parse(0, section).unwrap().losses();
        assert_eq!(losses(&section), ["program 7 (web): was refused memory 2 times"]);
        section[4] = 0;
        let [said] = &losses(&section)[..] else { panic!("one sentence") };
        assert!(said.starts_with("programs were refused memory for their marks 2 times: "), "{said}");
        (section[4], section[16]) = (7, 0);
        assert_eq!(losses(&section), [""; 0]);
    }

    #[test]
    fn a_section_that_contradicts_itself_is_refused() {
        let whole = section(&[word(MARK, 0, 8) | at(1)]);
        for len in 0..whole.len() {
            assert!(parse(0, &whole[..len]).is_err(), "{len}");
        }
        for (byte, fact) in [
            (8, "grants"),
            (12, "layout"),
            (24, "size"),
            (HEAD_BYTES + 4, "not in its area"),
            (HEAD_BYTES + 3, "not in"),
        ] {
            let mut damaged = whole.clone();
            damaged[byte] = 0xff;
            assert!(parse(0, &damaged).is_err_and(|said| said.contains(fact)), "{byte}");
        }
    }

    #[test]
    fn no_words_stop_the_reader() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..2000 {
            let words: Vec<u64> = (0..40)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    // Half of them are nearly right.
                    if seed & 1 == 0 {
                        seed
                    } else {
                        seed & 0xffff_ffff | word(seed as u32 >> 3 & 7, 0, 8)
                    }
                })
                .collect();
            let (said, _) = read(&section(&words));
            assert!(said.is_sorted_by_key(|(time, ..)| *time));
        }
    }
}
