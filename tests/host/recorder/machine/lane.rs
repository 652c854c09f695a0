// SPDX-License-Identifier: BSD-3-Clause
//! The CPU's side of the recorder's claims, folding and naming, each method a step.

use super::steps::OnCpu;
use super::{content, earlier, further, Fault, Memory, Task, NAMING_WORDS, READER};
use crate::abi::block::HEADER_WORDS;
use crate::abi::event::TASK_WORDS;
use crate::abi::word::{entry_of, TIME_PERIOD};

use crate::entry::Naming;
use crate::lane::{Begin, Block, End, Lane, Position, NO_BLOCK, NO_CALL};

// SAFETY: the machine has no memory of its own: it reports faults instead.
unsafe impl<const WORDS: usize> Lane for OnCpu<'_, WORDS> {
    const ROOM: u16 = (4 * (HEADER_WORDS + WORDS)) as u16;

    unsafe fn enter(&self) {
        self.with(|cpu| cpu.depth += 1)
    }

    unsafe fn leave(&self) {
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

    unsafe fn try_move(&self, old: Position, new: Position) -> bool {
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

    unsafe fn try_advance<const BY: usize>(&self, old: Position, time: u64) -> bool {
        let fits = usize::from(old.offset()) + 4 * BY <= Self::ROOM.into();
        // SAFETY: the caller's promise.
        !self.is_far(time) && fits && unsafe { self.try_move(old, further(old, BY)) }
    }

    fn now(&self) -> u64 {
        self.step();
        let early = self.machine.state.borrow().cpus[self.cpu].early_time;
        early.unwrap_or_else(|| self.tick())
    }

    fn counter(&self, time: u64) -> u64 {
        time
    }

    fn entry<const BASE: u16>(&self, number: u32, time: u64) -> u32 {
        entry_of(u32::from(BASE) + number, time)
    }

    fn since(&self) -> u64 {
        self.with(|cpu| cpu.since)
    }

    fn set_since(&self, time: u64) {
        let time = if self.faulty(Fault::SinceTooLate) { time + TIME_PERIOD / 2 } else { time };
        self.with(|cpu| cpu.since = time)
    }

    fn is_far(&self, time: u64) -> bool {
        time.wrapping_sub(self.since()) >= TIME_PERIOD - 1
    }

    unsafe fn store(&self, at: Position, word: u32) {
        self.step();
        let mut state = self.machine.state.borrow_mut();
        *state.word(at) = Some(word);
        let owner = state.memory(at.block()).owner;
        if owner != Some(self.cpu) {
            state.violate(format!("CPU {} writes to {at:?}, which belongs to {owner:?}", self.cpu));
        }
    }

    unsafe fn note(&self, at: Position) {
        let beside = usize::from(self.faulty(Fault::CounterByteBeside));
        self.with_memory(at.block(), |memory| memory.notes[(content(at) + beside) % WORDS] += 1);
        self.machine.state.borrow_mut().cpus[self.cpu].noted += 1;
    }

    fn count_loss(&self) {
        let counted = !self.faulty(Fault::LossNotCounted);
        self.with(|cpu| cpu.lost += u64::from(counted));
        self.machine.state.borrow_mut().check_lost(self.cpu, &self.machine.bounds);
    }

    fn count_outside(&self) {
        let counted = !self.faulty(Fault::OutsideNotCounted);
        self.with(|cpu| cpu.outside += u64::from(counted))
    }

    unsafe fn prepare_block(&self, block: Block, sequence: u64, begin: u64, how: Begin) {
        let back = how == Begin::Back && !self.faulty(Fault::StepNotSaid);
        self.with_memory(block, |memory| memory.in_trace = false);
        self.with_memory(block, |memory| {
            *memory = Memory {
                owner: memory.owner,
                cpu: self.cpu,
                in_trace: false,
                sequence,
                begin,
                back,
                end: 0,
                content: None,
                lost_after: false,
                lost: 0,
                following: NO_BLOCK,
                words: [None; NAMING_WORDS],
                notes: [0; NAMING_WORDS],
            }
        })
    }

    unsafe fn begin_block(&self, block: Block) {
        self.with_memory(block, |memory| memory.in_trace = true)
    }

    unsafe fn end_block(&self, at: Position, time: u64, why: End) {
        let give = self.faulty(Fault::BlockGivenBackWhenFull);
        self.with_memory(at.block(), |memory| {
            memory.content = Some(content(at));
            memory.end = time;
            memory.lost_after = why == End::Lost;
            memory.owner = memory.owner.filter(|_| !give);
        })
    }

    unsafe fn begin(&self, block: Block) -> u64 {
        self.with_memory(block, |memory| memory.begin)
    }

    unsafe fn end_loss(&self, block: Block) {
        let lost = self.with(|cpu| cpu.lost);
        self.with_memory(block, |memory| memory.lost = lost)
    }

    unsafe fn sequence(&self, block: Block) -> u64 {
        self.with_memory(block, |memory| memory.sequence)
    }

    unsafe fn set_following(&self, block: Block, following: Block) {
        self.with_memory(block, |memory| memory.following = following)
    }

    unsafe fn following(&self, block: Block) -> Block {
        self.with_memory(block, |memory| memory.following)
    }

    fn take_spare(&self) -> Option<Block> {
        self.with(|cpu| cpu.spare.take())
    }

    unsafe fn keep_spare(&self, block: Block) -> bool {
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
        let block = self.machine.owners.take(|| self.step_of_pool())?;
        let mut state = self.machine.state.borrow_mut();
        state.taken += 1;
        if let Some(owner) = state.memory(block).owner.replace(self.cpu) {
            state.violate(format!("CPU {} takes {block:?}, which belongs to {owner}", self.cpu));
        }
        Some(block)
    }

    unsafe fn give_block(&self, block: Block) {
        self.step();
        let is_full = {
            let mut state = self.machine.state.borrow_mut();
            let is_full = self.machine.bounds.reads > 0 && state.memory(block).in_trace;
            let next = is_full.then_some(READER);
            let owner = std::mem::replace(&mut state.memory(block).owner, next);
            if owner != Some(self.cpu) {
                state.violate(format!("CPU {} gives back {block:?}, which belongs to {owner:?}", self.cpu));
            }
            is_full
        };
        // SAFETY: the caller's promise.
        unsafe {
            match is_full {
                true => self.machine.owners.fill(block),
                false => self.machine.owners.free(block, || self.step_of_pool()),
            }
        }
    }

    fn oldest(&self) -> Block {
        self.with(|cpu| cpu.oldest)
    }

    unsafe fn set_oldest(&self, block: Block) {
        self.with(|cpu| cpu.oldest = block)
    }

    fn call_end(&self) -> Position {
        self.with(|cpu| cpu.call_end)
    }

    fn ends_at(&self, end: Position) -> bool {
        self.with(|cpu| cpu.position == end)
    }

    unsafe fn set_call_end(&self, end: Position) {
        let late = self.faulty(Fault::CallNotSaid);
        self.with(|cpu| cpu.call_end = if late { NO_CALL } else { end })
    }

    fn forget_call(&self) {
        self.with(|cpu| cpu.call_end = NO_CALL)
    }

    fn set_call_time(&self, time: u64) {
        self.with(|cpu| cpu.call_time = time)
    }

    fn since_call(&self, time: u64) -> u64 {
        self.with(|cpu| time.wrapping_sub(cpu.call_time))
    }

    unsafe fn load(&self, at: Position) -> u32 {
        self.step();
        self.check_fold(further(at, 1));
        self.machine.state.borrow_mut().word(at).unwrap_or_default()
    }

    unsafe fn add_before(&self, end: Position, value: u32) {
        self.step();
        self.check_fold(end);
        let at = earlier(end, 1);
        let sum = self.machine.state.borrow_mut().word(at).unwrap_or_default() + value;
        // SAFETY: as the caller guarantees.
        unsafe { self.store(at, sum) };
    }
}

impl<const WORDS: usize> Naming for OnCpu<'_, WORDS> {
    type Task = Task;

    fn pid(&self, task: &Task) -> u32 {
        task.pid
    }

    fn words(&self, task: &Task) -> [u32; TASK_WORDS] {
        [task.pid, task.pid, 0, task.born, 0, 0, 0]
    }

    fn must_name(&self, block: Option<u64>, task: &Task) -> bool {
        let born = if self.faulty(Fault::NamedByPid) { 0 } else { task.born };
        let Some(block) = block else { return true };
        self.with(|cpu| cpu.named.replace((block, task.pid, born)) != Some((block, task.pid, born)))
    }

    fn count_more(&self) {
        self.machine.state.borrow_mut().cpus[self.cpu].asked += 1;
    }
}
