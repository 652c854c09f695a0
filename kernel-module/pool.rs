// SPDX-License-Identifier: GPL-2.0
//! Blocks in memory: one pool that all CPUs share.
//!
//! Invariants: a block belongs to one CPU from the exchange that takes it until it is given back; only that CPU writes
//! into it, and until it is free again nobody; but how far a block is filled the holder of the control lock may write
//! into its header at any time, `for_now`, which nobody trusts who knows better. A free block of a stream has no magic number. The pool's memory stays
//! until a reset to another size, or until the module is unloaded, after every hook is off.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use kernel::prelude::*;

use crate::abi::block::{self, COUNTED_WORDS, COUNTERS_AT};
use crate::abi::command::{BLOCKS_MAX, IPC, LLC, STREAM, WRAP};
use crate::lane::Block;
use crate::{ffi, reserved};

/// Block states, in the order in which a block of a stream passes through them; others go from taken to free.
const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Given back by its CPU, and not handed over yet.
const FULL: u32 = 2;
/// Handed to the reader.
const READ: u32 = 3;

/// What the recorder knows about a block in addition to its header.
struct BlockState {
    state: AtomicU32,
    /// Of a stream's free block: one more than the place of the next free one, 0 for none.
    next_free: AtomicU32,
    /// Address of the block that follows on the same CPU.
    following: AtomicU64,
}

/// All blocks. A reset and a resize change it through the same shared reference that hooks and the device have; they
/// come while no hook that records runs, and every number that they change is loaded and stored as a whole.
pub struct Pool {
    /// What was allocated.
    memory: AtomicPtr<u8>,
    /// The first block: the first multiple of a block's size in `memory`.
    first: AtomicU64,
    states: AtomicPtr<BlockState>,
    blocks: AtomicU64,
    /// Whether blocks have counter bytes.
    counting: AtomicBool,
    /// Whether blocks are used again.
    reuse: AtomicBool,
    /// Whether they are read before that.
    stream: AtomicBool,
    /// Of a stream one more than the place of the first free block, 0 for none; in the upper half how often that changed, so
    /// that who was interrupted while he took a block does not take it for the one it was.
    free: AtomicU64,
    open: AtomicBool,
    taken: AtomicU64,
    /// Events in blocks that were taken anew.
    #[cfg(kutrace_count)]
    overwritten: AtomicU64,
}

static POOL: Pool = Pool {
    memory: AtomicPtr::new(ptr::null_mut()),
    first: AtomicU64::new(0),
    states: AtomicPtr::new(ptr::null_mut()),
    blocks: AtomicU64::new(0),
    counting: AtomicBool::new(false),
    reuse: AtomicBool::new(false),
    stream: AtomicBool::new(false),
    free: AtomicU64::new(0),
    open: AtomicBool::new(false),
    taken: AtomicU64::new(0),
    #[cfg(kutrace_count)]
    overwritten: AtomicU64::new(0),
};

/// The pool.
pub fn pool() -> &'static Pool {
    &POOL
}

impl Pool {
    /// Whether CPUs may record.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Takes a free block, in stop mode each only once.
    pub fn take(&self) -> Option<Block> {
        if self.is_stream() {
            return self.take_first();
        }
        let (blocks, reuse) = (self.blocks(), self.reuse.load(Ordering::Relaxed));
        let exhausted = |taken| !reuse && taken >= blocks;
        // Where blocks are used again, those are passed over that a CPU still has: a few for each.
        for _ in 0..blocks {
            // Looked at before it is counted, so that a full pool does not count on for ever.
            if exhausted(self.taken.load(Ordering::Relaxed)) {
                return None;
            }
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            if exhausted(number) {
                return None;
            }
            let block = self.block(number.checked_rem(blocks)?);
            let state = &self.state(block).state;
            if state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(block);
            }
        }
        None
    }

    /// Takes the first free block of a stream: most are full, and it must not look for the few that are not.
    fn take_first(&self) -> Option<Block> {
        let mut free = self.free.load(Ordering::Acquire);
        loop {
            let block = self.block((free as u32).checked_sub(1)?.into());
            let state = self.state(block);
            let rest = changed(free) | u64::from(state.next_free.load(Ordering::Relaxed));
            match self.free.compare_exchange(free, rest, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    state.state.store(TAKEN, Ordering::Relaxed);
                    self.taken.fetch_add(1, Ordering::Relaxed);
                    return Some(block);
                }
                Err(other) => free = other,
            }
        }
    }

    /// Gives a block back. Of a stream it is full, unless it never came to be part of the trace.
    ///
    /// # Safety
    /// It is one of the pool's, and no CPU uses it any more.
    pub unsafe fn give(&self, block: Block) {
        // SAFETY: the header is in the pool, and nobody writes into it.
        if self.is_stream() && unsafe { ptr::read_volatile(&raw const (*block.header()).magic) } == block::MAGIC {
            self.state(block).state.store(FULL, Ordering::Release);
        } else {
            self.set_free(block);
        }
    }

    fn set_free(&self, block: Block) {
        let state = self.state(block);
        state.state.store(FREE, Ordering::Release);
        if !self.is_stream() {
            return;
        }
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            state.next_free.store(free as u32, Ordering::Relaxed);
            let all = changed(free) | (self.place(block) as u64 + 1);
            match self.free.compare_exchange(free, all, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => free = other,
            }
        }
    }

    fn is_stream(&self) -> bool {
        self.stream.load(Ordering::Relaxed)
    }

    /// The full blocks, each of which the caller has from then on.
    pub fn full(&self) -> impl Iterator<Item = u32> + '_ {
        let hand_over = |block| {
            let state = &self.state(block).state;
            state.compare_exchange(FULL, READ, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        (0..self.blocks()).filter(move |&index| hand_over(self.block(index))).map(|index| index as u32)
    }

    /// Makes a block free that was handed over; false for any other.
    pub fn take_back(&self, index: u32) -> bool {
        if u64::from(index) >= self.blocks() {
            return false;
        }
        let block = self.block(index.into());
        if self.state(block).state.compare_exchange(READ, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        // What is left in the pool at the end is what was not read.
        // SAFETY: the header is in the pool, and the exchange has made the block the caller's.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, 0) };
        self.set_free(block);
        true
    }

    /// Clears a block's counter bytes, in a trace that has them.
    ///
    /// # Safety
    /// It is one of the pool's, and the caller's context holds it.
    pub unsafe fn clear_counters(&self, block: Block) {
        if self.counting.load(Ordering::Relaxed) {
            // SAFETY: the bytes are the last of the block.
            unsafe { ptr::write_bytes((block.address() as *mut u8).add(COUNTERS_AT), 0, COUNTED_WORDS) };
        }
    }

    /// Remembers which block follows on the same CPU.
    ///
    /// # Safety
    /// `block` is one of the pool's.
    pub unsafe fn set_following(&self, block: Block, following: Block) {
        self.state(block).following.store(following.address(), Ordering::Relaxed);
    }

    /// The block that follows on the same CPU.
    ///
    /// # Safety
    /// `block` is one of the pool's, and another follows it.
    pub unsafe fn following(&self, block: Block) -> Block {
        // SAFETY: only addresses of blocks are stored there.
        unsafe { Block::new(self.state(block).following.load(Ordering::Relaxed)) }
    }

    fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// Block number `index`, below [`Pool::blocks`].
    fn block(&self, index: u64) -> Block {
        // SAFETY: the pool's memory has that many blocks, so this is one of them.
        unsafe { Block::new(self.first.load(Ordering::Relaxed) + index * block::BYTES as u64) }
    }

    /// What is known of one of the pool's blocks. INVARIANT: every [`Block`] but NO_BLOCK is one of them.
    fn state(&self, block: Block) -> &BlockState {
        // SAFETY: there are as many states as blocks, and they go only in a resize, when no hook runs that has a block.
        unsafe { &*self.states.load(Ordering::Relaxed).add(self.place(block)) }
    }

    fn place(&self, block: Block) -> usize {
        (block.address() - self.first.load(Ordering::Relaxed)) as usize / block::BYTES
    }

    fn every_block(&self) -> impl Iterator<Item = Block> + '_ {
        (0..self.blocks()).map(|index| self.block(index))
    }

    /// Counts the events of a block that is about to be written anew.
    ///
    /// # Safety
    /// It is one of the pool's, and the caller's context holds it.
    #[cfg(kutrace_count)]
    pub unsafe fn count_overwritten(&self, block: Block) {
        // SAFETY: nobody else writes into the header, which is as the last that prepared or filled the block left it.
        let events = unsafe { (*block.header()).events };
        self.overwritten.fetch_add(events.into(), Ordering::Relaxed);
    }
}

/// The upper half of [`Pool::free`] after a change.
fn changed(free: u64) -> u64 {
    (free >> 32).wrapping_add(1) << 32
}

/// Makes the pool one of `blocks` blocks, all zero, or of the size the module was loaded with if that is 0. If there is
/// no memory for it, the caller may not have as much (E2BIG), or it has that size, it stays as it is.
///
/// # Safety
/// No hook that records runs, and none will before a reset.
pub unsafe fn resize(blocks: u32) -> Result {
    let blocks = if blocks == 0 { loaded() } else { blocks as usize }.min(BLOCKS_MAX as usize);
    if blocks as u64 == pool().blocks() {
        return Ok(());
    }
    // SAFETY: a command is a task's.
    if blocks > loaded() && !unsafe { ffi::kutrace_shim_may_have(blocks * block::BYTES) } {
        return Err(E2BIG);
    }
    let memory = memory_for(blocks);
    // SAFETY: a command may sleep; null is handled below.
    let states = unsafe { ffi::kutrace_shim_alloc(blocks * size_of::<BlockState>()) };
    if memory.is_null() || states.is_null() {
        for memory in [memory, states] {
            // SAFETY: null, or from above and used by nobody.
            unsafe { give_memory(memory) };
        }
        return Err(ENOMEM);
    }
    // SAFETY: both are from above, of these sizes, and the rest is as the caller says.
    unsafe { put(memory, states, blocks as u64) };
    Ok(())
}

/// Blocks of the pool with which the module was loaded: as many as the memory holds that outlives a reboot, if there is
/// such.
fn loaded() -> usize {
    let usual = || ffi::kutrace_shim_pool_bytes() / block::BYTES;
    reserved::range().map_or_else(usual, |range| range.pool().1)
}

/// Memory for this many blocks, all zero, or null: that which outlives a reboot if it holds just these, and else any. One
/// block more than there are, so that a whole number of them is aligned, unless the first is.
fn memory_for(blocks: usize) -> *mut c_void {
    match reserved::range().map(|range| range.pool()) {
        Some((first, count)) if count == blocks => {
            // SAFETY: this many blocks are there, and they are not the pool's, which has another size.
            unsafe { ptr::write_bytes(first, 0, count * block::BYTES) };
            first.cast()
        }
        // SAFETY: a command may sleep; null is for the caller.
        _ => unsafe { ffi::kutrace_shim_alloc((blocks + 1) * block::BYTES) },
    }
}

/// Gives memory back that was had for blocks or states. What outlives a reboot stays.
///
/// # Safety
/// It is null, or was had for that, and nobody uses it.
unsafe fn give_memory(memory: *mut c_void) {
    if !reserved::range().is_some_and(|range| range.has(memory as u64)) {
        // SAFETY: null, or from kutrace_shim_alloc, and as the caller says.
        unsafe { ffi::kutrace_shim_free(memory) };
    }
}

/// Whether the pool is larger than the module was loaded with.
pub fn is_enlarged() -> bool {
    pool().blocks() > loaded() as u64
}

/// Frees the pool.
///
/// # Safety
/// No hook and no device is left.
pub unsafe fn free() {
    // SAFETY: no memory, for no blocks; and nobody is left to use what there was.
    unsafe { put(ptr::null_mut(), ptr::null_mut(), 0) };
}

/// Puts other memory in the place of the pool's, which is freed; where it is mapped it lives on, and what outlives a
/// reboot shows whatever comes into it.
///
/// # Safety
/// Both are null and `blocks` is 0, or the memory is from [`memory_for`] this many blocks, and the states from
/// kutrace_shim_alloc, as many. Nobody uses a block of the pool.
unsafe fn put(memory: *mut c_void, states: *mut c_void, blocks: u64) {
    let pool = pool();
    // SAFETY: a command may sleep, and gives the lock back below.
    unsafe { ffi::kutrace_shim_lock_mapping() };
    let old_memory = pool.memory.swap(memory.cast(), Ordering::Relaxed).cast();
    let old_states = pool.states.swap(states.cast(), Ordering::Relaxed).cast();
    pool.first.store((memory as u64).next_multiple_of(block::BYTES as u64), Ordering::Relaxed);
    pool.blocks.store(blocks, Ordering::Relaxed);
    // SAFETY: locked above.
    unsafe { ffi::kutrace_shim_unlock_mapping() };
    for memory in [old_memory, old_states] {
        // SAFETY: null, or had for this, and the pool's no more: nobody uses a block, and who maps it holds its pages.
        unsafe { give_memory(memory) };
    }
}

/// Empties the pool.
///
/// # Safety
/// No hook that records runs, and every CPU's state is reset next.
pub unsafe fn reset(flags: u32) {
    let pool = pool();
    pool.reuse.store(flags & (WRAP | STREAM) != 0, Ordering::Relaxed);
    pool.stream.store(flags & STREAM != 0, Ordering::Relaxed);
    pool.free.store(0, Ordering::Relaxed);
    pool.counting.store(flags & (IPC | LLC) != 0, Ordering::Relaxed);
    pool.open.store(false, Ordering::Relaxed);
    pool.taken.store(0, Ordering::Relaxed);
    #[cfg(kutrace_count)]
    pool.overwritten.store(0, Ordering::Relaxed);
    for block in pool.every_block() {
        // SAFETY: the header is in the pool, and no hook runs, so no CPU writes into it.
        unsafe { ptr::write_bytes(block.header(), 0, 1) };
        // SAFETY: it is one of the pool's; no hook runs and every CPU forgets its own next, so nobody uses it any more.
        unsafe { pool.give(block) };
    }
}

/// Lets the CPUs record: from here on, each from its next event.
pub fn open() {
    pool().open.store(true, Ordering::Release);
}

/// Lets no CPU begin a block any more.
pub fn close() {
    pool().open.store(false, Ordering::Release);
}

/// Blocks in the pool, and blocks taken since the reset.
pub fn usage() -> (u32, u32) {
    let pool = pool();
    (pool.blocks() as u32, pool.taken.load(Ordering::Relaxed).min(u32::MAX as u64) as u32)
}

/// Blocks taken since the reset.
pub fn taken() -> u64 {
    pool().taken.load(Ordering::Relaxed)
}

/// Where, in an image of the memory, the first block is found, and the count of blocks taken.
pub fn place() -> (u64, u64) {
    (pool().first.load(Ordering::Relaxed), pool().taken.as_ptr() as u64)
}

/// Events in the blocks, and in those that were taken anew since the reset.
///
/// # Safety
/// No hook that records runs.
#[cfg(kutrace_count)]
pub unsafe fn events() -> (u64, u64) {
    let pool = pool();
    // SAFETY: as the caller says, so nobody writes into a header.
    let recorded = pool.every_block().map(|block| u64::from(unsafe { (*block.header()).events })).sum();
    (recorded, pool.overwritten.load(Ordering::Relaxed))
}

/// The blocks, and how many bytes they are; for mmap, under its lock.
#[no_mangle]
pub extern "C" fn kutrace_pool(bytes: &mut u64) -> *mut c_void {
    let pool = pool();
    *bytes = pool.blocks() * block::BYTES as u64;
    pool.first.load(Ordering::Relaxed) as *mut c_void
}
