// SPDX-License-Identifier: BSD-3-Clause
//! The files that processes have open, as listed by /proc, by descriptor.
//!
//! Only what has a path is listed: no sockets or pipes; and not /dev/null. Nothing here fails: a process that may not be looked
//! at, or that ends while it is, is skipped.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::tasks::numbers;

/// A descriptor of a process that is an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The process, by its first thread.
    pub process: u32,
    /// The descriptor.
    pub descriptor: u32,
    /// Path of the file, as /proc gives it.
    pub path: Vec<u8>,
}

/// Largest number of descriptors of a process that are looked at; they are listed in order, smallest first.
const DESCRIPTORS: usize = 256;

/// The open files of every process under `proc`, which is `/proc` except in tests.
pub fn open(proc: &Path) -> Vec<File> {
    let mut files = Vec::new();
    for process in numbers(proc) {
        let folder = proc.join(process.to_string()).join("fd");
        for descriptor in numbers(&folder).take(DESCRIPTORS) {
            let Ok(path) = fs::read_link(folder.join(descriptor.to_string())) else { continue };
            if path.is_absolute() && path != Path::new("/dev/null") {
                files.push(File { process, descriptor, path: path.into_os_string().into_vec() });
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_with_a_path_are_listed() {
        let proc = tempfile::tempdir().unwrap();
        let folder = proc.path().join("7/fd");
        fs::create_dir_all(&folder).unwrap();
        let targets = ["/dev/null", "socket:[123]", "pipe:[4]", "anon_inode:[eventpoll]", "/var/log/a b (deleted)"];
        for (descriptor, target) in targets.into_iter().enumerate() {
            symlink(target, folder.join(descriptor.to_string())).unwrap();
        }
        fs::create_dir_all(proc.path().join("8/fd")).unwrap();
        let path = b"/var/log/a b (deleted)".to_vec();
        assert_eq!(open(proc.path()), [File { process: 7, descriptor: 4, path }]);
    }
}
