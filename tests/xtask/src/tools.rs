// SPDX-License-Identifier: BSD-3-Clause
//! Builds kutrace_control, the library for programs, and the postprocessing tools: for the guest, the host and the
//! packages, which all get the same files.
//!
//! Files do not contain the place where they were built: two checkouts make the same bytes. That takes flags of their
//! own, and so a folder of their own below `target/`, so that `cargo build --release` and this do not undo each other's
//! work.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::place;
use crate::progress::{self, tied};

/// Target of static programs; naming it keeps the flags away from build scripts, which cannot be static.
const HOST: &str = "x86_64-unknown-linux-gnu";
/// Name that a program linked with the library requests from the loader: the library's and the version of its
/// interface.
pub const SONAME: &str = "libkutrace.so.0";

/// The packages with programs.
pub const PROGRAMS: [&str; 6] =
    ["--package", "kutrace-control", "--package", "kutrace-tools", "--package", "kutrace-parquet"];

/// The folder with the release binaries and libraries, brought up to date.
pub fn ensure() -> Result<PathBuf> {
    let mut cargo = cargo("build", &folder(), "")?;
    cargo.args(["--lib", "--bins", "--examples"]);
    cargo.args(["--package", "kutrace", "--package", "kutrace-tracing"]).args(PROGRAMS);
    run("tools: building", &mut cargo)?;
    Ok(folder().join("release"))
}

/// The folder with programs that need no file of the system they run on.
pub fn ensure_static() -> Result<PathBuf> {
    let mut cargo = cargo("build", &folder(), "-Ctarget-feature=+crt-static")?;
    cargo.args(["--bins", "--target", HOST]).args(PROGRAMS);
    run("static tools: building", &mut cargo)?;
    Ok(folder().join(HOST).join("release"))
}

/// The library for programs, with its [`SONAME`].
pub fn ensure_library() -> Result<PathBuf> {
    let folder = folder().join("library");
    let mut cargo = cargo("rustc", &folder, "")?;
    cargo.args(["--package", "kutrace", "--lib", "--crate-type", "cdylib", "--"]);
    cargo.arg(format!("-Clink-arg=-Wl,-soname,{SONAME}"));
    run("library: building", &mut cargo)?;
    Ok(folder.join("release/libkutrace.so"))
}

/// Folder in which all of them are built.
pub fn folder() -> PathBuf {
    place::target().join("tools")
}

fn run(step: &str, cargo: &mut Command) -> Result<()> {
    progress::run(step, cargo, &place::made(place::target())?.join("tools.log"))
}

/// `cargo` for a release build in `target`, with one more flag for rustc unless it is empty.
fn cargo(command: &str, target: &Path, flag: &str) -> Result<Command> {
    // The last that fits counts: the target folder may be below the checkout.
    let places = [(place::cargo_home()?, "cargo"), (place::checkout(), "kutrace"), (target.to_path_buf(), "target")];
    let mut flags: Vec<String> =
        places.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect();
    flags.extend([flag].iter().filter(|flag| !flag.is_empty()).map(ToString::to_string));
    let mut cargo = tied("cargo");
    cargo.args([command, "--release", "--locked", "--target-dir"]).arg(target);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // Packages have none, and what links them is quicker without.
    cargo.envs([("CARGO_PROFILE_RELEASE_DEBUG", "false"), ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")]);
    cargo.current_dir(place::checkout());
    Ok(cargo)
}
