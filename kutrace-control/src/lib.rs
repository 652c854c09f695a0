// SPDX-License-Identifier: BSD-3-Clause
//! Control of the recorder: start it, stop it, write its content to a file, and show the content of the file.
//!
//! [`arguments`] that form a [`command`], or a line of [`script`], become calls on a [`session::Session`], which drives
//! the [`device`] and, at the stop or for a snapshot, selects the blocks, gathers the names and writes the file.

#![deny(unsafe_code)]

pub mod arguments;
pub mod command;
pub mod script;
pub mod quantity;
pub mod ports;
pub mod at;
pub mod record;
pub mod background;
pub mod session;
pub mod device;
mod sys;
pub mod status;
pub mod check;
pub mod mark;
mod pool;
pub mod selection;
pub mod names;
pub mod programs;
pub mod areas;
pub mod dump;
pub mod snapshot;
pub mod reading;
pub mod usdt;
pub mod tracepoint;
pub mod tracefs;
pub mod stream;
pub mod follow;
pub mod skim;
pub mod spans;
pub mod watch;
pub mod top;
pub mod output;
pub mod merge;
pub mod recover;
pub mod show;
