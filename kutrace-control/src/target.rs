// SPDX-License-Identifier: BSD-3-Clause
//! Where the trace goes: a file that appears whole or not at all, or standard output.

use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Zoned;

use crate::names::machine;
use crate::report::Failure;

/// A place for the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file.
    File {
        /// Its name.
        path: PathBuf,
        /// What is done with a file of this name.
        existing: Existing,
    },
    /// Standard output.
    Stdout,
}

/// What is done with a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and the trace refused.
    Keep,
    /// It is replaced.
    Replace,
}

const KEPT: &str = "the trace stays in the recorder: try again with another FILE";

impl Target {
    /// The named file, standard output for `-`, or the default name in the working directory.
    pub fn new(name: Option<PathBuf>, existing: Existing) -> Target {
        match name {
            Some(name) if name == Path::new("-") => Target::Stdout,
            Some(path) => Target::File { path, existing },
            None => Target::File { path: default_name().into(), existing },
        }
    }

    /// Whether a trace may be written here; asked before one is put together.
    pub fn check(&self) -> Result<()> {
        match self {
            Target::File { path, existing } => check_file(path, *existing),
            Target::Stdout if io::stdout().is_terminal() => {
                let hint = "name a file, or send it on: kutrace_control stop - | rawtoevent";
                Err(Failure::new("standard output: a trace is not for a terminal", hint).into())
            }
            Target::Stdout => Ok(()),
        }
    }

    /// Lets `write` write it. A file has its name only once it is complete and on the disk.
    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        match self {
            Target::File { .. } => self.write_file(|file| write(file)),
            Target::Stdout => {
                self.check()?;
                let mut out = io::stdout().lock();
                write(&mut out)?;
                out.flush().context("standard output")
            }
        }
    }

    /// As [`Target::write`], where `write` needs a file to move about in: refused for standard output.
    pub fn write_file(&self, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let Target::File { path, existing } = self else {
            return Err(Failure::new("standard output: a snapshot needs a file", "name one").into());
        };
        check_file(path, *existing)?;
        write_file(path, *existing, write).map_err(|error| {
            let place = path.display();
            Failure::new(format_args!("{place}: {error:#}"), KEPT).into()
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File { path, .. } => path.display().fmt(f),
            Target::Stdout => f.write_str("standard output"),
        }
    }
}

fn check_file(path: &Path, existing: Existing) -> Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    let place = path.display();
    if !found.is_file() && !found.is_symlink() {
        return Err(Failure::new(format_args!("{place}: is there and no regular file"), KEPT).into());
    }
    if existing == Existing::Keep {
        let hint = "the trace stays in the recorder: try again with another FILE, or with --force";
        return Err(Failure::new(format_args!("{place}: is there already"), hint).into());
    }
    Ok(())
}

fn write_file(path: &Path, existing: Existing, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(".ku_").permissions(Permissions::from_mode(0o666)).tempfile_in(directory)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    match existing {
        Existing::Keep => file.persist_noclobber(path)?,
        Existing::Replace => file.persist(path)?,
    };
    Ok(())
}

/// `ku_YYYYMMDD_HHMMSS_host_pid.trace`, in local time.
fn default_name() -> String {
    let host = machine::host().replace(|c: char| !c.is_ascii_alphanumeric() && !"-._".contains(c), "-");
    format!("ku_{}_{host}_{}.trace", Zoned::now().strftime("%Y%m%d_%H%M%S"), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn file(path: &Path, existing: Existing) -> Target {
        Target::new(Some(path.to_owned()), existing)
    }

    fn hello(out: &mut dyn Write) -> Result<()> {
        Ok(out.write_all(b"hello")?)
    }

    fn listing(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_new_file_is_readable_as_the_umask_says() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("t.trace"), directory.path().join("other"));
        file(&path, Existing::Keep).write(hello).unwrap();
        fs::write(&other, "").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    #[test]
    fn an_existing_file_is_kept_unless_replacing_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.trace");
        fs::write(&path, "old").unwrap();
        let error = file(&path, Existing::Keep).write(hello).unwrap_err();
        assert!(error.to_string().ends_with("t.trace: is there already"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file(&path, Existing::Replace).write(hello).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        assert_eq!(listing(directory.path()), 1);
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.trace");
        let raced = file(&path, Existing::Keep).write(|out| {
            fs::write(&path, "other")?;
            hello(out)
        });
        assert!(raced.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"other");
        assert_eq!(listing(directory.path()), 1);
    }

    #[test]
    fn a_write_that_fails_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.trace");
        let full = file(&path, Existing::Keep).write(|out| {
            hello(out)?;
            Err(io::Error::from(io::ErrorKind::StorageFull).into())
        });
        assert!(full.unwrap_err().to_string().contains("t.trace: "));
        assert_eq!(listing(directory.path()), 0);
    }

    #[test]
    fn a_device_is_never_replaced() {
        assert!(file(Path::new("/dev/null"), Existing::Replace).write(hello).is_err());
    }

    #[test]
    fn the_default_name_tells_when_where_and_which_process() {
        let name = default_name();
        let fields: Vec<&str> = name.splitn(4, '_').collect();
        assert_eq!((fields[0], fields[1].len(), fields[2].len()), ("ku", 8, 6));
        assert!(fields[3].ends_with(&format!("_{}.trace", std::process::id())));
    }

    #[test]
    fn a_dash_is_standard_output() {
        assert_eq!(Target::new(Some("-".into()), Existing::Keep), Target::Stdout);
    }
}
