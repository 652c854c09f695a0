// SPDX-License-Identifier: BSD-3-Clause
//! Spans as tables of Parquet, for DuckDB, pandas and Spark, and back: [`schema`] says which tables there are, [`kind`]
//! which rows are in which, [`write`](mod@write) makes a data set with the help of [`mod@file`], [`requests`] the tables of requests and causes, [`read`](mod@read) makes spans of it.
//!
//! A crate of its own, since the one that it is built on takes more than a minute to build: the stages from a raw trace
//! to a page do without.

#![forbid(unsafe_code)]

pub mod schema;
pub mod kind;
pub mod file;
pub mod requests;
pub mod write;
pub mod read;
