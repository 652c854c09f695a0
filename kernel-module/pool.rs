// SPDX-License-Identifier: GPL-2.0
//! Blocks in memory: one pool that all CPUs share. [`crate::owners`] keeps the owner of each block.
//!
//! Invariants: only the CPU that has a block writes into it, and from the moment that it is given back until it is free
//! again nothing does. The exception is `for_now` in the header: the holder of the control lock may write there at any
//! time how far the block is filled, and a reader that knows better ignores it. A free block of a stream has no magic
//! number. The pool's memory stays until a reset to another size, or until the module is unloaded, after every hook is
//! off.

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr;
#[cfg(kutrace_count)]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use kernel::prelude::*;

use crate::abi::block::{self, COUNTED_WORDS, COUNTERS_AT};
use crate::abi::command::{BLOCKS_MAX, IPC, LLC, STREAM, WRAP};
use crate::lane::Block;
use crate::owners::{Owner, Owners, Reuse};
use crate::{ffi, reserved};

/// All blocks. A reset and a resize change the pool through the same shared reference that hooks and the device have.
pub struct Pool {
    /// The allocated memory; the first block is at its first multiple of a block's size.
    memory: AtomicPtr<u8>,
    /// The owner of each block.
    pub owners: Owners,
    /// True if blocks have counter bytes.
    counting: AtomicBool,
    open: AtomicBool,
    /// Events in blocks that were overwritten.
    #[cfg(kutrace_count)]
    overwritten: AtomicU64,
}

static POOL: Pool = Pool {
    memory: AtomicPtr::new(ptr::null_mut()),
    owners: Owners::none(),
    counting: AtomicBool::new(false),
    open: AtomicBool::new(false),
    #[cfg(kutrace_count)]
    overwritten: AtomicU64::new(0),
};

/// The pool.
pub fn pool() -> &'static Pool {
    &POOL
}

impl Pool {
    /// Returns whether CPUs may record.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Takes a free block; in stop mode, each block only once.
    pub fn take(&self) -> Option<Block> {
        self.owners.take(|| ())
    }

    /// Gives a block back. In a stream it is then full, unless it never became part of the trace.
    ///
    /// # Safety
    /// The block is one of the pool's, and no CPU uses it any more.
    pub unsafe fn give(&self, block: Block) {
        // SAFETY: as the caller guarantees, so its header is in the pool, and nothing writes into it.
        unsafe {
            match self.owners.is_stream() && ptr::read_volatile(&raw const (*block.header()).magic) == block::MAGIC {
                true => self.owners.fill(block),
                false => self.owners.free(block, || ()),
            }
        }
    }

    /// Frees a block that was handed over; false for any other.
    pub fn take_back(&self, place: u32) -> bool {
        let Some(block) = self.owners.take_back(place) else { return false };
        // At the end, only those blocks in the pool that were not read have a magic number.
        // SAFETY: the header is in the pool, and the block is the caller's.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, 0) };
        // SAFETY: the block is the caller's, which is done with it.
        unsafe { self.owners.free(block, || ()) };
        true
    }

    /// Clears a block's counter bytes, in a trace that has them.
    ///
    /// # Safety
    /// The block is one of the pool's, and the caller's context holds it.
    pub unsafe fn clear_counters(&self, block: Block) {
        if self.counting.load(Ordering::Relaxed) {
            // SAFETY: the bytes are the last of the block.
            unsafe { ptr::write_bytes((block.address() as *mut u8).add(COUNTERS_AT), 0, COUNTED_WORDS) };
        }
    }

    /// Counts the events of a block that is about to be overwritten.
    ///
    /// # Safety
    /// The block is one of the pool's, and the caller's context holds it.
    #[cfg(kutrace_count)]
    pub unsafe fn count_overwritten(&self, block: Block) {
        // SAFETY: nothing else writes into the header, which is as the last context that prepared or filled the block
        // left it.
        let events = unsafe { (*block.header()).events };
        self.overwritten.fetch_add(events.into(), Ordering::Relaxed);
    }
}

/// Replaces the pool by one of `blocks` blocks, all zero; 0 means the size that the module was loaded with. The pool
/// stays as it is if there is no memory for another (ENOMEM), if the caller may not have this much (E2BIG), or if it
/// already has that size.
///
/// # Safety
/// No hook that records runs, and none will before a reset.
pub unsafe fn resize(blocks: u32) -> Result {
    let blocks = if blocks == 0 { loaded() } else { blocks as usize }.min(BLOCKS_MAX as usize);
    if blocks as u64 == pool().owners.blocks() {
        return Ok(());
    }
    // SAFETY: commands run in task context.
    if blocks > loaded() && !unsafe { ffi::kutrace_shim_may_have(blocks * block::BYTES) } {
        return Err(E2BIG);
    }
    let memory = memory_for(blocks);
    // SAFETY: a command may sleep; null is handled below.
    let owners = unsafe { ffi::kutrace_shim_alloc(blocks * size_of::<Owner>()) };
    if memory.is_null() || owners.is_null() {
        for memory in [memory, owners] {
            // SAFETY: null, or from above and unused.
            unsafe { give_memory(memory) };
        }
        return Err(ENOMEM);
    }
    // SAFETY: both are from above, of these sizes, and the rest is as the caller guarantees.
    unsafe { put(memory, owners, blocks as u64) };
    Ok(())
}

/// Number of blocks that the module was loaded with: as many as fit into the memory that outlives a reboot, if there is
/// any.
fn loaded() -> usize {
    let usual = || ffi::kutrace_shim_pool_bytes() / block::BYTES;
    reserved::range().map_or_else(usual, |range| range.pool().1)
}

/// Returns memory for this many blocks, all zero, or null: the memory that outlives a reboot if it holds exactly this
/// many, and otherwise any. An allocation is one block larger, so that this many aligned blocks fit even if its start
/// is not aligned.
fn memory_for(blocks: usize) -> *mut c_void {
    match reserved::range().map(|range| range.pool()) {
        Some((first, count)) if count == blocks => {
            // SAFETY: the range has this many blocks, and they are not the pool's, which has another size.
            unsafe { ptr::write_bytes(first, 0, count * block::BYTES) };
            first.cast()
        }
        // SAFETY: a command may sleep; null is for the caller.
        _ => unsafe { ffi::kutrace_shim_alloc((blocks + 1) * block::BYTES) },
    }
}

/// Frees memory that was allocated for blocks or owners. Memory that outlives a reboot stays.
///
/// # Safety
/// The memory is null, or was allocated for that, and is unused.
unsafe fn give_memory(memory: *mut c_void) {
    if !reserved::range().is_some_and(|range| range.has(memory as u64)) {
        // SAFETY: null, or from kutrace_shim_alloc, and as the caller guarantees.
        unsafe { ffi::kutrace_shim_free(memory) };
    }
}

/// Returns whether the pool is larger than the module was loaded with.
pub fn is_enlarged() -> bool {
    pool().owners.blocks() > loaded() as u64
}

/// Frees the pool.
///
/// # Safety
/// No hook and no device is left.
pub unsafe fn free() {
    // SAFETY: no memory, for no blocks; and nothing is left that uses the old memory.
    unsafe { put(ptr::null_mut(), ptr::null_mut(), 0) };
}

/// Replaces the pool's memory and frees the old. Where the old memory is mapped it lives on, and a mapping of memory
/// that outlives a reboot shows whatever is written there later.
///
/// # Safety
/// Both are null and `blocks` is 0, or the memory is from [`memory_for`] this many blocks, and the owners from
/// kutrace_shim_alloc, for as many. No block of the pool is in use.
unsafe fn put(memory: *mut c_void, owners: *mut c_void, blocks: u64) {
    let pool = pool();
    // SAFETY: a command may sleep, and the lock is released below.
    unsafe { ffi::kutrace_shim_lock_mapping() };
    let old_memory = pool.memory.swap(memory.cast(), Ordering::Relaxed).cast();
    let first = (memory as u64).next_multiple_of(block::BYTES as u64);
    // SAFETY: there are as many of both, as the caller guarantees.
    let old_owners = unsafe { pool.owners.put(owners.cast(), first, blocks) }.cast();
    // SAFETY: locked above.
    unsafe { ffi::kutrace_shim_unlock_mapping() };
    for memory in [old_memory, old_owners] {
        // SAFETY: null, or allocated for this, and no longer the pool's: no block is in use, and a mapping holds its
        // pages.
        unsafe { give_memory(memory) };
    }
}

/// Empties the pool.
///
/// # Safety
/// No hook that records runs, and every CPU's state is reset next.
pub unsafe fn reset(flags: u32) {
    let pool = pool();
    pool.counting.store(flags & (IPC | LLC) != 0, Ordering::Relaxed);
    pool.open.store(false, Ordering::Relaxed);
    #[cfg(kutrace_count)]
    pool.overwritten.store(0, Ordering::Relaxed);
    for block in pool.owners.every_block() {
        // SAFETY: the header is in the pool, and no hook runs, so no CPU writes into it.
        unsafe { ptr::write_bytes(block.header(), 0, 1) };
    }
    let reuse = match (flags & STREAM != 0, flags & WRAP != 0) {
        (true, _) => Reuse::Read,
        (false, true) => Reuse::AtOnce,
        (false, false) => Reuse::Never,
    };
    // SAFETY: no hook runs and every CPU forgets its own blocks next, so none is in use any more.
    unsafe { pool.owners.reset(reuse) };
}

/// Lets the CPUs record, each from its next event on.
pub fn open() {
    pool().open.store(true, Ordering::Release);
}

/// Keeps CPUs from beginning blocks.
pub fn close() {
    pool().open.store(false, Ordering::Release);
}

/// Returns the number of blocks in the pool, and of blocks taken since the reset.
pub fn usage() -> (u32, u32) {
    let owners = &pool().owners;
    (owners.blocks() as u32, owners.taken().min(u32::MAX as u64) as u32)
}

/// Returns the number of events in the blocks, and in those overwritten since the reset.
///
/// # Safety
/// No hook that records runs.
#[cfg(kutrace_count)]
pub unsafe fn events() -> (u64, u64) {
    let pool = pool();
    // SAFETY: as the caller guarantees, so nothing writes into a header.
    let recorded = pool.owners.every_block().map(|block| u64::from(unsafe { (*block.header()).events })).sum();
    (recorded, pool.overwritten.load(Ordering::Relaxed))
}

/// Returns the address of the blocks, and their size in `bytes`; for mmap, under its lock.
#[no_mangle]
pub extern "C" fn kutrace_pool(bytes: &mut u64) -> *mut c_void {
    let owners = &pool().owners;
    *bytes = owners.blocks() * block::BYTES as u64;
    owners.addresses().0 as *mut c_void
}
