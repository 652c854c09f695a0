// SPDX-License-Identifier: BSD-3-Clause
//! The series of patches: one for each supported version of Linux, in a folder of `patches/` of that name.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

use crate::place;

/// A series, and the source that it is for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Series {
    /// Linux 6.12, which Debian 12 has.
    #[value(name = "v6.12")]
    V6_12,
    /// The newest Linux that Debian has.
    #[value(name = "v7.x")]
    V7,
}

impl Series {
    /// The one of the demo, and of the tests that name none.
    pub const USUAL: Series = Series::V6_12;
    /// All of them.
    pub const ALL: [Series; 2] = [Series::V6_12, Series::V7];

    /// Its folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Series::V6_12 => "v6.12",
            Series::V7 => "v7.x",
        }
    }

    /// The version of Linux.
    pub fn linux(self) -> &'static str {
        match self {
            Series::V6_12 => "6.12",
            Series::V7 => "7.3",
        }
    }

    /// The folder with its patches.
    pub fn patches(self) -> PathBuf {
        place::checkout().join("patches").join(self.name())
    }

    /// The folder of the cache with the work trees of its kernels.
    pub fn home(self) -> Result<PathBuf> {
        match self {
            Series::USUAL => place::cache(),
            newer => place::made(place::cache()?.join(newer.name())),
        }
    }
}
