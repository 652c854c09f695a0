// SPDX-License-Identifier: BSD-3-Clause
//! Records of programs in their own memory, put into a raw file of others.

use kutrace_format::abi::event::{SCHED, SWITCH};
use kutrace_format::abi::programs::{word, BEGIN, END, FULL_TIME, KIND_NAMES, KIND_WORDS, MARK, NAMES_AT};
use kutrace_format::file::{self, Section};
use kutrace_format::program::{GRANTS_ALONE, WHOLE_AREA};

use crate::{TraceBuilder, SHIFT, START};

/// A process: the recorder's facts about it, and its memory.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its id.
    pub process: u32,
    /// Offset, bytes, thread and first TSC of each of its grants.
    pub grants: Vec<(u32, u32, u32, u64)>,
    /// Its records, names first.
    pub area: Vec<u8>,
    /// True if its section has all of that, and not only the granted parts.
    pub is_whole: bool,
}

impl Program {
    /// One with a page of names, each with its number in the answer.
    pub fn new(process: u32, names: &[&str]) -> (Program, Vec<u32>) {
        let mut area = vec![0; NAMES_AT as usize];
        let numbers = names.iter().map(|name| {
            let number = area.len() as u32 / 8;
            area.extend((name.len() as u16).to_le_bytes());
            area.extend(name.as_bytes());
            area.resize(area.len().next_multiple_of(8), 0);
            number
        });
        let numbers = numbers.collect();
        area.resize(4096, 0);
        (Program { process, grants: Vec::new(), area, is_whole: false }, numbers)
    }

    /// A grant of a thread with these words.
    pub fn grant(&mut self, thread: u32, tsc: u64, words: &[u64]) {
        self.grants.push((self.area.len() as u32, 8 * words.len() as u32, thread, tsc));
        self.area.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn section(&self, serial: u32) -> Vec<u8> {
        let mut payload = Vec::new();
        let count = self.grants.len() as u32 + 1;
        let names = (0, self.area.len().min(4096) as u32, self.process, 0);
        let alone = std::iter::once(&names).chain(&self.grants).flat_map(|&(offset, bytes, ..)| {
            let rest = self.area.get(offset as usize..).unwrap_or_default();
            &rest[..rest.len().min(bytes as usize)]
        });
        let (layout, bytes) = match self.is_whole {
            true => (WHOLE_AREA, self.area.clone()),
            false => (GRANTS_ALONE, alone.copied().collect()),
        };
        payload.extend([serial, self.process, count, layout].iter().flat_map(|number| number.to_le_bytes()));
        payload.extend([0, bytes.len() as u64].iter().flat_map(|number| number.to_le_bytes()));
        payload.extend(b"program\0\0\0\0\0\0\0\0\0");
        for (n, &(offset, bytes, thread, tsc)) in std::iter::once(&names).chain(&self.grants).enumerate() {
            let kind = if n == 0 { KIND_NAMES } else { KIND_WORDS };
            payload.extend([offset, bytes, thread, kind].iter().flat_map(|number| number.to_le_bytes()));
            payload.extend([n as u64, tsc].iter().flat_map(|number| number.to_le_bytes()));
        }
        payload.extend(&bytes);
        let crc32 = crc32fast::hash(&payload);
        let head = Section { tag: file::PROGRAM, crc32, bytes: payload.len() as u64, items: u64::from(count) };
        [&head.to_bytes()[..], &payload].concat()
    }
}

/// A raw file with these programs in it.
///
/// # Panics
/// If it has no blocks.
pub fn with(file: &[u8], programs: &[Program]) -> Vec<u8> {
    with_sections(file, (1..).zip(programs))
}

/// A raw file with these sections of programs in it, each with the program's number.
///
/// # Panics
/// If it has no blocks.
pub fn with_sections<'a>(file: &[u8], programs: impl IntoIterator<Item = (u32, &'a Program)>) -> Vec<u8> {
    let at = file.windows(4).position(|tag| tag == file::BLOCKS).expect("a file with blocks");
    let sections: Vec<u8> = programs.into_iter().flat_map(|(serial, program)| program.section(serial)).collect();
    [&file[..at], &sections, &file[at..]].concat()
}

/// Two CPUs that run thread 7 of process 7, and thread 8 of process 8, all the time.
pub fn kernel() -> Vec<u8> {
    two_threads().bytes()
}

/// The same as a stream.
pub fn kernel_stream() -> Vec<u8> {
    two_threads().stream()
}

/// The same as two files of a ring, cut at 100: the first CPU ends its block at 110, the other at 300, when thread 7 has
/// gone there from the first, which runs thread 6 since 200.
pub fn kernel_ring() -> [Vec<u8>; 2] {
    let mut before = two_threads();
    (before.header.flags, before.header.stop.tsc) = (file::FLAG_CONTINUED, tsc(100));
    before.cpu(0).entry(110, SCHED, &[]);
    before.cpu(1).entry(250, SWITCH, &[7]).entry(300, SCHED, &[]);
    let mut after = TraceBuilder::new(2, 10_000);
    (after.header.flags, after.header.start.tsc) = (file::FLAG_CONTINUES, tsc(100));
    after.cpu(0).begins(120).running(7, "seven", None).entry(200, SWITCH, &[6]);
    after.cpu(1).begins(310).running(7, "seven", None);
    [before, after].map(|trace| trace.stream())
}

fn two_threads() -> TraceBuilder {
    let mut trace = TraceBuilder::new(2, 10_000);
    for cpu in 0..2 {
        trace.cpu(cpu).entry(10, SWITCH, &[7 + cpu]);
    }
    trace
}

/// A whole TSC, this many counts after the start.
pub const fn tsc(counts: u64) -> u64 {
    (START + counts) << SHIFT
}

/// The low half of that.
pub const fn at(counts: u64) -> u64 {
    tsc(counts) & 0xffff_ffff
}

/// Process 8, with three records.
pub fn honest() -> Program {
    let (mut program, numbers) = Program::new(8, &["work", "reply\0ustatus\0spath", "work"]);
    let [work, reply, other] = numbers[..] else { panic!("{numbers:?}") };
    program.grant(
        8,
        tsc(20),
        &[
            word(FULL_TIME, 1, 0) | at(30),
            tsc(30),
            word(BEGIN, 0, work) | at(30),
            word(MARK, 2, reply) | at(40),
            200,
            u64::from_le_bytes(*b"\x02/a\0\0\0\0\0"),
            // Another place of the same name ends it.
            word(END, 0, other) | at(50),
        ],
    );
    program
}

/// A program as an input that may be changed: how many grants, 8 bytes of each, the area.
pub fn packed(program: &Program) -> Vec<u8> {
    let grants = program.grants.iter().flat_map(|&(offset, bytes, thread, time)| {
        let numbers = [offset / 8, bytes / 8, thread, (time >> SHIFT).wrapping_sub(START) as u32];
        numbers.map(|number| number as u16).into_iter().flat_map(u16::to_le_bytes)
    });
    std::iter::once(program.grants.len() as u8).chain(grants).chain(program.area.iter().copied()).collect()
}

/// The raw file of such an input, with another program that is valid: any content of the first, in parts that the
/// kernel granted to its own threads.
pub fn unpacked(packed: &[u8]) -> Vec<u8> {
    let (&count, rest) = packed.split_first().unwrap_or((&0, &[]));
    let (grants, area) = rest.split_at(rest.len().min(8 * usize::from(count)));
    let mut program = Program { process: 7, grants: Vec::new(), area: area.to_vec(), is_whole: count % 2 == 0 };
    for grant in grants.chunks_exact(8) {
        let [offset, bytes, thread, time] = [0, 2, 4, 6].map(|n| u16::from_le_bytes([grant[n], grant[n + 1]]));
        let (offset, thread) = (8 * u32::from(offset), if thread == 8 { 7 } else { thread });
        let room = (area.len() as u32).saturating_sub(offset);
        program.grants.push((offset, (8 * u32::from(bytes)).min(room), thread.into(), tsc(time.into())));
    }
    with(&kernel(), &[program, honest()])
}
