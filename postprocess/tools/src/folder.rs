// SPDX-License-Identifier: BSD-3-Clause
//! A trace of CTF: a folder with metadata and a file for each CPU; and the arguments that name it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use clap::{Args, Parser};

/// Input, and the folder that is made of it.
#[derive(Args, Clone, Debug)]
pub struct Paths {
    /// The input (standard input to its end if absent or `-`), and the folder
    #[arg(required = true, num_args = 1..=2, value_names = ["FILE", "DIR"])]
    paths: Vec<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
}

impl Paths {
    /// Returns the file, if one is named, and the folder; ends the tool if two files are named.
    pub fn split<A: Parser>(&self) -> Result<(Option<&PathBuf>, &Path)> {
        let (dir, file) = self.paths.split_last().context("no folder is given")?;
        if self.input.is_some() && !file.is_empty() {
            crate::usage::<A>("--input already names FILE: expected only DIR");
        }
        Ok((self.input.as_ref().or(file.first()), dir))
    }
}

/// Name of the file that describes the layout of the others.
pub const METADATA: &str = "metadata";

/// Returns the name of a CPU's file.
pub fn of_cpu(cpu: impl std::fmt::Display) -> String {
    format!("cpu_{cpu}")
}

/// Creates a folder and fills it, with `force` in place of one that an earlier run created. A folder that cannot be
/// filled is removed.
///
/// # Errors
/// If the folder already exists, with `force` if it holds anything else, or the error of `fill`.
pub fn fill<T>(dir: &Path, force: bool, fill: impl FnOnce() -> Result<T>) -> Result<T> {
    if force {
        remove(dir)?;
    }
    fs::create_dir(dir).with_context(|| dir.display().to_string())?;
    fill().inspect_err(|_| {
        // A partial folder is not a trace, and would be in the way of the next run.
        let _ = fs::remove_dir_all(dir);
    })
}

/// Removes a folder of ours; one that holds anything else stays.
fn remove(dir: &Path) -> Result<()> {
    let context = || dir.display().to_string();
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    let names: Vec<_> = entries.map(|e| e.map(|e| e.file_name())).collect::<io::Result<_>>().with_context(context)?;
    let ours = |name: &std::ffi::OsString| name == METADATA || name.to_string_lossy().starts_with("cpu_");
    ensure!(names.iter().all(ours), "{}: has files that this tool does not write; not replaced", dir.display());
    fs::remove_dir_all(dir).with_context(context)
}
