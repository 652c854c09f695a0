// SPDX-License-Identifier: BSD-3-Clause
//! A second opinion on spans, `check.py`: it reads event lines by itself and compares the spans with them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use postprocess::direct::summary_of_raw;
use postprocess::sink::summary::By;
use postprocess::span::build;
use postprocess::{sink, source};

use crate::reader::{self, python};

/// The three texts of a trace that [`Texts::check`] holds against each other.
#[derive(Clone, Debug)]
pub struct Texts {
    /// Event lines.
    pub events: String,
    /// Spans, as JSON.
    pub spans: String,
    /// Output of `summary`, with every line of its tables.
    pub summary: String,
}

impl Texts {
    /// Those of a raw file.
    pub fn of(bytes: &[u8]) -> Texts {
        let lines = reader::lines(bytes);
        let (spans, _) = build(source::events::read(&mut &lines[..]).expect("event lines"));
        let mut text = Vec::new();
        sink::json::write(&spans, &mut text).expect("memory");
        Texts {
            events: String::from_utf8_lossy(&lines).into_owned(),
            spans: String::from_utf8_lossy(&text).into_owned(),
            summary: summary_of_raw(bytes, 0).expect("a raw file").text(usize::MAX, By::Program),
        }
    }

    /// Runs `check.py`, by way of files in `folder`; returns the faults that it found, if any.
    pub fn check(&self, folder: &Path) -> Result<(), String> {
        self.write(folder).map_err(|e| e.to_string())?;
        folders(&[folder.to_owned()])
    }

    /// Writes them into a folder.
    ///
    /// # Errors
    /// Whatever error the file system returns.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let texts = [("events", &self.events), ("spans", &self.spans), ("summary", &self.summary)];
        texts.into_iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }
}

/// Runs `check.py` on recordings that are parts of another, whose event lines these are.
pub fn parts(whole: &Path, folders: &[PathBuf]) -> Result<(), String> {
    let arguments = [Path::new("--part-of"), whole].into_iter().chain(folders.iter().map(PathBuf::as_path));
    python("check.py", &arguments.collect::<Vec<_>>(), &[])
}

/// Runs `check.py` on the texts in each of these folders; returns the faults that it found, if any.
pub fn folders(folders: &[PathBuf]) -> Result<(), String> {
    python("check.py", &folders.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &[])
}
