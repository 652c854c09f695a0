// SPDX-License-Identifier: BSD-3-Clause
//! The machine that the recorder runs on in the explorer: two CPUs, a pool of tiny blocks, a clock, a reader.
//!
//! CPU 0 is interrupted at every step; CPU 1 records in bursts between any two steps of CPU 0, and the reader of a
//! snapshot comes between any two. What was recorded, when and with what outcome is kept beside the words, to be
//! compared at the end. [`steps`] says what comes between steps, [`lane`] what a step does.

mod steps;
mod lane;

use std::cell::RefCell;

use steps::OnCpu;

use super::choices::Choices;
use super::snapshot::Snapshot;
use super::trace;
use crate::abi::block::{BYTES, HEADER_WORDS};
use crate::abi::event::{IRQ, RUNNABLE};
use crate::abi::word::TIME_PERIOD;
use crate::claim::{self, Block, Position, NO_BLOCK};
use crate::entry::{self, NO_CALL};

/// Entry words of a block: room for a full time and two words.
pub const ENTRY_WORDS: usize = 5;

/// Something to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// One word.
    Event,
    /// Two words.
    Value,
    /// A system call.
    Call { nr: u32, arg: u64 },
    /// Its return.
    Return { nr: u32, value: i64 },
    /// Enough values to fill two blocks.
    Storm,
}

/// How far to explore.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Blocks of the pool.
    pub blocks: u32,
    /// Whether the pool wraps.
    pub wrap: bool,
    /// Interrupts in a run.
    pub interrupts: u32,
    /// How deep they nest.
    pub depth: u32,
    /// Jumps of the clock in a run.
    pub gaps: u32,
    /// Bursts of CPU 1 in a run, each as long as the pool.
    pub bursts: u32,
    /// Moves of the pool's gate in a run: the first opens it, the second ends the recording.
    pub gates: u32,
    /// Snapshots in a run.
    pub snapshots: u32,
    /// What an interrupt may record.
    pub kinds: &'static [Record],
    /// What is wrong with this machine.
    pub fault: Fault,
}

/// A fault planted in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    ClockBeforePosition,
    MoveInTwoSteps,
    EveryClaimOutermost,
    DeadlineTooLate,
    SpareForgotten,
    BlockGivenBackWhenFull,
    LossNotCounted,
    CounterByteBeside,
    OutsideNotCounted,
    CallNotForgotten,
    ReaderDoesNotWait,
    ReaderLooksOnce,
}

/// The state of one CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub position: Position,
    pub depth: u32,
    deadline: u64,
    call_end: Position,
    call_time: u64,
    spare: Option<Block>,
    oldest: Block,
    pub lost: u64,
    pub outside: u64,
    /// Events noted.
    pub noted: u64,
    /// What was asked to be recorded.
    pub asked: u64,
    /// What of that is over.
    pub over: u64,
    /// Every time the clock showed.
    pub times: Vec<u64>,
    early_time: Option<u64>,
}

/// A block in memory: who owns it, what its header says, its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub owner: Option<usize>,
    pub cpu: usize,
    pub in_trace: bool,
    pub sequence: u64,
    pub begin: u64,
    pub content: Option<usize>,
    pub lost_after: bool,
    following: Block,
    pub words: Vec<Option<u32>>,
    /// How often each word was noted: as often as its counter byte is written.
    pub notes: Vec<u8>,
}

/// Everything that a run changes.
#[derive(Debug)]
pub struct State {
    pub cpus: [Cpu; 2],
    pub blocks: Vec<Memory>,
    pub clock: u64,
    open: bool,
    pub taken: u32,
    interrupts: u32,
    gaps: u32,
    bursts: u32,
    gates: u32,
    snapshots: u32,
    pub snapshot: Option<Snapshot>,
    nesting: u32,
    choices: Choices,
    violation: Option<String>,
}

/// One machine, for one run.
pub struct Machine {
    pub bounds: Bounds,
    pub state: RefCell<State>,
}

impl Machine {
    pub fn new(bounds: Bounds, choices: Choices) -> Machine {
        let cpu = Cpu {
            position: NO_BLOCK.sealed(),
            depth: 0,
            deadline: 0,
            call_end: NO_CALL,
            call_time: 0,
            spare: None,
            oldest: NO_BLOCK,
            lost: 0,
            outside: 0,
            noted: 0,
            asked: 0,
            over: 0,
            times: Vec::new(),
            early_time: None,
        };
        let block = Memory {
            owner: None,
            cpu: 0,
            in_trace: false,
            sequence: 0,
            begin: 0,
            content: None,
            lost_after: false,
            following: NO_BLOCK,
            words: Vec::new(),
            notes: Vec::new(),
        };
        let state = State {
            cpus: [cpu.clone(), cpu],
            blocks: vec![block; bounds.blocks as usize],
            clock: 5 * TIME_PERIOD,
            open: bounds.gates == 0,
            taken: 0,
            interrupts: bounds.interrupts,
            gaps: bounds.gaps,
            bursts: bounds.bursts,
            gates: bounds.gates,
            snapshots: bounds.snapshots,
            snapshot: None,
            nesting: 0,
            choices,
            violation: None,
        };
        Machine { bounds, state: RefCell::new(state) }
    }

    pub fn into_choices(self) -> Choices {
        self.state.into_inner().choices
    }

    /// Records on a CPU, as its hooks would.
    pub fn record(&self, cpu: usize, record: Record) {
        let lane = OnCpu { machine: self, cpu };
        let count = u64::from(record != Record::Storm);
        self.state.borrow_mut().cpus[cpu].asked += count;
        match record {
            Record::Event => entry::event(lane, IRQ.into()),
            Record::Value => entry::value(lane, RUNNABLE.into(), 0),
            Record::Call { nr, arg } => entry::syscall(lane, nr, arg),
            Record::Return { nr, value } => entry::syscall_return(lane, nr, value),
            Record::Storm => (0..ENTRY_WORDS).for_each(|_| self.record(cpu, Record::Value)),
        }
        self.state.borrow_mut().cpus[cpu].over += count;
    }

    /// What was violated in this run, if anything: during it, or in the trace it leaves.
    pub fn finish(&self) -> Option<String> {
        {
            let mut state = self.state.borrow_mut();
            (state.open, state.gates, state.snapshots) = (false, 0, 0);
        }
        (0..2).for_each(|cpu| claim::close(OnCpu { machine: self, cpu }));
        while self.state.borrow().snapshot.is_some() {
            self.read();
        }
        let state = self.state.borrow();
        state.violation.clone().or_else(|| {
            if state.cpus.iter().any(|cpu| cpu.depth != 0) {
                return Some("a claim is under way at rest".to_string());
            }
            (0..2).find_map(|cpu| trace::check(self, &state, cpu)).or_else(|| state.leaked_block())
        })
    }

    /// Every CPU ends its block, and a reader begins to read what has been recorded.
    fn rotate(&self) {
        let snapshot = Snapshot::new(&self.state.borrow());
        let rotated = [0, 1].map(|cpu| claim::rotate(OnCpu { machine: self, cpu }));
        if rotated == [true; 2] {
            self.state.borrow_mut().snapshot = Some(snapshot);
        }
    }

    /// A step of the snapshot's reader.
    fn read(&self) {
        let mut state = self.state.borrow_mut();
        let Some(snapshot) = state.snapshot.take() else { return };
        match snapshot.step(&state, self.bounds.fault) {
            Ok(rest) => state.snapshot = rest,
            Err(violation) => state.violate(violation),
        }
    }
}

impl State {
    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    fn memory(&mut self, block: Block) -> &mut Memory {
        &mut self.blocks[(block.0 / BYTES as u64) as usize - 1]
    }

    fn word(&mut self, at: Position) -> &mut Option<u32> {
        &mut self.memory(at.block()).words[content(at)]
    }

    /// At rest a block is free, or kept aside, or in the trace.
    fn leaked_block(&self) -> Option<String> {
        let leaked = |(n, memory): (usize, &Memory)| match memory.owner {
            Some(cpu) if !memory.in_trace && self.cpus[cpu].spare != Some(address(n as u32)) => {
                Some(format!("block {n} of CPU {cpu} is neither free nor spare nor in the trace"))
            }
            _ => None,
        };
        self.blocks.iter().enumerate().find_map(leaked)
    }

    /// With no claim under way, every word before the position is written.
    fn check_written(&mut self) {
        let position = self.cpus[0].position;
        if self.cpus[0].depth != 0 || position.block() == NO_BLOCK {
            return;
        }
        let memory = self.memory(position.block()).clone();
        let end = memory.content.unwrap_or_else(|| content(position));
        if memory.owner == Some(0) && memory.words[..end].contains(&None) {
            self.violate(format!("a word before {position:?} is not written: {:?}", memory.words));
        }
    }
}

/// The address of block `n` of the pool.
fn address(n: u32) -> Block {
    Block((u64::from(n) + 1) * BYTES as u64)
}

/// Entry words before a position.
fn content(at: Position) -> usize {
    usize::from(at.offset()) / 4 - HEADER_WORDS
}
