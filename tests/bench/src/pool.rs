// SPDX-License-Identifier: GPL-2.0
//! The pool of blocks, in wrap mode, for one CPU.

use std::alloc::{alloc_zeroed, handle_alloc_error, Layout};

use crate::abi::block::{BYTES, HEADER_WORDS, WORDS};
use crate::ffi;
use crate::lane::Block;
use crate::owners::{Owner, Owners, Reuse};
use crate::per_cpu::PerCpu;

/// All blocks.
pub struct Pool {
    pub owners: Owners,
}

static POOL: Pool = Pool { owners: Owners::none() };

/// The pool. [`prepare`] makes its blocks.
pub fn pool() -> &'static Pool {
    &POOL
}

/// Makes a pool of this many blocks, and the CPU's state.
pub fn prepare(blocks: usize) {
    let owners: Vec<Owner> = std::iter::repeat_with(Owner::default).take(blocks).collect();
    let (owners, first) = (Box::leak(owners.into_boxed_slice()).as_mut_ptr(), memory(blocks) as u64);
    // SAFETY: there are as many of both, for good, and no block is in use yet.
    unsafe {
        POOL.owners.put(owners, first, blocks as u64);
        POOL.owners.reset(Reuse::AtOnce);
    }
    let state = ffi::kutrace_cpu.0.get().cast::<PerCpu>();
    // SAFETY: the static has room for a PerCpu, and nothing is recorded yet.
    unsafe { state.write(PerCpu::new(0, state)) };
}

/// Memory for this many blocks, all of it touched, aligned to their size.
pub fn memory(blocks: usize) -> *mut u8 {
    let layout = Layout::from_size_align(blocks * BYTES, BYTES).expect("a small multiple of a block");
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: `memory` has this many bytes.
    unsafe { memory.write_bytes(1, layout.size()) };
    memory
}

impl Pool {
    /// The next block; the content of the one before is gone.
    pub fn take(&self) -> Option<Block> {
        self.owners.take(|| ())
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// The CPU uses it no more.
    pub unsafe fn give(&self, block: Block) {
        // SAFETY: as the caller guarantees.
        unsafe { self.owners.free(block, || ()) };
    }

    /// Words of entries in all blocks that were taken, the last one counted as full.
    pub fn words(&self) -> usize {
        self.owners.taken() as usize * (WORDS - HEADER_WORDS)
    }

    pub fn is_open(&self) -> bool {
        true
    }

    pub unsafe fn clear_counters(&self, _: Block) {}
}
