// SPDX-License-Identifier: BSD-3-Clause
//! The machine that the recorder runs on in the explorer: two CPUs, a pool of tiny blocks, a clock.
//!
//! CPU 0 is interrupted at every step; CPU 1 records in bursts between any two steps of CPU 0. What was
//! recorded, when and with what outcome is kept beside the words, to be compared at the end.

use std::cell::RefCell;

use super::choices::Choices;
use super::trace;
use crate::abi::event::{IRQ, RUNNABLE};
use crate::abi::word::TIME_PERIOD;
use crate::claim::{End, Lane, Position, Taken};
use crate::entry::{self, Fold, NO_CALL};

/// Words of a block: header of one, room for a full time and two words, the unused two.
pub const BLOCK_WORDS: u64 = 8;
/// Words of a header.
pub const HEADER_WORDS: u64 = 1;

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
    MarkWithoutSecondLook,
    LastTimeTooNew,
    SpareForgotten,
    FoldWithoutHolding,
    BlockGivenBackWhenFull,
    LossNotCounted,
}

/// The state of one CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub position: Position,
    done: Position,
    last_time: u64,
    call_end: Position,
    spare: Option<u32>,
    oldest: Position,
    holding: bool,
    pub lost: u64,
    /// What was asked to be recorded.
    pub asked: u64,
    /// Every time the clock showed.
    pub times: Vec<u64>,
    marked: bool,
    early_time: u64,
}

/// A block: who owns it, what its header says, its words.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub owner: Option<usize>,
    pub cpu: usize,
    pub in_trace: bool,
    pub sequence: u64,
    pub begin: u64,
    pub content: Option<u64>,
    pub lost_after: bool,
    following: u32,
    pub words: Vec<Option<u32>>,
}

/// Everything that a run changes.
#[derive(Debug)]
pub struct State {
    pub cpus: [Cpu; 2],
    pub blocks: Vec<Block>,
    taken: u32,
    clock: u64,
    interrupts: u32,
    gaps: u32,
    bursts: u32,
    depth: u32,
    choices: Choices,
    violation: Option<String>,
}

/// One machine, for one run.
pub struct Machine {
    pub bounds: Bounds,
    pub state: RefCell<State>,
}

struct OnCpu<'a> {
    machine: &'a Machine,
    cpu: usize,
}

impl Machine {
    pub fn new(bounds: Bounds, choices: Choices) -> Machine {
        let none = Position::none(BLOCK_WORDS);
        let cpu = Cpu {
            position: none,
            done: none,
            last_time: 0,
            call_end: NO_CALL,
            spare: None,
            oldest: none,
            holding: false,
            lost: 0,
            asked: 0,
            times: Vec::new(),
            marked: false,
            early_time: 0,
        };
        let state = State {
            cpus: [cpu.clone(), cpu],
            blocks: vec![Block::default(); bounds.blocks as usize],
            taken: 0,
            clock: 5 * TIME_PERIOD,
            interrupts: bounds.interrupts,
            gaps: bounds.gaps,
            bursts: bounds.bursts,
            depth: 0,
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
        let lane = &OnCpu { machine: self, cpu };
        self.state.borrow_mut().cpus[cpu].asked += match record {
            Record::Storm => 0,
            _ => 1,
        };
        match record {
            Record::Event => entry::event(lane, IRQ),
            Record::Value => entry::value(lane, RUNNABLE, 0),
            Record::Call { nr, arg } => entry::syscall(lane, nr, arg),
            Record::Return { nr, value } => entry::syscall_return(lane, nr, value),
            Record::Storm => (0..BLOCK_WORDS).for_each(|_| self.record(cpu, Record::Value)),
        }
    }

    /// What was violated in this run, if anything: during it, or in the trace it leaves.
    pub fn finish(&self) -> Option<String> {
        let state = self.state.borrow();
        state.violation.clone().or_else(|| {
            let at_rest = state.cpus.iter().all(|cpu| cpu.done == cpu.position && !cpu.holding);
            if !at_rest {
                return Some("the done mark is not at the position at rest".to_string());
            }
            (0..2).find_map(|cpu| trace::check(self, &state, cpu)).or_else(|| state.leaked_block())
        })
    }
}

impl State {
    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// At rest a block is free, or kept aside, or in the trace.
    fn leaked_block(&self) -> Option<String> {
        let leaked = |(n, block): (usize, &Block)| match block.owner {
            Some(cpu) if !block.in_trace && self.cpus[cpu].spare != Some(n as u32) => {
                Some(format!("block {n} of CPU {cpu} is neither free nor spare nor in the trace"))
            }
            _ => None,
        };
        self.blocks.iter().enumerate().find_map(leaked)
    }

    /// Below the done mark every word of the block is written.
    fn check_done(&mut self, cpu: usize) {
        let done = self.cpus[cpu].done;
        if done.sequence() == 0 {
            return;
        }
        let block = &self.blocks[done.block() as usize];
        let end = block.content.unwrap_or(done.offset()).min(done.offset());
        let hole = (HEADER_WORDS..end).find(|at| block.words[*at as usize].is_none());
        if let (Some(at), Some(_)) = (hole, block.owner.filter(|owner| *owner == cpu)) {
            self.violate(format!("CPU {cpu}: word {at} below the done mark {done:?} is not written"));
        }
    }
}

impl OnCpu<'_> {
    fn with<T>(&self, change: impl FnOnce(&mut Cpu) -> T) -> T {
        self.step();
        change(&mut self.machine.state.borrow_mut().cpus[self.cpu])
    }

    /// The time before a step of CPU 0: nothing happens, or an interrupt, or a burst on the other CPU.
    fn step(&self) {
        let bounds = &self.machine.bounds;
        loop {
            let mut state = self.machine.state.borrow_mut();
            if self.cpu != 0 || state.violation.is_some() {
                return;
            }
            state.check_done(0);
            let kinds = if state.interrupts > 0 && state.depth < bounds.depth { bounds.kinds.len() as u8 } else { 0 };
            let bursts = u8::from(state.bursts > 0);
            if kinds + bursts == 0 {
                return;
            }
            let chosen = state.choices.choose(1 + kinds + bursts);
            if chosen == 0 {
                return;
            }
            let interrupt = chosen <= kinds;
            let left = if interrupt { &mut state.interrupts } else { &mut state.bursts };
            *left -= 1;
            state.depth += u32::from(interrupt);
            drop(state);
            if interrupt {
                self.machine.record(0, bounds.kinds[chosen as usize - 1]);
                self.machine.state.borrow_mut().depth -= 1;
            } else {
                (0..bounds.blocks).for_each(|_| self.machine.record(1, Record::Storm));
            }
        }
    }

    fn faulty(&self, fault: Fault) -> bool {
        self.machine.bounds.fault == fault
    }

    fn tick(&self) -> u64 {
        let mut state = self.machine.state.borrow_mut();
        state.clock += 1;
        if self.cpu == 0 && state.gaps > 0 && state.choices.choose(2) == 1 {
            state.gaps -= 1;
            state.clock += TIME_PERIOD + 3;
        }
        let time = state.clock;
        state.cpus[self.cpu].times.push(time);
        time
    }
}

impl Lane for OnCpu<'_> {
    const BLOCK_WORDS: u64 = BLOCK_WORDS;
    const HEADER_WORDS: u64 = HEADER_WORDS;

    fn position(&self) -> Position {
        let early = if self.faulty(Fault::ClockBeforePosition) { self.tick() } else { 0 };
        self.with(|cpu| {
            cpu.early_time = early;
            match std::mem::take(&mut cpu.marked) {
                true => cpu.done,
                false => cpu.position,
            }
        })
    }

    fn try_move(&self, old: Position, new: Position) -> bool {
        if self.faulty(Fault::MoveInTwoSteps) {
            let same = self.with(|cpu| cpu.position == old);
            return same && self.with(|cpu| std::mem::replace(&mut cpu.position, new) != new);
        }
        self.with(|cpu| {
            let same = cpu.position == old;
            if same {
                cpu.position = new;
            }
            same
        })
    }

    fn done(&self) -> Position {
        let lie = self.faulty(Fault::EveryClaimOutermost);
        // A claim asks whether done is where it began; only the position before it would answer yes for all.
        self.with(|cpu| if lie { Position(cpu.position.0 - 1) } else { cpu.done })
    }

    fn set_done(&self, position: Position) {
        let fault = self.faulty(Fault::MarkWithoutSecondLook);
        self.with(|cpu| {
            cpu.done = position;
            cpu.marked = fault;
        })
    }

    fn last_time(&self) -> u64 {
        self.with(|cpu| cpu.last_time)
    }

    fn set_last_time(&self, time: u64) {
        let time = if self.faulty(Fault::LastTimeTooNew) { time + TIME_PERIOD / 2 } else { time };
        self.with(|cpu| cpu.last_time = time)
    }

    fn now(&self) -> u64 {
        self.step();
        let early = self.machine.state.borrow().cpus[self.cpu].early_time;
        if early != 0 {
            return early;
        }
        self.tick()
    }

    fn store(&self, at: Position, word: u32) {
        self.step();
        let mut state = self.machine.state.borrow_mut();
        let block = &mut state.blocks[at.block() as usize];
        let owner = block.owner;
        block.words[at.offset() as usize] = Some(word);
        if owner != Some(self.cpu) {
            state.violate(format!("CPU {} writes to {at:?}, which belongs to {owner:?}", self.cpu));
        }
    }

    fn count_loss(&self) {
        let counted = !self.faulty(Fault::LossNotCounted);
        self.with(|cpu| cpu.lost += u64::from(counted))
    }

    fn prepare_block(&self, block: u32, sequence: u64, begin: u64) {
        self.step();
        let mut state = self.machine.state.borrow_mut();
        let old = &state.blocks[block as usize];
        state.blocks[block as usize] = Block {
            owner: old.owner,
            cpu: self.cpu,
            sequence,
            begin,
            words: vec![None; BLOCK_WORDS as usize],
            ..Block::default()
        };
    }

    fn begin_block(&self, block: u32) {
        self.step();
        self.machine.state.borrow_mut().blocks[block as usize].in_trace = true;
    }

    fn end_block(&self, at: Position, _time: u64, why: End) {
        self.step();
        let mut state = self.machine.state.borrow_mut();
        let block = &mut state.blocks[at.block() as usize];
        block.content = Some(at.offset());
        block.lost_after = why == End::Lost;
        if self.faulty(Fault::BlockGivenBackWhenFull) {
            block.owner = None;
        }
    }

    fn set_following(&self, block: u32, following: u32) {
        self.step();
        self.machine.state.borrow_mut().blocks[block as usize].following = following;
    }

    fn following(&self, block: u32) -> u32 {
        self.step();
        self.machine.state.borrow().blocks[block as usize].following
    }

    fn take_spare(&self) -> Option<u32> {
        self.with(|cpu| cpu.spare.take())
    }

    fn keep_spare(&self, block: u32) -> bool {
        if self.faulty(Fault::SpareForgotten) {
            return true;
        }
        self.with(|cpu| {
            let free = cpu.spare.is_none();
            if free {
                cpu.spare = Some(block);
            }
            free
        })
    }

    fn take_block(&self) -> Taken {
        self.step();
        let bounds = self.machine.bounds;
        let mut state = self.machine.state.borrow_mut();
        for _ in 0..bounds.blocks {
            if !bounds.wrap && state.taken >= bounds.blocks {
                return Taken::Empty;
            }
            let block = state.taken % bounds.blocks;
            state.taken += 1;
            let owner = &mut state.blocks[block as usize].owner;
            if owner.is_none() {
                *owner = Some(self.cpu);
                return Taken::Block(block);
            }
        }
        Taken::Empty
    }

    fn give_block(&self, block: u32) {
        self.step();
        let mut state = self.machine.state.borrow_mut();
        let owner = state.blocks[block as usize].owner.take();
        if owner != Some(self.cpu) {
            state.violate(format!("CPU {} gives back block {block}, which belongs to {owner:?}", self.cpu));
        }
    }

    fn oldest(&self) -> Position {
        self.with(|cpu| cpu.oldest)
    }

    fn set_oldest(&self, position: Position) {
        self.with(|cpu| cpu.oldest = position)
    }

    fn holding(&self) -> bool {
        let blind = self.faulty(Fault::FoldWithoutHolding);
        self.with(|cpu| cpu.holding && !blind)
    }

    fn set_holding(&self, on: bool) {
        self.with(|cpu| cpu.holding = on)
    }
}

impl Fold for OnCpu<'_> {
    fn call_end(&self) -> Position {
        self.with(|cpu| cpu.call_end)
    }

    fn set_call_end(&self, position: Position) {
        self.with(|cpu| cpu.call_end = position)
    }

    fn load(&self, at: Position) -> u32 {
        self.step();
        let word = self.machine.state.borrow().blocks[at.block() as usize].words[at.offset() as usize];
        word.unwrap_or_default()
    }
}
