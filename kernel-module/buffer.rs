// SPDX-License-Identifier: GPL-2.0
//! Blocks in memory: one pool that all CPUs share.
//!
//! Invariants: a block belongs to one CPU from the exchange that takes it until it is given back; only that
//! CPU writes into it. The pool's memory stays until a reset to another size, or until the module is unloaded, after
//! every hook is off.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use kernel::prelude::*;

use crate::abi::block::{self, COUNTED_WORDS, COUNTERS_AT};
use crate::abi::command::{BLOCKS_MAX, IPC, LLC, WRAP};
use crate::claim::{Block, Position};
use crate::ffi;
use crate::lane::PerCpu;

/// Block states.
const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// What the recorder knows of a block besides its header.
struct BlockState {
    state: AtomicU32,
    /// Address of the block that follows on the same CPU.
    following: AtomicU64,
}

/// All blocks.
pub struct Pool {
    /// What was allocated.
    memory: *mut u8,
    /// The first block: the first multiple of a block's size in `memory`.
    first: u64,
    states: *mut BlockState,
    blocks: u64,
    /// Whether blocks have counter bytes.
    counting: bool,
    wrap: bool,
    open: AtomicBool,
    taken: AtomicU64,
    /// Events in blocks that were taken anew.
    #[cfg(kutrace_count)]
    overwritten: AtomicU64,
}

struct PoolCell(UnsafeCell<Pool>);

// SAFETY: fields that are not atomic change only while no hook runs, under the control lock.
unsafe impl Sync for PoolCell {}

static POOL: PoolCell = PoolCell(UnsafeCell::new(Pool {
    memory: ptr::null_mut(),
    first: 0,
    states: ptr::null_mut(),
    blocks: 0,
    counting: false,
    wrap: false,
    open: AtomicBool::new(false),
    taken: AtomicU64::new(0),
    #[cfg(kutrace_count)]
    overwritten: AtomicU64::new(0),
}));

/// The pool.
pub fn pool() -> &'static Pool {
    // SAFETY: no exclusive reference exists while hooks or the device can call this; see `PoolCell`.
    unsafe { &*POOL.0.get() }
}

impl Pool {
    /// Whether CPUs may record.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Takes a free block, in stop mode each only once.
    pub fn take(&self) -> Option<Block> {
        let exhausted = |taken| !self.wrap && taken >= self.blocks;
        for _ in 0..self.blocks {
            // Looked at before it is counted, so that a full pool does not count on for ever.
            if exhausted(self.taken.load(Ordering::Relaxed)) {
                return None;
            }
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            if exhausted(number) {
                return None;
            }
            let block = Block(self.first + number.checked_rem(self.blocks)? * block::BYTES as u64);
            let state = &self.state(block).state;
            if state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                self.count_overwritten(block);
                return Some(block);
            }
        }
        None
    }

    /// Gives a block back.
    pub fn give(&self, block: Block) {
        self.state(block).state.store(FREE, Ordering::Release);
    }

    /// Writes into a block's header how far it is filled, when that was, and why it ends. The caller's CPU owns the
    /// block, or no hook runs.
    pub fn end_block(&self, at: Position, end: u64, flags: u32) {
        let header = at.block().header();
        // SAFETY: nobody else writes this header.
        unsafe { (*header).end = end };
        // SAFETY: as above.
        unsafe { (*header).flags = flags };
        // SAFETY: as above.
        unsafe { (*header).content_bits = u64::from(at.offset()) * 8 };
    }

    /// Clears a block's counter bytes, in a trace that has them. The caller's CPU holds the block.
    pub fn clear_counters(&self, block: Block) {
        if self.counting {
            // SAFETY: the bytes are the last of the block.
            unsafe { ptr::write_bytes((block.0 as *mut u8).add(COUNTERS_AT), 0, COUNTED_WORDS) };
        }
    }

    /// Remembers which block follows on the same CPU.
    pub fn set_following(&self, block: Block, following: Block) {
        self.state(block).following.store(following.0, Ordering::Relaxed);
    }

    /// The block that follows on the same CPU.
    pub fn following(&self, block: Block) -> Block {
        Block(self.state(block).following.load(Ordering::Relaxed))
    }

    fn state(&self, block: Block) -> &BlockState {
        let index = (block.0 - self.first) as usize / block::BYTES;
        // SAFETY: `states` has `blocks` elements, and every block comes from `take`, so it is one of the pool's.
        unsafe { &*self.states.add(index) }
    }

    fn every_block(&self) -> impl Iterator<Item = Block> + '_ {
        (0..self.blocks).map(|index| Block(self.first + index * block::BYTES as u64))
    }

    #[cfg(not(kutrace_count))]
    fn count_overwritten(&self, _block: Block) {}

    #[cfg(kutrace_count)]
    fn count_overwritten(&self, block: Block) {
        // SAFETY: the block was just taken; its header is its last owner's.
        let events = unsafe { (*block.header()).events };
        self.overwritten.fetch_add(events.into(), Ordering::Relaxed);
    }
}

/// Makes the pool one of `blocks` blocks, all zero, or of the size the module was loaded with if that is 0. If there is
/// no memory for it, or it has that size, it stays as it is. No hook may run; a reset must follow.
pub fn resize(blocks: u32) -> Result {
    // SAFETY: no precondition.
    let loaded = unsafe { ffi::kutrace_shim_pool_bytes() } / block::BYTES;
    let blocks = if blocks == 0 { loaded } else { blocks as usize }.min(BLOCKS_MAX as usize);
    if blocks as u64 == pool().blocks {
        return Ok(());
    }
    // One more than there are, so that a whole number of them is aligned.
    // SAFETY: no precondition; null is handled below.
    let memory = unsafe { ffi::kutrace_shim_alloc((blocks + 1) * block::BYTES) };
    // SAFETY: as above.
    let states = unsafe { ffi::kutrace_shim_alloc(blocks * size_of::<BlockState>()) };
    if memory.is_null() || states.is_null() {
        // SAFETY: null, or allocated above and used by nobody.
        [memory, states].map(|memory| unsafe { ffi::kutrace_shim_free(memory) });
        return Err(ENOMEM);
    }
    put(memory, states, blocks as u64);
    Ok(())
}

/// Frees the pool. No hook and no device may be left.
pub fn free() {
    put(ptr::null_mut(), ptr::null_mut(), 0);
}

/// Puts other memory in the place of the pool's, which is freed; where it is mapped it lives on.
fn put(memory: *mut c_void, states: *mut c_void, blocks: u64) {
    // SAFETY: no hook runs, and the control lock is held or there is no device.
    let pool = unsafe { &mut *POOL.0.get() };
    let old = [pool.memory.cast(), pool.states.cast()];
    // SAFETY: no mapping is made until the lock is given back, below.
    unsafe { ffi::kutrace_shim_lock_mapping() };
    pool.memory = memory.cast();
    pool.first = (memory as u64).next_multiple_of(block::BYTES as u64);
    pool.states = states.cast();
    pool.blocks = blocks;
    // SAFETY: locked above.
    unsafe { ffi::kutrace_shim_unlock_mapping() };
    // SAFETY: null, or from kutrace_shim_alloc, and the pool's no more.
    old.map(|memory| unsafe { ffi::kutrace_shim_free(memory) });
}

/// Empties the pool and every CPU's state. No hook may run, and no counter be open.
pub fn reset(flags: u32, shift: u32) {
    // SAFETY: no hook runs and the caller holds the control lock.
    let pool = unsafe { &mut *POOL.0.get() };
    pool.wrap = flags & WRAP != 0;
    pool.counting = flags & (IPC | LLC) != 0;
    *pool.open.get_mut() = false;
    *pool.taken.get_mut() = 0;
    #[cfg(kutrace_count)]
    {
        *pool.overwritten.get_mut() = 0;
    }
    for block in pool.every_block() {
        pool.give(block);
        // SAFETY: the header is in the pool and no CPU writes to it while hooks are off.
        unsafe { ptr::write_bytes(block.header(), 0, 1) };
    }
    for_each_cpu(|cpu, state| {
        let fresh = PerCpu::new(cpu, state, shift);
        // SAFETY: `state` is that CPU's PerCpu, which nothing uses while hooks are off.
        unsafe { state.write(fresh) };
    });
}

/// Lets the CPUs record: from here on, each from its next event.
pub fn open() {
    pool().open.store(true, Ordering::Release);
}

/// Lets no CPU begin a block any more.
pub fn close() {
    pool().open.store(false, Ordering::Release);
}

/// Completes the header of each CPU's last block. No hook may run. `end`: the counter now.
pub fn finish(end: u64) {
    // SAFETY: no hook runs, so this is the only reference to that CPU's state.
    for_each_cpu(|_, state| unsafe { &mut *state }.finish(end));
}

/// Waits until every claim under way has been left.
pub fn wait_for_claims() {
    for_each_cpu(|_, state| {
        while PerCpu::is_claiming(state) {
            // SAFETY: the caller may sleep.
            unsafe { ffi::kutrace_shim_pause() };
        }
    });
}

/// Blocks in the pool, and blocks taken since the reset.
pub fn usage() -> (u32, u32) {
    let pool = pool();
    (pool.blocks as u32, pool.taken.load(Ordering::Relaxed).min(u32::MAX as u64) as u32)
}

/// Events lost on all CPUs since the reset.
pub fn lost() -> u64 {
    let mut sum = 0;
    for_each_cpu(|_, state| sum += PerCpu::lost(state));
    sum
}

/// Prints what was counted since the reset: the calls of hooks, and what became of them. No hook may run.
#[cfg(kutrace_count)]
pub fn print_counts() {
    let pool = pool();
    let (mut calls, mut outside) = (0, 0);
    for_each_cpu(|_, state| {
        // SAFETY: no hook runs.
        let state = unsafe { &*state };
        calls += state.calls;
        outside += state.outside;
    });
    // SAFETY: no hook runs.
    let recorded: u64 = pool.every_block().map(|block| u64::from(unsafe { (*block.header()).events })).sum();
    let overwritten = pool.overwritten.load(Ordering::Relaxed);
    let lost = lost();
    pr_info!("count: calls={calls} recorded={recorded} lost={lost} overwritten={overwritten} outside={outside}\n");
}

/// The memory that holds the blocks, and the bytes before the first of them; for mmap, under its lock.
#[no_mangle]
pub extern "C" fn kutrace_pool(skip: &mut u64) -> *mut c_void {
    let pool = pool();
    *skip = pool.first - pool.memory as u64;
    pool.memory.cast()
}

/// Number of possible CPUs.
pub fn cpus() -> u32 {
    // SAFETY: reads a kernel variable.
    unsafe { ffi::kutrace_shim_cpus() }
}

/// Calls `each` with every possible CPU and its state.
pub fn for_each_cpu(mut each: impl FnMut(u32, *mut PerCpu)) {
    for cpu in 0..cpus() {
        // SAFETY: `cpu` is below nr_cpu_ids.
        if unsafe { ffi::kutrace_shim_possible(cpu) } {
            // SAFETY: the CPU is possible, so it has per-CPU data.
            each(cpu, unsafe { ffi::kutrace_shim_cpu(cpu) });
        }
    }
}
