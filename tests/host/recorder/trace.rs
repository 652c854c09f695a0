// SPDX-License-Identifier: BSD-3-Clause
//! Reads the blocks of a run as a reader would, and compares them with the requested records.

use super::machine::{Bounds, Cpu, Machine, Memory, State};
use crate::abi::event::{
    argument_words, FULL_TIME, SMALL_RETURN, SMALL_RETURN_LAST, SWITCH, SYSCALL, SYSCALL_RETURN, TASK,
};
use crate::abi::word::{event, time, Call, TIME_PERIOD};

/// Fault of the trace of `cpu`, if any. Recording has ended.
pub fn check(machine: &Machine, state: &State, cpu: usize) -> Option<String> {
    // Of a stream most have been read before.
    let mut blocks: Vec<&Memory> =
        state.read.iter().chain(&state.blocks).filter(|block| block.in_trace && block.cpu == cpu).collect();
    blocks.sort_by_key(|block| block.sequence);
    // The block of a call may be kept while later ones are recycled; who reads leaves it out then, since they are
    // newer.
    let kept_for_call = |pair: &[&Memory]| pair[0].sequence + 1 < pair[1].sequence;
    if machine.bounds.wrap && blocks.windows(2).next().is_some_and(kept_for_call) {
        blocks.remove(0);
    }
    let first = blocks.first().map_or(0, |block| block.sequence);
    let mut reader = Reader::new(&state.cpus[cpu]);
    for (expected, block) in (first..).zip(&blocks) {
        // A CPU that another laps while it takes a block takes one that is not the oldest.
        if block.sequence != expected && !(machine.bounds.take_in_steps && machine.bounds.wrap) {
            return Some(format!("CPU {cpu}: block {} stands where {expected} should", block.sequence));
        }
        let Some(end) = block.content else {
            return Some(format!("CPU {cpu}: block {expected} was never ended"));
        };
        if let Err(fault) = reader.read(block, end) {
            return Some(format!("CPU {cpu}: block {expected}: {fault}"));
        }
        // A full time that bridges a gap need not be known yet to an interrupt whose clock steps back.
        let Bounds { interrupts, gaps, steps_back, .. } = machine.bounds;
        let is_estimate = interrupts > 0 && gaps > 0 && steps_back > 0;
        if block.end < block.begin || reader.is_after(block.end) && !is_estimate {
            return Some(format!("CPU {cpu}: block {expected} ends at {} after {}", block.end, reader.now));
        }
    }
    let Cpu { asked, lost, outside, noted, .. } = state.cpus[cpu];
    let switched: Vec<_> = state.cpus[cpu].switches.iter().map(|task| (task.pid, Some(task.born))).collect();
    if reader.switches != switched && lost + outside == 0 && !machine.bounds.wrap {
        return Some(format!("CPU {cpu}: switches to {switched:?}, found {:?}", reader.switches));
    }
    let returned = |(found, asked): (&(Option<u16>, i64), &(u32, i64))| {
        found.1 == asked.1 && found.0.is_none_or(|nr| u32::from(nr) == asked.0)
    };
    let returns = &state.cpus[cpu].returns;
    let all_returned = reader.returns.len() == returns.len() && reader.returns.iter().zip(returns).all(returned);
    if !all_returned && lost + outside == 0 && !machine.bounds.wrap {
        return Some(format!("CPU {cpu}: returns {returns:?}, found {:?}", reader.returns));
    }
    if noted + lost + outside != asked {
        return Some(format!("CPU {cpu}: asked {asked}, noted {noted}, lost {lost}, outside {outside}"));
    }
    let complete = !machine.bounds.wrap;
    if complete && (first != 0 || reader.entries != noted) {
        return Some(format!("CPU {cpu}: noted {noted}, found {}", reader.entries));
    }
    // Interrupted, a context below may hold the last block while an interrupt finds the pool empty.
    let lost_at_end = blocks.last().is_some_and(|block| block.lost_after);
    let read = machine.bounds.reads > 0;
    if machine.bounds.interrupts == 0 && complete && !read && lost_at_end != (lost > 0) {
        return Some(format!("CPU {cpu}: {lost} lost, but the last block has another number"));
    }
    None
}

/// Number of notes of each word of an event's entry, or of one with a folded return.
fn notes_of(number: u16, arguments: &[u32]) -> Vec<u8> {
    let is_call = (SYSCALL..SYSCALL_RETURN).contains(&number);
    let mut notes = vec![0; 1 + arguments.len()];
    notes[0] = u8::from(number != FULL_TIME);
    if is_call && Call::decode(arguments[0]).folded.is_some() {
        notes[1] = 1;
    }
    notes
}

/// Reads the blocks of one CPU in their order.
pub struct Reader<'a> {
    /// Every time the clock showed.
    times: &'a [u64],
    /// Events found; a folded return counts in addition to its call.
    pub entries: u64,
    /// Tasks switched to, as their block names them or the next entry.
    pub switches: Vec<(u32, Option<u32>)>,
    /// Values of returns, with the numbers of their calls if those are recorded.
    pub returns: Vec<(Option<u16>, i64)>,
    /// Tasks that the block has named.
    named: Vec<(u32, u32)>,
    now: u64,
    /// Periods that it is ahead of the clock: one for each step back by a few counts after which a time was read, since
    /// the last full time.
    ahead: u64,
    /// Those steps that have not shown.
    slips: u64,
}

impl<'a> Reader<'a> {
    pub fn new(cpu: &'a Cpu) -> Reader<'a> {
        let (times, slips) = (&cpu.times[..], cpu.slips);
        let (switches, returns, named) = (Vec::new(), Vec::new(), Vec::new());
        Reader { times, entries: 0, switches, returns, named, now: 0, ahead: 0, slips }
    }

    /// Reads the first `end` words of a block.
    pub fn read(&mut self, block: &Memory, end: usize) -> Result<(), String> {
        if self.is_after(block.begin) && !block.back {
            return Err(format!("begins at {} after {}", block.begin, self.now));
        }
        (self.now, self.ahead) = (block.begin, 0);
        self.named.clear();
        let words: Option<Vec<u32>> = block.words[..end].iter().copied().collect();
        let words = words.ok_or("has a hole")?;
        let mut at = 0;
        while at < words.len() {
            let number = event(words[at]);
            let count = argument_words(number).filter(|_| number != 0).ok_or("has an unknown event")?;
            let arguments = words.get(at + 1..at + 1 + count).ok_or("cuts an entry")?;
            let notes = &block.notes[at..at + 1 + count];
            // A task that is about to be switched to is named by the same claim, which counts as the switch.
            let next = words.get(at + 1 + count).map(|&word| event(word));
            let announces = number == TASK && notes[0] == 0 && next == Some(SWITCH);
            if !announces && notes != notes_of(number, arguments) {
                return Err(format!("event {number:#x} {arguments:x?} is noted at {notes:?}"));
            }
            self.entry(words[at], number, arguments)?;
            self.entries -= u64::from(announces);
            self.name(number, arguments);
            at += 1 + count;
        }
        Ok(())
    }

    fn entry(&mut self, word: u32, number: u16, arguments: &[u32]) -> Result<(), String> {
        if number == FULL_TIME {
            let full = u64::from(arguments[1]) << 32 | u64::from(arguments[0]);
            if self.is_after(full) {
                return Err(format!("full time {full} after {}", self.now));
            }
            (self.now, self.ahead) = (full, 0);
            return Ok(());
        }
        self.advance(u64::from(time(word)).wrapping_sub(self.now) % TIME_PERIOD)?;
        self.entries += 1;
        match number {
            SYSCALL..SYSCALL_RETURN => {
                if let Some((duration, value)) = Call::decode(arguments[0]).folded {
                    self.entries += 1;
                    self.returns.push((Some(number - SYSCALL), value.into()));
                    self.advance(u64::from(duration))?;
                }
            }
            SYSCALL_RETURN..SMALL_RETURN => self.returns.push((Some(number - SYSCALL_RETURN), arguments[0].into())),
            SMALL_RETURN..=SMALL_RETURN_LAST => self.returns.push((None, i64::from(number - SMALL_RETURN) - 128)),
            _ => {}
        }
        Ok(())
    }

    /// Keeps whom a task's entry names, and whom a switch means by that.
    fn name(&mut self, number: u16, arguments: &[u32]) {
        match number {
            TASK => {
                let (pid, born) = (arguments[0], arguments[3]);
                self.named.retain(|&(named, _)| named != pid);
                self.named.push((pid, born));
                if let Some((_, who @ None)) = self.switches.last_mut().filter(|(last, _)| *last == pid) {
                    *who = Some(born);
                }
            }
            SWITCH => {
                let who = self.named.iter().find(|(pid, _)| *pid == arguments[0]);
                self.switches.push((arguments[0], who.map(|&(_, born)| born)));
            }
            _ => {}
        }
    }

    /// Moves on by `counts`, to a time that the clock did show. A step back that no entry reports looks like a wait of
    /// a period.
    fn advance(&mut self, counts: u64) -> Result<(), String> {
        self.now += counts;
        let shown = |ahead: &u64| self.times.contains(&(self.now - ahead * TIME_PERIOD));
        let ahead = (self.ahead..=self.ahead + self.slips).find(shown);
        let ahead = ahead.ok_or_else(|| format!("a time of {} that never was", self.now))?;
        (self.slips, self.ahead) = (self.slips - (ahead - self.ahead), ahead);
        Ok(())
    }

    /// Returns whether the last read time is after a full time, and no step back by a few counts explains it.
    pub fn is_after(&self, full: u64) -> bool {
        full + (self.ahead + self.slips) * TIME_PERIOD < self.now
    }
}
