// SPDX-License-Identifier: BSD-3-Clause
//! Builds kutrace_control, the library for programs, and the postprocessing tools, for the guest as for the host.

use std::path::PathBuf;

use anyhow::Result;

use crate::place;
use crate::progress::{self, tied};

/// The folder with the release binaries and libraries, brought up to date.
pub fn ensure() -> Result<PathBuf> {
    let mut cargo = tied("cargo");
    cargo.args(["build", "--release", "--locked", "--lib", "--bins", "--examples"]);
    cargo.args(["--package", "kutrace-control", "--package", "kutrace", "--package", "kutrace-tools"]);
    cargo.current_dir(place::checkout());
    let target = place::made(place::target())?;
    progress::run("tools: building", &mut cargo, &target.join("tools.log"))?;
    Ok(target.join("release"))
}
