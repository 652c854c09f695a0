// SPDX-License-Identifier: BSD-3-Clause
//! Raw: a file of format 5, or of the [`original`], to events.
//!
//! The way of the data of format 5: [`mod@file`] finds header, names and blocks, [`block`] checks each block,
//! [`stream`] reads the entries of one CPU, [`merge`] orders all CPUs, [`mod@decode`] makes events with the names of
//! [`name`], what is known of each [`task`], the codes of [`counter`], and the times of [`clock`]. What both formats
//! can do is [`trace`].
//!
//! Invariant: every content is read as far as it makes sense; what was wrong stands in [`damage`].

pub mod damage;
pub mod file;
pub mod block;
pub mod clock;
pub mod counter;
pub mod stream;
pub mod merge;
pub mod name;
pub mod task;
pub mod decode;
pub mod trace;
pub mod original;
pub mod dump;

use std::collections::BTreeMap;

use kutrace_format::abi::event::ENTRY_WORDS_MAX;
use kutrace_format::file::{Header, Name, FLAG_WRAP, FLAG_WRAPPED};

use crate::event::names::Names;
use crate::event::{date, BlockLine, Interval, Meta, CPUS_MAX};
use block::{Block, Expected};
use clock::Clock;
use counter::Counting;
use damage::{Damage, NotATrace};
use decode::{Counts, Decoder};
use stream::Stream;

pub use trace::{decode, Trace};

/// A raw trace, checked and sorted by CPU, not decoded.
#[derive(Debug)]
pub struct Raw<'a> {
    /// The file header.
    pub header: Header,
    /// Counter to time.
    pub clock: Clock,
    /// All damage found so far.
    pub damage: Vec<Damage>,
    header_sound: bool,
    counting: Counting,
    names: Vec<Name<'a>>,
    cpus: BTreeMap<u32, Vec<Block<'a>>>,
    /// CPUs of which every block is damaged.
    missing: Vec<u32>,
}

/// Reads a raw file and checks its blocks.
///
/// # Errors
/// If this is no raw trace of format 5.
pub fn parse(bytes: &[u8]) -> Result<Raw<'_>, NotATrace> {
    let layout = file::split(bytes)?;
    let (clock, notes) = Clock::new(&layout.header);
    let counting = Counting::of(if layout.header_sound { layout.header.flags } else { 0 });
    let mut raw = Raw {
        header: layout.header,
        header_sound: layout.header_sound,
        counting,
        clock,
        damage: layout.damage,
        names: layout.names,
        cpus: BTreeMap::new(),
        missing: Vec::new(),
    };
    raw.damage.extend(notes.into_iter().map(|fact| Damage::at(16, fact)));
    let expected = Expected {
        uuid: layout.header_sound.then_some(layout.header.uuid),
        cpus: if layout.header_sound { layout.header.cpus.min(CPUS_MAX) } else { CPUS_MAX },
        counting,
    };
    raw.blocks(&layout.blocks, expected, layout.header.blocks);
    Ok(raw)
}

impl<'a> Raw<'a> {
    /// A decoder of all events; names are kept in `names`.
    pub fn decoder(&self, names: &mut Names) -> Decoder<'a> {
        let (start, wrapped) = (self.start(), self.header.flags & FLAG_WRAPPED != 0);
        let present = self.cpus.iter().map(|(&cpu, blocks)| (cpu, blocks.clone()));
        let mut streams: BTreeMap<u32, Stream> =
            present.map(|(cpu, blocks)| (cpu, Stream::new(cpu, blocks, start, wrapped))).collect();
        for &cpu in &self.missing {
            streams.entry(cpu).or_insert_with(|| Stream::unknown(cpu, start));
        }
        Decoder::new(self.clock, self.counting, streams.into_values().collect(), &self.names, names)
    }

    /// The name records of the file.
    pub fn names(&self) -> &[Name<'a>] {
        &self.names
    }

    /// Each CPU with its blocks, in sequence.
    pub fn cpus(&self) -> impl Iterator<Item = (u32, &[Block<'a>])> {
        self.cpus.iter().map(|(&cpu, blocks)| (cpu, &blocks[..]))
    }

    /// The original's flag byte: version 5, 0x40 if recorded in wrap mode and wrapped, 0x80 IPC, 0x20 LLC.
    pub fn flags(&self) -> u32 {
        let wrapped = FLAG_WRAP | FLAG_WRAPPED;
        let wrapped = if self.header.flags & wrapped == wrapped { 0x40 } else { 0 };
        self.counting.flags() | wrapped | 5
    }

    /// The blocks in use, by begin. The first line tells the start of the trace, from which times count, even if that
    /// block began later.
    pub fn block_lines(&self) -> Vec<BlockLine> {
        let line = |b: &Block| BlockLine { ts: self.clock.units(b.begin), cpu: b.cpu, index: b.index };
        let mut lines: Vec<_> = self.cpus.values().flatten().map(line).collect();
        lines.sort_by_key(|l| (l.ts, l.index));
        let start = self.clock.tsc_units(self.header.start.tsc.into());
        match lines.first_mut() {
            Some(first) => first.ts = start,
            None => lines.push(BlockLine { ts: start, cpu: 0, index: 0 }),
        }
        lines
    }

    /// What is known about the whole trace once `decoder` has come to its end.
    pub fn finish(&self, decoder: &Decoder) -> Meta {
        let recorded: u64 = self.cpus.values().filter_map(|b| b.last()).map(|b| b.lost).fold(0, u64::saturating_add);
        let lost = self.header.lost.max(recorded);
        let found = self.damage.iter().chain(decoder.streams().iter().flat_map(|s| &s.damage));
        let mut quality: Vec<String> = found.map(Damage::to_string).collect();
        quality.extend(sentences(&decoder.counts));
        let end = self.end();
        let interval = |s: &Stream| {
            let (from, last) = (self.clock.units(s.from()), self.clock.units(s.at()));
            Interval { cpu: s.cpu, from, to: last.max(end) }
        };
        let intervals = decoder.streams().iter().map(interval).collect();
        Meta { format: 5, base: date::utc(self.clock.base), flags: self.flags(), lost, quality, intervals }
    }

    /// Counter when tracing started; if the header is damaged, when the first block did.
    fn start(&self) -> u64 {
        let first = self.cpus.values().flatten().map(|b| b.begin).min();
        match first.filter(|_| !self.header_sound) {
            Some(begin) => begin,
            None => self.header.start.tsc >> self.clock.shift(),
        }
    }

    /// When the last CPU stopped to record: the stop in the header, or the end of the last block if that is later.
    fn end(&self) -> i64 {
        let ends = self.cpus.values().flatten().map(|b| self.clock.units(b.end.max(b.begin)));
        let stop = self.clock.tsc_units(self.header.stop.tsc.into());
        ends.chain(self.header_sound.then_some(stop)).max().unwrap_or(stop)
    }

    /// Checks all blocks, and marks where a CPU's time is missing because some were rejected.
    fn blocks(&mut self, blocks: &[(usize, &'a [u8])], expected: Expected, counted: u64) {
        let mut rejected = (blocks.len() as u64) < counted;
        let mut short = Vec::new();
        for (index, &(offset, bytes)) in blocks.iter().enumerate() {
            match block::parse(index, offset, bytes, expected) {
                Ok(block) => self.cpus.entry(block.cpu).or_default().push(block),
                Err(r) => {
                    rejected |= r.cpu.is_none();
                    short.extend(r.cpu.map(|cpu| (cpu, r.span.map_or(u64::MAX, |s| s.0))));
                    self.damage.push(Damage::of_block(index, offset, self.describe(&r)));
                }
            }
        }
        for blocks in self.cpus.values_mut() {
            order(blocks, &mut self.damage);
            if let Some(last) = blocks.last_mut() {
                let room = last.entries.len() + ENTRY_WORDS_MAX * 4 < self.counting.room();
                last.lost_after |= rejected && !room;
                last.lost_after |= short.iter().any(|&(cpu, begin)| cpu == last.cpu && begin >= last.begin);
            }
        }
        self.missing = short.into_iter().map(|(cpu, _)| cpu).collect();
    }

    fn describe(&self, r: &block::Rejected) -> String {
        let fact = r.fact;
        match (r.cpu, r.span) {
            (Some(cpu), Some((begin, end))) => {
                let us = (self.clock.units(end) - self.clock.units(begin)) / 100;
                format!("{fact}; skipped, cpu {cpu} misses {us} us")
            }
            (Some(cpu), None) => format!("{fact}; skipped, cpu {cpu} misses some time"),
            _ => format!("{fact}; skipped"),
        }
    }
}

/// Puts a CPU's blocks in sequence; of two with the same number the first stays.
fn order(blocks: &mut Vec<Block>, damage: &mut Vec<Damage>) {
    blocks.sort_by_key(|b| b.sequence);
    blocks.dedup_by(|later, first| {
        let same = later.sequence == first.sequence;
        if same {
            let (cpu, n) = (later.cpu, later.sequence);
            damage.push(Damage::of_block(
                later.index,
                later.offset,
                format!("a second block {n} of cpu {cpu}; skipped"),
            ));
        }
        same
    });
}

fn sentences(counts: &Counts) -> Vec<String> {
    let said = [
        (counts.gaps, "gaps in which a CPU's events are missing"),
        (counts.disagreements, "blocks name another thread than the events before them"),
    ];
    said.iter().filter(|s| s.0 > 0).map(|(n, what)| format!("{n} {what}")).collect()
}
