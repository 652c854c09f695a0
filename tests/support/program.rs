// SPDX-License-Identifier: BSD-3-Clause
//! What programs recorded into memory of their own, put into a raw file of others.

use kutrace_format::abi::programs::{KIND_NAMES, KIND_WORDS, NAMES_AT};
use kutrace_format::file::{self, Section};

/// A process: what the recorder knows of it, and its memory.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its id.
    pub process: u32,
    /// Offset, bytes, thread and first TSC of each of its grants.
    pub grants: Vec<(u32, u32, u32, u64)>,
    /// What it wrote, names first.
    pub area: Vec<u8>,
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
        (Program { process, grants: Vec::new(), area }, numbers)
    }

    /// A grant of a thread with these words.
    pub fn grant(&mut self, thread: u32, tsc: u64, words: &[u64]) {
        self.grants.push((self.area.len() as u32, 8 * words.len() as u32, thread, tsc));
        self.area.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn section(&self, serial: u32) -> Vec<u8> {
        let mut payload = Vec::new();
        let count = self.grants.len() as u32 + 1;
        payload.extend([serial, self.process, count, 0].iter().flat_map(|number| number.to_le_bytes()));
        payload.extend([0, self.area.len() as u64].iter().flat_map(|number| number.to_le_bytes()));
        payload.extend(b"program\0\0\0\0\0\0\0\0\0");
        let names = (0, 4096, self.process, 0);
        for (n, &(offset, bytes, thread, tsc)) in std::iter::once(&names).chain(&self.grants).enumerate() {
            let kind = if n == 0 { KIND_NAMES } else { KIND_WORDS };
            payload.extend([offset, bytes, thread, kind].iter().flat_map(|number| number.to_le_bytes()));
            payload.extend([n as u64, tsc].iter().flat_map(|number| number.to_le_bytes()));
        }
        payload.extend(&self.area);
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
    let at = file.windows(4).position(|tag| tag == file::BLOCKS).expect("a file with blocks");
    let sections: Vec<u8> = (1..).zip(programs).flat_map(|(serial, program)| program.section(serial)).collect();
    [&file[..at], &sections, &file[at..]].concat()
}
