// SPDX-License-Identifier: GPL-2.0
//! The recorder: turns events into words in a block, whatever the CPU, the kernel and the memory. The path of an event
//! is [`entry`] -> [`claim`] -> [`lane`], that of a system call [`entry`] -> [`call`] -> [`lane`].
//!
//! The module compiles these files as its own; the explorer (tests/host/recorder) and the bench use the crate.

#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

use kutrace_format::abi;

pub mod entry;
pub mod claim;
pub mod call;
pub mod lane;
pub mod owners;
pub mod budget;
