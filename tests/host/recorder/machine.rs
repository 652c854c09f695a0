// SPDX-License-Identifier: BSD-3-Clause
//! The machine that the recorder runs on in the explorer: two CPUs, a pool of tiny blocks, a clock, a reader.
//!
//! CPU 0 is interrupted at every step; CPU 1 records in bursts between any two steps of CPU 0, and the reader of a
//! snapshot comes between any two. The records, their times and outcomes are kept alongside the words, to be compared
//! at the end. [`steps`] decides the acts between steps, [`lane`] the work of a step.

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
use crate::call::TaskLane;
use crate::claim;
use crate::entry;
use crate::lane::{Block, End, Position, NO_BLOCK, NO_CALL};
use crate::owners::{Owner, Owners, Reuse};

/// Entry words of a block: room for a full time and two words.
pub const ENTRY_WORDS: usize = 5;
/// Entry words of a block where tasks are named: room for three names and switches.
pub const NAMING_WORDS: usize = 32;

/// A task: its pid is used again, its other attributes are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub pid: u32,
    pub born: u32,
}

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
    /// A switch to a task.
    Switch(Task),
    /// Enough values to fill two blocks.
    Storm,
}

/// Bounds of the exploration.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Blocks of the pool.
    pub blocks: u32,
    /// True if blocks are those of [`NAMING_WORDS`].
    pub naming: bool,
    /// True if the pool wraps.
    pub wrap: bool,
    /// Interrupts in a run.
    pub interrupts: u32,
    /// Depth of nesting.
    pub depth: u32,
    /// Jumps of the clock in a run.
    pub gaps: u32,
    /// Steps back of the clock in a run, by three periods.
    pub steps_back: u32,
    /// Steps back by a few counts.
    pub slips: u32,
    /// Bursts of CPU 1 in a run, each as long as the pool.
    pub bursts: u32,
    /// Moves of the pool's gate in a run: the first opens it, the second ends the recording.
    pub gates: u32,
    /// Snapshots in a run.
    pub snapshots: u32,
    /// Steps in which a snapshot's reader copies the blocks; 0 for all at once with its last look.
    pub copies: usize,
    /// Steps of a reader of a stream in a run: it is handed the full blocks, and gives them back. Without any the trace
    /// is not a stream.
    pub reads: u32,
    /// True if taking a block from the pool, and giving it back, is several steps.
    pub take_in_steps: bool,
    /// Records that an interrupt may make.
    pub kinds: &'static [Record],
    /// Fault of this machine.
    pub fault: Fault,
}

/// A fault planted in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    ClockBeforePosition,
    MoveInTwoSteps,
    EveryClaimOutermost,
    SinceTooLate,
    StepNotSaid,
    SpareForgotten,
    BlockGivenBackWhenFull,
    LossNotCounted,
    CounterByteBeside,
    OutsideNotCounted,
    CallNotSaid,
    NamedByPid,
    CallNotWaitedFor,
    ReaderDoesNotWait,
    ReaderLooksOnce,
    HandedOverWhileFilled,
    FreedBeforeCleared,
}

/// The state of one CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub position: Position,
    pub depth: u32,
    since: u64,
    call_end: Position,
    call_time: u64,
    spare: Option<Block>,
    oldest: Block,
    pub lost: u64,
    pub outside: u64,
    /// Events noted.
    pub noted: u64,
    /// Records requested so far.
    pub asked: u64,
    /// Those that are complete.
    pub over: u64,
    /// Every time the clock showed.
    pub times: Vec<u64>,
    /// Number of steps back by a few counts.
    pub slips: u64,
    early_time: Option<u64>,
    /// The last task named, by block.
    named: Option<(u64, u32, u32)>,
    /// The tasks switched to.
    pub switches: Vec<Task>,
    /// The calls returned from, and with which values.
    pub returns: Vec<(u32, i64)>,
    /// Hooks of tasks entered.
    pub entered: u64,
    /// The one that is under way.
    pub in_hook: Option<u64>,
}

/// A block in memory: its owner, its header, its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub owner: Option<usize>,
    pub cpu: usize,
    pub in_trace: bool,
    pub sequence: u64,
    pub begin: u64,
    pub back: bool,
    pub end: u64,
    pub content: Option<usize>,
    pub lost_after: bool,
    /// Events that its CPU had lost when the next block followed.
    pub lost: u64,
    following: Block,
    /// As many as a block has count.
    pub words: [Option<u32>; NAMING_WORDS],
    /// Number of notes of each word, which is how often its counter byte is written.
    pub notes: [u8; NAMING_WORDS],
}

/// Everything that a run changes.
#[derive(Debug)]
pub struct State {
    pub cpus: [Cpu; 2],
    pub blocks: Vec<Memory>,
    pub clock: u64,
    open: bool,
    /// Blocks taken.
    pub taken: usize,
    interrupts: u32,
    gaps: u32,
    steps_back: u32,
    slips: u32,
    bursts: u32,
    gates: u32,
    snapshots: u32,
    pub snapshot: Option<Snapshot>,
    reads: u32,
    /// The blocks that the reader of a stream has, and those that it has given back.
    handed: Vec<(usize, Memory)>,
    pub read: Vec<Memory>,
    nesting: u32,
    choices: Choices,
    violation: Option<String>,
}

/// One machine, for one run.
pub struct Machine {
    pub bounds: Bounds,
    pub state: RefCell<State>,
    /// The module's own.
    owners: Owners,
    _owners: Vec<Owner>,
}

impl Machine {
    pub fn new(bounds: Bounds, choices: Choices) -> Machine {
        let cpu = Cpu {
            position: NO_BLOCK.sealed(),
            depth: 0,
            since: 0,
            call_end: NO_CALL,
            call_time: 0,
            spare: None,
            oldest: NO_BLOCK,
            lost: 0,
            outside: 0,
            noted: 0,
            asked: 0,
            over: 0,
            times: Vec::with_capacity(64),
            slips: 0,
            early_time: None,
            named: None,
            switches: Vec::new(),
            returns: Vec::new(),
            entered: 0,
            in_hook: None,
        };
        let block = Memory {
            owner: None,
            cpu: 0,
            in_trace: false,
            sequence: 0,
            begin: 0,
            back: false,
            end: 0,
            content: None,
            lost_after: false,
            lost: 0,
            following: NO_BLOCK,
            words: [None; NAMING_WORDS],
            notes: [0; NAMING_WORDS],
        };
        let state = State {
            cpus: [cpu.clone(), cpu],
            blocks: vec![block; bounds.blocks as usize],
            clock: 9 * TIME_PERIOD,
            open: bounds.gates == 0,
            taken: 0,
            interrupts: bounds.interrupts,
            gaps: bounds.gaps,
            steps_back: bounds.steps_back,
            slips: bounds.slips,
            bursts: bounds.bursts,
            gates: bounds.gates,
            snapshots: bounds.snapshots,
            snapshot: None,
            reads: bounds.reads,
            handed: Vec::new(),
            read: Vec::new(),
            nesting: 0,
            choices,
            violation: None,
        };
        let mut places: Vec<Owner> = (0..bounds.blocks).map(|_| Owner::default()).collect();
        let reuse = match (bounds.reads > 0, bounds.wrap) {
            (true, _) => Reuse::Read,
            (false, true) => Reuse::AtOnce,
            (false, false) => Reuse::Never,
        };
        let owners = Owners::none();
        // SAFETY: they are as many as the blocks, which have no memory, and stay as long as the machine.
        unsafe {
            owners.put(places.as_mut_ptr(), address(0).address(), bounds.blocks.into());
            owners.reset(reuse);
        }
        Machine { bounds, state: RefCell::new(state), owners, _owners: places }
    }

    pub fn into_choices(self) -> Choices {
        self.state.into_inner().choices
    }

    /// Records on a CPU, as its hooks would.
    pub fn record(&self, cpu: usize, record: Record) {
        match self.bounds.naming {
            false => self.record_on(OnCpu::<ENTRY_WORDS> { machine: self, cpu }, record),
            true => self.record_on(OnCpu::<NAMING_WORDS> { machine: self, cpu }, record),
        }
    }

    fn record_on<const WORDS: usize>(&self, lane: OnCpu<WORDS>, record: Record) {
        let cpu = lane.cpu;
        let count = u64::from(record != Record::Storm);
        self.state.borrow_mut().cpus[cpu].asked += count;
        match record {
            Record::Event => entry::event(lane, IRQ.into()),
            Record::Value => entry::value(lane, RUNNABLE.into(), 0),
            Record::Call { nr, arg } => self.hook(lane, |lane| entry::syscall(lane, nr, arg)),
            Record::Return { nr, value } => {
                self.state.borrow_mut().cpus[cpu].returns.push((nr, value));
                self.hook(lane, |lane| entry::syscall_return(lane, value, || nr));
            }
            Record::Switch(task) => {
                self.state.borrow_mut().cpus[cpu].switches.push(task);
                self.hook(lane, |lane| entry::switch_to(lane, &task));
            }
            Record::Storm => (0..WORDS).for_each(|_| self.record(cpu, Record::Value)),
        }
        self.state.borrow_mut().cpus[cpu].over += count;
    }

    /// A hook that only tasks come to.
    fn hook<const WORDS: usize>(&self, lane: OnCpu<WORDS>, work: impl FnOnce(TaskLane<OnCpu<WORDS>>)) {
        let enter = |cpu: &mut Cpu| {
            cpu.entered += 1;
            assert_eq!(cpu.in_hook.replace(cpu.entered), None, "a task comes to a hook inside another's");
        };
        enter(&mut self.state.borrow_mut().cpus[lane.cpu]);
        // SAFETY: interrupts record none of a task's events, as is asserted here.
        work(unsafe { TaskLane::new(lane) });
        self.state.borrow_mut().cpus[lane.cpu].in_hook = None;
    }

    /// The fault of this run, if any: during it, or in the trace it leaves.
    pub fn finish(&self) -> Option<String> {
        {
            let mut state = self.state.borrow_mut();
            (state.open, state.gates, state.snapshots, state.reads) = (false, 0, 0, 0);
        }
        (0..2).for_each(|cpu| claim::close(OnCpu::<ENTRY_WORDS> { machine: self, cpu }, End::Complete));
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
        let rotated = [0, 1].map(|cpu| claim::rotate(OnCpu::<ENTRY_WORDS> { machine: self, cpu }));
        if rotated == [true; 2] {
            self.state.borrow_mut().snapshot = Some(snapshot);
        }
    }

    /// A step of a stream's reader.
    pub fn read_stream(&self) {
        self.state.borrow_mut().read_stream(&self.owners, self.bounds.fault);
    }

    /// A step of the snapshot's reader.
    fn read(&self) {
        let mut state = self.state.borrow_mut();
        let Some(snapshot) = state.snapshot.take() else { return };
        match snapshot.step(&state, self.bounds.copies, self.bounds.fault) {
            Ok(rest) => state.snapshot = rest,
            Err(violation) => state.violate(violation),
        }
    }
}

/// The owner of a block of a stream that is full or read.
const READER: usize = 2;

impl State {
    /// A step of a stream's reader: it is handed the full blocks, or gives back those that it has.
    fn read_stream(&mut self, owners: &Owners, fault: Fault) {
        if self.handed.is_empty() {
            let early = fault == Fault::HandedOverWhileFilled;
            let full: Vec<usize> = owners.full().map(|n| n as usize).collect();
            if let Some(n) = full.iter().find(|&&n| self.blocks[n].owner != Some(READER)) {
                self.violate(format!("block {n} of {:?} is handed over", self.blocks[*n].owner));
            }
            let is_handed =
                |n: &usize, block: &Memory| full.contains(n) || early && block.in_trace && block.content.is_some();
            self.handed = self.blocks.iter().cloned().enumerate().filter(|(n, block)| is_handed(n, block)).collect();
            return;
        }
        let late = fault == Fault::FreedBeforeCleared;
        for (n, copy) in std::mem::take(&mut self.handed) {
            let back = owners.take_back(n as u32);
            if self.blocks[n] != copy && !late {
                self.violate(format!("block {n} changed while it was read"));
            }
            let stays = late && back.is_some();
            self.blocks[n].in_trace &= stays;
            if let Some(block) = back {
                self.blocks[n].owner = None;
                // SAFETY: the reader had it, and is done with it.
                unsafe { owners.free(block, || ()) };
            }
            match stays {
                true => self.handed.push((n, copy)),
                false => self.read.push(copy),
            }
        }
    }

    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    fn memory(&mut self, block: Block) -> &mut Memory {
        &mut self.blocks[(block.address() / BYTES as u64) as usize - 1]
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

    /// An event may be lost while its CPU has blocks that it could have given back: only inside another claim. Blocks
    /// that others may have given back in between are not considered.
    fn check_lost(&mut self, cpu: usize, bounds: &Bounds) {
        let Cpu { position, call_end, depth, .. } = self.cpus[cpu];
        if depth != 1 || bounds.bursts + bounds.reads > 0 {
            return;
        }
        let is_needed = |n| [position.block(), call_end.block()].contains(&address(n as u32));
        let is_kept = |(n, memory): (usize, &Memory)| memory.owner == Some(cpu) && memory.in_trace && !is_needed(n);
        if self.blocks.iter().enumerate().any(is_kept) {
            self.violate(format!("CPU {cpu} loses an event, and keeps blocks that it need not"));
        }
    }

    /// With no claim under way, every word before the position is written.
    fn check_written(&mut self) {
        let position = self.cpus[0].position;
        if self.cpus[0].depth != 0 || self.cpus[0].in_hook.is_some() || position.block() == NO_BLOCK {
            return;
        }
        let memory = &*self.memory(position.block());
        let end = memory.content.unwrap_or_else(|| content(position));
        if memory.owner == Some(0) && memory.words[..end].contains(&None) {
            let what = format!("a word before {position:?} is not written: {:?}", memory.words);
            self.violate(what);
        }
    }
}

/// The address of block `n` of the pool.
fn address(n: u32) -> Block {
    // SAFETY: it is one of the machine's.
    unsafe { Block::new((u64::from(n) + 1) * BYTES as u64) }
}

/// The position `words` further on.
fn further(at: Position, words: usize) -> Position {
    // SAFETY: the machine looks whether it has that.
    unsafe { Position::new(at.address().wrapping_add(words as u64 * 4)) }
}

/// The position `words` further back.
fn earlier(at: Position, words: usize) -> Position {
    // SAFETY: as above.
    unsafe { Position::new(at.address().wrapping_sub(words as u64 * 4)) }
}

/// Entry words before a position.
fn content(at: Position) -> usize {
    usize::from(at.offset()) / 4 - HEADER_WORDS
}
