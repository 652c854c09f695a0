// SPDX-License-Identifier: BSD-3-Clause
//! Destination of a stream: a file that grows, a ring of files, or a pipe.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kutrace_cli::say;

use crate::output::{IfExists, Output};

/// Destination of a stream.
#[derive(Debug)]
pub enum Sink {
    /// A file, and its size. Zeroes at the end of a block take no space on the disk.
    File(File, u64),
    /// Standard output, or another destination without seek.
    Pipe(io::Stdout),
}

impl Sink {
    /// Opens the destination. A file has its name from the start.
    pub fn open(output: &Output) -> Result<Sink> {
        let Output::File { path, existing } = output else { return Ok(Sink::Pipe(io::stdout())) };
        let mut options = File::options();
        match existing {
            IfExists::Keep => options.write(true).create_new(true),
            IfExists::Replace => options.write(true).create(true).truncate(true),
        };
        Ok(Sink::File(options.open(path).with_context(|| path.display().to_string())?, 0))
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Any error of the destination; the same for the functions below.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Sink::File(file, at) => {
                file.write_all_at(bytes, *at)?;
                *at += bytes.len() as u64;
                Ok(())
            }
            Sink::Pipe(out) => Ok(out.write_all(bytes)?),
        }
    }

    /// Writes a block, which is zero after its first `used` bytes.
    pub fn put_block(&mut self, block: &[u8], used: usize) -> Result<()> {
        match self {
            Sink::File(file, at) => {
                file.write_all_at(&block[..used], *at)?;
                *at += block.len() as u64;
                Ok(())
            }
            Sink::Pipe(out) => Ok(out.write_all(block)?),
        }
    }

    /// Makes everything written so far readable.
    pub fn complete(&mut self) -> Result<()> {
        match self {
            Sink::File(file, at) => Ok(file.set_len(*at)?),
            Sink::Pipe(out) => Ok(out.flush()?),
        }
    }

    /// Waits until everything written is on the disk.
    pub fn finish(mut self) -> Result<()> {
        self.complete()?;
        match self {
            Sink::File(file, _) => Ok(file.sync_all()?),
            Sink::Pipe(_) => Ok(()),
        }
    }

    /// Number of bytes written to a file.
    pub fn bytes(&self) -> u64 {
        match self {
            Sink::File(_, at) => *at,
            Sink::Pipe(_) => 0,
        }
    }
}

/// A ring of files: `t.trace` is `t.000001.trace`, `t.000002.trace` and so on.
#[derive(Debug)]
pub struct Ring {
    /// The name without number, and the rule for files that exist.
    path: PathBuf,
    existing: IfExists,
    /// Size in bytes after which another file begins.
    pub size: u64,
    /// Maximum number of files.
    keep: usize,
    number: u32,
    files: VecDeque<PathBuf>,
}

impl Ring {
    /// A ring of `keep` files of `size` bytes.
    pub fn new(path: PathBuf, existing: IfExists, size: u64, keep: usize) -> Ring {
        Ring { path, existing, size, keep, number: 0, files: VecDeque::new() }
    }

    /// The next file; the oldest is removed for it.
    pub fn next_file(&mut self) -> Output {
        while self.files.len() >= self.keep.max(1) {
            let Some(oldest) = self.files.pop_front() else { break };
            if let Err(error) = fs::remove_file(&oldest) {
                say(format_args!("{}: {error}", oldest.display()));
            }
        }
        self.number += 1;
        let path = numbered(&self.path, self.number);
        self.files.push_back(path.clone());
        Output::File { path, existing: self.existing }
    }
}

/// Name of the file with this number.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let number = format!("{number:06}");
    match path.extension() {
        Some(ending) => path.with_extension(format!("{number}.{}", ending.to_string_lossy())),
        None => path.with_extension(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_file_of_a_ring_goes_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = Ring::new(folder.path().join("t.trace"), IfExists::Keep, 100, 2);
        for _ in 0..4 {
            let mut sink = Sink::open(&ring.next_file()).unwrap();
            sink.put(b"bytes").unwrap();
            assert_eq!(sink.bytes(), 5);
            sink.finish().unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["t.000003.trace", "t.000004.trace"]);
        assert_eq!(numbered(Path::new("a.b/t"), 7), Path::new("a.b/t.000007"));
    }
}
