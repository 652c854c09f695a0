// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The raw trace format, version 5: one definition, compiled into the kernel module and every tool.
//!
//! [`abi`] is what module and tools share in memory; [`file`] is the file that `kutrace_control` writes around the
//! blocks, [`reading`] the kernel's own counts in the meantime. docs/format.md draws both.

#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
pub mod abi;
pub mod event;
pub mod base40;
pub mod flag;
pub mod capability;
pub mod file;
pub mod reading;
pub mod vcpu;
pub mod program;
pub mod x86;
