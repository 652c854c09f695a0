// SPDX-License-Identifier: BSD-3-Clause
//! Content of a raw trace in bytes: entries by kind, and the number of transitions in them.
//!
//! A folded call is two transitions; names, full times and fillers are none.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::offset_of;

use kutrace_format::abi::block::{self, HEADER_WORDS};
use kutrace_format::abi::event::{self, argument_words};
use kutrace_format::abi::word::{self, Call};
use kutrace_format::file::{self, Header, Section};

/// The entries of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    entries: u64,
    bytes: u64,
    transitions: u64,
}

/// The blocks of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cpu {
    /// Counters at the start of the first and the end of the last block.
    begin: u64,
    end: u64,
    transitions: u64,
    /// Events lost up to the end of the last block, and of the one before.
    lost: u64,
    lost_before: u64,
}

/// A raw trace in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Bytes of the file.
    pub file: u64,
    /// Counts per second.
    hz: u64,
    kinds: BTreeMap<&'static str, Tally>,
    cpus: BTreeMap<u32, Cpu>,
}

impl Content {
    /// Reads a whole file of format 5; `None` if it is not one.
    pub fn of(bytes: &[u8]) -> Option<Content> {
        let header = Header::from_bytes(bytes.first_chunk()?)?;
        let mut content = Content { file: bytes.len() as u64, hz: header.tsc_hz >> header.shift, ..Content::default() };
        let mut rest = &bytes[file::HEADER_BYTES..];
        while let Some((head, behind)) = rest.split_first_chunk() {
            let section = Section::from_bytes(head);
            let (payload, behind) = behind.split_at_checked(section.bytes as usize)?;
            if section.tag == file::BLOCKS {
                payload.chunks_exact(block::BYTES).try_for_each(|block| content.add(block))?;
            }
            rest = behind;
        }
        Some(content)
    }

    fn add(&mut self, block: &[u8]) -> Option<()> {
        let words: Vec<u32> =
            block.chunks_exact(4).map(|word| u32::from_le_bytes(std::array::from_fn(|n| word[n]))).collect();
        let long = |at: usize| u64::from(words[at / 4]) | u64::from(words[at / 4 + 1]) << 32;
        let mut rest = words.get(HEADER_WORDS..long(offset_of!(block::Header, content_bits)) as usize / 32)?;
        let mut transitions = 0;
        while let Some((&entry, behind)) = rest.split_first() {
            let event = word::event(entry);
            let (arguments, behind) = behind.split_at_checked(argument_words(event)?)?;
            rest = behind;
            let (kind, means) = kind(event, arguments);
            let tally = self.kinds.entry(kind).or_default();
            tally.entries += 1;
            tally.bytes += 4 * (1 + arguments.len() as u64);
            tally.transitions += means;
            transitions += means;
        }
        let begin = long(offset_of!(block::Header, begin));
        let cpu = self.cpus.entry(words[offset_of!(block::Header, cpu) / 4]).or_insert(Cpu { begin, ..Cpu::default() });
        cpu.end = long(offset_of!(block::Header, end));
        cpu.transitions += transitions;
        cpu.lost_before = cpu.lost;
        cpu.lost = long(offset_of!(block::Header, lost));
        Some(())
    }

    /// Bytes of all entries.
    pub fn entries(&self) -> u64 {
        self.kinds.values().map(|tally| tally.bytes).sum()
    }

    /// `bytes` per transition.
    pub fn per_transition(&self, bytes: u64) -> f64 {
        bytes as f64 / self.kinds.values().map(|tally| tally.transitions).sum::<u64>() as f64
    }

    /// Events lost.
    pub fn lost(&self) -> u64 {
        self.cpus.values().map(|cpu| cpu.lost).sum()
    }

    /// For the CPU with the most transitions: their number per second, and the number of events it lost before its last
    /// block ended.
    pub fn busiest(&self) -> (f64, u64) {
        let cpu = self.cpus.values().max_by_key(|cpu| cpu.transitions).copied().unwrap_or_default();
        let seconds = (cpu.end - cpu.begin) as f64 / self.hz as f64;
        (cpu.transitions as f64 / seconds, cpu.lost_before)
    }
}

/// The kind of an entry, and the number of transitions in it.
fn kind(event: u16, arguments: &[u32]) -> (&'static str, u64) {
    match event {
        event::NOP | event::FULL_TIME => ("full time", 0),
        event::TASK => ("name of a task", 0),
        event::NAME => ("name by a program", 0),
        event::SWITCH => ("switch", 1),
        event::RUNNABLE => ("wakeup", 1),
        event::IPI => ("interrupt sent", 1),
        event::MWAIT => ("idle state", 1),
        _ if (event::SPECIAL..=event::SPECIAL_LAST).contains(&event) => ("other point", 1),
        event::SOFTIRQ..=event::SOFTIRQ_RETURN_LAST => ("softirq", 1),
        event::SCHED | event::SCHED_RETURN => ("scheduler", 1),
        event::TRAP..=event::TRAP_LAST | event::TRAP_RETURN..=event::TRAP_RETURN_LAST => ("trap", 1),
        event::IRQ..=event::IRQ_LAST | event::IRQ_RETURN..=event::IRQ_RETURN_LAST => ("interrupt", 1),
        event::SYSCALL..event::SYSCALL_RETURN => match Call::decode(arguments[0]).folded {
            Some(_) => ("call with its return", 2),
            None => ("call", 1),
        },
        event::SYSCALL_RETURN..event::SMALL_RETURN => ("return with a word", 1),
        _ => ("return", 1),
    }
}

/// A table of kinds, most bytes first.
impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "| kind | entries | bytes | share of bytes |\n|---|---|---|---|")?;
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.bytes));
        for (kind, tally) in kinds {
            let share = 100.0 * tally.bytes as f64 / self.entries() as f64;
            writeln!(f, "| {kind} | {} | {} | {share:.1} % |", tally.entries, tally.bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kutrace_tests::TraceBuilder;

    #[test]
    fn every_entry_is_counted_with_its_words_and_its_transitions() {
        let mut trace = TraceBuilder::new(2, 1 << 22);
        let cpu = trace.cpu(1);
        cpu.folded(10, 110, 0, 5, 0).call(20, 1, 2).small_return(30, 7);
        cpu.task(35, 7, "web", None).switch(40, 7, "web").entry((1 << 21) + 60, event::SCHED, &[]).lose(3);
        let bytes = trace.bytes();
        let content = Content::of(&bytes).unwrap();
        let tally = |kind| content.kinds[kind];
        assert_eq!(tally("call with its return"), Tally { entries: 1, bytes: 8, transitions: 2 });
        assert_eq!(tally("call"), Tally { entries: 1, bytes: 8, transitions: 1 });
        assert_eq!(tally("return"), Tally { entries: 1, bytes: 4, transitions: 1 });
        assert_eq!(tally("name of a task"), Tally { entries: 1, bytes: 32, transitions: 0 });
        assert_eq!(tally("full time"), Tally { entries: 1, bytes: 12, transitions: 0 });
        assert_eq!(tally("switch"), Tally { entries: 1, bytes: 8, transitions: 1 });
        assert_eq!(tally("scheduler"), Tally { entries: 3, bytes: 12, transitions: 3 });
        assert_eq!((content.entries(), content.file), (84, bytes.len() as u64));
        assert_eq!((content.lost(), content.busiest().1), (3, 0));
        assert_eq!(content.per_transition(24), 3.0);
        assert_eq!(Content::of(&bytes[1..]), None);
    }
}
