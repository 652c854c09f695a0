// SPDX-License-Identifier: BSD-3-Clause
//! The steps of a CPU: any act may come before each step of CPU 0.

use super::{earlier, Cpu, Fault, Machine, Memory, Record};
use crate::abi::event::{SYSCALL, SYSCALL_RETURN};
use crate::abi::word::{event, Call, TIME_PERIOD};
use crate::claim;
use crate::lane::{Block, End, Position};

/// A CPU of a machine.
#[derive(Clone, Copy)]
pub(super) struct OnCpu<'a, const WORDS: usize> {
    pub(super) machine: &'a Machine,
    pub(super) cpu: usize,
}

/// Distance of a step back of the clock: further than a run counts from its start.
const STEP_BACK: u64 = 3 * TIME_PERIOD + 1;
/// Distance of a slip: past a few reads of the clock.
const SLIP: u64 = 3;

/// Acts that may come before a step of CPU 0.
#[derive(Clone, Copy)]
enum Between {
    Nothing,
    Interrupt(Record),
    Burst,
    Gate,
    Rotate,
    Reader,
    Stream,
}

impl<const WORDS: usize> OnCpu<'_, WORDS> {
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Cpu) -> T) -> T {
        self.step();
        change(&mut self.machine.state.borrow_mut().cpus[self.cpu])
    }

    /// The time before a step of the pool's.
    pub(super) fn step_of_pool(&self) {
        if self.machine.bounds.take_in_steps {
            self.step();
        }
    }

    pub(super) fn with_memory<T>(&self, block: Block, change: impl FnOnce(&mut Memory) -> T) -> T {
        self.step();
        change(self.machine.state.borrow_mut().memory(block))
    }

    /// The time before a step of CPU 0.
    pub(super) fn step(&self) {
        if self.cpu != 0 {
            return;
        }
        loop {
            match self.choose_between() {
                Between::Nothing => return,
                Between::Interrupt(record) => {
                    self.machine.state.borrow_mut().nesting += 1;
                    self.machine.record(0, record);
                    self.machine.state.borrow_mut().nesting -= 1;
                }
                Between::Burst => (0..self.machine.bounds.blocks).for_each(|_| self.machine.record(1, Record::Storm)),
                Between::Gate => {
                    let open = std::mem::take(&mut self.machine.state.borrow_mut().open);
                    self.machine.state.borrow_mut().open = !open;
                    if open {
                        claim::close(*self, End::Complete);
                    }
                }
                Between::Rotate => self.machine.rotate(),
                Between::Reader => self.machine.read(),
                Between::Stream => self.machine.read_stream(),
            }
        }
    }

    fn choose_between(&self) -> Between {
        let bounds = &self.machine.bounds;
        let mut state = self.machine.state.borrow_mut();
        if state.violation.is_some() {
            return Between::Nothing;
        }
        state.check_written();
        let interrupts = if state.interrupts > 0 && state.nesting < bounds.depth { bounds.kinds } else { &[] };
        let reads = state.snapshot.as_ref().is_some_and(|snapshot| snapshot.goes_on(&state, bounds.fault));
        let others = [
            (state.bursts > 0, Between::Burst),
            (state.gates > 0, Between::Gate),
            (state.snapshots > 0, Between::Rotate),
            (reads, Between::Reader),
            (state.reads > 0, Between::Stream),
        ];
        let possible = || others.iter().filter(|(is, _)| *is).map(|(_, between)| *between);
        let options = 1 + interrupts.len() + possible().count();
        if options == 1 {
            return Between::Nothing;
        }
        let chosen = match usize::from(state.choices.choose(options as u8)) {
            0 => Between::Nothing,
            n if n <= interrupts.len() => Between::Interrupt(interrupts[n - 1]),
            n => possible().nth(n - 1 - interrupts.len()).unwrap_or(Between::Nothing),
        };
        match chosen {
            Between::Nothing | Between::Reader => {}
            Between::Interrupt(_) => state.interrupts -= 1,
            Between::Burst => state.bursts -= 1,
            Between::Gate => state.gates -= 1,
            Between::Rotate => state.snapshots -= 1,
            Between::Stream => state.reads -= 1,
        }
        chosen
    }

    pub(super) fn faulty(&self, fault: Fault) -> bool {
        self.machine.bounds.fault == fault
    }

    pub(super) fn tick(&self) -> u64 {
        let mut state = self.machine.state.borrow_mut();
        state.clock += 1;
        if self.cpu == 0 && state.gaps > 0 && state.choices.choose(2) == 1 {
            state.gaps -= 1;
            state.clock += TIME_PERIOD + 3;
        }
        if self.cpu == 0 && state.steps_back > 0 && state.choices.choose(2) == 1 {
            state.steps_back -= 1;
            state.clock -= STEP_BACK;
        }
        if self.cpu == 0 && state.slips > 0 && state.choices.choose(2) == 1 {
            state.slips -= 1;
            state.cpus[0].slips += 1;
            state.clock -= SLIP;
        }
        let time = state.clock;
        state.cpus[self.cpu].times.push(time);
        time
    }

    /// A call is folded in place: its word is open, and the last of the CPU's.
    pub(super) fn check_fold(&self, end: Position) {
        let mut state = self.machine.state.borrow_mut();
        let (call, word) = (*state.word(earlier(end, 2)), *state.word(earlier(end, 1)));
        let is_call = call.is_some_and(|call| (SYSCALL..SYSCALL_RETURN).contains(&event(call)));
        if !is_call || word.is_some_and(|word| Call::decode(word).folded.is_some()) {
            state.violate(format!("a return is folded into {call:x?} {word:x?}"));
        }
    }
}
