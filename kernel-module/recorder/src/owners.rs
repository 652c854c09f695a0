// SPDX-License-Identifier: GPL-2.0
//! The owner of each block of the pool: none, a CPU, or the reader of a stream. CPUs take blocks and give them back at
//! the same time, in any context, without a lock.
//!
//! Invariants: `core` only. A block is one CPU's from the exchange that takes it until it is given back. A free block
//! of a stream is in the free list, once.
//!
//! Methods that may run concurrently call `step` before each of their steps. In the kernel that does nothing; in the
//! explorer (tests/host/owners_of_blocks.rs, tests/host/recorder) other contexts come in between there.

#![deny(unsafe_op_in_unsafe_fn)]

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::abi::block::BYTES;
use crate::lane::Block;

/// The next state of a block that its CPU gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reuse {
    /// It is not used again: each block is taken once.
    Never,
    /// It is free.
    AtOnce,
    /// It is full, and free after it was read: a stream.
    Read,
}

/// Block states. A block of a stream passes through the last three, and is free while it is in the list; others are free or
/// taken.
const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Given back by its CPU, and not handed over yet.
const FULL: u32 = 2;
/// Handed to the reader.
const READ: u32 = 3;

/// The state of a block in addition to its header. All zeros is the state of a free one.
#[derive(Default)]
pub struct Owner {
    state: AtomicU32,
    /// In a free block of a stream: one more than the place of the next free one, 0 for none.
    next_free: AtomicU32,
    /// Address of the block that follows on the same CPU.
    following: AtomicU64,
}

/// The owners of all blocks. A reset and a resize change them through the same shared reference that hooks have; these
/// run while no hook that records runs, and every number that they change is loaded and stored as a whole.
pub struct Owners {
    owners: AtomicPtr<Owner>,
    /// Address of the first block.
    first: AtomicU64,
    blocks: AtomicU64,
    reuse: AtomicU32,
    taken: AtomicU64,
    /// In a stream: one more than the place of the first free block, 0 for none; in the upper half the number of times
    /// that one was taken, so that a context that was interrupted while taking a block does not mistake the head for
    /// the one it read.
    free: AtomicU64,
}

impl Owners {
    /// The owners of no blocks.
    pub const fn none() -> Owners {
        Owners {
            owners: AtomicPtr::new(ptr::null_mut()),
            first: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            reuse: AtomicU32::new(Reuse::Never as u32),
            taken: AtomicU64::new(0),
            free: AtomicU64::new(0),
        }
    }

    /// Makes these the owners of `blocks` blocks, the first of them at `first`; returns the previous ones.
    ///
    /// # Safety
    /// There are as many blocks and owners, and they stay until others replace them. No block is in use, and
    /// [`Owners::reset`] comes before any is.
    pub unsafe fn put(&self, owners: *mut Owner, first: u64, blocks: u64) -> *mut Owner {
        self.first.store(first, Ordering::Relaxed);
        self.blocks.store(blocks, Ordering::Relaxed);
        self.owners.swap(owners, Ordering::Relaxed)
    }

    /// Frees all blocks.
    ///
    /// # Safety
    /// No block that was taken before is in use, or will be.
    pub unsafe fn reset(&self, reuse: Reuse) {
        self.reuse.store(reuse as u32, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
        self.free.store(0, Ordering::Relaxed);
        for block in self.every_block() {
            // SAFETY: as the caller guarantees.
            unsafe { self.free(block, || ()) };
        }
    }

    /// Takes a free block.
    pub fn take(&self, step: impl Fn()) -> Option<Block> {
        if self.is_stream() {
            return self.take_first(step);
        }
        let (blocks, reuse) = (self.blocks(), self.is(Reuse::AtOnce));
        let exhausted = |taken| !reuse && taken >= blocks;
        // If blocks are reused, those that a CPU still has are passed over: a few for each.
        for _ in 0..blocks {
            step();
            // Checked before it is counted, so that a full pool does not count on forever.
            if exhausted(self.taken()) {
                return None;
            }
            step();
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            if exhausted(number) {
                return None;
            }
            let block = self.block(number.checked_rem(blocks)?);
            step();
            if self.owner(block).passes(FREE, TAKEN) {
                return Some(block);
            }
        }
        None
    }

    /// Takes the first free block of a stream: most are full, and searching for the few that are not would take too
    /// long.
    fn take_first(&self, step: impl Fn()) -> Option<Block> {
        step();
        let mut free = self.free.load(Ordering::Acquire);
        loop {
            let block = self.block((free as u32).checked_sub(1)?.into());
            let owner = self.owner(block);
            step();
            let next = u64::from(owner.next_free.load(Ordering::Relaxed));
            let rest = (free >> 32).wrapping_add(1) << 32 | next;
            step();
            match self.free.compare_exchange(free, rest, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    self.taken.fetch_add(1, Ordering::Relaxed);
                    return Some(block);
                }
                Err(other) => free = other,
            }
        }
    }

    /// Frees a block.
    ///
    /// # Safety
    /// The caller has the block, and does not use it any more.
    pub unsafe fn free(&self, block: Block, step: impl Fn()) {
        let owner = self.owner(block);
        step();
        owner.state.store(FREE, Ordering::Release);
        if !self.is_stream() {
            return;
        }
        step();
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            step();
            owner.next_free.store(free as u32, Ordering::Relaxed);
            let all = free >> 32 << 32 | (self.place(block) as u64 + 1);
            step();
            match self.free.compare_exchange(free, all, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => free = other,
            }
        }
    }

    /// Gives a block of a stream to its reader.
    ///
    /// # Safety
    /// See [`Owners::free`].
    pub unsafe fn fill(&self, block: Block) {
        self.owner(block).state.store(FULL, Ordering::Release);
    }

    /// Hands over the full blocks, by their places; from then on the caller has each of them.
    pub fn full(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.blocks()).filter(|&place| self.owner(self.block(place)).passes(FULL, READ)).map(|place| place as u32)
    }

    /// Takes a block back from the reader that it was handed to; `None` for any other.
    pub fn take_back(&self, place: u32) -> Option<Block> {
        let block = (u64::from(place) < self.blocks()).then(|| self.block(place.into()))?;
        self.owner(block).passes(READ, TAKEN).then_some(block)
    }

    /// Stores which block follows on the same CPU.
    ///
    /// # Safety
    /// `block` is one of these.
    pub unsafe fn set_following(&self, block: Block, following: Block) {
        self.owner(block).following.store(following.address(), Ordering::Relaxed);
    }

    /// Returns the block that follows on the same CPU.
    ///
    /// # Safety
    /// `block` is one of these, and another follows it.
    pub unsafe fn following(&self, block: Block) -> Block {
        // SAFETY: only addresses of blocks are stored there.
        unsafe { Block::new(self.owner(block).following.load(Ordering::Relaxed)) }
    }

    /// Returns whether blocks are read before they are reused.
    pub fn is_stream(&self) -> bool {
        self.is(Reuse::Read)
    }

    fn is(&self, reuse: Reuse) -> bool {
        self.reuse.load(Ordering::Relaxed) == reuse as u32
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// The number of blocks taken since the reset, including those that were passed over.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Addresses of the first block, and of the count of those taken, for a memory image.
    pub fn addresses(&self) -> (u64, u64) {
        (self.first.load(Ordering::Relaxed), self.taken.as_ptr() as u64)
    }

    /// All blocks, in the order of their places.
    pub fn every_block(&self) -> impl Iterator<Item = Block> + '_ {
        (0..self.blocks()).map(|place| self.block(place))
    }

    /// The block at a place, below [`Owners::blocks`].
    fn block(&self, place: u64) -> Block {
        // SAFETY: there are that many blocks, so this is one of them.
        unsafe { Block::new(self.first.load(Ordering::Relaxed) + place * BYTES as u64) }
    }

    /// Returns the owner of a block. INVARIANT: every [`Block`] but NO_BLOCK is one of these.
    fn owner(&self, block: Block) -> &Owner {
        // SAFETY: there are as many as blocks, and they are replaced only when no block is in use.
        unsafe { &*self.owners.load(Ordering::Relaxed).add(self.place(block)) }
    }

    fn place(&self, block: Block) -> usize {
        (block.address() - self.first.load(Ordering::Relaxed)) as usize / BYTES
    }
}

impl Owner {
    /// Moves the block from one state to another; false if it was in a third.
    fn passes(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}
