// SPDX-License-Identifier: BSD-3-Clause
//! Sinks: what leaves the tools. Of spans a [`page`], [`mod@json`], a [`mod@profile`], a [`summary`], and as [`track`]s a
//! trace of [`perfetto`]; of a raw trace a [`verdict`], its blocks in [`ctf`], and a [`dump`].

pub mod page;
pub mod json;
pub mod profile;
pub mod summary;
pub mod verdict;
pub mod track;
pub mod perfetto;
pub mod ctf;
pub mod dump;
