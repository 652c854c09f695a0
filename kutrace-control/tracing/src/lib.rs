// SPDX-License-Identifier: BSD-3-Clause
//! What a program says by `tracing` and by `log`, in the KUtrace trace of the machine it runs on.
//!
//! ```
//! kutrace_tracing::subscriber().install()?;
//! let _request = tracing::info_span!("request", path = "/index").entered();
//! tracing::info!(status = 200, "answered");
//! # Ok::<(), tracing::subscriber::SetGlobalDefaultError>(())
//! ```
//!
//! A program that has a registry adds a [`layer`] to it instead.
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

mod subscriber;
mod spans;
mod layer;
mod logger;
mod task;
mod place;
mod packed;
mod growing;

pub use layer::{layer, Layer};
pub use logger::Logger;
pub use subscriber::{subscriber, Subscriber};
pub use task::task;
