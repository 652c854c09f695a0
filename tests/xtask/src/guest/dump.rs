// SPDX-License-Identifier: BSD-3-Clause
//! The memory of a machine, written to files by QEMU, which is asked through its monitor.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use tempfile::TempDir;

/// Destination of a machine's memory, and its monitor.
pub struct Dump {
    files: Vec<PathBuf>,
    folder: TempDir,
}

impl Dump {
    /// Into these files, by a monitor that no other process knows.
    pub fn new(files: &[PathBuf]) -> Result<Self> {
        Ok(Self { files: files.to_vec(), folder: tempfile::tempdir().context("vm: dump")? })
    }

    /// The monitor's socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("qmp")
    }

    /// Writes the memory.
    pub fn write(&self) -> Result<()> {
        let mut monitor = UnixStream::connect(self.socket()).context("vm: dump: QEMU's monitor")?;
        let mut answers = BufReader::new(monitor.try_clone()?).lines();
        for request in [r#"{"execute": "qmp_capabilities", "id": "n"}"#.to_owned()].into_iter().chain(self.requests()) {
            monitor.write_all(request.as_bytes())?;
            // Events come in between, which have no id.
            match answers.find(|line| line.as_ref().map_or(true, |line| line.contains(r#""id": "n""#))) {
                Some(answer) if answer.as_ref().is_ok_and(|line| line.contains(r#""return""#)) => {}
                answer => bail!("vm: dump: {}", answer.transpose()?.unwrap_or_default()),
            }
        }
        Ok(())
    }

    fn requests(&self) -> impl Iterator<Item = String> + '_ {
        self.files.iter().map(|file| {
            let format = if file.extension().is_some_and(|end| end == "kdump") { "kdump-zlib" } else { "elf" };
            let file = escaped(file);
            format!(
                r#"{{"execute": "dump-guest-memory", "id": "n", "arguments": {{"paging": false, "protocol": "file:{file}", "format": "{format}"}}}}"#
            )
        })
    }
}

/// A path inside a text of JSON.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace('\\', r"\\").replace('"', r#"\""#)
}
