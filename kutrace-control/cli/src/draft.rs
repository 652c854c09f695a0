// SPDX-License-Identifier: BSD-3-Clause
//! A file that is invisible to other processes before it is complete.
//!
//! Invariant: a file that is dropped before it has got its name leaves nothing.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{linkat, AtFlags, Mode, OFlags, CWD};
use tempfile::NamedTempFile;

/// Mode of the file, reduced by the umask.
const MODE: u32 = 0o666;
/// Folder in which a file without a name can be linked to a name.
const OPEN: &str = "/proc/self/fd";

/// A file that other processes cannot see yet.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    kept: Kept,
}

/// Temporary state of the file, in the folder of its final name.
#[derive(Debug)]
enum Kept {
    /// It has no name: if this process is killed, nothing is left of it.
    Nameless(File),
    /// For file systems that need a name: it has a hidden temporary one.
    Hidden(NamedTempFile),
}

impl Draft {
    /// Creates an empty file for reading and writing that will get the name `path`.
    ///
    /// # Errors
    /// If no file can be created in that folder.
    pub fn new(path: &Path) -> io::Result<Draft> {
        let directory = directory(path);
        let mode = Mode::from_raw_mode(MODE);
        let nameless = rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode);
        let kept = match nameless {
            Ok(file) if Path::new(OPEN).is_dir() => Kept::Nameless(file.into()),
            tried => Kept::Hidden(hide(directory).map_err(|other| match tried.map_err(io::Error::from) {
                // If both ways fail for the same reason, the error without the temporary name is reported.
                Err(error) if error.kind() == other.kind() => error,
                _ => other,
            })?),
        };
        Ok(Draft { path: path.to_owned(), kept })
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        match &mut self.kept {
            Kept::Nameless(file) => file,
            Kept::Hidden(file) => file.as_file_mut(),
        }
    }

    /// Gives the file its name, which no other file may have.
    ///
    /// # Errors
    /// If another file has the name, or the file system refuses.
    pub fn publish(self) -> io::Result<()> {
        match self.kept {
            Kept::Nameless(file) => link(&file, &self.path),
            Kept::Hidden(file) => Ok(file.persist_noclobber(&self.path).map(drop)?),
        }
    }

    /// Gives the file its name, in place of a file that has it.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn replace(self) -> io::Result<()> {
        match self.kept {
            // A link does not replace a file, a rename does.
            Kept::Nameless(file) => {
                let linked = hidden().make_in(directory(&self.path), |name| link(&file, name))?;
                Ok(linked.persist(&self.path).map(drop)?)
            }
            Kept::Hidden(file) => Ok(file.persist(&self.path).map(drop)?),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Folder of a file with this name.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

fn hide(directory: &Path) -> io::Result<NamedTempFile> {
    hidden().permissions(Permissions::from_mode(MODE)).tempfile_in(directory)
}

fn hidden() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ku_");
    builder
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    let place = format!("{OPEN}/{}", file.as_raw_fd());
    Ok(linkat(CWD, place, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn listing(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    /// The same file, without a name until the end and with a temporary one.
    fn drafts(path: &Path) -> [Draft; 2] {
        let hidden = Kept::Hidden(hide(directory(path)).unwrap());
        [Draft::new(path).unwrap(), Draft { path: path.to_owned(), kept: hidden }]
    }

    #[test]
    fn a_draft_has_no_name_where_the_file_system_can_do_without_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut draft = Draft::new(&folder.path().join("t.trace")).unwrap();
        draft.write_all(b"hello").unwrap();
        let hidden = matches!(draft.kept, Kept::Hidden(_));
        assert_eq!(listing(folder.path()), usize::from(hidden));
        drop(draft);
        assert_eq!(listing(folder.path()), 0);
    }

    #[test]
    fn a_hidden_draft_is_published_like_a_nameless_one() {
        for n in 0..2 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.trace");
            let next = |text: &[u8]| {
                let mut draft = drafts(&path).into_iter().nth(n).unwrap();
                draft.write_all(text).unwrap();
                draft
            };
            next(b"first").publish().unwrap();
            assert_eq!(next(b"second").publish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&path).unwrap(), b"first");
            next(b"third").replace().unwrap();
            assert_eq!((fs::read(&path).unwrap(), listing(folder.path())), (b"third".to_vec(), 1));
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_what_is_said() {
        let error = Draft::new(Path::new("/no/such/folder/t")).unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
    }
}
