// SPDX-License-Identifier: BSD-3-Clause
//! What a program says by `tracing` and by `log`, in the KUtrace trace of the machine it runs on.
//!
//! ```
//! use tracing_subscriber::prelude::*;
//!
//! tracing_subscriber::registry().with(kutrace_tracing::layer()).init();
//! let _request = tracing::info_span!("request", path = "/index").entered();
//! tracing::info!(status = 200, "answered");
//! ```
//!
//! A span is a part of the thread that is inside, as often as one enters it, with its fields; an event is a mark with
//! its fields, called by its target. Numbers, booleans and texts keep their types; what else there is becomes a text. All
//! fields of one entry have 120 bytes, of which a number takes 8: a text that has no room is cut, and fields that have
//! none are counted in a field `left_out`.
//!
//! A future is a [`task`] with a name and a number, which is seen where it is polled.
//!
//! While nothing is traced, each costs what `tracing` does and a load and a branch. Nothing here makes a system call, but
//! what the library `kutrace` makes to get memory.

#![forbid(unsafe_code)]

mod layer;
mod logger;
mod packed;
mod place;
mod task;

pub use layer::{layer, Layer};
pub use logger::Logger;
pub use task::task;
