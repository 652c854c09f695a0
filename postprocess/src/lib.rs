// SPDX-License-Identifier: BSD-3-Clause
//! From a raw trace to an answer: a [`source`] is opened, [`raw`] bytes become [`event`] lines, events become [`span`]s,
//! [`why`] explains requests among those, and a [`sink`] makes a page, a summary or a file of them; [`inspect`] looks at
//! raw traces themselves. Between processes they travel
//! as text, [`line`] by line, or as [`frame`]s, within one as batches; [`direct`] goes the whole way in one process.
//! [`machine`]s are several traces as one. [`id`]s tell CPUs and threads from other numbers, [`time`]s moments and durations,
//! [`readable`] words both; [`tables`] has the names that are the same on every x86 Linux, [`cgroup`] shortens paths, [`merge`] joins ordered
//! streams, [`perfetto`] has messages that are both read and written, and [`progress`] is what a waiting user sees.
//!
//! Each module uses only those before it in the list below; a test holds this.
//!
//! Invariants: no I/O on files, and no command line; no stage fails on content, what it repaired, skipped or lost
//! stands in its report; raw counter values never appear after [`raw`].

#![forbid(unsafe_code)]

pub mod tables;
pub mod progress;
pub mod line;
pub mod id;
pub mod time;
pub mod readable;
pub mod cgroup;
pub mod event;
pub mod frame;
pub mod perfetto;
pub mod merge;
pub mod raw;
pub mod machine;
pub mod span;
pub mod source;
pub mod inspect;
pub mod why;
pub mod sink;
pub mod direct;
