// SPDX-License-Identifier: BSD-3-Clause
//! From a raw trace to an answer: a [`source`] is opened, [`raw`] bytes become [`event`] lines, events become
//! [`span`]s, [`why`] explains requests in those, and a [`sink`] makes a page, a summary or a file of them; [`inspect`]
//! examines raw traces themselves. Between processes these travel as text, [`line`] by line, or as [`frame`]s, within a
//! process as batches; [`direct`] goes the whole way in one process. [`machine`] reads several traces as one. [`id`]
//! has types for the numbers of CPUs and threads, [`time`] for moments and durations, [`readable`] words them;
//! [`tables`] has the names that are the same on every x86 Linux, [`cgroup`] shortens paths, [`merge`] joins ordered
//! streams, [`perfetto`] has messages that are both read and written, and [`progress`] is shown to a waiting user.
//!
//! Each module uses only those before it in the list below; a test checks this.
//!
//! Invariants: no I/O on files, and no command line; no stage fails on content, and its report lists what it repaired,
//! skipped or lost; raw counter values never appear after [`raw`].

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
