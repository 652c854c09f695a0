// SPDX-License-Identifier: GPL-2.0
//! The state of each CPU's recorder.
//!
//! Invariant: while hooks are on, only its own CPU writes a PerCpu, with preemption off, through [`crate::this_cpu`].
//! Other CPUs write `gone` before recording begins, `gone_at_start`, and `answer` when they make a request of the CPU.

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

/// The state of one CPU's recorder. The common path touches only the first cache line. Only its own methods and the
/// lane use the fields.
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
    /// The spare block, or 0.
    pub spare: u64,
    pub this: *mut PerCpu,
    pub oldest: u64,
    /// Nonzero if the CPU is offline, so that its next block begins when it is back.
    pub gone: u32,
    /// True if the CPU was offline when recording began.
    gone_at_start: bool,
    /// The answer to the last request; see [`Answer`].
    answer: AtomicU32,
    /// The insertions that programs may still make, and how often they were refused.
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
    /// When the task was created: pids are reused.
    pub born: u64,
}

/// Insertions of one kind by programs.
#[derive(Clone, Copy)]
pub struct Insertions {
    budget: Budget,
    refused: u64,
}

impl Insertions {
    fn new(rate: u32) -> Insertions {
        Insertions { budget: Budget::new(u64::from(clock::tsc_khz()) * 1000, rate), refused: 0 }
    }

    /// Takes one if its process `may`, or counts a refusal. An insertion by another context in between may go
    /// uncounted.
    ///
    /// # Safety
    /// `this` is in a CPU's state.
    pub unsafe fn take(this: *mut Insertions, may: bool) -> bool {
        // SAFETY: the caller's promise; other code only reads the field, and has no reference to it.
        unsafe {
            let mut now = ptr::read(this);
            let taken = may && now.budget.take(arch::tsc());
            now.refused += u64::from(!taken);
            ptr::write(this, now);
            taken
        }
    }
}

/// A CPU's answer to a request.
#[repr(u32)]
#[derive(Clone, Copy)]
pub enum Answer {
    /// Not done yet.
    None,
    /// Done.
    Yes,
    /// The CPU could not do it.
    No,
}

/// Slots of the table of named tasks. Tasks that share a slot are named more often; there is no other effect.
pub const NAMED: usize = 128;
/// Room that shim.h reserves.
const CPU_BYTES: usize = 4096;
const _: () = assert!(size_of::<PerCpu>() <= CPU_BYTES && offset_of!(PerCpu, cpu) < 64);

/// Offsets of the fields that can be read in a memory image.
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
    /// Returns the state of a CPU that has recorded nothing. `this` is the address that it will have.
    pub fn new(cpu: u32, this: *mut PerCpu) -> PerCpu {
        // SAFETY: nothing writes a module parameter that is read-only.
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

    /// Completes the header of the last block: ends a block that the CPU did not end itself because it was offline, and
    /// counts the events lost since. `end` is the current counter.
    ///
    /// # Safety
    /// No hook runs, and this is a CPU's state in its place, as the last reset or its hooks left it.
    pub unsafe fn finish(&mut self, end: u64) {
        // SAFETY: the lane's methods keep positions there; no hook runs, so the CPU's block is not in use.
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

    /// Notes whether the CPU is online when recording begins. It does not come or go now, and the pool is closed.
    ///
    /// # Safety
    /// `this` is a CPU's state, the control lock and the CPUs are held, and the pool is closed.
    pub unsafe fn begin(this: *mut PerCpu, online: bool) {
        // SAFETY: the CPU itself writes the first field only when it comes or goes, which it does not while CPUs are
        // held, and reads it only while the pool is open. Only the holder of the control lock uses the second.
        unsafe {
            ptr::write_volatile(&raw mut (*this).gone, u32::from(!online));
            ptr::write(&raw mut (*this).gone_at_start, !online);
        }
    }

    /// Returns whether the CPU was offline when recording began.
    ///
    /// # Safety
    /// `this` is a CPU's state, and the control lock is held.
    pub unsafe fn was_offline(this: *mut PerCpu) -> bool {
        // SAFETY: only the holder of the control lock uses this field.
        unsafe { ptr::read(&raw const (*this).gone_at_start) }
    }

    /// The CPU's answer to the last request.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn answer<'a>(this: *mut PerCpu) -> &'a AtomicU32 {
        // SAFETY: the state exists as long as the module, and the field is written only as an atomic, except by a
        // reset. That writes Yes, when trace and hooks are over and Yes is the only answer that a CPU may still give.
        unsafe { &(*this).answer }
    }

    /// Returns whether the CPU has not answered its last request yet.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn is_mute(this: *mut PerCpu) -> bool {
        // SAFETY: the caller's promise.
        unsafe { PerCpu::answer(this) }.load(Ordering::Acquire) == Answer::None as u32
    }

    /// Writes into the block that a CPU is filling how far it is filled now. The CPU may fill it further, and end it;
    /// in a claim it may have words that are not written, so then the block stays open. A system call's claim does not
    /// show in the depth: a caller that does not wait for calls counts the words of a call as written even if it was
    /// interrupted between its exchange and its words.
    ///
    /// # Safety
    /// `this` is a CPU's state, and the control lock is held, so that the pool stays.
    pub unsafe fn end_for_now(this: *mut PerCpu, end: u64) {
        // SAFETY: the caller's promise; the lane's methods keep positions there.
        let position = unsafe { Position::new(PerCpu::position(this)) };
        // Words claimed before the position was read are written if no claim is under way now.
        compiler_fence(Ordering::Acquire);
        // SAFETY: the caller's promise.
        let is_claiming = unsafe { PerCpu::is_claiming(this) };
        if position.block() != NO_BLOCK && !position.is_sealed() && !is_claiming {
            let for_now = [end as u32, (end >> 32) as u32, position.offset().into()];
            // The CPU may end the block at this very moment, or give it back, for another CPU to begin it again. So
            // these words are separate, and readers ignore them in a block that has ended, or that began after `end`.
            // SAFETY: the block was prepared, since a CPU's position was in it, and the pool stays.
            unsafe { ptr::write_volatile(&raw mut (*position.block().header()).for_now, for_now) };
        }
    }

    /// Returns whether the block that the CPU is filling has entries and began before the counter `before`, as far as
    /// that is visible while the CPU continues.
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

    /// Returns the address of the next free word, even while the CPU records.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn position(this: *mut PerCpu) -> u64 {
        // SAFETY: the caller's promise; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).position) }
    }

    /// Returns the numbers of names and marks that were refused, even while more are.
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

    /// Returns the number of events that a CPU has lost, even while it records.
    ///
    /// # Safety
    /// `this` is a CPU's state.
    pub unsafe fn lost(this: *mut PerCpu) -> u64 {
        // SAFETY: as the caller guarantees; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).lost) }
    }

    /// Returns whether the CPU is in a claim that shows in the depth at this moment.
    ///
    /// # Safety
    /// See [`PerCpu::lost`].
    pub unsafe fn is_claiming(this: *mut PerCpu) -> bool {
        // SAFETY: the caller's promise; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).depth) != 0 }
    }
}

/// Writes into a block's header how far it is filled, when that was, and why it ends.
///
/// # Safety
/// The block of `at` was prepared, and nothing else writes into its header.
pub unsafe fn end_block(at: Position, end: u64, flags: u32) {
    let header = at.block().header();
    // SAFETY: as the caller guarantees.
    unsafe {
        (*header).end = end;
        (*header).flags |= flags;
        (*header).content_bits = u64::from(at.offset()) * 8;
    }
}
