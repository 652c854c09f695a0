// SPDX-License-Identifier: BSD-3-Clause
//! Inspection of a raw trace itself: a [`verdict`], its blocks in [`ctf`], and a [`dump`].

pub mod verdict;
pub mod ctf;
pub mod dump;
