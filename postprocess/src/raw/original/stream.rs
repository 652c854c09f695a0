// SPDX-License-Identifier: BSD-3-Clause
//! The entries of one CPU of the original's: times unwrapped, late ones put in their place.
//!
//! A timestamp is read before its word is claimed, so an interrupt may come between: the interrupted entry is then
//! after those of the interrupt, with an earlier time. The distance of two neighbours, in the 20-bit period, is a step
//! forward if it is less than 7/8 of the period, and otherwise a step back; a TSDELTA entry announces a step of another
//! size.
//!
//! Invariant: times never go backwards. An entry waits until the block after its own has been read, which is longer
//! than any entry is late; an entry that comes later still is held, and reported.

use std::collections::VecDeque;

use kutrace_format::abi::event::original::PC_OLD;

use super::block::{Block, Entry, Senseless};
use super::Record;
use crate::event::number;
use crate::id::{CpuId, Pid};
use crate::merge::When;
use crate::raw::clock::Clock;
use crate::raw::damage::Damage;
use crate::time::Time;

use byteorder::{ByteOrder, LittleEndian};

/// The time of an entry repeats after this many counts.
const PERIOD: u64 = 1 << 20;
/// The longest step forward that needs no TSDELTA.
const FORWARD_MAX: u64 = 0xe0000;

/// An item of a CPU's stream, with its time.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    /// Time.
    pub ts: Time,
    /// Thread running.
    pub pid: Pid,
    /// The item.
    pub item: Item<'a>,
}

/// An entry, or a fact from around the entries.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A block begins in a thread of this name, at this frequency in MHz.
    Begin(&'a [u8], u32),
    /// From here to the next [`Item::Begin`] nothing is known.
    Lost,
    /// A name.
    Name(Record<'a>),
    /// A program counter, and if not 0 a frequency in MHz.
    Sample(u64, u32),
    /// A transition or point event.
    Event {
        /// Number.
        event: u32,
        /// Duration, if a call has its return with it.
        dur: Time,
        /// First argument.
        arg: u32,
        /// Return value.
        ret: i32,
        /// Counter byte.
        ipc: u8,
    },
}

impl When for Timed<'_> {
    type Time = Time;

    fn when(&self) -> Time {
        self.ts
    }
}

/// The stream of one CPU.
#[derive(Debug)]
pub struct Stream<'a> {
    /// The CPU.
    pub cpu: CpuId,
    /// Damage found in the entries.
    pub damage: Vec<Damage>,
    clock: Clock,
    /// Event number of the interrupt that takes samples.
    timer: u32,
    /// Event number of softirqs.
    softirq: u32,
    blocks: std::vec::IntoIter<Block<'a>>,
    /// Read but not returned, in order of time.
    window: VecDeque<Timed<'a>>,
    /// Number of items that the last block added there.
    latest: usize,
    pid: Pid,
    /// Time of the last timer interrupt.
    tick: Option<Time>,
    /// Time last returned, `None` at first.
    at: Option<Time>,
    from: Time,
}

impl<'a> Iterator for Stream<'a> {
    type Item = Timed<'a>;

    /// The next item of the CPU's stream; `None` at its end.
    fn next(&mut self) -> Option<Timed<'a>> {
        while self.window.len() <= self.latest {
            let Some(block) = self.blocks.next() else { break };
            self.load(block);
        }
        let mut next = self.window.pop_front()?;
        next.ts = next.ts.max(self.at.unwrap_or(next.ts));
        self.at = Some(next.ts);
        Some(next)
    }
}

impl<'a> Stream<'a> {
    /// The stream of `cpu` from its blocks, ordered by begin. `timer` is the interrupt that takes samples, `softirq`
    /// the number of softirqs.
    pub fn new(cpu: CpuId, blocks: Vec<Block<'a>>, clock: Clock, timer: u32, softirq: u32) -> Stream<'a> {
        let blocks = blocks.into_iter();
        let (damage, window) = (Vec::new(), VecDeque::new());
        let mut new = Stream {
            cpu,
            damage,
            clock,
            timer,
            softirq,
            blocks,
            window,
            latest: 0,
            pid: Pid::IDLE,
            tick: None,
            at: None,
            from: Time::ZERO,
        };
        if let Some(first) = new.blocks.next() {
            new.load(first);
            new.from = new.window.front().map_or(Time::ZERO, |t| t.ts);
        }
        new
    }

    /// Time at which the stream begins.
    pub fn from(&self) -> Time {
        self.from
    }

    /// Time last returned.
    pub fn at(&self) -> Time {
        self.at.unwrap_or(self.from)
    }

    fn load(&mut self, block: Block<'a>) {
        let waiting = self.window.len();
        self.pid = Pid::new(block.pid);
        self.push(self.clock.units(block.begin), Item::Begin(block.comm, block.mhz));
        let (mut counter, mut last, mut first) = (block.begin, block.begin, true);
        for entry in block.entries() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(senseless) => {
                    self.give_up(&block, last, senseless);
                    break;
                }
            };
            // At the start of a block, its own start is more precise than the distance from the block before.
            if entry.event == number::TSDELTA && !first {
                counter = counter.saturating_add_signed(delta(entry.arg));
            }
            first = false;
            counter = step(counter, entry.time);
            last = last.max(counter);
            self.entry(counter, entry);
        }
        if block.cut {
            self.push(self.clock.units(last), Item::Lost);
        }
        self.latest = self.window.len() - waiting;
        self.window.make_contiguous().sort_by_key(|t| t.ts);
        self.hold(&block);
    }

    fn entry(&mut self, at: u64, e: Entry<'a>) {
        let ts = self.clock.units(at);
        match e.event {
            number::TSDELTA => {}
            PC_OLD | number::PC_USER..=number::PC_KERNEL => {
                let pc = LittleEndian::read_u64(e.payload);
                self.push(self.tick.map_or(ts, |tick| tick - Time::UNIT), Item::Sample(pc, e.arg & 0xffff));
            }
            ..=number::NAMES_LAST => {
                if let Some(record) = e.name() {
                    self.push(ts, Item::Name(record));
                }
            }
            event => self.event(at, ts, event, e),
        }
    }

    fn event(&mut self, at: u64, ts: Time, event: u32, e: Entry<'a>) {
        let event = match event & !number::RETURN_BIT == self.softirq {
            true => number::SOFTIRQ | event & number::RETURN_BIT,
            false => event,
        };
        if event == self.timer {
            self.tick = Some(ts);
        }
        if event == number::SWITCH {
            self.pid = Pid::new(e.arg);
        }
        let (dur, arg, ret) = match (event >= number::TRAP, event & number::RETURN_BIT != 0, e.arg >> 24) {
            (false, ..) => (Time(i64::from(event != number::SWITCH)), e.arg, 0),
            (true, true, _) => (Time::ZERO, 0, e.arg as i32),
            (true, false, 0) => (Time::ZERO, e.arg & 0xffff, 0),
            (true, false, delta) => {
                let end = self.clock.units(at.saturating_add(delta.into()));
                ((end - ts).max(Time::UNIT), e.arg & 0xffff, i32::from((e.arg >> 16) as i8 as u16))
            }
        };
        self.push(ts, Item::Event { event, dur, arg, ret, ipc: e.counter });
    }

    fn push(&mut self, ts: Time, item: Item<'a>) {
        self.window.push_back(Timed { ts, pid: self.pid, item });
    }

    /// Skips the rest of a block from an invalid entry on.
    fn give_up(&mut self, block: &Block, last: u64, senseless: Senseless) {
        let Senseless { offset, fact } = senseless;
        self.damage.push(Damage::of_block(block.index, offset, format!("{fact}; the rest of the block is skipped")));
        if !block.cut {
            self.push(self.clock.units(last), Item::Lost);
        }
    }

    /// Reports entries of a block that are later than possible.
    fn hold(&mut self, block: &Block) {
        let (Some(first), Some(at)) = (self.window.front(), self.at) else { return };
        if first.ts < at {
            let us = (at - first.ts) / 100;
            let fact = format!("time goes back by {us} us on cpu {}; held", self.cpu);
            self.damage.push(Damage::of_block(block.index, block.offset, fact));
        }
    }
}

/// The counts of a TSDELTA. No entry is late by 2^24 counts, a quarter of a second; a larger delay is a long step
/// forward.
fn delta(arg: u32) -> i64 {
    const LATE_MAX: i64 = -(1 << 24);
    match i64::from(arg as i32) {
        late @ LATE_MAX..0 => late,
        _ => arg.into(),
    }
}

/// The counter value that ends in these 20 bits and is one step from `counter`.
fn step(counter: u64, time: u64) -> u64 {
    match time.wrapping_sub(counter) & (PERIOD - 1) {
        forward @ 0..=FORWARD_MAX => counter.saturating_add(forward),
        back => counter.saturating_sub(PERIOD - back),
    }
}
