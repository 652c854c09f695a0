// SPDX-License-Identifier: BSD-3-Clause
//! Shared parts of the command-line programs: their [`arguments`], [`standard`] input and output, [`message`]s and
//! hints, [`progress`] at a terminal, [`draft`]s of files and [`signal`]s that wait until one is complete, the [`exit`]
//! status, and the [`manual`] pages made from these.
//!
//! Invariant: this crate does not depend on traces.

#![deny(unsafe_code)]

pub mod arguments;
pub mod standard;
pub mod message;
pub mod progress;
pub mod draft;
pub mod signal;
pub mod exit;
pub mod manual;

pub use draft::Draft;
pub use exit::{run, Exit, Status};
pub use message::{hint, say, Failure};
