// SPDX-License-Identifier: BSD-3-Clause
//! Destination of a trace or a page: a file that appears complete or not at all, or standard output.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Zoned;
use kutrace_cli::signal::SignalGuard;
use kutrace_cli::{standard, Draft, Failure};

use crate::names::machine;

/// A destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file.
    File {
        /// Its name.
        path: PathBuf,
        /// Rule for an existing file of this name.
        existing: IfExists,
    },
    /// Standard output.
    Stdout,
}

/// Rule for a file that already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// Keep it, and refuse to write.
    Keep,
    /// Replace it.
    Replace,
}

impl IfExists {
    /// The rule for `--force`, given or not.
    pub fn of(force: bool) -> IfExists {
        match force {
            true => IfExists::Replace,
            false => IfExists::Keep,
        }
    }
}

impl Output {
    /// The named file, standard output for `-`, or the default name of a trace in the working directory.
    pub fn new(name: Option<PathBuf>, existing: IfExists) -> Output {
        match name {
            Some(name) if name == Path::new("-") => Output::Stdout,
            Some(path) => Output::File { path, existing },
            None => Output::File { path: default_name().into(), existing },
        }
    }

    /// Checks that the destination can be written, before its content is made.
    pub fn check(&self) -> Result<()> {
        match self {
            Output::File { path, existing } => check_file(path, *existing),
            Output::Stdout if io::stdout().is_terminal() => {
                let hint = "name a file, or pipe it: ... | rawtoevent";
                Err(Failure::new("stdout: refusing to write a trace to a terminal", hint).into())
            }
            Output::Stdout => standard::output(),
        }
    }

    /// Lets `write` write the content. A file gets its name only once it is complete and on the disk.
    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        match self {
            Output::File { .. } => self.write_file(|file| write(file)),
            Output::Stdout => {
                self.check()?;
                let mut out = io::stdout().lock();
                write(&mut out).and_then(|()| Ok(out.flush()?)).context(standard::OUTPUT)
            }
        }
    }

    /// Like [`Output::write`], for a `write` that needs a file with seek: refused for standard output.
    pub fn write_file(&self, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let Output::File { path, existing } = self else {
            return Err(Failure::new("stdout: a snapshot needs a file", "name one").into());
        };
        check_file(path, *existing)?;
        write_file(path, *existing, write).with_context(|| path.display().to_string())
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::File { path, .. } => path.display().fmt(f),
            Output::Stdout => f.write_str(standard::OUTPUT),
        }
    }
}

fn check_file(path: &Path, existing: IfExists) -> Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    let place = path.display();
    if !found.is_file() && !found.is_symlink() {
        return Err(Failure::new(format_args!("{place}: exists and is not a regular file"), "name another file").into());
    }
    if existing == IfExists::Keep {
        let hint = "name another file, or replace it: --force";
        return Err(Failure::new(format_args!("{place}: already exists"), hint).into());
    }
    Ok(())
}

fn write_file(path: &Path, existing: IfExists, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    // Otherwise a signal would leave the hidden file of some file systems behind.
    let guard = SignalGuard::new()?;
    let mut draft = Draft::new(path)?;
    write(draft.file())?;
    draft.file().sync_all()?;
    guard.check()?;
    Ok(match existing {
        IfExists::Keep => draft.publish(),
        IfExists::Replace => draft.replace(),
    }?)
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
    use std::os::unix::fs::PermissionsExt;

    fn file(path: &Path, existing: IfExists) -> Output {
        Output::new(Some(path.to_owned()), existing)
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
        file(&path, IfExists::Keep).write(hello).unwrap();
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
        let error = file(&path, IfExists::Keep).write(hello).unwrap_err();
        assert!(error.to_string().ends_with("t.trace: already exists"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file(&path, IfExists::Replace).write(hello).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        assert_eq!(listing(directory.path()), 1);
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.trace");
        let raced = file(&path, IfExists::Keep).write(|out| {
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
        let full = file(&path, IfExists::Keep).write(|out| {
            hello(out)?;
            Err(io::Error::from(io::ErrorKind::StorageFull).into())
        });
        assert!(format!("{:#}", full.unwrap_err()).contains("t.trace: "));
        assert_eq!(listing(directory.path()), 0);
    }

    #[test]
    fn a_device_is_never_replaced() {
        assert!(file(Path::new("/dev/null"), IfExists::Replace).write(hello).is_err());
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
        assert_eq!(Output::new(Some("-".into()), IfExists::Keep), Output::Stdout);
    }
}
