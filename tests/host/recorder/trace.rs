// SPDX-License-Identifier: BSD-3-Clause
//! What a run leaves in the blocks, read as a reader would, against what the run was asked to record.

use super::machine::{Cpu, Machine, Memory, State};
use crate::abi::event::{argument_words, FULL_TIME, SMALL_RETURN, SWITCH, SYSCALL, SYSCALL_RETURN, TASK};
use crate::abi::word::{event, time, Call, TIME_PERIOD};

/// What is wrong with the trace of `cpu`, if anything. Recording has ended.
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
    let mut reader = Reader::new(&state.cpus[cpu].times);
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
        if block.end < reader.now && machine.bounds.steps_back == 0 {
            return Some(format!("CPU {cpu}: block {expected} ends at {} after {}", block.end, reader.now));
        }
    }
    let Cpu { asked, lost, outside, noted, .. } = state.cpus[cpu];
    let switched: Vec<_> = state.cpus[cpu].switches.iter().map(|task| (task.pid, Some(task.born))).collect();
    if reader.switches != switched && lost + outside == 0 && !machine.bounds.wrap {
        return Some(format!("CPU {cpu}: switches to {switched:?}, found {:?}", reader.switches));
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
        return Some(format!("CPU {cpu}: {lost} lost, but the last block says otherwise"));
    }
    None
}

/// Where an event and a folded return are noted: how often at each word of the entry.
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
    /// Tasks that the block has named.
    named: Vec<(u32, u32)>,
    now: u64,
}

impl<'a> Reader<'a> {
    pub fn new(times: &'a [u64]) -> Reader<'a> {
        Reader { times, entries: 0, switches: Vec::new(), named: Vec::new(), now: 0 }
    }

    /// Reads the first `end` words of a block.
    pub fn read(&mut self, block: &Memory, end: usize) -> Result<(), String> {
        if block.begin < self.now && !block.back {
            return Err(format!("begins at {} after {}", block.begin, self.now));
        }
        self.now = block.begin;
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
            if full < self.now {
                return Err(format!("full time {full} after {}", self.now));
            }
            self.now = full;
            return Ok(());
        }
        self.advance(u64::from(time(word)).wrapping_sub(self.now) % TIME_PERIOD)?;
        self.entries += 1;
        if (SYSCALL..SMALL_RETURN).contains(&number) {
            if let Some((duration, value)) = Call::decode(arguments[0]).folded {
                self.entries += 1;
                self.advance(u64::from(duration))?;
                if value != -3 {
                    return Err(format!("a folded value of {value}"));
                }
            }
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

    /// Moves on by `counts`, to a time that the clock did show.
    fn advance(&mut self, counts: u64) -> Result<(), String> {
        self.now += counts;
        match self.times.contains(&self.now) {
            true => Ok(()),
            false => Err(format!("a time of {} that never was", self.now)),
        }
    }
}
