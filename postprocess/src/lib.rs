// SPDX-License-Identifier: BSD-3-Clause
//! From a raw trace to a page: [`raw`] bytes become [`event`] lines, events become [`span`]s, spans become [`html`];
//! beside that way, [`summary`] tells what a terminal can of the spans, [`verdict`] judges a raw trace, [`ctf`] describes the
//! raw blocks to other tools, and [`manual`] the command lines of the tools to readers and shells.
//!
//! Invariants: no I/O on files below `src/bin`; no stage fails on content, what it repaired, skipped or lost stands in
//! its report; raw counter values never appear after [`raw`].

#![forbid(unsafe_code)]

pub mod raw;
pub mod event;
pub mod span;
pub mod html;
pub mod summary;
pub mod verdict;
pub mod ctf;
pub mod manual;
