// SPDX-License-Identifier: BSD-3-Clause
//! Extracts the requested events from words of blocks, ordered by time over all CPUs.
//!
//! An entry costs the lookup of its number in two tables. Other events are skipped.
//!
//! Invariant: any words are read to their end.

use std::ops::RangeInclusive;

use foldhash::HashMap;
use kutrace_format::abi::event::{
    argument_words, TaskState, EXIT, FULL_TIME, NAME, SWITCH, SYSCALL, SYSCALL32, SYSCALL32_LAST, SYSCALL_LAST, TASK,
    UNKNOWN_CALL,
};
use kutrace_format::abi::word;

use crate::follow::Piece;

/// A requested event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The counter.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
    /// The event.
    pub event: u16,
    /// The argument of the event, if it has one.
    pub argument: u32,
}

/// Pseudo event, with a number that no event has: a block names the running thread.
pub const RUNS: u16 = 0xfff0;
/// Pseudo event: events are missing.
pub const GAP: u16 = 0xfff1;

/// The last report about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The counter of the report.
    at: u64,
    /// Name of the thread, NUL-padded.
    pub comm: [u8; 16],
    /// The call that the thread was in, and whether it is a thread of the kernel.
    pub state: TaskState,
}

/// A name assigned by a program or the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Kind of the named thing.
    pub kind: u32,
    /// Number of the named thing.
    pub number: u32,
    /// The text.
    pub text: String,
}

/// Treatment of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Skip,
    Time,
    Task,
    Name,
    Take,
}

/// Reads words.
#[derive(Debug)]
pub struct Skim {
    uses: Vec<Use>,
    words: Vec<u8>,
    /// The counter of the last entry of each CPU.
    times: HashMap<u32, u64>,
    /// Events found since the last look.
    pub points: Vec<Point>,
    threads: HashMap<u32, Thread>,
    /// Names found since the last look.
    pub names: Vec<Named>,
    /// Number of entries read.
    pub entries: u64,
}

/// Maximum number of threads whose names are kept.
const THREADS: usize = 1 << 17;

impl Skim {
    /// Reads events with these numbers, and the switches and ends of threads.
    pub fn new(asked: impl IntoIterator<Item = RangeInclusive<u16>>) -> Skim {
        let mut uses = vec![Use::Skip; 1 << word::EVENT_BITS];
        for range in asked.into_iter().chain([SWITCH..=SWITCH, EXIT..=EXIT]) {
            uses[usize::from(*range.start())..=usize::from(*range.end())].fill(Use::Take);
        }
        for (event, what) in [(FULL_TIME, Use::Time), (TASK, Use::Task), (NAME, Use::Name)] {
            uses[usize::from(event)] = what;
        }
        let words = (0..1 << word::EVENT_BITS).map(|event| argument_words(event).unwrap_or(0) as u8).collect();
        Skim {
            uses,
            words,
            times: HashMap::default(),
            points: Vec::new(),
            threads: HashMap::default(),
            names: Vec::new(),
            entries: 0,
        }
    }

    /// Reads a piece of a block. Returns the number of words used: without the last entry, if that can still change.
    pub fn read(&mut self, piece: Piece) -> usize {
        let Piece { cpu, words, .. } = piece;
        if let Some(begin) = piece.begin {
            self.times.insert(cpu, begin.counter);
            let at = begin.counter;
            self.learn(begin.pid, Thread { at, comm: begin.comm, state: begin.state });
            if begin.gap {
                self.points.push(Point { at, cpu, event: GAP, argument: 0 });
            }
            self.points.push(Point { at, cpu, event: RUNS, argument: begin.pid });
        }
        let mut time = self.times.get(&cpu).copied().unwrap_or_default();
        let mut at = 0;
        while let Some(&entry) = words.get(at) {
            let event = word::event(entry);
            let next = at + 1 + usize::from(self.words[usize::from(event)]);
            // The return may still be folded into a call that is the last entry; and an entry may be incomplete.
            if next > words.len() || (piece.open && next == words.len() && is_call(event)) {
                break;
            }
            time += u64::from(word::time(entry).wrapping_sub(time as u32) & ((1 << word::TIME_BITS) - 1));
            let argument = words[at + 1..next].first().copied().unwrap_or_default();
            match self.uses[usize::from(event)] {
                Use::Skip => {}
                Use::Take => self.points.push(Point { at: time, cpu, event, argument }),
                Use::Time => time = time.max(u64::from(argument) | u64::from(words[at + 2]) << 32),
                Use::Task => {
                    let state = TaskState(words[at + 3]);
                    self.learn(argument, Thread { at: time, comm: text(&words[at + 4..next]), state });
                }
                Use::Name => {
                    let bytes: [u8; 56] = text(&words[at + 3..next]);
                    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
                    self.names.push(Named { kind: argument, number: words[at + 2], text });
                }
            }
            self.entries += 1;
            at = next;
        }
        self.times.insert(cpu, time);
        if piece.lost {
            self.points.push(Point { at: time, cpu, event: GAP, argument: 0 });
        }
        at
    }

    /// Events found up to the counter `end`, ordered by time; later events follow in the next call.
    pub fn take(&mut self, end: u64) -> Vec<Point> {
        self.points.sort_by_key(|point| point.at);
        let later = self.points.split_off(self.points.partition_point(|point| point.at <= end));
        std::mem::replace(&mut self.points, later)
    }

    /// Name of a thread, NUL-padded.
    pub fn thread(&self, pid: u32) -> Option<[u8; 16]> {
        self.known(pid).map(|thread| thread.comm)
    }

    /// The last report about a thread.
    pub fn known(&self, pid: u32) -> Option<&Thread> {
        self.threads.get(&pid)
    }

    /// Keeps the newest report. CPUs are read one after the other, so reports may arrive out of order.
    fn learn(&mut self, pid: u32, thread: Thread) {
        if self.threads.len() >= THREADS {
            self.threads.clear();
        }
        let newest = self.threads.entry(pid).or_insert(thread);
        if newest.at <= thread.at {
            *newest = thread;
        }
    }
}

/// Returns whether this is a system call, whose word the return may change.
pub fn is_call(event: u16) -> bool {
    (SYSCALL..=SYSCALL_LAST).contains(&event) || event == UNKNOWN_CALL || (SYSCALL32..=SYSCALL32_LAST).contains(&event)
}

/// The bytes of these words.
fn text<const BYTES: usize>(words: &[u32]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::Begin;
    use kutrace_format::abi::event::{OPEN_RETURN, RUNNABLE, SMALL_RETURN, SMALL_RETURN_LAST, SOFTIRQ};
    use kutrace_format::abi::word::{entry, Call};

    const GETPID: u16 = SYSCALL + 39;

    #[test]
    fn what_is_asked_for_is_found_with_its_whole_time_and_the_rest_passed_over() {
        let mut skim = Skim::new([GETPID..=GETPID]);
        let begin = Some(Begin {
            counter: 0x7_fff0,
            pid: 5,
            comm: *b"five\0\0\0\0\0\0\0\0\0\0\0\0",
            state: TaskState(0xffff),
            gap: false,
        });
        let far = 0x12_3456_789a_u64;
        let words = [
            entry(SOFTIRQ, 0x7_fff8),
            entry(GETPID, 0x8_0000),
            Call::open(7),
            entry(FULL_TIME, far),
            far as u32,
            (far >> 32) as u32,
            entry(SWITCH, far + 1),
            6,
            entry(GETPID, far + 2),
            Call::open(8),
        ];
        let used = skim.read(Piece { cpu: 3, begin, words: &words, open: true, lost: false });
        assert_eq!(used, 8, "the last call may still return");
        let found: Vec<_> = skim.take(far).iter().map(|p| (p.at, p.event, p.argument)).collect();
        assert_eq!(found, [(0x7_fff0, RUNS, 5), (0x8_0000, GETPID, Call::open(7))]);
        let folded = [words[8], Call::fold(words[9], 100, 5).unwrap()];
        assert_eq!(skim.read(Piece { cpu: 3, begin: None, words: &folded, open: false, lost: true }), 2);
        let found: Vec<_> = skim.take(u64::MAX).iter().map(|p| (p.at, p.event)).collect();
        assert_eq!(found, [(far + 1, SWITCH), (far + 2, GETPID), (far + 2, GAP)]);
        assert_eq!(&skim.thread(5).unwrap()[..4], b"five");
    }

    #[test]
    fn a_thread_has_its_newest_name_in_whatever_order_cpus_are_read() {
        let mut skim = Skim::new([]);
        let mut begin = |cpu, counter, comm: &[u8; 4]| {
            let mut padded = [0; 16];
            padded[..4].copy_from_slice(comm);
            let begin = Some(Begin { counter, pid: 5, comm: padded, state: TaskState(0xffff), gap: false });
            skim.read(Piece { cpu, begin, words: &[], open: false, lost: false });
            skim.thread(5).unwrap()[..4].to_vec()
        };
        assert_eq!(begin(0, 100, b"bash"), b"bash");
        assert_eq!(begin(1, 300, b"slow"), b"slow");
        assert_eq!(begin(0, 200, b"dash"), b"slow", "given before");
    }

    #[test]
    fn any_words_are_read_to_their_end() {
        let mut skim = Skim::new([RUNNABLE..=RUNNABLE, OPEN_RETURN..=OPEN_RETURN, SMALL_RETURN..=SMALL_RETURN_LAST]);
        let mut seed = 1_u32;
        for length in 0..400 {
            let words: Vec<u32> = (0..length)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    seed.rotate_left(16)
                })
                .collect();
            let used = skim.read(Piece { cpu: 0, begin: None, words: &words, open: length % 2 == 0, lost: false });
            assert!(used <= words.len());
        }
    }
}
