// SPDX-License-Identifier: GPL-2.0
//! What each CPU's recorder remembers, reached through %gs in one instruction a field.
//!
//! Invariant: while hooks are on, only its own CPU writes a PerCpu, with preemption off.

use core::arch::asm;
use core::mem::{offset_of, size_of};
use core::ptr;
use core::sync::atomic::{compiler_fence, Ordering};

use crate::abi::block::{self, Header};
use crate::buffer::pool;
use crate::claim::{Block, End, Lane, Position, NO_BLOCK};
use crate::counters::Counters;
use crate::entry::{Fold, NO_CALL};
use crate::{clock, ffi, task};

/// What one CPU's recorder remembers. The first line of cache is all that the common path touches.
#[repr(C, align(64))]
pub struct PerCpu {
    position: u64,
    deadline: u64,
    call_end: u64,
    call_time: u64,
    depth: u32,
    shift: u8,
    cpu: u32,
    lost: u64,
    pub outside: u64,
    /// Calls of hooks.
    #[cfg(kutrace_count)]
    pub calls: u64,
    /// The block kept aside, or 0.
    spare: u64,
    this: *mut PerCpu,
    oldest: u64,
    /// Tasks named in the current block: pid in the low half, the block's sequence above.
    named: [u64; NAMED],
    pub counters: Counters,
}

/// Slots of the table of named tasks. Tasks that share one are named more often, nothing else.
const NAMED: usize = 256;
/// Room that shim.h reserves.
const CPU_BYTES: usize = 4096;
const _: () = assert!(size_of::<PerCpu>() <= CPU_BYTES && offset_of!(PerCpu, cpu) < 64);

impl PerCpu {
    /// The state of a CPU that has recorded nothing. `this` is where it will be.
    pub fn new(cpu: u32, this: *mut PerCpu, shift: u32) -> PerCpu {
        PerCpu {
            position: NO_BLOCK.sealed().0,
            deadline: 0,
            call_end: NO_CALL.0,
            call_time: 0,
            depth: 0,
            shift: shift as u8,
            cpu,
            lost: 0,
            outside: 0,
            #[cfg(kutrace_count)]
            calls: 0,
            spare: 0,
            this,
            oldest: 0,
            named: [0; NAMED],
            counters: Counters::new(),
        }
    }

    /// Completes the header of the last block: ends a block that the CPU did not end itself because it was
    /// offline, and counts what was lost since. No hook may run. `end`: the counter now.
    pub fn finish(&mut self, end: u64) {
        let position = Position(self.position);
        let block = position.block();
        if block == NO_BLOCK {
            return;
        }
        if !position.is_sealed() {
            pool().end_block(position, end, 0);
            self.position = block.sealed().0;
        }
        // SAFETY: no hook runs.
        unsafe { (*block.header()).lost = self.lost };
    }

    /// Events that a CPU has lost, also while it records.
    pub fn lost(this: *mut PerCpu) -> u64 {
        // SAFETY: the caller has it from per_cpu_ptr; an aligned word is not torn.
        unsafe { ptr::read_volatile(&raw const (*this).lost) }
    }

    /// Whether the CPU is in a claim at this moment.
    pub fn is_claiming(this: *mut PerCpu) -> bool {
        // SAFETY: as in `lost`.
        unsafe { ptr::read_volatile(&raw const (*this).depth) != 0 }
    }
}

impl Block {
    /// The block's header.
    pub fn header(self) -> *mut Header {
        self.0 as *mut Header
    }
}

/// The CPU that the code runs on, in a trace with counters or without. Only hooks make one, with preemption off.
#[derive(Clone, Copy)]
pub struct ThisCpu<const COUNTING: bool>(());

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

/// Changes a field of this CPU's state in one instruction.
macro_rules! change {
    ($how:literal, $field:ident $(, $operand:literal)?) => {
        // SAFETY: the address is within this CPU's PerCpu and the size is the field's.
        unsafe {
            asm!(
                concat!($how, " ptr gs:[rip + {cpu} + {at}]" $(, ", ", $operand)?),
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, $field),
                options(nostack),
            )
        }
    };
}

impl<const COUNTING: bool> ThisCpu<COUNTING> {
    /// This CPU's state.
    ///
    /// # Safety
    /// Preemption is off until the value is gone.
    #[inline(always)]
    pub unsafe fn new() -> ThisCpu<COUNTING> {
        ThisCpu(())
    }

    /// Counts a call of a hook, in a module that was built to count.
    #[cfg(kutrace_count)]
    pub fn count_call(&self) {
        change!("inc qword", calls)
    }

    #[cfg(not(kutrace_count))]
    #[inline(always)]
    pub fn count_call(&self) {}

    /// Counts an event in the header of its block, in a module that was built to count.
    #[cfg(kutrace_count)]
    fn count_event(&self, at: Position) {
        // SAFETY: this CPU owns the block.
        let events = unsafe { &raw mut (*at.block().header()).events };
        // In one instruction, since an interrupt may count here too.
        // SAFETY: as above.
        unsafe { asm!("inc dword ptr [{}]", in(reg) events, options(nostack)) };
    }

    #[cfg(not(kutrace_count))]
    #[inline(always)]
    fn count_event(&self, _at: Position) {}

    /// The number of the block that the next entry goes into, if it fits there.
    pub fn block_number(&self) -> Option<u64> {
        let block = self.position().block();
        (block != NO_BLOCK).then(|| self.sequence(block))
    }

    /// Whether the block of this number has no name yet of the task `pid`; says that it has one now. Interrupts are
    /// off.
    pub fn must_name(&self, block: Option<u64>, pid: u32) -> bool {
        let key = block.map_or(0, |number| (number + 1) << 32 | pid as u64);
        let this: *mut PerCpu = get!(this, ":r", reg, *mut PerCpu);
        // SAFETY: `this` is this CPU's state and the index is below NAMED. An interrupt records no task.
        let slot = unsafe { &mut (*this).named[pid as usize % NAMED] };
        let must = *slot != key || key == 0;
        *slot = key;
        must
    }
}

impl<const COUNTING: bool> Lane for ThisCpu<COUNTING> {
    const ROOM: u16 = match COUNTING {
        false => block::BYTES - 8,
        true => (block::HEADER_WORDS + block::COUNTED_WORDS) * 4,
    } as u16;

    #[inline(always)]
    fn enter(&self) {
        change!("inc dword", depth)
    }

    #[inline(always)]
    fn leave(&self) {
        change!("dec dword", depth)
    }

    fn is_outermost(&self) -> bool {
        get!(depth, ":e", reg, u32) == 1
    }

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
    fn now(&self) -> u64 {
        clock::tsc() >> (get!(shift, "", reg_byte, u8) & 63)
    }

    #[inline(always)]
    fn deadline(&self) -> u64 {
        get!(deadline, ":r", reg, u64)
    }

    #[inline(always)]
    fn set_deadline(&self, time: u64) {
        set!(deadline, ":r", reg, time)
    }

    #[inline(always)]
    fn store(&self, at: Position, word: u32) {
        // SAFETY: the word lies in a block that this CPU owns.
        unsafe { ptr::write_volatile(at.0 as *mut u32, word) };
    }

    #[inline(always)]
    fn note(&self, at: Position) {
        self.count_event(at);
        if COUNTING {
            let this: *mut PerCpu = get!(this, ":r", reg, *mut PerCpu);
            // SAFETY: `this` is this CPU's state.
            let byte = unsafe { &(*this).counters }.sample();
            let to = (at.block().0 as *mut u8).wrapping_add(block::counter_at(at.offset().into()));
            // SAFETY: the byte lies in a block that this CPU owns, behind its entries.
            unsafe { ptr::write_volatile(to, byte) };
        }
    }

    fn count_loss(&self) {
        change!("inc qword", lost)
    }

    fn count_outside(&self) {
        change!("inc qword", outside)
    }

    fn prepare_block(&self, block: Block, sequence: u64, begin: u64) {
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
            events: 0,
            reserved: [0; 3],
        };
        // The magic number goes before anything else changes: who copies the block looks at it last.
        // SAFETY: this context holds the block.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, 0) };
        compiler_fence(Ordering::Release);
        // SAFETY: as above.
        unsafe { ptr::write_volatile(block.header(), header) };
        pool().clear_counters(block);
    }

    fn begin_block(&self, block: Block) {
        // SAFETY: this CPU owns the block.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, block::MAGIC) };
        self.forget_call();
    }

    fn end_block(&self, at: Position, time: u64, why: End) {
        let flags = match why {
            End::Complete => 0,
            End::Lost => block::FLAG_LOST,
        };
        pool().end_block(at, time, flags);
        let lost = get!(lost, ":r", reg, u64);
        // SAFETY: this CPU owns the block.
        unsafe { (*at.block().header()).lost = lost };
    }

    fn sequence(&self, block: Block) -> u64 {
        // SAFETY: this CPU owns the block, and prepared it.
        unsafe { (*block.header()).sequence }
    }

    fn set_following(&self, block: Block, following: Block) {
        pool().set_following(block, following);
    }

    fn following(&self, block: Block) -> Block {
        pool().following(block)
    }

    fn take_spare(&self) -> Option<Block> {
        let spare: u64;
        // SAFETY: the address is this CPU's spare slot. `xchg` locks by itself; this is rare.
        unsafe {
            asm!(
                "xchg gs:[rip + {cpu} + {at}], {spare}",
                spare = inout(reg) 0u64 => spare,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, spare),
                options(nostack, preserves_flags),
            )
        };
        (spare != 0).then_some(Block(spare))
    }

    fn keep_spare(&self, block: Block) -> bool {
        let seen: u64;
        // SAFETY: the address is this CPU's spare slot.
        unsafe {
            asm!(
                "cmpxchg gs:[rip + {cpu} + {at}], {new}",
                inout("rax") 0u64 => seen,
                new = in(reg) block.0,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, spare),
                options(nostack),
            )
        };
        seen == 0
    }

    fn is_open(&self) -> bool {
        pool().is_open()
    }

    fn take_block(&self) -> Option<Block> {
        pool().take()
    }

    fn give_block(&self, block: Block) {
        pool().give(block);
    }

    fn oldest(&self) -> Block {
        Block(get!(oldest, ":r", reg, u64))
    }

    fn set_oldest(&self, block: Block) {
        set!(oldest, ":r", reg, block.0)
    }
}

impl<const COUNTING: bool> Fold for ThisCpu<COUNTING> {
    #[inline(always)]
    fn call_end(&self) -> Position {
        Position(get!(call_end, ":r", reg, u64))
    }

    #[inline(always)]
    fn since_call(&self, time: u64) -> u64 {
        let since: u64;
        // SAFETY: the address is this CPU's call time.
        unsafe {
            asm!(
                "sub {time}, gs:[rip + {cpu} + {at}]",
                time = inout(reg) time => since,
                cpu = sym ffi::kutrace_cpu,
                at = const offset_of!(PerCpu, call_time),
                options(nostack),
            )
        };
        since
    }

    #[inline(always)]
    fn set_call(&self, end: Position, time: u64) {
        set!(call_time, ":r", reg, time);
        set!(call_end, ":r", reg, end.0)
    }

    #[inline(always)]
    fn forget_call(&self) {
        change!("mov qword", call_end, "0")
    }

    #[inline(always)]
    fn add_before(&self, end: Position, value: u32) {
        // SAFETY: the word lies in a block that this CPU owns.
        unsafe { asm!("add dword ptr [{} - 4], {:e}", in(reg) end.0, in(reg) value, options(nostack)) };
    }

    #[inline(always)]
    fn load(&self, at: Position) -> u32 {
        // SAFETY: the word lies in a block that this CPU owns and was written.
        unsafe { ptr::read_volatile(at.0 as *const u32) }
    }
}
