// SPDX-License-Identifier: BSD-3-Clause
//! Marks, spans, counters and lines of a log of a program in the KUtrace trace of the machine it runs on.
//!
//! ```
//! let (path, id, size) = ("/index", 17, 4096);
//! let _find = kutrace::span!("find", path = path); // this thread, until the end of the block
//! kutrace::mark!("reply", status = 200, http.path = path); // a moment
//! kutrace::counter!("queued", 17); // how much something is now
//! let upload = kutrace::async_span!("upload", id, size = size); // any thread may drop it
//! kutrace::log!("disk {} full", "sda");
//! ```
//!
//! A name is a literal of up to 119 bytes. A field is an integer, a float, a `bool` or a text, what `format_args!`
//! makes included; its name is an identifier, several with dots between them, or a literal. All fields of one entry
//! have 120 bytes, of which a number takes 8 and a text one more than it is long: a text that has no room is cut, which
//! the trace shows.
//!
//! While nothing is traced each is a load and a branch, on any kernel, and neither fields nor counters are computed.
//! While something is, it goes into memory that the recorder grants each thread, without a system call. All may be used
//! in any thread and in signal handlers: they allocate nothing, take no lock and leave `errno` alone. They need no
//! privilege. A `bool` result says whether the trace has it; nothing else about the program depends on it, so it may be
//! ignored.
//!
//! What programs say that were written for the original KUtrace is in [`original`].
//!
//! Invariants: before `main`, and in [`attach`], /sys/kernel/kutrace or /dev/kutrace_programs are mapped; after that there
//! is no system call but 1023, or what is in its place, of those functions that are documented as one; a call that finds
//! the tracing off changes nothing.

#![deny(unsafe_code)]

#[cfg(not(feature = "stand-in"))]
mod sys;
#[cfg(feature = "stand-in")]
#[doc(hidden)]
#[path = "stand_in.rs"]
pub mod sys;
mod state;
pub mod original;
mod stream;
mod area;
mod fields;
mod site;
mod macros;
mod otel;
mod c;

pub use fields::Hex;
#[doc(hidden)]
pub use fields::{Fields, Typed};
pub use original::name::keep;
pub use otel::trace_id;
#[doc(hidden)]
pub use site::Site;
pub use site::{AsyncSpan, Span};
pub use state::{attach, is_on};
