// SPDX-License-Identifier: GPL-2.0
//! Blocks in memory: one pool that all CPUs share.
//!
//! Invariants: a block belongs to one CPU from the exchange that takes it until it is given back; only that
//! CPU writes into it. The pool's memory stays until the module is unloaded, after every hook is off.

use core::cell::UnsafeCell;
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use kernel::prelude::*;

use crate::abi::block::{self, Header};
use crate::claim::{Position, Taken, BLOCKS_MAX};
use crate::ffi;
use crate::lane::PerCpu;

/// Block states.
const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// What the recorder knows of a block besides its header.
struct BlockState {
    state: AtomicU32,
    following: AtomicU32,
}

/// All blocks.
pub struct Pool {
    words: *mut u32,
    states: *mut BlockState,
    blocks: u32,
    wrap: bool,
    open: AtomicBool,
    taken: AtomicU64,
}

struct PoolCell(UnsafeCell<Pool>);

// SAFETY: fields other than `open` and `taken` change only while no hook runs, under the control lock.
unsafe impl Sync for PoolCell {}

static POOL: PoolCell = PoolCell(UnsafeCell::new(Pool {
    words: ptr::null_mut(),
    states: ptr::null_mut(),
    blocks: 0,
    wrap: false,
    open: AtomicBool::new(false),
    taken: AtomicU64::new(0),
}));

/// The pool.
pub fn pool() -> &'static Pool {
    // SAFETY: no exclusive reference exists while hooks or the device can call this; see `PoolCell`.
    unsafe { &*POOL.0.get() }
}

impl Pool {
    /// The header of a block.
    pub fn header(&self, block: u32) -> *mut Header {
        // SAFETY: the pool has `blocks` times `block::WORDS` words; blocks are aligned to their size.
        unsafe { self.words.add(block as usize * block::WORDS).cast() }
    }

    /// Takes a free block, in stop mode each only once.
    pub fn take(&self) -> Taken {
        if !self.open.load(Ordering::Acquire) {
            return Taken::Closed;
        }
        self.take_free().map_or(Taken::Empty, Taken::Block)
    }

    fn take_free(&self) -> Option<u32> {
        let exhausted = |taken| !self.wrap && taken >= self.blocks as u64;
        for _ in 0..self.blocks {
            // Looked at before it is counted, so that a full pool does not count on for ever.
            if exhausted(self.taken.load(Ordering::Relaxed)) {
                return None;
            }
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            if exhausted(number) {
                return None;
            }
            let block = number.checked_rem(self.blocks as u64)? as u32;
            let state = &self.state(block).state;
            if state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(block);
            }
        }
        None
    }

    /// Gives a block back.
    pub fn give(&self, block: u32) {
        self.state(block).state.store(FREE, Ordering::Release);
    }

    /// Writes into a block's header how far it is filled, when that was, what is lost, and why it ends. The
    /// caller's CPU owns the block, or no hook runs.
    pub fn end_block(&self, at: Position, end: u64, lost: u64, flags: u32) {
        let header = self.header(at.block());
        // SAFETY: nobody else writes this header.
        unsafe { (*header).end = end };
        // SAFETY: as above.
        unsafe { (*header).content_bits = at.offset() * 32 };
        // SAFETY: as above.
        unsafe { (*header).lost = lost };
        // SAFETY: as above.
        unsafe { (*header).flags = flags };
    }

    /// Remembers which block follows on the same CPU.
    pub fn set_following(&self, block: u32, following: u32) {
        self.state(block).following.store(following, Ordering::Relaxed);
    }

    /// The block that follows on the same CPU.
    pub fn following(&self, block: u32) -> u32 {
        self.state(block).following.load(Ordering::Relaxed)
    }

    fn state(&self, block: u32) -> &BlockState {
        // SAFETY: `states` has `blocks` elements, and every block number comes from `take`, which makes it
        // smaller than that.
        unsafe { &*self.states.add(block as usize) }
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
    *pool.open.get_mut() = false;
    *pool.taken.get_mut() = 0;
    for block in 0..pool.blocks {
        pool.state(block).state.store(FREE, Ordering::Relaxed);
        // SAFETY: the header is in the pool and no CPU writes to it while hooks are off.
        unsafe { ptr::write_bytes(pool.header(block), 0, 1) };
    }
    for_each_cpu(|cpu, state| {
        let fresh = PerCpu::new(cpu, state, pool.words, shift);
        // SAFETY: `state` is that CPU's PerCpu, which nothing uses while hooks are off.
        unsafe { state.write(fresh) };
    });
}

/// Lets the CPUs record: from here on, each from its next event.
pub fn open() {
    pool().open.store(true, Ordering::Release);
}

/// Closes the block that each CPU is filling. No hook may run. `end`: the counter now.
pub fn close_all(end: u64) {
    // SAFETY: no hook runs, so this is the only reference to that CPU's state.
    for_each_cpu(|_, state| unsafe { &mut *state }.close(end));
}

/// Blocks in the pool, and blocks taken since the reset.
pub fn usage() -> (u32, u32) {
    let pool = pool();
    (pool.blocks, pool.taken.load(Ordering::Relaxed).min(u32::MAX as u64) as u32)
}

/// Events lost on all CPUs since the reset.
pub fn lost() -> u64 {
    let mut sum = 0;
    for_each_cpu(|_, state| sum += PerCpu::lost(state));
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
