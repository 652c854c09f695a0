// SPDX-License-Identifier: BSD-3-Clause
//! Decodes the original's raw files, of its module versions 3 and 4, to events.
//!
//! The file is [`block`]s of 64 KiB, each followed by 8 KiB of counter bytes if anything was counted; its header is in
//! the first. [`stream`] reads the entries of one CPU, [`mod@decode`] makes events of those of all CPUs.
//!
//! Invariant: as for format 5, every content is read as far as it makes sense. The file has no means to detect damage,
//! so only impossible content is reported.

pub mod block;
pub mod stream;
pub mod decode;

use std::collections::BTreeMap;

use byteorder::{ByteOrder, LittleEndian};
use kutrace_format::capability::Unseen;
use kutrace_format::file::{Name, NameKind};
use kutrace_format::flag;
use kutrace_format::x86::vector;

use super::clock::Clock;
use super::damage::{Damage, NotATrace};
use super::decode::Counts;
use super::name::EventNames;
use crate::event::names::{clean, clean_sentence, Names};
use crate::event::what::What;
use crate::event::{date, number, BlockLine, Event, Interval, Meta};
use crate::id::CpuId;
use crate::raw::trace::{within, Decode, Head, Trace};
use crate::readable::count;
use crate::time::Time;
use block::Block;
use decode::Decoder;
use stream::Stream;

/// A name record: kind, number of the named thing, text.
type Record<'a> = (u32, u32, &'a [u8]);

/// Counts by which a block may begin before the start or after the stop.
const SLACK: u64 = 1 << 20;
/// Bytes up to the end of the file's description.
const HEADER_BYTES: usize = 96;
/// Thread ids in FreeBSD's block headers count from here, those in its entries from 0.
const FREEBSD_PIDS: u32 = 100_000;
/// The local timer's interrupt, unless the names give another.
const TIMER: u32 = number::IRQ + vector::LOCAL_TIMER;

/// A raw trace of the original's: its blocks are found, but not decoded.
#[derive(Debug)]
pub struct Original<'a> {
    flags: u32,
    clock: Clock,
    damage: Vec<Damage>,
    records: Vec<Record<'a>>,
    cpus: BTreeMap<CpuId, Vec<Block<'a>>>,
}

/// True if `bytes` are a raw file of the original: version 3 in the flags of the second word, and times less than a day
/// apart in the second and fourth word.
pub fn is_original(bytes: &[u8]) -> bool {
    let usec = |n: usize| block::counter(LittleEndian::read_u64(&bytes[n * 8..]));
    bytes.len() >= HEADER_BYTES && bytes[15] & 0x1f == 3 && usec(3) != 0 && usec(1).abs_diff(usec(3)) < 86_400_000_000
}

/// Finds the blocks of a raw file of the original.
///
/// # Errors
/// If this is not one.
pub fn parse(bytes: &[u8]) -> Result<Original<'_>, NotATrace> {
    if !is_original(bytes) {
        return Err(NotATrace::Unknown);
    }
    let word = |n: usize| LittleEndian::read_u64(&bytes[n * 8..]);
    let (start, stop) = ((word(2), block::counter(word(3))), (word(4), block::counter(word(5))));
    let mut damage = Vec::new();
    let (clock, until) = clock(start, stop, &mut damage);
    let flags = u32::from(bytes[15]);
    let mut blocks = blocks(bytes, flags, &mut damage);
    let records = records(&blocks, &mut damage);
    if records.iter().any(|(kind, _, text)| *kind == number::KERNEL_NAME && text.starts_with(b"FreeBSD")) {
        blocks.iter_mut().for_each(|b| b.pid = b.pid.checked_sub(FREEBSD_PIDS).unwrap_or(b.pid));
    }
    if until >> 32 > 0 && flags & flag::WRAPPED == 0 && blocks.iter().all(|b| b.begin >> 32 == 0) {
        lengthen(&mut blocks);
    }
    let mut cpus: BTreeMap<CpuId, Vec<Block>> = BTreeMap::new();
    for block in blocks {
        let unused = block.index == 0 && flags & flag::WRAPPED != 0;
        if !(start.0.saturating_sub(SLACK)..=until.saturating_add(SLACK)).contains(&block.begin) {
            damage.push(Damage::of_block(block.index, block.offset, "the block is not of this trace's time; skipped"));
        } else if !unused {
            cpus.entry(block.cpu).or_default().push(block);
        }
    }
    cpus.values_mut().for_each(|blocks| blocks.sort_by_key(|b| b.begin));
    Ok(Original { flags, clock, damage, records, cpus })
}

/// The clock, and the counter at the stop.
///
/// The original's control program takes small counters for those of 32 bits and adds what they would have lost; a stop
/// with this addition is corrected.
fn clock(start: (u64, u64), stop: (u64, u64), damage: &mut Vec<Damage>) -> (Clock, u64) {
    let short = start.0.saturating_add(stop.0.wrapping_sub(start.0) & u64::from(u32::MAX));
    for (until, note) in [(stop.0, None), (short, Some("the counter at the stop has excess high bits; ignored"))] {
        if let Some(clock) = Clock::of_original(start, (until, stop.1)) {
            damage.extend(note.map(|fact| Damage::at(32, fact)));
            return (clock, until);
        }
    }
    damage.push(Damage::at(16, "start and stop give no usable clock rate; 50 MHz is assumed"));
    (Clock::assumed(start), u64::MAX)
}

fn blocks<'a>(bytes: &'a [u8], flags: u32, damage: &mut Vec<Damage>) -> Vec<Block<'a>> {
    let counted = if flags & flag::COUNTERS != 0 { block::COUNTER_BYTES } else { 0 };
    let mut found = Vec::new();
    for (index, bytes_of) in bytes.chunks(block::BYTES + counted).enumerate() {
        let offset = index * (block::BYTES + counted);
        let block = Block::new(index, offset, bytes_of);
        let fact = match &block {
            None => "the file ends inside the block's header",
            Some(block) if block.cut => "the file ends inside the block",
            Some(_) if bytes_of.len() < block::BYTES + counted => "the file ends inside the block's counters",
            Some(_) => "",
        };
        if !fact.is_empty() {
            damage.push(Damage::of_block(index, bytes.len(), fact));
        }
        found.extend(block);
    }
    found
}

/// Restores the high bits of 32-bit counters, as on 32-bit ARM: blocks are in the order of their start, except those
/// that began at the same time.
fn lengthen(blocks: &mut [Block]) {
    let mut before = 0;
    for block in blocks {
        while block.begin + (1 << 31) < before {
            block.begin += 1 << 32;
        }
        before = block.begin;
    }
}

/// The names of all blocks, in the order of the file.
fn records<'a>(blocks: &[Block<'a>], damage: &mut Vec<Damage>) -> Vec<Record<'a>> {
    let mut records = Vec::new();
    for block in blocks {
        let mut strange = 0;
        records.extend(Some((number::PID_NAME, block.pid, block.comm)).filter(|(.., comm)| !comm.is_empty()));
        for entry in block.entries().map_while(Result::ok) {
            records.extend(entry.name());
            strange += u64::from(entry.is_strange());
        }
        if strange > 0 {
            let fact = format!("{} an unknown kind; skipped", count(strange, "name of", "names of"));
            damage.push(Damage::of_block(block.index, block.offset, fact));
        }
    }
    records
}

/// A name record as an event. Idle has the same name everywhere.
fn named((kind, number, text): Record, names: &mut Names) -> Event {
    let idle = kind == number::PID_NAME && (number == 0 || text.starts_with(b"idle:"));
    let (arg, text) = match kind {
        _ if idle => (0, "-idle-".to_string()),
        number::KERNEL_NAME | number::MODEL_NAME | number::HOST_NAME => (number, clean_sentence(text)),
        _ => (number, clean(text)),
    };
    Event { dur: Time::UNIT, what: What::of(kind), arg, name: names.id(&text), ..Event::default() }
}

impl<'a> Original<'a> {
    fn decoder(&self, names: &mut Names) -> Decoder<'a> {
        let known = |&(kind, number, text): &Record<'a>| {
            Some(Name { kind: u16::try_from(kind).ok()?, number, second: 0, text })
        };
        let known: Vec<Name> = self.records.iter().filter_map(known).collect();
        let irq = |is_it: fn(&[u8]) -> bool| {
            let found = known.iter().rfind(|n| n.kind == NameKind::Irq as u16 && is_it(n.text));
            found.map(|n| number::IRQ + (n.number & 0xff))
        };
        let timer = irq(|text| text.starts_with(b"local_timer")).unwrap_or(TIMER);
        let softirq = irq(|text| text == b"BH").unwrap_or(number::SOFTIRQ);
        let stream =
            |(&cpu, blocks): (&CpuId, &Vec<Block<'a>>)| Stream::new(cpu, blocks.clone(), self.clock, timer, softirq);
        let streams = self.cpus.iter().map(stream);
        let (event_names, _) = EventNames::new(&known, names);
        Decoder::new(streams.collect(), &self.records, event_names, names)
    }
}

impl Trace for Original<'_> {
    fn head(&self) -> Head {
        let line = |b: &Block| BlockLine { ts: self.clock.units(b.begin), cpu: b.cpu, index: b.index };
        let mut blocks: Vec<_> = self.cpus.values().flatten().map(line).collect();
        blocks.sort_by_key(|l| (l.ts, l.index));
        Head { format: 3, flags: self.flags, unseen: Unseen(0), base: self.clock.base, blocks }
    }

    fn decoder<'t>(&'t self, names: &mut Names) -> Box<dyn Decode + 't> {
        Box::new(Decoding { original: self, decoder: self.decoder(names) })
    }

    fn part<'t>(&'t self, cpu: CpuId, range: (Time, Time)) -> Box<dyn Trace + 't> {
        let all = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        let blocks = all[within(all.iter().map(|b| self.clock.units(b.begin)), range)].to_vec();
        let cpus = BTreeMap::from([(cpu, blocks)]);
        Box::new(Original { damage: Vec::new(), records: self.records.clone(), cpus, ..*self })
    }
}

/// A decoder of one of the original's raw traces.
struct Decoding<'t, 'a> {
    original: &'t Original<'a>,
    decoder: Decoder<'a>,
}

impl Decode for Decoding<'_, '_> {
    #[inline]
    fn next(&mut self, names: &mut Names) -> Option<Event> {
        self.decoder.next(names)
    }

    fn counts(&self) -> Counts {
        self.decoder.counts
    }

    fn meta(&self) -> Meta {
        let (original, streams) = (self.original, self.decoder.streams());
        let damage = original.damage.iter().chain(streams.iter().flat_map(|s| &s.damage));
        let to = streams.iter().map(Stream::at).max().unwrap_or_default();
        let intervals = streams.iter().map(|s| Interval { cpu: s.cpu, from: s.from(), to }).collect();
        Meta {
            format: 3,
            base: date::utc(original.clock.base),
            flags: original.flags,
            lost: 0,
            quality: damage.map(Damage::to_string).collect(),
            intervals,
            unseen: 0,
            counted: Vec::new(),
            machines: Vec::new(),
            boot_id: String::new(),
            monotonic: None,
            recorder: String::new(),
        }
    }
}
