// SPDX-License-Identifier: BSD-3-Clause
//! The current control groups, of version 2.
//!
//! Nothing here fails: a group that is removed while it is read is skipped.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A group: the low half of its id, which is the inode of its directory, and its path.
pub type Group = (u32, Vec<u8>);

/// All groups, if a line of `mountinfo`, which is /proc/self/mountinfo except in tests, has them mounted.
pub fn all(mountinfo: &Path) -> Vec<Group> {
    let mounts = fs::read_to_string(mountinfo).unwrap_or_default();
    let mut groups = Vec::new();
    if let Some(root) = mounts.lines().find_map(mounted) {
        below(&root, b"/", &mut groups);
    }
    groups
}

/// Mount point of a line's file system, if that has the control groups: `id parent dev ROOT PLACE ... - TYPE ...`.
fn mounted(line: &str) -> Option<PathBuf> {
    let (place, kind) = line.split_once(" - ")?;
    let mut fields = place.split(' ').skip(3);
    let (root, place) = (fields.next()?, fields.next()?);
    (kind.starts_with("cgroup2 ") && root == "/").then(|| PathBuf::from(place))
}

/// Adds a group and all groups below it.
fn below(directory: &Path, path: &[u8], groups: &mut Vec<Group>) {
    let Ok(status) = fs::metadata(directory) else { return };
    groups.push((status.ino() as u32, path.to_vec()));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let name = entry.file_name();
            let path = [path.strip_suffix(b"/").unwrap_or(path), b"/", name.as_bytes()].concat();
            below(&entry.path(), &path, groups);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_below_the_mount_is_a_group_with_its_inode() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("cgroup");
        fs::create_dir_all(root.join("a.slice/b.service")).unwrap();
        fs::write(root.join("a.slice/cgroup.procs"), "").unwrap();
        let mountinfo = folder.path().join("mountinfo");
        let line = |kind: &str, place: &Path| format!("30 1 0:26 / {} rw - {kind} x rw\n", place.display());
        fs::write(&mountinfo, line("tmpfs", folder.path()) + &line("cgroup2", &root)).unwrap();
        let mut groups = all(&mountinfo);
        groups.sort_by(|a, b| a.1.cmp(&b.1));
        let ino = |path: &str| fs::metadata(root.join(path)).unwrap().ino() as u32;
        let expected = [("", "/"), ("a.slice", "/a.slice"), ("a.slice/b.service", "/a.slice/b.service")]
            .map(|(at, path)| (ino(at), path.as_bytes().to_vec()));
        assert_eq!(groups, expected);
        fs::write(&mountinfo, line("tmpfs", folder.path())).unwrap();
        assert_eq!(all(&mountinfo), []);
    }
}
