// SPDX-License-Identifier: GPL-2.0
//! Blocks in memory: the pool that all CPUs share, and each CPU's state, reached through %gs.
//!
//! Invariants: a block belongs to one CPU from the exchange that takes it until it is given back; only that
//! CPU writes into it. The pool's memory stays until the module is unloaded, after every hook is off.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::{offset_of, size_of};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kernel::prelude::*;

use crate::abi::block::{self, Header};
use crate::claim::{End, Lane, Position, BLOCKS_MAX};
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
/// Room that shim.h reserves.
const CPU_BYTES: usize = 4096;
const _: () = assert!(size_of::<PerCpu>() <= CPU_BYTES && offset_of!(PerCpu, lost) < 64);

/// Block states.
const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// What the recorder knows of a block besides its header.
struct BlockState {
    state: AtomicU32,
    following: AtomicU32,
}

/// All blocks.
struct Pool {
    words: *mut u32,
    states: *mut BlockState,
    blocks: u32,
    wrap: bool,
    taken: AtomicU64,
}

struct PoolCell(UnsafeCell<Pool>);

// SAFETY: fields other than `taken` change only while no hook runs, under the control lock.
unsafe impl Sync for PoolCell {}

static POOL: PoolCell = PoolCell(UnsafeCell::new(Pool {
    words: ptr::null_mut(),
    states: ptr::null_mut(),
    blocks: 0,
    wrap: false,
    taken: AtomicU64::new(0),
}));

fn pool() -> &'static Pool {
    // SAFETY: no exclusive reference exists while hooks or the device can call this; see `PoolCell`.
    unsafe { &*POOL.0.get() }
}

impl Pool {
    fn state(&self, block: u32) -> &BlockState {
        // SAFETY: `states` has `blocks` elements, and every block number comes from `take_block`, which
        // makes it smaller than that.
        unsafe { &*self.states.add(block as usize) }
    }

    fn header(&self, block: u32) -> *mut Header {
        // SAFETY: the pool has `blocks` times `block::WORDS` words; blocks are aligned to their size.
        unsafe { self.words.add(block as usize * block::WORDS).cast() }
    }
}

/// Allocates the pool, all zero.
pub fn allocate() -> Result {
    // SAFETY: no precondition.
    let bytes = unsafe { ffi::kutrace_shim_pool_bytes() };
    let blocks = (bytes / block::BYTES).min(BLOCKS_MAX as usize);
    // SAFETY: no precondition; null is handled below.
    let words = unsafe { ffi::kutrace_shim_alloc(blocks * block::BYTES) };
    // SAFETY: as above.
    let states = unsafe { ffi::kutrace_shim_alloc(blocks * size_of::<BlockState>()) };
    // SAFETY: the module is being loaded; nothing else can reach the pool yet.
    let pool = unsafe { &mut *POOL.0.get() };
    pool.words = words.cast();
    pool.states = states.cast();
    pool.blocks = blocks as u32;
    if words.is_null() || states.is_null() {
        free();
        return Err(ENOMEM);
    }
    Ok(())
}

/// Frees the pool. No hook and no device may be left.
pub fn free() {
    // SAFETY: the module is being unloaded, or failed to load; nothing else can reach the pool.
    let pool = unsafe { &mut *POOL.0.get() };
    for memory in [pool.words.cast(), pool.states.cast()] {
        // SAFETY: null, or from kutrace_shim_alloc and not freed before.
        unsafe { ffi::kutrace_shim_free(memory) };
    }
    pool.words = ptr::null_mut();
    pool.states = ptr::null_mut();
}

/// Empties the pool and every CPU's state. No hook may run.
pub fn reset(wrap: bool, shift: u32) {
    // SAFETY: no hook runs and the caller holds the control lock.
    let pool = unsafe { &mut *POOL.0.get() };
    pool.wrap = wrap;
    *pool.taken.get_mut() = 0;
    for block in 0..pool.blocks {
        pool.state(block).state.store(FREE, Ordering::Relaxed);
        // SAFETY: the header is in the pool and no CPU writes to it while hooks are off.
        unsafe { ptr::write_bytes(pool.header(block), 0, 1) };
    }
    for_each_cpu(|cpu, state| {
        let none = Position::none(block::WORDS as u64).0;
        let fresh = PerCpu {
            position: none,
            done: none,
            last_time: 0,
            call_end: NO_CALL.0,
            pool: pool.words,
            shift: shift as u8,
            holding: false,
            lost: 0,
            cpu,
            spare: 0,
            this: state,
            oldest: 0,
            named: [0; NAMED],
        };
        // SAFETY: `state` is that CPU's PerCpu, which nothing uses while hooks are off.
        unsafe { state.write(fresh) };
    });
}

/// Closes the block that each CPU is filling. No hook may run. `end`: the counter now.
pub fn close_all(end: u64) {
    for_each_cpu(|_, state| {
        // SAFETY: no hook runs, so this is the only reference to that CPU's state.
        let state = unsafe { &mut *state };
        let position = Position(state.position);
        let sealed = position.0 | (block::WORDS as u64 - 1);
        if position.sequence() == 0 {
            return;
        }
        if position.0 != sealed {
            write_end(position, end.max(state.last_time), 0);
            state.position = sealed;
            state.done = sealed;
        }
        // SAFETY: no hook runs.
        unsafe { (*pool().header(position.block())).lost = state.lost };
    });
}

/// Blocks in the pool, and blocks taken since the reset.
pub fn usage() -> (u32, u32) {
    let pool = pool();
    (pool.blocks, pool.taken.load(Ordering::Relaxed).min(u32::MAX as u64) as u32)
}

/// Events lost on all CPUs since the reset.
pub fn lost() -> u64 {
    let mut sum = 0;
    // SAFETY: `state` is that CPU's PerCpu; a torn read is not possible for an aligned word.
    for_each_cpu(|_, state| sum += unsafe { ptr::read_volatile(&raw const (*state).lost) });
    sum
}

/// The pool's memory, for mmap.
#[no_mangle]
pub extern "C" fn kutrace_pool() -> *mut core::ffi::c_void {
    pool().words.cast()
}

/// Number of possible CPUs.
pub fn cpus() -> u32 {
    // SAFETY: reads a kernel variable.
    unsafe { ffi::kutrace_shim_cpus() }
}

fn for_each_cpu(mut each: impl FnMut(u32, *mut PerCpu)) {
    for cpu in 0..cpus() {
        // SAFETY: `cpu` is below nr_cpu_ids.
        if unsafe { ffi::kutrace_shim_possible(cpu) } {
            // SAFETY: the CPU is possible, so it has per-CPU data.
            each(cpu, unsafe { ffi::kutrace_shim_cpu(cpu) });
        }
    }
}

/// Writes how far a block is filled into its header.
fn write_end(at: Position, end: u64, flags: u32) {
    let header = pool().header(at.block());
    // SAFETY: the caller's CPU owns the block, or no hook runs.
    unsafe { (*header).end = end };
    // SAFETY: as above.
    unsafe { (*header).content_bits = at.offset() * 32 };
    // SAFETY: as above.
    unsafe { (*header).flags = flags };
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

    /// Whether the current block has no name of this task yet; says that it has one now.
    pub fn must_name(&self, pid: u32) -> bool {
        let key = self.position().sequence() << 32 | pid as u64;
        let this: *mut PerCpu = get!(this, ":r", reg, *mut PerCpu);
        // SAFETY: `this` is this CPU's state and the index is below NAMED. An interrupt records no task.
        let slot = unsafe { &mut (*this).named[pid as usize % NAMED] };
        let must = *slot != key;
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
        write_end(at, time, flags);
        let lost = get!(lost, ":r", reg, u64);
        // SAFETY: this CPU owns the block.
        unsafe { (*pool().header(at.block())).lost = lost };
    }

    fn set_following(&self, block: u32, following: u32) {
        pool().state(block).following.store(following, Ordering::Relaxed);
    }

    fn following(&self, block: u32) -> u32 {
        pool().state(block).following.load(Ordering::Relaxed)
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

    fn take_block(&self) -> Option<u32> {
        let pool = pool();
        for _ in 0..pool.blocks {
            if !pool.wrap && pool.taken.load(Ordering::Relaxed) >= pool.blocks as u64 {
                return None;
            }
            let number = pool.taken.fetch_add(1, Ordering::Relaxed);
            if !pool.wrap && number >= pool.blocks as u64 {
                return None;
            }
            let block = number.checked_rem(pool.blocks as u64)? as u32;
            let state = &pool.state(block).state;
            if state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(block);
            }
        }
        None
    }

    fn give_block(&self, block: u32) {
        pool().state(block).state.store(FREE, Ordering::Release);
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
