// SPDX-License-Identifier: BSD-3-Clause
//! What the tools share: where input comes from, how a run ends, and what its exit status says.

#[allow(dead_code, reason = "not every tool reads spans")]
pub mod spans;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a run that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was there.
    Whole,
    /// Data was lost or damaged before or while it was read.
    Damaged,
}

/// Where the input comes from.
pub struct Input {
    /// What to call it in a message.
    pub name: String,
    /// Its bytes.
    pub read: Box<dyn Read>,
}

/// Opens a file, or standard input if there is none or it is `-`.
pub fn open(path: Option<&PathBuf>) -> anyhow::Result<Input> {
    match path.filter(|p| p.as_path() != Path::new("-")) {
        None => Ok(Input { name: "stdin".to_string(), read: Box::new(io::stdin().lock()) }),
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|e| anyhow::anyhow!("{name}: {e}"))?;
            Ok(Input { name, read: Box::new(file) })
        }
    }
}

/// Ends a run of `tool`: one line for an error, nothing for a reader that went away.
pub fn end(tool: &str, result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Whole) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(3),
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{tool}: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
