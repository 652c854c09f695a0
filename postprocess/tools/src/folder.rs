// SPDX-License-Identifier: BSD-3-Clause
//! A trace of CTF, which is a folder: how a tool is told of it, and what is in it: a file for each CPU, and metadata.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use clap::{Args, Parser};

/// What is read, and the folder that is made of it.
#[derive(Args, Clone, Debug)]
pub struct Paths {
    /// The input (standard input, to its end, if absent or `-`), and the folder
    #[arg(required = true, num_args = 1..=2, value_names = ["FILE", "DIR"])]
    paths: Vec<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
}

impl Paths {
    /// The file, if one is named, and the folder; ends the tool if two files are named.
    pub fn split<A: Parser>(&self) -> Result<(Option<&PathBuf>, &Path)> {
        let (dir, file) = self.paths.split_last().context("no folder")?;
        if self.input.is_some() && !file.is_empty() {
            crate::usage::<A>("--input names FILE already; only DIR follows");
        }
        Ok((self.input.as_ref().or(file.first()), dir))
    }
}

/// The file that says how to read the others.
pub const METADATA: &str = "metadata";

/// The name of a CPU's file.
pub fn of_cpu(cpu: impl std::fmt::Display) -> String {
    format!("cpu_{cpu}")
}

/// Makes a folder and fills it; with `force`, in place of one that was made so before. What cannot be filled goes.
///
/// # Errors
/// If there is one already, or one with anything else in it, or the error of `fill`.
pub fn fill<T>(dir: &Path, force: bool, fill: impl FnOnce() -> Result<T>) -> Result<T> {
    if force {
        remove(dir)?;
    }
    fs::create_dir(dir).with_context(|| dir.display().to_string())?;
    fill().inspect_err(|_| {
        // What is there is no trace, and would be in the way of the next.
        let _ = fs::remove_dir_all(dir);
    })
}

/// Removes a folder of ours; one that has anything else in it stays.
fn remove(dir: &Path) -> Result<()> {
    let context = || dir.display().to_string();
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    let names: Vec<_> = entries.map(|e| e.map(|e| e.file_name())).collect::<io::Result<_>>().with_context(context)?;
    let ours = |name: &std::ffi::OsString| name == METADATA || name.to_string_lossy().starts_with("cpu_");
    ensure!(names.iter().all(ours), "{}: holds more than this tool writes; not replaced", dir.display());
    fs::remove_dir_all(dir).with_context(context)
}
