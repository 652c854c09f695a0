// SPDX-License-Identifier: BSD-3-Clause
//! Runs a recording thread with every step interrupted, killed and read.
//!
//! A world is a thread with tiny grants. At chosen steps a signal handler records in it, at any step a reader copies
//! its memory, and the end of every run is that of a thread killed there. After each step the copy must hold every
//! entry whose call had returned, in order, and nothing else except entries in progress. Units are taken from a counter
//! and then requested; another thread has one of them, and in the end there is no room.

use std::cell::{Cell, RefCell};

use kutrace_format::abi::programs::{word, LATER, MARK, SPAN, VALUE};
use kutrace_format::program::Entries;

use super::*;

/// A fault to plant in a world, which the exploration must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The exchange moves the position regardless of its value.
    BlindExchange,
    /// A full time is never needed.
    NoDeadline,
    /// A word with payload is closed before its payload is there.
    ClosedEarly,
    /// A handler takes the same unit as the thread that it interrupts.
    SameUnit,
    /// The answer to the request for a unit is ignored.
    Unasked,
}

const GRANT_WORDS: u32 = 11;
/// Number of units; another thread writes into one of them.
const UNITS: u32 = 5;
const OTHERS: u32 = 1;

/// Steps at which an entry was begun, and at which its call had returned.
type Call = (u64, u64);

struct World {
    fault: Fault,
    memory: RefCell<Vec<u64>>,
    position: Cell<u64>,
    deadline: Cell<u64>,
    /// Number of units that were taken.
    taken: Cell<u32>,
    /// Granted units, and the time of each grant.
    granted: RefCell<Vec<(u32, u64)>>,
    clock: Cell<u64>,
    /// Advance of the clock at each reading.
    pace: u64,
    /// Advance of the clock between two entries.
    pause: u64,
    times: RefCell<Vec<Call>>,
    step: Cell<usize>,
    /// Steps at which a handler runs.
    signals: Vec<usize>,
    /// Number of entries that were begun.
    begun: Cell<u64>,
    /// Entries whose calls reported that they are recorded.
    returned: RefCell<Vec<u64>>,
    lost: Cell<u64>,
    failures: RefCell<Vec<String>>,
}

impl World {
    fn new(fault: Fault, [pace, pause]: [u64; 2], signals: Vec<usize>) -> World {
        World {
            fault,
            memory: RefCell::new(vec![0; (GRANT_WORDS * UNITS) as usize]),
            position: Cell::new(0),
            deadline: Cell::new(0),
            taken: Cell::new(0),
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

    /// The program: entries with and without payload.
    fn run(&self) {
        for _ in 0..5 {
            self.entry();
            self.clock.set(self.clock.get() + self.pause);
        }
        self.check();
    }

    fn entry(&self) {
        let id = self.begun.get() + 1;
        self.begun.set(id);
        self.times.borrow_mut().push((self.clock.get(), u64::MAX));
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

    /// Runs before every step.
    fn before(&self) {
        let step = self.step.get();
        self.step.set(step + 1);
        self.check();
        if self.signals.contains(&step) {
            self.entry();
        }
    }

    /// Checks a copy: also the state that a kill at this step would leave.
    fn check(&self) {
        let memory = self.memory.borrow();
        let mut found = Vec::new();
        for &(unit, tsc) in self.granted.borrow().iter() {
            let words = &memory[(unit * GRANT_WORDS) as usize..((unit + 1) * GRANT_WORDS) as usize];
            let mut bytes = vec![0; 8 * words.len()];
            bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
            let mut entries = Entries::new(&bytes, tsc);
            let mut last = tsc;
            for entry in entries.by_ref() {
                let times = self.times.borrow();
                let within = times.get(entry.name as usize - 1).is_some_and(|t| (t.0..=t.1).contains(&entry.tsc));
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

    fn grant(self) -> Option<Position> {
        loop {
            self.before();
            let unit = self.taken.get();
            if self.fault == Fault::SameUnit {
                self.before();
            }
            self.taken.set(unit + 1);
            self.before();
            let said = match unit {
                OTHERS => 1,
                UNITS.. => LATER,
                _ => 0,
            };
            match said {
                LATER => return None,
                1 if self.fault != Fault::Unasked => continue,
                _ => {}
            }
            if unit != OTHERS {
                self.granted.borrow_mut().push((unit, self.clock.get()));
            }
            self.before();
            return Some(Position::new(8 * unit * GRANT_WORDS, 8 * GRANT_WORDS));
        }
    }

    fn lose(self) {
        self.before();
        self.lost.set(self.lost.get() + 1);
    }
}

/// Failures of the first failing run, of all runs with a handler at each of any two steps; and the number of runs.
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
            // The second runs in the first handler, or after it.
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
    assert!(runs > 4500, "{runs}");
}

#[test]
fn planted_faults_are_found() {
    for fault in [Fault::BlindExchange, Fault::NoDeadline, Fault::ClosedEarly, Fault::SameUnit, Fault::Unasked] {
        assert!(!explore(fault).0.is_empty(), "{fault:?}");
    }
}
