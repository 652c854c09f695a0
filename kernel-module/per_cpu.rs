// SPDX-License-Identifier: GPL-2.0
//! What each CPU's recorder remembers.
//!
//! Invariant: while hooks are on, only its own CPU writes a PerCpu, with preemption off, through [`crate::this_cpu`].
//! Others write `gone` before recording begins, `gone_at_start`, and `answer` when they tell the CPU to do something.

use core::mem::{offset_of, size_of};
use core::ptr;
use core::sync::atomic::{compiler_fence, AtomicU32, Ordering};

use crate::abi::block::HEADER_WORDS;
use crate::abi::command::SHIFT;
use crate::abi::landmark::Fields;
use crate::budget::Budget;
use crate::counters::Counters;
use crate::lane::{Position, NO_BLOCK, NO_CALL};
use crate::{arch, clock, ffi};

/// What one CPU's recorder remembers. The first line of cache is all that the common path touches. Only its own methods
/// and the lane use the fields.
#[repr(C, align(64))]
pub struct PerCpu {
    pub position: u64,
    pub since: u64,
    pub call_end: u64,
    pub call_time: u64,
    pub depth: u32,
    pub cpu: u32,
    pub lost: u64,
    pub outside: u64,
    /// Calls of hooks.
    #[cfg(kutrace_count)]
    pub calls: u64,
    /// The block kept aside, or 0.
    pub spare: u64,
    pub this: *mut PerCpu,
    pub oldest: u64,
    /// Whether the CPU is offline, so that its next block begins when it is back.
    pub gone: u32,
    /// Whether it was when recording began.
    gone_at_start: bool,
    /// To what it was told last; see [`Answer`].
    answer: AtomicU32,
    /// What programs may still insert, and how often they were refused.
    pub names: Insertions,
    pub marks: Insertions,
    /// Tasks named in the current block.
    pub named: [Named; NAMED],
    pub counters: Counters,
}

/// A task, and the last block that named it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The pid in the low half, the block's number, from 1, above.
    pub key: u64,
    /// When the task was made: a pid is used again.
    pub born: u64,
}

/// What programs insert of one kind.
#[derive(Clone, Copy)]
pub struct Insertions {
    budget: Budget,
    refused: u64,
}

impl Insertions {
    fn new(rate: u32) -> Insertions {
        Insertions { budget: Budget::new(u64::from(clock::tsc_khz()) * 1000, rate), refused: 0 }
    }

    /// Takes one if its process `may`, or counts that it was refused. What another context takes in between may not be
    /// counted.
    ///
    /// # Safety
    /// `this` is in a CPU's state.
    pub unsafe fn take(this: *mut Insertions, may: bool) -> bool {
        // SAFETY: the caller's promise; others only read the field, and have no reference to it.
        unsafe {
            let mut now = ptr::read(this);
            let taken = may && now.budget.take(arch::tsc());
            now.refused += u64::from(!taken);
            ptr::write(this, now);
            taken
        }
    }
}

/// What a CPU says when it has done what it was told.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum Answer {
    /// It has not yet.
    None,
    /// It has.
    Yes,
    /// It could not.
    No,
}

/// Slots of the table of named tasks. Tasks that share one are named more often, nothing else.
pub const NAMED: usize = 128;
/// Room that shim.h reserves.
const CPU_BYTES: usize = 4096;
const _: () = assert!(size_of::<PerCpu>() <= CPU_BYTES && offset_of!(PerCpu, cpu) < 64);

/// Where the fields are that can be read in an image of the memory.
pub const FIELDS: Fields = Fields {
    this: offset_of!(PerCpu, this) as u32,
    position: offset_of!(PerCpu, position) as u32,
    depth: offset_of!(PerCpu, depth) as u32,
    lost: offset_of!(PerCpu, lost) as u32,
    gone_at_start: offset_of!(PerCpu, gone_at_start) as u32,
    refused_names: (offset_of!(PerCpu, names) + offset_of!(Insertions, refused)) as u32,
    refused_marks: (offset_of!(PerCpu, marks) + offset_of!(Insertions, refused)) as u32,
    seen: 0,
};

impl PerCpu {
    /// The state of a CPU that has recorded nothing. `this` is where it will be.
    pub fn new(cpu: u32, this: *mut PerCpu) -> PerCpu {
        // SAFETY: nobody writes a module parameter that is read-only.
        let (name_rate, mark_rate) = unsafe { (ffi::kutrace_shim_namerate, ffi::kutrace_shim_markrate) };
        PerCpu {
            position: NO_BLOCK.sealed().address(),
            since: 0,
            call_end: NO_CALL.address(),
            call_time: 0,
            depth: 0,
            cpu,
            lost: 0,
            outside: 0,
            #[cfg(kutrace_count)]
            calls: 0,
            spare: 0,
            this,
            oldest: 0,
            gone: 0,
            gone_at_start: false,
            answer: AtomicU32::new(Answer::Yes as u32),
            names: Insertions::new(name_rate),
            marks: Insertions::new(mark_rate),
            named: [Named { key: 0, born: 0 }; NAMED],
            counters: Counters::new(),
        }
    }

    /// Completes the header of the last block: ends a block that the CPU did not end itself because it was
    /// offline, and counts what was lost since. `end`: the counter now.
    ///
    /// # Safety
    /// No hook runs, and this is a CPU's state where it belongs, as the last reset left it or its hooks.
    pub unsafe fn finish(&mut self, end: u64) {
        // SAFETY: the lane's methods keep positions there; no hook runs, so nobody uses the CPU's block.
        unsafe {
            let position = Position::new(self.position);
            let block = position.block();
            if block == NO_BLOCK {
                return;
            }
            if !position.is_sealed() {
                end_block(position, end.max(self.since >> SHIFT), 0);
                self.position = block.sealed().address();
            }
            (*block.header()).lost = self.lost;
        }
    }

    /// Says whether the CPU is there when recording begins. It does not come or go now, and the pool is closed.
    ///
    /// # Safety
    /// `this` is a CPU's state, the control lock and the CPUs are held, and the pool is closed.
    pub unsafe fn begin(this: *mut PerCpu, online: bool) {
        // SAFETY: the CPU itself writes the first field only when it comes or goes, which it does not while CPUs are
        // held, and reads it only in an open pool. Only the holder of the control lock uses the second.
        unsafe {
            ptr::write_volatile(&raw mut (*this).gone, u32::from(!online));
            ptr::write(&raw mut (*this).gone_at_start, !online);
        }
    }

    /// Whether the CPU was offline when recording began.
    ///
    /// # Safety
    /// `this` is a CPU's state, and the control lock is held.
    pub unsafe fn was_offline(this: *mut PerCpu) -> bool {
        // SAFETY: only the holder of the control lock uses this field.
        unsafe { ptr::read(&raw const (*this).gone_at_start) }
    }

    /// To what the CPU was told last.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn answer<'a>(this: *mut PerCpu) -> &'a AtomicU32 {
        // SAFETY: the state is there as long as the module, and nobody writes the field but as an atomic, except a
        // reset. That writes Yes, when trace and hooks are over and Yes is all that a CPU may still have to say.
        unsafe { &(*this).answer }
    }

    /// Whether the CPU has not done yet what it was told.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn is_mute(this: *mut PerCpu) -> bool {
        // SAFETY: the caller's promise.
        unsafe { PerCpu::answer(this) }.load(Ordering::Acquire) == Answer::None as u32
    }

    /// Says in the block that a CPU fills how far that is now. The CPU may fill it further, and end it; in a claim
    /// it may have words that are not written, so then it stays open. A call is not seen to claim: who does not wait for
    /// calls counts the words of one as written that is interrupted between its exchange and its words.
    ///
    /// # Safety
    /// `this` is a CPU's state, and the control lock is held, so that the pool stays.
    pub unsafe fn end_for_now(this: *mut PerCpu, end: u64) {
        // SAFETY: the caller's promise; the lane's methods keep positions there.
        let position = unsafe { Position::new(PerCpu::position(this)) };
        // What was claimed before the position was read is written if nothing is claimed now.
        compiler_fence(Ordering::Acquire);
        // SAFETY: the caller's promise.
        let is_claiming = unsafe { PerCpu::is_claiming(this) };
        if position.block() != NO_BLOCK && !position.is_sealed() && !is_claiming {
            let for_now = [end as u32, (end >> 32) as u32, position.offset().into()];
            // The CPU may end the block at this very moment, or give it back to another that begins it anew. So this has
            // words of its own, of which nobody takes notice in a block that has ended, or that began after `end`.
            // SAFETY: the block was prepared, since a CPU's position was in it, and the pool stays.
            unsafe { ptr::write_volatile(&raw mut (*position.block().header()).for_now, for_now) };
        }
    }

    /// Whether the block that the CPU fills has entries and began before the counter `before`, as far as can be seen while
    /// it goes on.
    ///
    /// # Safety
    /// `this` is a CPU's state, and the control lock is held, so that the pool stays.
    pub unsafe fn is_older(this: *mut PerCpu, before: u64) -> bool {
        // SAFETY: the caller's promise; the lane's methods keep positions there.
        let position = unsafe { Position::new(PerCpu::position(this)) };
        if position.block() == NO_BLOCK || position.is_sealed() || usize::from(position.offset()) == 4 * HEADER_WORDS {
            return false;
        }
        // SAFETY: the block was prepared, since a CPU's position was in it, and the pool stays.
        unsafe { ptr::read_volatile(&raw const (*position.block().header()).begin) < before }
    }

    /// Address of the next free word, also while the CPU records.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn position(this: *mut PerCpu) -> u64 {
        // SAFETY: the caller's promise; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).position) }
    }

    /// Names and marks that were refused, also while more are.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn refused(this: *mut PerCpu) -> (u64, u64) {
        // SAFETY: the caller's promise; an aligned word is not torn.
        unsafe {
            let names = ptr::read_volatile(&raw const (*this).names.refused);
            (names, ptr::read_volatile(&raw const (*this).marks.refused))
        }
    }

    /// Events that a CPU has lost, also while it records.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn lost(this: *mut PerCpu) -> u64 {
        // SAFETY: as the caller says; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).lost) }
    }

    /// Whether the CPU is in a claim that counts at this moment.
    ///
    /// # Safety
    /// As of [`PerCpu::lost`].
    pub unsafe fn is_claiming(this: *mut PerCpu) -> bool {
        // SAFETY: the caller's promise; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).depth) != 0 }
    }
}

/// Writes into a block's header how far it is filled, when that was, and why it ends.
///
/// # Safety
/// The block of `at` was prepared, and nobody else writes into its header.
pub unsafe fn end_block(at: Position, end: u64, flags: u32) {
    let header = at.block().header();
    // SAFETY: as the caller says.
    unsafe {
        (*header).end = end;
        (*header).flags |= flags;
        (*header).content_bits = u64::from(at.offset()) * 8;
    }
}
