// SPDX-License-Identifier: GPL-2.0
//! What each CPU's recorder remembers, reached through %gs in one instruction a field.
//!
//! Invariant: while hooks are on, only its own CPU writes a PerCpu, with preemption off.

use core::arch::asm;
use core::mem::{offset_of, size_of};
use core::ptr;

use crate::abi::block::{self, Header};
use crate::abi::event::FULL_TIME_WORDS;
use crate::buffer::pool;
use crate::claim::{End, Lane, Position, Taken};
use crate::entry::{Fold, NO_CALL};
use crate::{clock, ffi, task};

/// What one CPU's recorder remembers. The first line of cache is all that the common path touches.
#[repr(C, align(64))]
pub struct PerCpu {
    position: u64,
    done: u64,
    last_time: u64,
    call_end: u64,
    pool: *mut u32,
    shift: u8,
    holding: bool,
    lost: u64,
    cpu: u32,
    /// The block kept aside, plus one; 0 for none.
    spare: u32,
    this: *mut PerCpu,
    oldest: u64,
    /// Tasks named in the current block: pid in the low half, the block's sequence above.
    named: [u64; NAMED],
}

/// Slots of the table of named tasks. Tasks that share one are named more often, nothing else.
const NAMED: usize = 256;
/// Words of a switch, with the full time before it.
const SWITCH_WORDS: u64 = 2 + FULL_TIME_WORDS as u64;
/// Room that shim.h reserves.
const CPU_BYTES: usize = 4096;
const _: () = assert!(size_of::<PerCpu>() <= CPU_BYTES && offset_of!(PerCpu, lost) < 64);

impl PerCpu {
    /// The state of a CPU that has recorded nothing. `this` is where it will be.
    pub fn new(cpu: u32, this: *mut PerCpu, pool: *mut u32, shift: u32) -> PerCpu {
        let none = Position::none(block::WORDS as u64).0;
        PerCpu {
            position: none,
            done: none,
            last_time: 0,
            call_end: NO_CALL.0,
            pool,
            shift: shift as u8,
            holding: false,
            lost: 0,
            cpu,
            spare: 0,
            this,
            oldest: 0,
            named: [0; NAMED],
        }
    }

    /// Ends the block that the CPU is filling, at the counter `end`. No hook may run.
    pub fn close(&mut self, end: u64) {
        let position = Position(self.position);
        let sealed = position.0 | (block::WORDS as u64 - 1);
        if position.sequence() == 0 {
            return;
        }
        if position.0 == sealed {
            // It was ended when it was sealed; more has been lost since.
            // SAFETY: no hook runs.
            unsafe { (*pool().header(position.block())).lost = self.lost };
            return;
        }
        pool().end_block(position, end.max(self.last_time), self.lost, 0);
        self.position = sealed;
        self.done = sealed;
    }

    /// Events that a CPU has lost, also while it records.
    pub fn lost(this: *mut PerCpu) -> u64 {
        // SAFETY: the caller has it from per_cpu_ptr; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).lost) }
    }
}

/// The CPU that the code runs on. Only hooks make one, with preemption off.
pub struct ThisCpu(());

/// Reads a field of this CPU's state in one instruction.
macro_rules! get {
    ($field:ident, $size:literal, $register:ident, $type:ty) => {{
        let value: $type;
        // SAFETY: the address is within this CPU's PerCpu and the size is the field's.
        unsafe {
            asm!(
                concat!("mov {value", $size, "}, gs:[rip + {cpu} + {at}]"),
                value = out($register) value,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, $field),
                options(nostack, preserves_flags),
            )
        };
        value
    }};
}

/// Writes a field of this CPU's state in one instruction.
macro_rules! set {
    ($field:ident, $size:literal, $register:ident, $value:expr) => {
        // SAFETY: the address is within this CPU's PerCpu and the size is the field's.
        unsafe {
            asm!(
                concat!("mov gs:[rip + {cpu} + {at}], {value", $size, "}"),
                value = in($register) $value,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, $field),
                options(nostack, preserves_flags),
            )
        }
    };
}

impl ThisCpu {
    /// This CPU's state.
    ///
    /// # Safety
    /// Preemption is off until the value is gone.
    #[inline(always)]
    pub unsafe fn new() -> ThisCpu {
        ThisCpu(())
    }

    /// Whether the block that a switch to this task goes into has no name of it yet; says that it has one now.
    /// Interrupts are off, so the position stays as it is until the switch is recorded.
    pub fn must_name(&self, pid: u32) -> bool {
        let position = self.position();
        let key = position.sequence() << 32 | pid as u64;
        let in_next_block = position.offset() + SWITCH_WORDS >= Self::BLOCK_WORDS - 1;
        let this: *mut PerCpu = get!(this, ":r", reg, *mut PerCpu);
        // SAFETY: `this` is this CPU's state and the index is below NAMED. An interrupt records no task.
        let slot = unsafe { &mut (*this).named[pid as usize % NAMED] };
        let must = *slot != key || in_next_block;
        *slot = key;
        must
    }
}

impl Lane for ThisCpu {
    const BLOCK_WORDS: u64 = block::WORDS as u64;
    const HEADER_WORDS: u64 = block::HEADER_WORDS as u64;

    #[inline(always)]
    fn position(&self) -> Position {
        Position(get!(position, ":r", reg, u64))
    }

    #[inline(always)]
    fn try_move(&self, old: Position, new: Position) -> bool {
        let seen: u64;
        // No `lock`: only this CPU writes its position.
        // SAFETY: the address is this CPU's position.
        unsafe {
            asm!(
                "cmpxchg gs:[rip + {cpu} + {at}], {new}",
                inout("rax") old.0 => seen,
                new = in(reg) new.0,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, position),
                options(nostack),
            )
        };
        seen == old.0
    }

    #[inline(always)]
    fn done(&self) -> Position {
        Position(get!(done, ":r", reg, u64))
    }

    #[inline(always)]
    fn set_done(&self, position: Position) {
        set!(done, ":r", reg, position.0)
    }

    #[inline(always)]
    fn last_time(&self) -> u64 {
        get!(last_time, ":r", reg, u64)
    }

    #[inline(always)]
    fn set_last_time(&self, time: u64) {
        set!(last_time, ":r", reg, time)
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        clock::tsc() >> (get!(shift, "", reg_byte, u8) & 63)
    }

    #[inline(always)]
    fn store(&self, at: Position, word: u32) {
        let pool: *mut u32 = get!(pool, ":r", reg, *mut u32);
        // SAFETY: the word lies in a block that this CPU owns.
        unsafe { ptr::write_volatile(pool.wrapping_add(at.word() as usize), word) };
    }

    fn count_loss(&self) {
        // SAFETY: the address is this CPU's count.
        unsafe {
            asm!(
                "inc qword ptr gs:[rip + {cpu} + {at}]",
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, lost),
                options(nostack),
            )
        };
    }

    fn prepare_block(&self, block: u32, sequence: u64, begin: u64) {
        let who = task::Task::current();
        let header = Header {
            magic: 0,
            uuid: [0; 4],
            stream: 0,
            begin,
            end: 0,
            content_bits: 0,
            packet_bits: block::BYTES as u64 * 8,
            sequence,
            lost: 0,
            cpu: get!(cpu, ":e", reg, u32),
            pid: who.pid(),
            tgid: who.tgid(),
            task_state: who.state().0,
            comm: who.comm(),
            flags: 0,
            crc32: 0,
            reserved: [0; 4],
        };
        // SAFETY: this context holds the block.
        unsafe { ptr::write_volatile(pool().header(block), header) };
    }

    fn begin_block(&self, block: u32) {
        // SAFETY: this CPU owns the block.
        unsafe { ptr::write_volatile(&raw mut (*pool().header(block)).magic, block::MAGIC) };
    }

    fn end_block(&self, at: Position, time: u64, why: End) {
        let flags = match why {
            End::Full => 0,
            End::Lost => block::FLAG_LOST,
        };
        pool().end_block(at, time, get!(lost, ":r", reg, u64), flags);
    }

    fn set_following(&self, block: u32, following: u32) {
        pool().set_following(block, following);
    }

    fn following(&self, block: u32) -> u32 {
        pool().following(block)
    }

    fn take_spare(&self) -> Option<u32> {
        let spare: u32;
        // SAFETY: the address is this CPU's spare slot. `xchg` locks by itself; this is rare.
        unsafe {
            asm!(
                "xchg gs:[rip + {cpu} + {at}], {spare:e}",
                spare = inout(reg) 0u32 => spare,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, spare),
                options(nostack, preserves_flags),
            )
        };
        spare.checked_sub(1)
    }

    fn keep_spare(&self, block: u32) -> bool {
        let kept: u8;
        // SAFETY: the address is this CPU's spare slot.
        unsafe {
            asm!(
                "cmpxchg gs:[rip + {cpu} + {at}], {new:e}",
                "sete {kept}",
                inout("eax") 0u32 => _,
                new = in(reg) block + 1,
                kept = out(reg_byte) kept,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, spare),
                options(nostack),
            )
        };
        kept != 0
    }

    fn take_block(&self) -> Taken {
        pool().take()
    }

    fn give_block(&self, block: u32) {
        pool().give(block);
    }

    fn oldest(&self) -> Position {
        Position(get!(oldest, ":r", reg, u64))
    }

    fn set_oldest(&self, position: Position) {
        set!(oldest, ":r", reg, position.0)
    }

    #[inline(always)]
    fn holding(&self) -> bool {
        get!(holding, "", reg_byte, u8) != 0
    }

    #[inline(always)]
    fn set_holding(&self, on: bool) {
        set!(holding, "", reg_byte, on as u8)
    }
}

impl Fold for ThisCpu {
    #[inline(always)]
    fn call_end(&self) -> Position {
        Position(get!(call_end, ":r", reg, u64))
    }

    #[inline(always)]
    fn set_call_end(&self, position: Position) {
        set!(call_end, ":r", reg, position.0)
    }

    #[inline(always)]
    fn load(&self, at: Position) -> u32 {
        let pool: *mut u32 = get!(pool, ":r", reg, *mut u32);
        // SAFETY: the word lies in a block that this CPU owns and was written.
        unsafe { ptr::read_volatile(pool.add(at.word() as usize)) }
    }
}
