// SPDX-License-Identifier: BSD-3-Clause
//! Spans as tables of Parquet, for DuckDB, pandas and Spark, and back. [`schema`] defines the tables, [`kind`] assigns
//! rows to them, and [`write`](mod@write) makes a data set of [`rows`] with the help of [`mod@file`] and [`words`].
//! [`durations`] is the table of how long everything took, [`cpus`] that of CPUs, [`requests`] has those of requests
//! and causes. [`read`](mod@read) restores spans from a data set. [`systing`] reads tables that another program
//! recorded.
//!
//! This is a crate of its own because the `parquet` crate takes more than a minute to build; the stages from a raw
//! trace to a page do not need it.

#![forbid(unsafe_code)]

pub mod schema;
pub mod kind;
pub mod words;
pub mod file;
pub mod rows;
pub mod durations;
pub mod cpus;
pub mod requests;
pub mod write;
pub mod read;
pub mod systing;
