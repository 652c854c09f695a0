// SPDX-License-Identifier: BSD-3-Clause
//! Spans and events of `tracing` and records of `log`, in the KUtrace trace of the machine the program runs on.
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
//! A span is a part of each thread that enters it, once per entry, with its fields; an event is a mark with its fields,
//! named by its target. Numbers, booleans and texts keep their types; other values become texts. All fields of one
//! entry share 120 bytes, of which a number takes 8: a text that does not fit is truncated, and fields that do not fit
//! are counted in a field `left_out`.
//!
//! A future is a [`task`] with a name and a number, which is visible where it is polled.
//!
//! While nothing is traced, each costs a load and a branch in addition to the cost of `tracing`. Nothing here makes a
//! system call, except those of the library `kutrace` to get memory.

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
