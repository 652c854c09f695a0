// SPDX-License-Identifier: BSD-3-Clause
//! Marks, named spans, RPCs, locks and queues of a program in the KUtrace trace of the machine it runs on.
//!
//! ```
//! let _request = kutrace::span("request"); // until the end of the block
//! kutrace::mark_a("parsed"); // a moment
//! ```
//!
//! While nothing is traced every call is a load and a branch, on any kernel; while tracing it is a system call. What
//! records often does it without one:
//!
//! ```
//! let _request = kutrace::scope!("request");
//! kutrace::mark!("parsed");
//! kutrace::value!("queued", 17);
//! kutrace::event!("reply", status: u64 = 200, path: str = "/index");
//! kutrace::begin!("upload", 17); // any thread may end it
//! kutrace::end!("upload", 17);
//! ```
//!
//! All but [`go`], [`stop`] and [`control`] may be called in any thread and in signal handlers: they allocate
//! nothing, take no lock and leave `errno` alone. No privilege is needed but for those three.
//!
//! What is recorded, each the time of the call on the CPU that makes it: a `bool` result says whether it was, which it
//! is not while nothing is traced. Nothing else about the program depends on it, so it may be ignored.
//!
//! Invariants: before `main`, and in [`attach`], /sys/kernel/kutrace or /dev/kutrace_programs are mapped; after that there
//! is no system call but 1023, or what is in its place, of those functions that are documented as one; a call that finds
//! the tracing off changes nothing.

#![deny(unsafe_code)]

mod sys;
mod state;
mod text;
pub mod event;
mod insert;
mod name;
mod rpc;
mod stream;
mod area;
mod fields;
mod site;
mod otel;
mod control;
mod c;

pub use control::{control, go, stop};
pub use fields::Fields;
pub use insert::{addevent, addname, mark_a, mark_b, mark_c, mark_d, Named};
pub use name::{dequeue, enqueue, keep, lock_acquired, lock_released, lock_try};
pub use otel::trace_id;
pub use rpc::{rpc_end, rpc_request, rpc_response, rpc_resume, span, Span};
pub use site::{Scope, Site};
pub use state::{attach, is_on, test, version};
