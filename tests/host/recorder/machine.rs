// SPDX-License-Identifier: BSD-3-Clause
//! The machine that the recorder runs on in the explorer: two CPUs, a pool of tiny blocks, a clock, a reader.
//!
//! CPU 0 is interrupted at every step; CPU 1 records in bursts between any two steps of CPU 0, and the reader of a
//! snapshot comes between any two. What was recorded, when and with what outcome is kept beside the words, to be
//! compared at the end.

use std::cell::RefCell;

use super::choices::Choices;
use super::snapshot::Snapshot;
use super::trace;
use crate::abi::block::{BYTES, HEADER_WORDS};
use crate::abi::event::{IRQ, RUNNABLE, SYSCALL, SYSCALL_RETURN};
use crate::abi::word::{event, Call, TIME_PERIOD};
use crate::claim::{self, Block, End, Lane, Position, NO_BLOCK};
use crate::entry::{self, Fold, NO_CALL};

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

#[derive(Clone, Copy)]
struct OnCpu<'a> {
    machine: &'a Machine,
    cpu: usize,
}

/// What may come before a step of CPU 0.
#[derive(Clone, Copy)]
enum Between {
    Nothing,
    Interrupt(Record),
    Burst,
    Gate,
    Rotate,
    Reader,
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

impl OnCpu<'_> {
    fn with<T>(&self, change: impl FnOnce(&mut Cpu) -> T) -> T {
        self.step();
        change(&mut self.machine.state.borrow_mut().cpus[self.cpu])
    }

    fn with_memory<T>(&self, block: Block, change: impl FnOnce(&mut Memory) -> T) -> T {
        self.step();
        change(self.machine.state.borrow_mut().memory(block))
    }

    /// The time before a step of CPU 0.
    fn step(&self) {
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
                        claim::close(*self);
                    }
                }
                Between::Rotate => self.machine.rotate(),
                Between::Reader => self.machine.read(),
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
        let mut options = vec![Between::Nothing];
        if state.interrupts > 0 && state.nesting < bounds.depth {
            options.extend(bounds.kinds.iter().map(|kind| Between::Interrupt(*kind)));
        }
        options.extend((state.bursts > 0).then_some(Between::Burst));
        options.extend((state.gates > 0).then_some(Between::Gate));
        options.extend((state.snapshots > 0).then_some(Between::Rotate));
        let reads = state.snapshot.as_ref().is_some_and(|snapshot| snapshot.goes_on(&state, bounds.fault));
        options.extend(reads.then_some(Between::Reader));
        if options.len() == 1 {
            return Between::Nothing;
        }
        let chosen = options[usize::from(state.choices.choose(options.len() as u8))];
        match chosen {
            Between::Nothing | Between::Reader => {}
            Between::Interrupt(_) => state.interrupts -= 1,
            Between::Burst => state.bursts -= 1,
            Between::Gate => state.gates -= 1,
            Between::Rotate => state.snapshots -= 1,
        }
        chosen
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

    /// A call is folded where it stands: its word is open, and the last of the CPU's.
    fn check_fold(&self, end: Position) {
        let mut state = self.machine.state.borrow_mut();
        let (call, word) = (*state.word(end.before(2)), *state.word(end.before(1)));
        let is_call = call.is_some_and(|call| (SYSCALL..SYSCALL_RETURN).contains(&event(call)));
        if !is_call || word.is_some_and(|word| Call::decode(word).folded.is_some()) {
            state.violate(format!("a return is folded into {call:x?} {word:x?}"));
        }
    }
}

impl Lane for OnCpu<'_> {
    const ROOM: u16 = (4 * (HEADER_WORDS + ENTRY_WORDS)) as u16;

    fn enter(&self) {
        self.with(|cpu| cpu.depth += 1)
    }

    fn leave(&self) {
        self.with(|cpu| cpu.depth -= 1)
    }

    fn is_outermost(&self) -> bool {
        let lie = self.faulty(Fault::EveryClaimOutermost);
        self.with(|cpu| lie || cpu.depth == 1)
    }

    fn position(&self) -> Position {
        let early = self.faulty(Fault::ClockBeforePosition).then(|| self.tick());
        self.with(|cpu| {
            cpu.early_time = early;
            cpu.position
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

    fn now(&self) -> u64 {
        self.step();
        let early = self.machine.state.borrow().cpus[self.cpu].early_time;
        early.unwrap_or_else(|| self.tick())
    }

    fn deadline(&self) -> u64 {
        self.with(|cpu| cpu.deadline)
    }

    fn set_deadline(&self, time: u64) {
        let time = if self.faulty(Fault::DeadlineTooLate) { time + TIME_PERIOD / 2 } else { time };
        self.with(|cpu| cpu.deadline = time)
    }

    fn store(&self, at: Position, word: u32) {
        self.step();
        let mut state = self.machine.state.borrow_mut();
        *state.word(at) = Some(word);
        let owner = state.memory(at.block()).owner;
        if owner != Some(self.cpu) {
            state.violate(format!("CPU {} writes to {at:?}, which belongs to {owner:?}", self.cpu));
        }
    }

    fn note(&self, at: Position) {
        let beside = usize::from(self.faulty(Fault::CounterByteBeside));
        self.with_memory(at.block(), |memory| memory.notes[(content(at) + beside) % ENTRY_WORDS] += 1);
        self.machine.state.borrow_mut().cpus[self.cpu].noted += 1;
    }

    fn count_loss(&self) {
        let counted = !self.faulty(Fault::LossNotCounted);
        self.with(|cpu| cpu.lost += u64::from(counted))
    }

    fn count_outside(&self) {
        let counted = !self.faulty(Fault::OutsideNotCounted);
        self.with(|cpu| cpu.outside += u64::from(counted))
    }

    fn prepare_block(&self, block: Block, sequence: u64, begin: u64) {
        self.with_memory(block, |memory| memory.in_trace = false);
        self.with_memory(block, |memory| {
            *memory = Memory {
                owner: memory.owner,
                cpu: self.cpu,
                in_trace: false,
                sequence,
                begin,
                content: None,
                lost_after: false,
                following: NO_BLOCK,
                words: vec![None; ENTRY_WORDS],
                notes: vec![0; ENTRY_WORDS],
            }
        })
    }

    fn begin_block(&self, block: Block) {
        self.with_memory(block, |memory| memory.in_trace = true);
        if !self.faulty(Fault::CallNotForgotten) {
            self.forget_call();
        }
    }

    fn end_block(&self, at: Position, _time: u64, why: End) {
        let give = self.faulty(Fault::BlockGivenBackWhenFull);
        self.with_memory(at.block(), |memory| {
            memory.content = Some(content(at));
            memory.lost_after = why == End::Lost;
            memory.owner = memory.owner.filter(|_| !give);
        })
    }

    fn sequence(&self, block: Block) -> u64 {
        self.with_memory(block, |memory| memory.sequence)
    }

    fn set_following(&self, block: Block, following: Block) {
        self.with_memory(block, |memory| memory.following = following)
    }

    fn following(&self, block: Block) -> Block {
        self.with_memory(block, |memory| memory.following)
    }

    fn take_spare(&self) -> Option<Block> {
        self.with(|cpu| cpu.spare.take())
    }

    fn keep_spare(&self, block: Block) -> bool {
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

    fn is_open(&self) -> bool {
        self.step();
        self.machine.state.borrow().open
    }

    fn take_block(&self) -> Option<Block> {
        self.step();
        let bounds = self.machine.bounds;
        let mut state = self.machine.state.borrow_mut();
        for _ in 0..bounds.blocks {
            if !bounds.wrap && state.taken >= bounds.blocks {
                return None;
            }
            let block = address(state.taken % bounds.blocks);
            state.taken += 1;
            let owner = &mut state.memory(block).owner;
            if owner.is_none() {
                *owner = Some(self.cpu);
                return Some(block);
            }
        }
        None
    }

    fn give_block(&self, block: Block) {
        self.step();
        let mut state = self.machine.state.borrow_mut();
        let owner = state.memory(block).owner.take();
        if owner != Some(self.cpu) {
            state.violate(format!("CPU {} gives back {block:?}, which belongs to {owner:?}", self.cpu));
        }
    }

    fn oldest(&self) -> Block {
        self.with(|cpu| cpu.oldest)
    }

    fn set_oldest(&self, block: Block) {
        self.with(|cpu| cpu.oldest = block)
    }
}

impl Fold for OnCpu<'_> {
    fn call_end(&self) -> Position {
        self.with(|cpu| cpu.call_end)
    }

    fn since_call(&self, time: u64) -> u64 {
        self.with(|cpu| time.wrapping_sub(cpu.call_time))
    }

    fn set_call(&self, end: Position, time: u64) {
        self.with(|cpu| cpu.call_time = time);
        self.with(|cpu| cpu.call_end = end)
    }

    fn forget_call(&self) {
        self.with(|cpu| cpu.call_end = NO_CALL)
    }

    fn load(&self, at: Position) -> u32 {
        self.step();
        self.check_fold(at.after(1));
        self.machine.state.borrow_mut().word(at).unwrap_or_default()
    }

    fn add_before(&self, end: Position, value: u32) {
        self.step();
        self.check_fold(end);
        let sum = self.machine.state.borrow_mut().word(end.before(1)).unwrap_or_default() + value;
        self.store(end.before(1), sum);
    }
}
