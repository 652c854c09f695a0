// SPDX-License-Identifier: BSD-3-Clause
//! Raw: decodes a file of format 5, or of the [`original`], to events.
//!
//! The data flow of format 5: [`mod@file`] finds header, names and blocks, those of a stream by their [`sequence`],
//! [`block`] checks each block, [`stream`] reads the entries of one CPU, [`program`] those of programs,
//! [`mod@tracepoint`] the records of chosen tracepoints, [`merge`](crate::merge) orders all CPUs, [`mod@decode`] makes
//! events of the [`trace`] with the names of [`name`], the state of each [`task`], the codes of [`counter`], and the
//! times of [`clock`]. Meanwhile [`audit`] compares the events with the kernel's own counts, from its [`kernel_file`]s.
//!
//! Invariant: every content is read as far as it makes sense; [`damage`] reports what was wrong.

pub mod damage;
pub mod file;
pub mod sequence;
pub mod block;
pub mod clock;
pub mod counter;
pub mod stream;
pub mod name;
pub mod task;
mod label;
pub mod tracepoint;
pub mod program;
pub mod refused;
pub mod maps;
pub mod trace;
pub mod decode;
pub mod live;
pub mod kernel_file;
pub mod audit;
pub mod idle;
pub mod original;

use std::collections::{BTreeMap, BTreeSet};

use kutrace_format::abi::command::Moment;
use kutrace_format::abi::event::ENTRY_WORDS_MAX;
use kutrace_format::capability::Unseen;
use kutrace_format::file::{
    Header, Name, NameKind, CPU_OFFLINE, FLAG_CONTINUED, FLAG_MUTE, FLAG_SLEEP, FLAG_UNSTABLE, FLAG_WRAP, FLAG_WRAPPED,
};

use kutrace_format::flag;
use kutrace_format::reading::Reading;

use crate::event::names::Names;
use crate::event::{date, BlockLine, Event, Interval, Meta, CPUS_MAX};
use crate::id::CpuId;
use crate::progress;
use crate::readable::count;
use crate::time::Time;
use audit::Audit;
use block::{Block, Expected};
use clock::Clock;
use counter::Counting;
use damage::{Damage, NotATrace};
use decode::{Counts, Decoder};
use idle::IdleTime;
use maps::{Maps, Place};
use stream::{Opening, Stream};
use trace::{within, Counter, Decode, Head, Trace};

/// Maximum time from the end of a CPU's last block to the stop, because stopping all CPUs took that long: 0.1 s.
const SLACK: Time = Time(10_000_000);

/// A raw trace, checked and sorted by CPU, but not decoded.
#[derive(Debug)]
pub struct Raw<'a> {
    /// The file header.
    pub header: Header,
    /// Conversion of counter to time.
    pub clock: Clock,
    /// All damage found so far.
    pub damage: Vec<Damage>,
    header_sound: bool,
    /// True if this is a stream without its end.
    cut: bool,
    counting: Counting,
    names: Vec<Name<'a>>,
    maps: Maps,
    readings: Vec<Reading<'a>>,
    programs: Vec<program::Program<'a>>,
    refused: Vec<refused::Refused<'a>>,
    cpus: BTreeMap<CpuId, Vec<Block<'a>>>,
    /// CPUs whose blocks are all damaged.
    missing: Vec<CpuId>,
}

/// Reads a raw file and checks its blocks.
///
/// # Errors
/// If this is not a raw trace of format 5.
pub fn parse(bytes: &[u8]) -> Result<Raw<'_>, NotATrace> {
    let layout = file::split(bytes)?;
    let (clock, notes) = Clock::new(&layout.header);
    let counting = Counting::of(if layout.header_sound { layout.header.flags } else { 0 });
    let mut raw = Raw {
        header: layout.header,
        header_sound: layout.header_sound,
        cut: layout.cut,
        counting,
        clock,
        damage: layout.damage,
        maps: Maps::new(&layout.names),
        names: layout.names,
        readings: layout.readings,
        programs: layout.programs,
        refused: layout.refused,
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
        let (start, opening) = (self.start(), Opening::of(self.header.flags));
        progress::begin(self.cpus.values().map(|blocks| blocks.len() as u64).sum());
        let present = self.cpus.iter().map(|(&cpu, blocks)| (cpu, blocks.clone()));
        let mut streams: BTreeMap<CpuId, Stream> =
            present.map(|(cpu, blocks)| (cpu, Stream::new(cpu, blocks, start, opening))).collect();
        for &cpu in &self.missing {
            streams.entry(cpu).or_insert_with(|| Stream::unknown(cpu, start));
        }
        let streams = streams.into_values().collect();
        Decoder::new(self.clock, self.counting, self.unseen(), streams, &self.names, self.programs(), names)
            .with_maps(self.maps.clone(), self.monotonic_ns())
    }

    /// Places in programs' files where samples may lie.
    fn places(&self) -> BTreeSet<Place> {
        let mut sampled = BTreeSet::new();
        if !self.maps.is_empty() {
            self.cpus.values().flatten().for_each(|block| maps::sampled(block.entries, &mut sampled));
        }
        self.maps.places(&sampled)
    }

    /// Time 0 on the monotonic clock.
    fn monotonic_ns(&self) -> i64 {
        let Moment { tsc, monotonic_ns, .. } = self.header.start;
        (monotonic_ns as i64).saturating_sub(self.clock.tsc_units(tsc.into()).0.saturating_mul(10))
    }

    /// Recordings of programs during the trace.
    fn programs(&self) -> program::Programs<'a> {
        let (start, stop) = match self.header_sound {
            true => (self.header.start.tsc, self.header.stop.tsc),
            false => (0, u64::MAX),
        };
        let ends = self.cpus.values().filter_map(|blocks| Some(blocks.last()?.end));
        let last = self.clock.last_tsc(ends, stop);
        program::Programs::new(self.programs.clone(), start, last, stop)
    }

    /// The name records of the file.
    pub fn names(&self) -> &[Name<'a>] {
        &self.names
    }

    /// Each CPU with its blocks, in sequence.
    pub fn cpus(&self) -> impl Iterator<Item = (CpuId, &[Block<'a>])> {
        self.cpus.iter().map(|(&cpu, blocks)| (cpu, &blocks[..]))
    }

    /// One CPU's blocks of a time range, and the one before them, as if the trace had wrapped.
    pub fn part(&self, cpu: CpuId, range: (Time, Time)) -> Raw<'a> {
        let all = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        let blocks = all[within(all.iter().map(|b| self.clock.units(b.begin)), range)].to_vec();
        let header = Header { flags: self.header.flags | FLAG_WRAPPED, ..self.header };
        Raw {
            header,
            damage: Vec::new(),
            names: self.names.clone(),
            maps: self.maps.clone(),
            readings: Vec::new(),
            programs: Vec::new(),
            refused: Vec::new(),
            cpus: BTreeMap::from([(cpu, blocks)]),
            missing: Vec::new(),
            ..*self
        }
    }

    /// Number of lost events, by the header or the blocks.
    pub fn lost(&self) -> u64 {
        let recorded: u64 = self.cpus.values().filter_map(|b| b.last()).map(|b| b.lost).fold(0, u64::saturating_add);
        self.header.lost.max(recorded)
    }

    /// The original's flag byte: version 5, 0x40 if recorded in wrap mode and wrapped, 0x80 IPC, 0x20 LLC.
    pub fn flags(&self) -> u32 {
        let wrapped = FLAG_WRAP | FLAG_WRAPPED;
        let wrapped = if self.header.flags & wrapped == wrapped { flag::WRAPPED } else { 0 };
        self.counting.flags() | wrapped | 5
    }

    /// The blocks in use, in the order of their start. The first line has the start of the trace, from which times
    /// count, even if that block began later.
    pub fn block_lines(&self) -> Vec<BlockLine> {
        let line = |b: &Block| BlockLine { ts: self.clock.units(b.begin), cpu: b.cpu, index: b.index };
        let mut lines: Vec<_> = self.cpus.values().flatten().map(line).collect();
        lines.sort_by_key(|l| (l.ts, l.index));
        let start = self.clock.tsc_units(self.header.start.tsc.into());
        match lines.first_mut() {
            Some(first) => first.ts = start,
            None => lines.push(BlockLine { ts: start, cpu: CpuId::default(), index: 0 }),
        }
        lines
    }

    /// Facts about the whole trace once `decoder` has come to its end.
    pub fn finish(&self, decoder: &Decoder) -> Meta {
        let lost = self.lost();
        let found = self.damage.iter().chain(decoder.streams().iter().flat_map(|s| &s.damage));
        let mut quality: Vec<String> = found.map(Damage::to_string).collect();
        let programs = decoder.programs();
        quality.extend(programs.faults().iter().chain(&programs.unfinished()).map(Damage::to_string));
        let gaps = if self.cut { 0 } else { decoder.counts.gaps };
        quality.extend(sentences(&Counts { gaps, ..decoder.counts }));
        quality.extend(self.notes());
        let is_continued = self.header_sound && self.header.flags & FLAG_CONTINUED != 0;
        let end = if is_continued { self.clock.tsc_units(self.header.stop.tsc.into()) } else { self.end() };
        let interval = |s: &Stream| {
            let (from, last) = (self.clock.units(s.from()), self.clock.units(s.at()));
            Interval { cpu: s.cpu, from, to: last.max(end) }
        };
        let mut intervals: Vec<Interval> = decoder.streams().iter().map(interval).collect();
        let from = intervals.iter().map(|i| i.from).min().unwrap_or_else(|| self.clock.units(self.start()));
        let silent = self.offline().filter(|cpu| !intervals.iter().any(|i| i.cpu == *cpu)).collect::<Vec<_>>();
        intervals.extend(silent.into_iter().map(|cpu| Interval { cpu, from, to: end }));
        intervals.sort_by_key(|i| i.cpu);
        Meta {
            format: 5,
            base: date::utc(self.clock.base),
            flags: self.flags(),
            lost,
            quality,
            intervals,
            unseen: self.unseen().0,
            counted: Vec::new(),
            machines: Vec::new(),
            boot_id: if self.header_sound { boot_id(&self.header) } else { String::new() },
            monotonic: Clock::monotonic(&self.header).filter(|_| self.header_sound),
            recorder: String::new(),
        }
    }

    /// True if nothing is damaged, and times are right.
    fn is_sound(&self, decoder: &Decoder) -> bool {
        let damaged = self.damage.iter().chain(decoder.streams().iter().flat_map(|s| &s.damage)).next().is_some();
        self.header_sound && !damaged && self.header.flags & FLAG_UNSTABLE == 0
    }

    /// Capabilities that the source of the events reports it lacks.
    fn unseen(&self) -> Unseen {
        Unseen(if self.header_sound { self.header.unseen.0 } else { 0 })
    }

    /// CPUs that were offline when the recording began.
    fn offline(&self) -> impl Iterator<Item = CpuId> + '_ {
        let cpus = self.names.iter().filter(|name| name.kind == NameKind::Cpu as u16 && name.number < CPUS_MAX);
        cpus.filter(|name| name.second & CPU_OFFLINE != 0).map(|name| CpuId::new(name.number))
    }

    /// Notes of the recorder on the whole trace, and losses of programs.
    pub fn notes(&self) -> Vec<String> {
        let of_header = || {
            let noted = notes(self.header.flags, self.header.refused_names, self.header.refused_marks);
            let cut = self.cut.then(|| CUT.to_string());
            noted.into_iter().chain(unknown(self.header.unseen)).chain(cut)
        };
        let refused = self.refused.iter().map(ToString::to_string);
        let losses = program::losses(&self.programs);
        self.header_sound.then(of_header).into_iter().flatten().chain(refused).chain(losses).collect()
    }

    /// Counter when tracing started; if the header is damaged, at the start of the first block.
    fn start(&self) -> u64 {
        let first = self.cpus.values().flatten().map(|b| b.begin).min();
        match first.filter(|_| !self.header_sound) {
            Some(begin) => begin,
            None => self.header.start.tsc >> self.clock.shift(),
        }
    }

    /// Time when the last CPU stopped recording: the stop in the header, or the end of the last block if that is later.
    fn end(&self) -> Time {
        let ends = self.cpus.values().flatten().map(|b| self.clock.units(b.end.max(b.begin)));
        let stop = self.clock.tsc_units(self.header.stop.tsc.into());
        ends.chain(self.header_sound.then_some(stop)).max().unwrap_or(stop)
    }

    /// Checks all blocks, and marks where a CPU's time is missing because blocks were rejected.
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
        for (&cpu, blocks) in &mut self.cpus {
            order(blocks, &mut self.damage);
            // In a stream that was cut off, the block of a call may be missing although later ones have been written.
            if !self.cut && !rejected && short.iter().all(|s| s.0 != cpu) {
                skipped(blocks, self.header.flags & FLAG_WRAPPED != 0, &mut self.damage);
            }
            if let Some(last) = blocks.last_mut() {
                let room = last.entries.len() + ENTRY_WORDS_MAX * 4 < self.counting.room();
                last.lost_after |= rejected && !room;
                last.lost_after |= short.iter().any(|&(cpu, begin)| cpu == last.cpu && begin >= last.begin);
            }
        }
        self.missing = short.into_iter().map(|(cpu, _)| cpu).collect();
        if blocks.is_empty() && counted == 0 {
            self.damage.push(Damage::at(40, "the file has no blocks: nothing was recorded"));
        }
        self.ends_early();
    }

    /// The stop makes every CPU end its last block, after the moment in the header. If one ends well before that, and
    /// did not run out of memory or go offline, its later events are missing.
    fn ends_early(&mut self) {
        let stop = self.clock.tsc_units(self.header.stop.tsc.into());
        for (&cpu, blocks) in self.cpus.iter_mut().filter(|(_, b)| self.header_sound && b.iter().all(|b| !b.back)) {
            let Some(last) = blocks.last_mut().filter(|b| b.end != 0 && !b.lost_after && !b.offline) else { continue };
            let early = stop - self.clock.units(last.end);
            if early > SLACK && self.cut {
                last.lost_after = true;
            } else if early > SLACK {
                let fact = format!(
                    "the last block of cpu {cpu} ends {} us before the stop: later ones are missing",
                    early / 100
                );
                self.damage.push(Damage::of_block(last.index, last.offset, fact));
                last.lost_after = true;
            }
        }
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

impl Trace for Raw<'_> {
    fn head(&self) -> Head {
        Head {
            format: 5,
            flags: self.flags(),
            unseen: self.unseen(),
            base: self.clock.base,
            blocks: self.block_lines(),
        }
    }

    fn decoder<'t>(&'t self, names: &mut Names) -> Box<dyn Decode + 't> {
        let audit = Audit::new(&self.readings, &self.clock, self.unseen());
        Box::new(Decoding { raw: self, decoder: self.decoder(names), audit, ended: false })
    }

    fn part<'t>(&'t self, cpu: CpuId, range: (Time, Time)) -> Box<dyn Trace + 't> {
        Box::new(self.part(cpu, range))
    }

    fn counter(&self) -> Option<Counter> {
        self.header_sound.then_some(Counter { clock: self.clock, from: self.header.start.tsc })
    }

    fn notes(&self) -> Vec<String> {
        self.notes()
    }

    fn idle(&self) -> Vec<IdleTime> {
        idle::counted(&self.readings, &self.clock)
    }

    fn places(&self) -> BTreeSet<Place> {
        self.places()
    }

    fn tell(&mut self, functions: &BTreeMap<Place, String>) {
        self.maps.tell(functions);
    }

    fn forget_functions(&mut self) {
        self.maps = Maps::default();
        self.names.retain(|name| name.kind != NameKind::Symbol as u16);
    }
}

/// A raw trace being decoded.
struct Decoding<'t, 'a> {
    raw: &'t Raw<'a>,
    decoder: Decoder<'a>,
    audit: Audit,
    /// True once all events have been decoded.
    ended: bool,
}

impl Decode for Decoding<'_, '_> {
    #[inline]
    fn next(&mut self, names: &mut Names) -> Option<Event> {
        let event = self.decoder.next(names);
        match &event {
            Some(event) => self.audit.event(event),
            None => self.ended = true,
        }
        event
    }

    fn counts(&self) -> Counts {
        self.decoder.counts
    }

    fn notes(&self) -> Vec<String> {
        self.decoder.programs().unfinished().iter().map(Damage::to_string).collect()
    }

    fn meta(&self) -> Meta {
        let mut meta = self.raw.finish(&self.decoder);
        if self.ended {
            let found = self.audit.finish(&meta.intervals, self.raw.header.flags & FLAG_WRAPPED != 0);
            meta.counted = found.compared;
            // A damaged trace lacks events for other reasons.
            match self.raw.is_sound(&self.decoder) {
                true => meta.quality.extend(found.wrong),
                false => meta.counted.extend(found.wrong),
            }
        }
        meta
    }
}

/// Note for a stream whose writer was killed, or is still writing.
const CUT: &str = "the stream has no end: its writer was cut off or still writes; later events are missing";

/// Notes of the recorder on a whole trace, a sentence each: by the flags of the file's header, and by the number of
/// names and marks it refused.
pub fn notes(flags: u32, refused_names: u64, refused_marks: u64) -> Vec<String> {
    let noted = [
        (FLAG_SLEEP, "the trace ended because the machine was about to sleep (suspend or hibernation)"),
        (FLAG_UNSTABLE, "the kernel found that the TSC is not stable: times may be wrong"),
        (FLAG_MUTE, "a CPU took no interrupt when it had to end its block: its later events are missing"),
    ];
    let noted = noted.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, what)| what.to_string());
    let refused = [(refused_names, "names"), (refused_marks, "marks")].into_iter().filter(|(n, _)| *n > 0);
    let refused = refused
        .map(|(n, what)| format!("{n} {what} of programs were refused: they came faster than the recorder can take"));
    noted.chain(refused).collect()
}

/// An identity in its usual groups of digits.
pub fn uuid(bytes: &[u8; 16]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..4], &digits[4..6], &digits[6..8], &digits[8..10], &digits[10..]].map(<[String]>::concat).join("-")
}

/// The kernel's id of its run, empty if a file does not have it.
pub fn boot_id(header: &Header) -> String {
    if header.boot_id == [0; 16] {
        String::new()
    } else {
        uuid(&header.boot_id)
    }
}

/// Sentence about capabilities that the recorder lacks and only newer programs know.
fn unknown(unseen: Unseen) -> Option<String> {
    let bits = Some(unseen.unknown()).filter(|bits| *bits != 0)?;
    Some(format!("the recorder could not see kinds of facts that this program does not know (0x{bits:x})"))
}

/// Reports where blocks of a CPU are missing: their numbers have no holes otherwise.
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

/// Reports missing blocks of a CPU: their numbers have no holes otherwise.
fn skipped(blocks: &[Block], wrapped: bool, damage: &mut Vec<Damage>) {
    let mut next = blocks.first().map_or(0, |b| if wrapped { b.sequence } else { 0 });
    for block in blocks {
        if let Some(missing @ 1..) = block.sequence.checked_sub(next) {
            let blocks = count(missing, "block", "blocks");
            let fact =
                format!("before it {blocks} of cpu {} {} missing", block.cpu, if missing == 1 { "is" } else { "are" });
            damage.push(Damage::of_block(block.index, block.offset, fact));
        }
        next = block.sequence.wrapping_add(1);
    }
}

fn sentences(counts: &Counts) -> Vec<String> {
    let said = [
        (counts.gaps, "gap in which a CPU's events are missing", "gaps in which a CPU's events are missing"),
        (
            counts.disagreements,
            "block names another thread than the events before it",
            "blocks name another thread than the events before them",
        ),
        (
            counts.unplaced,
            "mark of a program at a time when no CPU is known to have run its thread",
            "marks of programs at times when no CPU is known to have run their threads",
        ),
    ];
    said.into_iter().filter(|s| s.0 > 0).map(|(n, one, many)| count(n, one, many)).collect()
}
