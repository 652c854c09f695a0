// SPDX-License-Identifier: BSD-3-Clause
//! What the recorder's claims and folding ask of a CPU, each method a step.

use super::steps::OnCpu;
use super::{address, content, Fault, Memory, ENTRY_WORDS};
use crate::abi::block::HEADER_WORDS;
use crate::abi::word::TIME_PERIOD;
use crate::claim::{Block, End, Lane, Position, NO_BLOCK};
use crate::entry::{Fold, NO_CALL};
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
