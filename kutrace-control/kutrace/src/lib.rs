// SPDX-License-Identifier: BSD-3-Clause
//! Marks, spans, counters and log lines of a program in the KUtrace trace of the machine it runs on.
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
//! A name is a literal of up to 119 bytes. A field is an integer, a float, a `bool` or a text, including the result of
//! `format_args!`; its name is an identifier, several joined by dots, or a literal. All fields of one entry share 120
//! bytes: a number takes 8, a text its length plus one. A text that does not fit is truncated, which the trace shows.
//!
//! While nothing is traced, each macro costs a load and a branch, on any kernel, and neither fields nor counters are
//! computed. During a trace, records go into memory that the recorder grants each thread, without a system call. All
//! macros may be used in any thread and in signal handlers: they allocate nothing, take no lock and leave `errno`
//! alone. They need no privilege. A `bool` result is true if the record is in the trace; nothing else about the program
//! depends on it, so it may be ignored.
//!
//! The functions of the original KUtrace library are in [`original`].
//!
//! Invariants: before `main`, and in [`attach`], /sys/kernel/kutrace or /dev/kutrace_programs are mapped; after that,
//! the only system call is 1023, or its replacement, by the functions that are documented as making one; a call while
//! tracing is off changes nothing.

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
