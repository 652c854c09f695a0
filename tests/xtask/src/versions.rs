// SPDX-License-Identifier: BSD-3-Clause
//! Versions with which the gate last passed, in tests/versions.txt, against those of this machine and of Debian.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::place;
use crate::progress::output;

/// The compiler of Rust, which Debian has no package of here.
const RUSTC: &str = "rustc";

/// A line for each that is another here, in the order of the file.
pub fn others_here() -> Result<Vec<String>> {
    compared(|name| match name {
        RUSTC => Ok(output(Command::new(RUSTC).arg("--version"))?.split(' ').nth(1).unwrap_or_default().to_owned()),
        package => output(Command::new("dpkg-query").args(["--show", "--showformat", "${Version}", package])),
    })
}

/// A line for each that has another version in Debian, by the lists of packages that are here.
pub fn others_in_debian() -> Result<Vec<String>> {
    compared(|name| {
        let policy = output(Command::new("apt-cache").args(["policy", name]))?;
        let candidate = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        // The compiler of Rust is from elsewhere.
        Ok(candidate.filter(|_| name != RUSTC).unwrap_or_default().to_owned())
    })
}

fn compared(version: impl Fn(&str) -> Result<String>) -> Result<Vec<String>> {
    let path = place::checkout().join("tests/versions.txt");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut others = Vec::new();
    for (name, known) in text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' ')) {
        let found = version(name)?;
        if !found.is_empty() && found != known {
            others.push(format!("{name} {found}, known to pass: {known}"));
        }
    }
    Ok(others)
}
