// SPDX-License-Identifier: GPL-2.0
//! Blocks in memory: one pool that all CPUs share. Who has which of them, [`crate::owners`] knows.
//!
//! Invariants: only the CPU that has a block writes into it, and from the moment that it is given back until it is free
//! again nobody; but how far a block is filled the holder of the control lock may write into its header at any time,
//! `for_now`, which nobody trusts who knows better. A free block of a stream has no magic number. The pool's memory stays
//! until a reset to another size, or until the module is unloaded, after every hook is off.

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

/// All blocks. A reset and a resize change it through the same shared reference that hooks and the device have.
pub struct Pool {
    /// What was allocated; its first multiple of a block's size is the first block.
    memory: AtomicPtr<u8>,
    /// Whose they are.
    pub owners: Owners,
    /// Whether blocks have counter bytes.
    counting: AtomicBool,
    open: AtomicBool,
    /// Events in blocks that were taken anew.
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
    /// Whether CPUs may record.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Takes a free block, in stop mode each only once.
    pub fn take(&self) -> Option<Block> {
        self.owners.take(|| ())
    }

    /// Gives a block back. Of a stream it is full, unless it never came to be part of the trace.
    ///
    /// # Safety
    /// It is one of the pool's, and no CPU uses it any more.
    pub unsafe fn give(&self, block: Block) {
        // SAFETY: as the caller says, so its header is in the pool, and nobody writes into it.
        unsafe {
            match self.owners.is_stream() && ptr::read_volatile(&raw const (*block.header()).magic) == block::MAGIC {
                true => self.owners.fill(block),
                false => self.owners.free(block, || ()),
            }
        }
    }

    /// Makes a block free that was handed over; false for any other.
    pub fn take_back(&self, place: u32) -> bool {
        let Some(block) = self.owners.take_back(place) else { return false };
        // What is left in the pool at the end is what was not read.
        // SAFETY: the header is in the pool, and the block is the caller's.
        unsafe { ptr::write_volatile(&raw mut (*block.header()).magic, 0) };
        // SAFETY: the block is the caller's, who is done with it.
        unsafe { self.owners.free(block, || ()) };
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

/// Makes the pool one of `blocks` blocks, all zero, or of the size the module was loaded with if that is 0. If there is
/// no memory for it, the caller may not have as much (E2BIG), or it has that size, it stays as it is.
///
/// # Safety
/// No hook that records runs, and none will before a reset.
pub unsafe fn resize(blocks: u32) -> Result {
    let blocks = if blocks == 0 { loaded() } else { blocks as usize }.min(BLOCKS_MAX as usize);
    if blocks as u64 == pool().owners.blocks() {
        return Ok(());
    }
    // SAFETY: a command is a task's.
    if blocks > loaded() && !unsafe { ffi::kutrace_shim_may_have(blocks * block::BYTES) } {
        return Err(E2BIG);
    }
    let memory = memory_for(blocks);
    // SAFETY: a command may sleep; null is handled below.
    let owners = unsafe { ffi::kutrace_shim_alloc(blocks * size_of::<Owner>()) };
    if memory.is_null() || owners.is_null() {
        for memory in [memory, owners] {
            // SAFETY: null, or from above and used by nobody.
            unsafe { give_memory(memory) };
        }
        return Err(ENOMEM);
    }
    // SAFETY: both are from above, of these sizes, and the rest is as the caller says.
    unsafe { put(memory, owners, blocks as u64) };
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

/// Gives memory back that was had for blocks or owners. What outlives a reboot stays.
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
    pool().owners.blocks() > loaded() as u64
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
/// Both are null and `blocks` is 0, or the memory is from [`memory_for`] this many blocks, and the owners from
/// kutrace_shim_alloc, as many. Nobody uses a block of the pool.
unsafe fn put(memory: *mut c_void, owners: *mut c_void, blocks: u64) {
    let pool = pool();
    // SAFETY: a command may sleep, and gives the lock back below.
    unsafe { ffi::kutrace_shim_lock_mapping() };
    let old_memory = pool.memory.swap(memory.cast(), Ordering::Relaxed).cast();
    let first = (memory as u64).next_multiple_of(block::BYTES as u64);
    // SAFETY: there are as many of both, as the caller says.
    let old_owners = unsafe { pool.owners.put(owners.cast(), first, blocks) }.cast();
    // SAFETY: locked above.
    unsafe { ffi::kutrace_shim_unlock_mapping() };
    for memory in [old_memory, old_owners] {
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
    // SAFETY: no hook runs and every CPU forgets its own blocks next, so nobody uses one any more.
    unsafe { pool.owners.reset(reuse) };
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
    let owners = &pool().owners;
    (owners.blocks() as u32, owners.taken().min(u32::MAX as u64) as u32)
}

/// Events in the blocks, and in those that were taken anew since the reset.
///
/// # Safety
/// No hook that records runs.
#[cfg(kutrace_count)]
pub unsafe fn events() -> (u64, u64) {
    let pool = pool();
    // SAFETY: as the caller says, so nobody writes into a header.
    let recorded = pool.owners.every_block().map(|block| u64::from(unsafe { (*block.header()).events })).sum();
    (recorded, pool.overwritten.load(Ordering::Relaxed))
}

/// The blocks, and how many bytes they are; for mmap, under its lock.
#[no_mangle]
pub extern "C" fn kutrace_pool(bytes: &mut u64) -> *mut c_void {
    let owners = &pool().owners;
    *bytes = owners.blocks() * block::BYTES as u64;
    owners.addresses().0 as *mut c_void
}
