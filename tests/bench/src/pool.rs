// SPDX-License-Identifier: GPL-2.0
//! The pool of blocks, in wrap mode, for one CPU: blocks are taken in turn.

use std::alloc::{alloc_zeroed, handle_alloc_error, Layout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use crate::abi::block::{BYTES, HEADER_WORDS, WORDS};
use crate::ffi;
use crate::lane::Block;
use crate::per_cpu::PerCpu;

/// All blocks.
pub struct Pool {
    first: u64,
    blocks: u64,
    taken: AtomicU64,
}

static POOL: OnceLock<Pool> = OnceLock::new();

/// The pool. [`prepare`] made it.
pub fn pool() -> &'static Pool {
    POOL.get().expect("the pool is prepared first")
}

/// Makes a pool of this many blocks, and the CPU's state.
pub fn prepare(blocks: usize) {
    let first = memory(blocks) as u64;
    POOL.get_or_init(|| Pool { first, blocks: blocks as u64, taken: AtomicU64::new(0) });
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
    /// The next block: what was in it is over.
    pub fn take(&self) -> Option<Block> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        Some(self.block(number % self.blocks))
    }

    /// Words of entries in all blocks that were taken, the last one counted as full.
    pub fn words(&self) -> usize {
        self.taken.load(Ordering::Relaxed) as usize * (WORDS - HEADER_WORDS)
    }

    pub fn is_open(&self) -> bool {
        true
    }

    pub unsafe fn clear_counters(&self, _: Block) {}

    pub unsafe fn give(&self, _: Block) {}

    pub unsafe fn set_following(&self, _: Block, _: Block) {}

    pub unsafe fn following(&self, block: Block) -> Block {
        let next = block.address() - self.first + BYTES as u64;
        self.block(next / BYTES as u64 % self.blocks)
    }

    fn block(&self, index: u64) -> Block {
        // SAFETY: the memory has room for this many blocks.
        unsafe { Block::new(self.first + index * BYTES as u64) }
    }
}
