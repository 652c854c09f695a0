// SPDX-License-Identifier: BSD-3-Clause
//! Every step of a recording thread, interrupted, killed and read.
//!
//! A world is a thread with tiny grants. At chosen steps a signal handler records in it, at any step a reader copies
//! its memory, and the end of every run is that of a thread killed there. After each step the copy must hold every
//! entry whose call had returned, in order, and nothing else but the entries that are under way. Another thread
//! uses what a dead one left of its grant: each entry is of the thread that the recorder noted for its place.

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use kutrace_format::abi::programs::{word, MARK, SPAN, VALUE};
use kutrace_format::program::Entries;

use super::*;

/// What may be planted in a world, to see it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The exchange moves the position whatever it was.
    BlindExchange,
    /// A full time is never needed.
    NoDeadline,
    /// A word with payload is closed before its payload is there.
    ClosedEarly,
    /// A grant that is not used is used by the next all the same, from its start, also when it has been.
    SpareTwice,
    /// Who takes over a grant begins at its start.
    RestFromStart,
    /// Who takes over a grant does not ask, so it writes as the thread that had it.
    Unasked,
}

const GRANT_WORDS: u32 = 11;
const GRANTS: u32 = 3;

/// A part of the memory as the recorder knows it.
#[derive(Clone, Copy)]
struct Piece {
    offset: u32,
    end: u32,
    tsc: u64,
    thread: u32,
}

/// When an entry was begun, when its call had returned, and of which thread it is.
type Call = (u64, u64, u32);

struct World {
    fault: Fault,
    memory: RefCell<Vec<u64>>,
    position: Cell<u64>,
    deadline: Cell<u64>,
    sequence: Cell<u64>,
    spare: Cell<u64>,
    spare_sequence: Cell<u64>,
    /// By number less one.
    granted: RefCell<Vec<Piece>>,
    /// The thread that runs; those before are dead.
    thread: Cell<u32>,
    /// The step at which the first dies.
    dies: Option<usize>,
    clock: Cell<u64>,
    /// By how much the clock goes on at each look.
    pace: u64,
    /// And between two entries.
    pause: u64,
    times: RefCell<Vec<Call>>,
    step: Cell<usize>,
    /// Steps at which a handler comes.
    signals: Vec<usize>,
    /// How many entries were begun.
    begun: Cell<u64>,
    /// The entries whose calls said that they are recorded.
    returned: RefCell<Vec<u64>>,
    lost: Cell<u64>,
    failures: RefCell<Vec<String>>,
}

impl World {
    fn new(fault: Fault, [pace, pause]: [u64; 2], signals: Vec<usize>) -> World {
        World {
            fault,
            memory: RefCell::new(vec![0; (GRANT_WORDS * GRANTS) as usize]),
            position: Cell::new(0),
            deadline: Cell::new(0),
            sequence: Cell::new(0),
            spare: Cell::new(0),
            spare_sequence: Cell::new(0),
            thread: Cell::new(1),
            dies: None,
            granted: RefCell::default(),
            clock: Cell::new(1 << 40 | 0xffff_ff00),
            pace,
            pause,
            times: RefCell::default(),
            step: Cell::new(0),
            signals,
            begun: Cell::new(0),
            returned: RefCell::default(),
            lost: Cell::new(0),
            failures: RefCell::default(),
        }
    }

    /// What the program does: entries with and without payload.
    fn run(&self) {
        for _ in 0..5 {
            self.entry();
            self.clock.set(self.clock.get() + self.pause);
        }
        self.check();
    }

    /// The same, but for the thread's end, after which another takes over its memory.
    fn run_and_die(&self) {
        if catch_unwind(AssertUnwindSafe(|| self.run())).is_ok() {
            return;
        }
        self.thread.set(2);
        if self.fault != Fault::Unasked {
            let left = rest(Position(self.position.get()));
            self.position.set(Position::NONE.0);
            self.deadline.set(0);
            self.spare.set(0);
            if let Some(at) = left {
                self.keep_spare(Granted { at, sequence: self.sequence.get() });
            }
        }
        self.run();
    }

    /// What the recorder does when it is asked for the rest of a grant from an offset on.
    fn give_rest(&self, offset: u32, sequence: u64) -> Option<Granted> {
        let mut granted = self.granted.borrow_mut();
        let piece = *granted.get((sequence as usize).checked_sub(1)?)?;
        let newer =
            granted.iter().skip(sequence as usize).any(|other| (piece.offset..piece.end).contains(&other.offset));
        if newer || !(piece.offset..piece.end).contains(&offset) {
            return None;
        }
        let offset = if self.fault == Fault::RestFromStart { piece.offset } else { offset };
        granted[sequence as usize - 1].end = offset;
        granted.push(Piece { offset, tsc: self.clock.get(), thread: self.thread.get(), ..piece });
        Some(Granted { at: Position::new(offset, piece.end - offset), sequence: granted.len() as u64 })
    }

    fn entry(&self) {
        let id = self.begun.get() + 1;
        self.begun.set(id);
        self.times.borrow_mut().push((self.clock.get(), u64::MAX, self.thread.get()));
        let (what, payload) = match id % 3 {
            0 => (word(VALUE, 1, id as u32), &[id][..]),
            _ => (word(MARK, 0, id as u32), &[][..]),
        };
        let recorded = record(self, what, payload) || record_slowly(self, what, payload);
        self.times.borrow_mut()[id as usize - 1].1 = self.clock.get();
        if recorded {
            self.returned.borrow_mut().push(id);
        }
    }

    /// Comes before every step.
    fn before(&self) {
        let step = self.step.get();
        self.step.set(step + 1);
        self.check();
        if self.dies == Some(step) {
            resume_unwind(Box::new(()));
        }
        if self.signals.contains(&step) {
            self.entry();
        }
    }

    /// Reads a copy: also what a kill here leaves.
    fn check(&self) {
        let memory = self.memory.borrow();
        let mut found = Vec::new();
        for &Piece { offset, end, tsc, thread } in self.granted.borrow().iter() {
            let words = &memory[offset as usize / 8..end as usize / 8];
            let mut bytes = vec![0; 8 * words.len()];
            bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
            let mut entries = Entries::new(&bytes, tsc);
            let mut last = tsc;
            for entry in entries.by_ref() {
                let times = self.times.borrow();
                let within = times
                    .get(entry.name as usize - 1)
                    .is_some_and(|t| (t.0..=t.1).contains(&entry.tsc) && t.2 == thread);
                if entry.tsc < last || !within {
                    self.fail(format!("{entry:x?} after {last:#x}, of {:x?}", times.get(entry.name as usize - 1)));
                }
                if entry.value != if entry.kind == VALUE { u64::from(entry.name) } else { 0 } {
                    self.fail(format!("{entry:?} has another value"));
                }
                last = entry.tsc;
                found.push(u64::from(entry.name));
            }
            if entries.strange > 0 {
                self.fail(format!("{} strange words", entries.strange));
            }
        }
        for id in self.returned.borrow().iter() {
            if found.iter().filter(|found| *found == id).count() != 1 {
                self.fail(format!("entry {id} had returned, found {found:?}"));
            }
        }
        if found.iter().any(|id| *id > self.begun.get()) {
            self.fail(format!("found {found:?}, begun {}", self.begun.get()));
        }
    }

    fn fail(&self, what: String) {
        self.failures.borrow_mut().push(format!("at step {}: {what}", self.step.get()));
    }
}

impl Lane for &World {
    fn position(self) -> Position {
        self.before();
        Position(self.position.get())
    }

    fn exchange(self, old: Position, new: Position) -> bool {
        self.before();
        let same = self.position.get() == old.0 || self.fault == Fault::BlindExchange;
        if same {
            self.position.set(new.0);
        }
        same
    }

    fn now(self) -> u64 {
        self.before();
        self.clock.set(self.clock.get() + self.pace);
        self.clock.get()
    }

    fn deadline(self) -> u64 {
        self.before();
        if self.fault == Fault::NoDeadline {
            u64::MAX
        } else {
            self.deadline.get()
        }
    }

    fn set_deadline(self, tsc: u64) {
        self.before();
        self.deadline.set(tsc);
    }

    fn store(self, offset: u32, word: u64) {
        self.before();
        let word = if self.fault == Fault::ClosedEarly { word & !OPEN } else { word };
        self.memory.borrow_mut()[offset as usize / 8] = word;
    }

    fn take_spare(self) -> Option<Granted> {
        self.before();
        let spare = self.spare.get();
        if self.fault != Fault::SpareTwice {
            self.spare.set(0);
        }
        self.before();
        let sequence = self.spare_sequence.get();
        if self.fault == Fault::SpareTwice {
            return (spare != 0).then_some(Granted { at: Position(spare), sequence });
        }
        (spare != 0).then(|| self.give_rest(Position(spare).offset(), sequence)).flatten()
    }

    fn keep_spare(self, grant: Granted) {
        self.before();
        self.spare.set(0);
        self.before();
        self.spare_sequence.set(grant.sequence);
        self.before();
        self.spare.set(grant.at.0);
    }

    fn grant(self) -> Option<Granted> {
        self.before();
        let mut granted = self.granted.borrow_mut();
        let number = granted.iter().map(|piece| piece.offset / (GRANT_WORDS * 8) + 1).max().unwrap_or(0);
        if number == GRANTS {
            return None;
        }
        let (offset, bytes) = (number * GRANT_WORDS * 8, GRANT_WORDS * 8);
        granted.push(Piece { offset, end: offset + bytes, tsc: self.clock.get(), thread: self.thread.get() });
        let sequence = granted.len() as u64;
        drop(granted);
        self.before();
        Some(Granted { at: Position::new(offset, bytes), sequence })
    }

    fn took(self, sequence: u64) {
        self.before();
        self.sequence.set(sequence);
    }

    fn lose(self) {
        self.before();
        self.lost.set(self.lost.get() + 1);
    }
}

/// The same of all runs in which the thread dies at any step, with a handler at any step before or after that.
fn explore_deaths(fault: Fault) -> (Vec<String>, u64) {
    let mut inherited = 0;
    for clock in [[3, 0], [SPAN / 5, SPAN + 7]] {
        let run = |dies, signals: Vec<usize>| {
            let world = World { dies, ..World::new(fault, clock, signals) };
            world.run_and_die();
            let pieces = world.granted.borrow().iter().filter(|p| p.offset % (GRANT_WORDS * 8) != 0).count();
            (world.step.get(), pieces as u64, world.failures.into_inner())
        };
        let (steps, ..) = run(None, Vec::new());
        for death in 0..steps {
            for signal in (0..steps + 12).step_by(if clock[1] == 0 { 5 } else { 13 }) {
                let (_, pieces, failures) = run(Some(death), vec![signal]);
                inherited += pieces;
                if !failures.is_empty() {
                    return (failures, inherited);
                }
            }
        }
    }
    (Vec::new(), inherited)
}

#[test]
fn what_a_dead_thread_left_is_another_s_from_where_it_had_got_to() {
    let (failures, inherited) = explore_deaths(Fault::None);
    assert!(failures.is_empty(), "{:#?}", &failures[..failures.len().min(5)]);
    assert!(inherited > 300, "{inherited}");
    for fault in [Fault::RestFromStart, Fault::Unasked] {
        assert!(!explore_deaths(fault).0.is_empty(), "{fault:?}");
    }
}

/// What is wrong in the first run in which anything is, of all with a handler at each of any two steps; and how many
/// runs it took.
fn explore(fault: Fault) -> (Vec<String>, usize) {
    let (mut failures, mut runs) = (Vec::new(), 0);
    for clock in [[3, 0], [SPAN / 5, SPAN + 7]] {
        let run = |signals: Vec<usize>| {
            let world = World::new(fault, clock, signals);
            world.run();
            let all = world.returned.borrow().len() as u64 + world.lost.get();
            if all != world.begun.get() {
                world.fail(format!("{all} returned or lost of {}", world.begun.get()));
            }
            (world.step.get(), world.failures.into_inner())
        };
        let (steps, found) = run(Vec::new());
        failures.extend(found);
        for first in 0..steps {
            // The second comes into the first handler, or after it.
            for second in first + 1..steps + 12 {
                failures.extend(run(vec![first, second]).1);
                runs += 1;
                if !failures.is_empty() {
                    return (failures, runs);
                }
            }
        }
    }
    (failures, runs)
}

#[test]
fn nothing_that_returned_is_missing_at_any_step_of_any_interruption() {
    let (failures, runs) = explore(Fault::None);
    assert!(failures.is_empty(), "{:#?}", &failures[..failures.len().min(5)]);
    assert!(runs > 5000, "{runs}");
}

#[test]
fn planted_faults_are_found() {
    for fault in [Fault::BlindExchange, Fault::NoDeadline, Fault::ClosedEarly, Fault::SpareTwice] {
        assert!(!explore(fault).0.is_empty(), "{fault:?}");
    }
}
