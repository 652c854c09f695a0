// SPDX-License-Identifier: BSD-3-Clause
//! Raw files of the original, made word by word: [`File`] is the file, [`Block`] one of its blocks.
//!
//! Times are counts since the start, which is at a full minute; a count is 10 ns.

use postprocess::event::number::{
    IRQ, IRQ_RETURN, PC_USER, PID_NAME, RUNNABLE, SCHED, SCHED_RETURN, SOFTIRQ, SOFTIRQ_RETURN, SWITCH, SYSCALL,
    SYSCALL_NAME,
};

use crate::Random;

/// Counter at the start of a file.
pub const START: u64 = 0x7_0000_0000;
/// Microseconds since 1970 at the start of a file.
pub const START_US: u64 = 1_795_187_640_000_000;
/// Duration of a file, in counts.
pub const LASTS: u64 = 17_000_000_000;
const BLOCK_WORDS: usize = 8192;

/// A raw file in the making.
#[derive(Clone, Debug)]
pub struct File {
    /// Flags of all blocks, and the version.
    pub flags: u8,
    /// Counter at the start, [`START`] unless set.
    pub start: u64,
    /// Counter at the stop.
    pub stop: u64,
    /// Counts from start to stop by the time of day, [`LASTS`] unless set.
    pub lasts: u64,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

/// A block in the making.
#[derive(Clone, Debug)]
pub struct Block {
    cpu: u64,
    begin: u64,
    pid: u64,
    comm: &'static str,
    /// Its words after the header.
    pub words: Vec<u64>,
    counters: Vec<(usize, u8)>,
}

impl File {
    /// A file without blocks, of these flags and version.
    pub fn new(flags: u8) -> File {
        File { flags, start: START, stop: START + LASTS, lasts: LASTS, blocks: Vec::new() }
    }

    /// Begins a block at `begin`, in a thread of this pid and name.
    pub fn block(&mut self, cpu: u64, begin: u64, pid: u64, comm: &'static str) -> &mut Block {
        let at = self.blocks.len();
        self.blocks.push(Block { cpu, begin, pid, comm, words: Vec::new(), counters: Vec::new() });
        &mut self.blocks[at]
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (n, block) in self.blocks.iter().enumerate() {
            let usec = START_US + block.begin / 100;
            let version = if n == 0 { 3 } else { 0 };
            let flags = u64::from(self.flags & 0xf0 | version);
            let mut words = vec![block.cpu << 56 | (self.start + block.begin), flags << 56 | usec];
            if n == 0 {
                words.extend([self.start, START_US, self.stop, START_US + self.lasts / 100, 0, 0]);
            }
            let mut comm = [0; 16];
            comm[..block.comm.len()].copy_from_slice(block.comm.as_bytes());
            words.extend([block.pid, 0]);
            words.extend([0, 8].map(|at| u64::from_le_bytes(comm[at..at + 8].try_into().unwrap())));
            let mut counters = [0xff; BLOCK_WORDS];
            block.counters.iter().for_each(|&(word, byte)| counters[words.len() + word] = byte);
            words.extend(&block.words);
            words.resize(BLOCK_WORDS, 0);
            out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
            if self.flags & 0xa0 != 0 {
                out.extend(counters);
            }
        }
        out
    }
}

impl Block {
    /// An entry of one word.
    pub fn entry(&mut self, counts: u64, event: u32, arg: u32) -> &mut Block {
        self.words.push(((START + counts) & 0xf_ffff) << 44 | u64::from(event) << 32 | u64::from(arg));
        self
    }

    /// A call with its return: duration in counts, value.
    pub fn folded(&mut self, counts: u64, event: u32, arg: u16, dur: u8, ret: i8) -> &mut Block {
        self.entry(counts, event, u32::from(dur) << 24 | u32::from(ret as u8) << 16 | u32::from(arg))
    }

    /// A name.
    pub fn name(&mut self, counts: u64, kind: u32, number: u32, text: &str) -> &mut Block {
        let words = text.len().div_ceil(8);
        self.entry(counts, kind | (words as u32 + 1) << 4, number);
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(words * 8, 0);
        self.words.extend(bytes.chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())));
        self
    }

    /// A sample of a program counter, with the frequency or 0.
    pub fn sample(&mut self, counts: u64, mhz: u32, pc: u64) -> &mut Block {
        self.entry(counts, PC_USER, mhz).words.push(pc);
        self
    }

    /// Gives the last entry, of one word, its counter byte.
    pub fn counted(&mut self, byte: u8) -> &mut Block {
        self.counters.push((self.words.len() - 1, byte));
        self
    }
}

/// Two CPUs, counters, names, samples, folds, late entries: about `entries` times one and a half.
pub fn rich(entries: u64) -> File {
    let mut file = File::new(0x83);
    file.block(0, 0, 7, "a").name(1, SYSCALL_NAME, 1, "write").name(2, PID_NAME, 8, "thread");
    file.block(1, 3, 0, "swapper/1");
    let mut random = Random(9);
    for n in 1..entries {
        let block = &mut file.blocks[random.below(2) as usize];
        let at = n * 1000;
        match random.below(6) {
            0 => block.entry(at, SWITCH, random.below(3) as u32 + 7),
            1 => block.folded(at, SYSCALL + 1, 3, 1 + random.below(90) as u8, 0),
            2 => block.entry(at, SOFTIRQ, 1).entry(at + 9, SOFTIRQ_RETURN, 0),
            3 => block.entry(at, IRQ + 0xec, 0).entry(at + 30, IRQ_RETURN + 0xec, 0).sample(at + 40, 300, at),
            4 => block.entry(at, SCHED, 0).entry(at + 99, SCHED_RETURN, 0),
            _ => block.entry(at + 50, RUNNABLE, 8).entry(at - 50, SYSCALL, 1),
        };
    }
    file
}
