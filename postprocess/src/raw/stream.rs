// SPDX-License-Identifier: BSD-3-Clause
//! The entries of one CPU: its blocks in sequence, times unwrapped, gaps marked.
//!
//! Invariant: times never go backwards: if a block reports that the counter stepped back, they continue from where they
//! were. Unknown time ends at the next block, with an [`Item::Lost`] before it.

use byteorder::{ByteOrder, LittleEndian};
use kutrace_format::abi::event::{self, TaskState};
use kutrace_format::abi::word;
use kutrace_format::file::{FLAG_CONTINUES, FLAG_WRAPPED};

use super::block::Block;
use super::damage::Damage;
use crate::id::CpuId;
use crate::merge::When;
use crate::progress;

/// An item of a CPU's stream, with its counter value.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    /// Counter value.
    pub at: u64,
    /// The item.
    pub item: Item<'a>,
}

impl When for Timed<'_> {
    type Time = u64;

    #[inline]
    fn when(&self) -> u64 {
        self.at
    }
}

/// An entry, or a fact from around the entries.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A block begins; after an [`Item::Lost`] and at the start nothing else shows what the CPU is doing.
    Begin {
        /// Thread running.
        pid: u32,
        /// First thread of its process.
        tgid: u32,
        /// Its state.
        state: TaskState,
        /// Its name.
        comm: &'a [u8],
    },
    /// From here to the next [`Item::Begin`] nothing is known; this many events were lost, as far as they were counted.
    Lost(u64),
    /// An entry of this event, with its argument words and, if anything was counted, the counter byte of its own word
    /// and of each argument word.
    Entry(u16, &'a [u8], &'a [u8]),
}

/// Start of the streams of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// With the trace: the first block of a CPU that was quiet then begins later.
    Start,
    /// Each with its first block: the trace continues the file before, which has the earlier events.
    Continues,
    /// With the first block that was not overwritten.
    Wrapped,
}

impl Opening {
    /// The opening of a trace with these flags.
    pub fn of(flags: u32) -> Opening {
        match flags {
            flags if flags & FLAG_WRAPPED != 0 => Opening::Wrapped,
            flags if flags & FLAG_CONTINUES != 0 => Opening::Continues,
            _ => Opening::Start,
        }
    }
}

/// The stream of one CPU.
#[derive(Debug)]
pub struct Stream<'a> {
    /// The CPU.
    pub cpu: CpuId,
    /// Damage found in the entries.
    pub damage: Vec<Damage>,
    blocks: std::iter::Peekable<std::vec::IntoIter<Block<'a>>>,
    block: Option<Block<'a>>,
    /// Entries of `block` that are not read yet.
    rest: &'a [u8],
    /// Counter at which the stream begins.
    from: u64,
    /// Counter of the last entry, as unwrapped.
    counter: u64,
    /// Addition to `counter`: the amount by which the counter has stepped back since the first block.
    ahead: u64,
    /// Counter last returned; never goes back.
    at: u64,
    /// The event last returned, and its first argument word.
    last: (u16, u32),
    /// True if something is missing between `rest` and the next block.
    gap: bool,
    /// True if it was reported that time goes back in `block`.
    back: bool,
    /// Number of lost events that were reported.
    lost: u64,
}

/// State of a stream whose blocks are taken away for a while; see [`Stream::pause`].
#[derive(Clone, Debug)]
pub struct Paused {
    cpu: CpuId,
    damage: Vec<Damage>,
    /// Unread bytes of the block being read; `None` if there is none.
    rest: Option<usize>,
    /// Number of its blocks that were not begun.
    pub ahead_blocks: usize,
    from: u64,
    counter: u64,
    ahead: u64,
    at: u64,
    last: (u16, u32),
    gap: bool,
    back: bool,
    lost: u64,
}

impl Paused {
    /// Number of blocks needed to continue: the one being read, if there is one, and those that were not begun.
    pub fn blocks(&self) -> usize {
        self.ahead_blocks + usize::from(self.rest.is_some())
    }

    /// True if a block was begun, which is the first of those blocks.
    pub fn reads(&self) -> bool {
        self.rest.is_some()
    }

    /// The CPU, the counters where its stream begins and up to which it was read, and the damage found.
    pub fn told(&self) -> (CpuId, u64, u64, &[Damage]) {
        (self.cpu, self.from, self.at, &self.damage)
    }
}

impl<'a> Iterator for Stream<'a> {
    type Item = Timed<'a>;

    /// The next item of the CPU's stream; `None` at its end.
    fn next(&mut self) -> Option<Timed<'a>> {
        if let Some(entry) = self.entry() {
            return Some(entry);
        }
        self.ends_before();
        if std::mem::take(&mut self.gap) {
            return Some(self.lose());
        }
        self.begin()
    }
}

impl<'a> Stream<'a> {
    /// The stream of `cpu` from its blocks, ordered by sequence. `start` is the counter when tracing began.
    pub fn new(cpu: CpuId, blocks: Vec<Block<'a>>, start: u64, opening: Opening) -> Stream<'a> {
        let (sequence, begin) = blocks.first().map_or((0, start), |b| (b.sequence, b.begin));
        let at = match (opening, sequence) {
            (Opening::Start, 0) => start.min(begin),
            (Opening::Continues, 0) | (Opening::Wrapped, _) => begin,
            _ => start,
        };
        let gap = sequence != 0 && opening != Opening::Wrapped;
        let blocks = blocks.into_iter().peekable();
        Stream {
            cpu,
            damage: Vec::new(),
            blocks,
            block: None,
            rest: &[],
            from: at,
            counter: at,
            ahead: 0,
            at,
            last: (event::NOP, 0),
            gap,
            back: false,
            lost: 0,
        }
    }

    /// The stream's state.
    pub fn pause(self) -> Paused {
        Paused {
            cpu: self.cpu,
            damage: self.damage,
            rest: self.block.map(|_| self.rest.len()),
            ahead_blocks: self.blocks.len(),
            from: self.from,
            counter: self.counter,
            ahead: self.ahead,
            at: self.at,
            last: self.last,
            gap: self.gap,
            back: self.back,
            lost: self.lost,
        }
    }

    /// Continues from a state, with the blocks that are needed for that and those that have come since.
    pub fn resume(paused: Paused, blocks: Vec<Block<'a>>) -> Stream<'a> {
        let mut blocks = blocks.into_iter().peekable();
        let block = paused.rest.and_then(|_| blocks.next());
        let entries = block.map_or(&[][..], |block| block.entries);
        let rest = &entries[entries.len().saturating_sub(paused.rest.unwrap_or_default())..];
        let follows = |next: &Block| block.is_none_or(|block| next.sequence == block.sequence.wrapping_add(1));
        // The next block was not known when this one began.
        let gap = paused.gap || blocks.peek().is_some_and(|next| !follows(next));
        Stream {
            cpu: paused.cpu,
            damage: paused.damage,
            blocks,
            block,
            rest,
            from: paused.from,
            counter: paused.counter,
            ahead: paused.ahead,
            at: paused.at,
            last: paused.last,
            gap,
            back: paused.back,
            lost: paused.lost,
        }
    }

    /// The stream of a CPU without any usable block: one gap.
    pub fn unknown(cpu: CpuId, start: u64) -> Stream<'a> {
        Stream { gap: true, ..Stream::new(cpu, Vec::new(), start, Opening::Start) }
    }

    /// Counter at which the stream begins.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Counter at the end of the blocks that were begun.
    pub fn until(&self) -> u64 {
        self.block.map_or(self.at, |block| self.at.max(block.end.wrapping_add(self.ahead)))
    }

    /// Counter last returned.
    pub fn at(&self) -> u64 {
        self.at
    }

    fn lose(&mut self) -> Timed<'a> {
        let lost = self.block.map_or(0, |b| b.lost);
        let count = lost.saturating_sub(self.lost);
        self.lost = lost.max(self.lost);
        // A call with its return in its own entry had returned.
        if let (event::SYSCALL..=event::SYSCALL_LAST | event::SYSCALL32..=event::SYSCALL32_LAST, word) = self.last {
            self.at += word::Call::decode(word).folded.map_or(0, |(dur, _)| u64::from(dur));
        }
        Timed { at: self.at, item: Item::Lost(count) }
    }

    fn begin(&mut self) -> Option<Timed<'a>> {
        let block = self.blocks.next()?;
        progress::advance(1);
        let follows = self.blocks.peek().is_none_or(|next| next.sequence == block.sequence.wrapping_add(1));
        self.gap = block.lost_after || !follows;
        self.counter = block.begin;
        self.back = false;
        self.rest = block.entries;
        self.block = Some(block);
        if block.back {
            self.stepped_back();
        }
        if block.sequence != 0 {
            self.at = self.at.max(self.now());
        }
        let Block { pid, tgid, state, comm, .. } = block;
        Some(Timed { at: self.at, item: Item::Begin { pid, tgid, state, comm } })
    }

    #[inline]
    fn entry(&mut self) -> Option<Timed<'a>> {
        loop {
            let (head, rest) = self.rest.split_at_checked(4)?;
            let entry = LittleEndian::read_u32(head);
            let number = word::event(entry);
            if number == event::NOP {
                self.rest = rest;
                continue;
            }
            let Some(words) = event::argument_words(number) else {
                return self.give_up(format!("event number {number:#05x} is not known"));
            };
            let Some((words, rest)) = rest.split_at_checked(4 * words) else {
                return self.give_up(format!("an entry of event {number:#05x} is cut short"));
            };
            let counters = self.counters(1 + words.len() / 4);
            self.rest = rest;
            self.advance(word::time(entry));
            if number == event::FULL_TIME {
                self.counter = LittleEndian::read_u64(words);
                continue;
            }
            if self.now() < self.at {
                self.went_back();
            }
            self.at = self.at.max(self.now());
            self.last = (number, words.first_chunk().map_or(0, |word| u32::from_le_bytes(*word)));
            return Some(Timed { at: self.at, item: Item::Entry(number, words, counters) });
        }
    }

    /// The counter of the last entry, as if it had never stepped back.
    #[inline]
    fn now(&self) -> u64 {
        self.counter.wrapping_add(self.ahead)
    }

    /// The counter bytes of the next words.
    #[inline]
    fn counters(&self, words: usize) -> &'a [u8] {
        let Some(block) = &self.block else { return &[] };
        let at = (block.entries.len() - self.rest.len()) / 4;
        block.counters.get(at..at + words).unwrap_or_default()
    }

    /// Moves to the next counter value that ends in these 20 bits.
    #[inline]
    fn advance(&mut self, time: u32) {
        let mask = word::TIME_PERIOD - 1;
        self.counter = self.counter.wrapping_add(u64::from(time).wrapping_sub(self.counter) & mask);
    }

    /// Skips the rest of a block from an invalid entry on.
    #[cold]
    fn give_up(&mut self, fact: String) -> Option<Timed<'a>> {
        let unread = self.rest.len();
        self.report(format!("{fact}; {unread} bytes of cpu {} skipped", self.cpu));
        self.rest = &[];
        self.gap = true;
        None
    }

    /// A block cannot end before its entries: the counter stepped back among them, and no later entry showed it. If the
    /// next block reports a step back, the end is a guess.
    fn ends_before(&mut self) {
        let Some(block) = &self.block else { return };
        let told = self.back || self.blocks.peek().is_some_and(|next| next.back);
        if block.end != 0 && block.end < self.counter && !told {
            let back = self.counter - block.end;
            self.back = true;
            self.report(format!("time goes back by {back} counts on cpu {}; held", self.cpu));
        }
    }

    /// Holds the time until the counter, which was given in full, has caught up with it.
    #[cold]
    fn went_back(&mut self) {
        if !std::mem::replace(&mut self.back, true) {
            let back = self.at - self.now();
            self.report(format!("time goes back by {back} counts on cpu {}; held", self.cpu));
        }
    }

    /// Continues from the time of the last entry, if the counter is before it: the duration of the step is unknown.
    #[cold]
    fn stepped_back(&mut self) {
        let back = self.at.saturating_sub(self.now());
        if back > 0 {
            self.ahead = self.ahead.wrapping_add(back);
            self.report(format!(
                "the clock of cpu {} stepped back by {back} counts; times continue from there",
                self.cpu
            ));
        }
    }

    fn report(&mut self, fact: String) {
        let Some(block) = &self.block else { return };
        let read = block.entries.len() - self.rest.len();
        let offset = block.offset + kutrace_format::abi::block::HEADER_WORDS * 4 + read;
        self.damage.push(Damage::of_block(block.index, offset, fact));
    }
}
