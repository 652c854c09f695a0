// SPDX-License-Identifier: BSD-3-Clause
//! A stream that is decoded while it is written: from one moment to the next, everything that happened before the
//! counter up to which it is complete.
//!
//! It uses the decoder of whole files, paused at each of these counters: blocks that were read to their end are
//! released, and the decoder continues when more have come. Unlike a complete file, a stream on its way has its names
//! from the start only, and the rate of the clock as the kernel measured it at the boot.
//!
//! Invariant: memory holds the blocks and the programs' recordings between two moments, and the names so far.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::mem;

use kutrace_format::abi::block;
use kutrace_format::file::{self, Header, Name, Section, FLAG_STREAM};

use super::block::{Block, Expected};
use super::clock::Clock;
use super::counter::Counting;
use super::damage::Damage;
use super::decode::{self, Counts, Decoder};
use super::file::{checksum_without, stored};
use super::program::{self, Programs};
use super::sequence::is_tag;
use super::stream::{self, Item, Opening, Stream, Timed};
use super::trace::Head;
use super::{notes, refused, sentences, CUT};
use crate::event::names::Names;
use crate::event::{date, BlockLine, Event, Interval, Meta, CPUS_MAX};
use crate::id::CpuId;
use crate::readable::count;

/// Maximum size of a section other than blocks.
const SECTION_MAX: u64 = 256 << 20;

/// A stream on its way.
#[derive(Debug)]
pub struct Live<R> {
    input: R,
    /// Bytes read so far.
    at: u64,
    header: Header,
    clock: Clock,
    expected: Expected,
    /// The payload of the first names.
    names: Option<Vec<u8>>,
    queues: Vec<Queue>,
    /// Blocks read so far.
    blocks: usize,
    paused: Option<decode::Paused>,
    damage: Vec<Damage>,
    /// The counter up to which everything was decoded.
    limit: u64,
    /// Recordings of programs that are still needed.
    areas: Vec<Area>,
    /// Number of programs' entries that came after their time had been decoded.
    late: u64,
    /// Latest losses that each program reported.
    losses: BTreeMap<u32, Vec<String>>,
    /// A sentence for each program that was refused something.
    refused: Vec<String>,
    end: End,
}

/// A section of a program.
#[derive(Debug)]
struct Area {
    offset: usize,
    payload: Vec<u8>,
    /// The TSC of its last entry.
    last: u64,
}

/// End of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The stream continues.
    None,
    /// Complete.
    Stopped,
    /// Cut off.
    Cut,
}

/// The blocks of a CPU that are still needed.
#[derive(Debug)]
struct Queue {
    cpu: CpuId,
    blocks: VecDeque<Bytes>,
    stream: Option<stream::Paused>,
    /// The next item of the stream, with its counter.
    next: Option<(u64, Next)>,
    /// True if it has had any blocks.
    begun: bool,
}

#[derive(Debug)]
struct Bytes {
    index: usize,
    offset: usize,
    sequence: u64,
    begin: u64,
    bytes: Vec<u8>,
}

/// An [`Item`] that outlives its block.
#[derive(Debug)]
enum Next {
    Begin(u32, u32, kutrace_format::abi::event::TaskState, Vec<u8>),
    Lost(u64),
    Entry(u16, Vec<u8>, Vec<u8>),
}

fn invalid(at: u64, fact: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("byte {at}: {fact}"))
}

impl<R: Read> Live<R> {
    /// Opens a stream: reads its header.
    ///
    /// # Errors
    /// Any error of the input, or that this is not a stream.
    pub fn open(mut input: R) -> io::Result<Live<R>> {
        let mut head = [0; file::HEADER_BYTES];
        let mut read = 0;
        while read < head.len() {
            match input.read(&mut head[read..])? {
                0 => return Err(invalid(read as u64, "the file ends here, inside its header")),
                more => read += more,
            }
        }
        let sound =
            head.starts_with(&file::MAGIC) && checksum_without(&head, file::CRC_AT) == stored(&head, file::CRC_AT);
        let header = Header::from_bytes(&head).filter(|header| sound && header.flags & FLAG_STREAM != 0);
        let header = header.ok_or_else(|| invalid(0, "not a stream, as `record --stream` writes one"))?;
        // The stop is not known yet, so the rate is the kernel's: not a fault.
        let (clock, _) = Clock::new(&header);
        let cpus = header.cpus.min(CPUS_MAX);
        let expected = Expected { uuid: Some(header.uuid), cpus, counting: Counting::of(header.flags) };
        let queue =
            |cpu| Queue { cpu: CpuId::new(cpu), blocks: VecDeque::new(), stream: None, next: None, begun: false };
        Ok(Live {
            input,
            at: file::HEADER_BYTES as u64,
            header,
            clock,
            expected,
            names: None,
            queues: (0..cpus).map(queue).collect(),
            blocks: 0,
            paused: None,
            damage: Vec::new(),
            limit: 0,
            areas: Vec::new(),
            late: 0,
            losses: BTreeMap::new(),
            refused: Vec::new(),
            end: End::None,
        })
    }

    /// The facts that come before all events.
    pub fn head(&self) -> Head {
        let start = self.clock.tsc_units(self.header.start.tsc.into());
        Head {
            format: 5,
            flags: self.flags(),
            unseen: self.header.unseen,
            base: self.clock.base,
            blocks: vec![BlockLine { ts: start, cpu: CpuId::default(), index: 0 }],
        }
    }

    /// Waits for more, and passes to `each` the events that are then known to have no other before them; false at the
    /// end.
    ///
    /// # Errors
    /// Any error of the input or of `each`, or that the stream cannot be read further.
    pub fn turn(
        &mut self,
        names: &mut Names,
        mut each: impl FnMut(&Event, &Names) -> io::Result<()>,
    ) -> io::Result<bool> {
        let limit = self.read_on()?;
        let owned: Vec<Queue> = mem::take(&mut self.queues);
        let mut parsed = Vec::with_capacity(owned.len());
        for queue in &owned {
            parsed.push(queue.parse(limit, self.expected, &mut self.damage));
        }
        let given: Vec<usize> = parsed.iter().map(Vec::len).collect();
        let (start, opening) = (self.header.start.tsc >> self.clock.shift(), Opening::of(self.header.flags));
        let areas = mem::take(&mut self.areas);
        let programs = areas.iter().filter_map(|area| program::parse(area.offset, &area.payload).ok()).collect();
        let first = self.tsc_of(self.limit).max(self.header.start.tsc);
        let stop = if self.end == End::Stopped { self.header.stop.tsc } else { u64::MAX };
        let ends = parsed.iter().filter_map(|blocks| Some(blocks.last()?.end));
        let last = self.clock.last_tsc(ends, stop);
        let programs = Programs::new(programs, first, last.min(self.tsc_of(limit).saturating_sub(1)), stop);
        let mut decoder = match self.paused.take() {
            None => {
                let streams =
                    owned.iter().zip(parsed).map(|(queue, blocks)| Stream::new(queue.cpu, blocks, start, opening));
                let payload = self.names.take().unwrap_or_default();
                let records = records(&payload);
                let (clock, counting, unseen) = (self.clock, self.expected.counting, self.header.unseen);
                Decoder::new(clock, counting, unseen, streams.collect(), &records, programs, names)
            }
            Some(paused) => {
                let mut streams = Vec::with_capacity(owned.len());
                for (queue, blocks) in owned.iter().zip(parsed) {
                    let stream = match &queue.stream {
                        Some(stream) => Stream::resume(stream.clone(), blocks),
                        None => Stream::new(queue.cpu, blocks, start, opening),
                    };
                    streams.push((stream, queue.next.as_ref().map(Next::timed)));
                }
                Decoder::resume(paused, streams, programs)
            }
        };
        decoder.until(limit);
        while let Some(event) = decoder.next(names) {
            each(&event, names)?;
        }
        let (paused, streams) = decoder.pause();
        let stands: Vec<_> =
            streams.into_iter().map(|(stream, next)| (stream.pause(), next.map(|timed| Next::of(&timed)))).collect();
        self.paused = Some(paused);
        self.queues = owned;
        self.limit = limit;
        self.areas = areas;
        let decoded = self.tsc_of(limit);
        self.areas.retain(|area| area.last >= decoded);
        for ((queue, given), (stream, next)) in self.queues.iter_mut().zip(given).zip(stands) {
            let done = given.saturating_sub(stream.blocks());
            queue.blocks.drain(..done.min(queue.blocks.len()));
            (queue.stream, queue.next) = (Some(stream), next);
        }
        Ok(self.end == End::None)
    }

    /// Facts about the whole stream.
    pub fn meta(&self) -> Meta {
        let counts = self.counts();
        let streams = self.queues.iter().filter_map(|queue| queue.stream.as_ref());
        let damage = self.damage.iter().chain(streams.flat_map(|stream| stream.told().3));
        let mut quality: Vec<String> = damage.map(Damage::to_string).collect();
        quality.extend(sentences(&counts));
        quality.extend(notes(self.header.flags, self.header.refused_names, self.header.refused_marks));
        quality.extend(self.refused.iter().cloned());
        quality.extend((self.end == End::Cut).then(|| CUT.to_string()));
        quality.extend(self.losses.values().flatten().cloned());
        quality.extend((self.late > 0).then(|| {
            let marks = count(self.late, "mark of a program", "marks of programs");
            format!("{marks} came after later events had been shown; skipped")
        }));
        let stop = self.clock.tsc_units(self.header.stop.tsc.into());
        let begun = self.queues.iter().filter(|queue| queue.begun);
        let intervals = begun.filter_map(|queue| {
            let (cpu, from, at, _) = queue.stream.as_ref()?.told();
            Some(Interval { cpu, from: self.clock.units(from), to: self.clock.units(at).max(stop) })
        });
        Meta {
            format: 5,
            base: date::utc(self.clock.base),
            flags: self.flags(),
            lost: self.header.lost,
            intervals: intervals.collect(),
            quality,
            unseen: self.header.unseen.0,
            counted: Vec::new(),
            machines: Vec::new(),
            boot_id: super::boot_id(&self.header),
            monotonic: Clock::monotonic(&self.header),
            recorder: String::new(),
        }
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.paused.as_ref().map_or_else(Counts::default, |paused| paused.counts)
    }

    fn flags(&self) -> u32 {
        self.expected.counting.flags() | 5
    }

    /// Reads up to the next moment, or the end; returns the counter up to which everything has come.
    fn read_on(&mut self) -> io::Result<u64> {
        loop {
            let at = self.at;
            let mut head = [0; file::SECTION_BYTES];
            if !self.fill(&mut head)? {
                return Ok(u64::MAX);
            }
            let section = Section::from_bytes(&head);
            if !is_tag(section.tag) || (section.tag != file::BLOCKS && section.bytes > SECTION_MAX) {
                return Err(invalid(at, "the section header is damaged; without --live the rest can be used"));
            }
            if section.tag == file::BLOCKS {
                for _ in 0..section.bytes / block::BYTES as u64 {
                    if !self.block()? {
                        return Ok(u64::MAX);
                    }
                }
                continue;
            }
            let mut payload = vec![0; section.bytes as usize];
            if !self.fill(&mut payload)? {
                return Ok(u64::MAX);
            }
            if crc32fast::hash(&payload) != section.crc32 {
                self.damage.push(Damage::at(at as usize, "the checksum of a section does not match; skipped"));
                continue;
            }
            match section.tag {
                file::NAMES if self.paused.is_none() && self.names.is_none() => self.names = Some(payload),
                file::MOMENT => {
                    if let Some(whole) = payload.get(file::MOMENT_BYTES..).and_then(|rest| rest.first_chunk()) {
                        return Ok(u64::from_le_bytes(*whole));
                    }
                }
                file::PROGRAM => self.area(at as usize, payload),
                file::REFUSED => {
                    let refused = refused::parse(&payload).unwrap_or_default();
                    self.refused = refused.iter().map(ToString::to_string).collect();
                }
                file::STOP => {
                    let header = payload.first_chunk().and_then(Header::from_bytes);
                    if let Some(header) = header.filter(|header| header.uuid == self.header.uuid) {
                        self.header = header;
                    }
                    self.end = End::Stopped;
                    return Ok(u64::MAX);
                }
                _ => {}
            }
        }
    }

    /// Takes a program's recording.
    fn area(&mut self, offset: usize, payload: Vec<u8>) {
        let program = match program::parse(offset, &payload) {
            Ok(program) => program,
            Err(fact) => return self.damage.push(Damage::at(offset, format!("{fact}; skipped"))),
        };
        let (serial, losses) = (program.serial, program.losses());
        let (decoded, mut late, mut last) = (self.tsc_of(self.limit), 0, None);
        let mut all = Programs::new(vec![program], self.header.start.tsc, u64::MAX, u64::MAX);
        while let Some(said) = all.peek() {
            late += u64::from(said.entry.tsc < decoded);
            last = Some(said.entry.tsc);
            all.take();
        }
        self.damage.extend([all.faults(), all.unfinished()].concat());
        self.late += late;
        if losses.is_empty() {
            self.losses.remove(&serial);
        } else {
            self.losses.insert(serial, losses);
        }
        self.areas.extend(last.map(|last| Area { offset, payload, last }));
    }

    /// The first TSC with a counter value.
    fn tsc_of(&self, counter: u64) -> u64 {
        counter.saturating_mul(1 << self.clock.shift())
    }

    /// Reads a block; false if the input ends before it does.
    fn block(&mut self) -> io::Result<bool> {
        let (offset, mut bytes) = (self.at as usize, vec![0; block::BYTES]);
        if !self.fill(&mut bytes)? {
            return Ok(false);
        }
        let index = self.blocks;
        self.blocks += 1;
        match super::block::parse(index, offset, &bytes, self.expected) {
            Ok(Block { cpu, sequence, begin, .. }) => {
                let queue = &mut self.queues[cpu.index()];
                // A CPU's blocks come as they are given back, which may not be the order in which they began.
                let held = usize::from(queue.stream.as_ref().is_some_and(|stream| stream.reads()));
                let place = queue.blocks.iter().skip(held).position(|other| other.sequence > sequence);
                let place = place.map_or(queue.blocks.len(), |place| place + held);
                queue.blocks.insert(place, Bytes { index, offset, sequence, begin, bytes });
                queue.begun = true;
            }
            Err(rejected) => {
                self.damage.push(Damage::of_block(index, offset, format!("{}; skipped", rejected.fact)));
            }
        }
        Ok(true)
    }

    /// Fills a buffer; returns false, and marks the stream as cut, if the input ends before that.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let mut read = 0;
        while read < buffer.len() {
            match self.input.read(&mut buffer[read..]) {
                Ok(0) => {
                    self.end = End::Cut;
                    return Ok(false);
                }
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.at += read as u64;
        Ok(true)
    }
}

fn records(payload: &[u8]) -> Vec<Name<'_>> {
    let mut rest = payload;
    std::iter::from_fn(|| {
        let (name, after) = Name::split(rest)?;
        rest = after;
        Some(name)
    })
    .collect()
}

impl Queue {
    /// The blocks that began before a counter: blocks before the others may still be to come.
    fn parse(&self, limit: u64, expected: Expected, damage: &mut Vec<Damage>) -> Vec<Block<'_>> {
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for Bytes { index, offset, bytes, .. } in self.blocks.iter().take_while(|block| block.begin < limit) {
            match super::block::parse(*index, *offset, bytes, expected) {
                Ok(block) => blocks.push(block),
                // The block was sound when it came.
                Err(rejected) => damage.push(Damage::of_block(*index, *offset, rejected.fact.to_string())),
            }
        }
        blocks
    }
}

impl Next {
    fn of(timed: &Timed<'_>) -> (u64, Next) {
        let next = match timed.item {
            Item::Begin { pid, tgid, state, comm } => Next::Begin(pid, tgid, state, comm.to_vec()),
            Item::Lost(count) => Next::Lost(count),
            Item::Entry(number, words, counters) => Next::Entry(number, words.to_vec(), counters.to_vec()),
        };
        (timed.at, next)
    }

    fn timed((at, next): &(u64, Next)) -> Timed<'_> {
        let item = match next {
            Next::Begin(pid, tgid, state, comm) => Item::Begin { pid: *pid, tgid: *tgid, state: *state, comm },
            Next::Lost(count) => Item::Lost(*count),
            Next::Entry(number, words, counters) => Item::Entry(*number, words, counters),
        };
        Timed { at: *at, item }
    }
}
