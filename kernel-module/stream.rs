// SPDX-License-Identifier: GPL-2.0
//! A trace that is read while it is recorded: full blocks are handed to the holder of the recorder, and are free again
//! once the holder gives them back.
//!
//! No reader is woken for a full block, since a hook would have to do so: the reader polls. If the reader is too slow
//! no block is free, and events are lost and counted, as in a full pool; recording continues by itself as soon as a
//! block is free again.
//!
//! Invariant: one caller at a time, the one that holds the control lock.

use crate::abi::command::Blocks;
use crate::on_each_cpu::{self, Cpus, Round};
use crate::pool::pool;
use kernel::prelude::*;

/// Hands over full blocks, as many as there is room for.
pub fn hand_over() -> Blocks {
    let mut blocks = Blocks::default();
    // The place comes first in the zip: a block that `full` returns is handed over.
    for (place, index) in blocks.index.iter_mut().zip(pool().owners.full()) {
        *place = index;
        blocks.count += 1;
    }
    blocks
}

/// Takes blocks back; EINVAL if one was not handed over.
pub fn take_back(blocks: &Blocks) -> Result {
    let indices = blocks.index.get(..blocks.count as usize).ok_or(EINVAL)?;
    match indices.iter().all(|&index| pool().take_back(index)) {
        true => Ok(()),
        false => Err(EINVAL),
    }
}

/// Makes the CPUs end the blocks that have entries and began before the counter `before`; for the largest counter all
/// blocks, and EAGAIN if a CPU finds no free block for its next.
///
/// # Safety
/// The control lock is held.
pub unsafe fn flush(before: u64) -> Result {
    // SAFETY: as the caller guarantees.
    let cpus = unsafe { Cpus::hold() }?;
    let (is_all, round) = match before {
        u64::MAX => (true, on_each_cpu::rotate(&cpus)),
        before => (false, on_each_cpu::rotate_older(&cpus, before)),
    };
    match round {
        Round::Refused if is_all => Err(EAGAIN),
        // A CPU that finds no free block keeps the one it has.
        Round::All | Round::Refused => Ok(()),
        Round::Mute => Err(on_each_cpu::late()),
    }
}
