// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Definitions that the kernel module and the user-space tools share: words, events, blocks, commands.
//!
//! Invariant: `core` only, no dependency, no unsafe; the module includes this folder by one `#[path]` line.

pub mod word;
#[macro_use]
mod table;
pub mod event;
pub mod block;
pub mod counter;
pub mod command;
pub mod packet;
pub mod guest;
pub mod user;
pub mod programs;
pub mod landmark;
