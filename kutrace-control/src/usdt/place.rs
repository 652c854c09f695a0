// SPDX-License-Identifier: BSD-3-Clause
//! The file of a program, by a path without links that the kernel accepts.
//!
//! A program of a container is below `/proc/PID/root`, a link that reads as `/` and leads to the root of that process.
//! Therefore it stays in the path, and links below it are followed from that root, not from ours.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

/// Maximum number of links that are followed.
const LINKS_MAX: u32 = 40;

/// The same file by a path without links.
///
/// # Errors
/// If the file does not exist.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    match split(path) {
        Some((root, rest)) => below(root, rest),
        None => fs::canonicalize(path),
    }
}

/// Splits a path below the root of a process into that root and the rest.
fn split(path: &Path) -> Option<(PathBuf, VecDeque<OsString>)> {
    let mut rest: VecDeque<OsString> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    let begins =
        |names: &[&str]| names.iter().zip(&rest).filter(|(name, part)| name.is_empty() || *name == *part).count();
    let roots = [&["/", "proc", "", "root"][..], &["/", "proc", "", "task", "", "root"]];
    let root = roots.into_iter().find(|names| begins(names) == names.len())?;
    Some((rest.drain(..root.len()).collect(), rest))
}

/// Follows the links below a root.
fn below(root: PathBuf, mut rest: VecDeque<OsString>) -> io::Result<PathBuf> {
    let (mut at, mut links) = (root.clone(), 0);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            if at != root {
                at.pop();
            }
            continue;
        }
        at.push(&part);
        if !fs::symlink_metadata(&at)?.is_symlink() {
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let target = fs::read_link(&at)?;
        if target.is_absolute() {
            at.clone_from(&root);
        } else {
            at.pop();
        }
        for part in target.components().rev() {
            match part {
                Component::Normal(_) | Component::ParentDir => rest.push_front(part.as_os_str().to_owned()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_below_the_root_of_a_process_stays_there() {
        let folder = std::env::temp_dir().join(format!("kutrace_place_{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).unwrap();
        let folder = folder.canonicalize().unwrap();
        let inside = |path: &Path| PathBuf::from(format!("/proc/self/root{}", path.display()));
        let program = folder.join("bin/program");
        fs::write(&program, "").unwrap();
        for (link, target) in [("absolute", program.as_path()), ("relative", Path::new("bin/../bin/./program"))] {
            symlink(target, folder.join(link)).unwrap();
        }
        symlink("loop", folder.join("loop")).unwrap();
        for name in ["bin/program", "absolute", "relative", "../../../../../../../../../.."] {
            let found = resolve(&inside(&folder.join(name))).unwrap();
            let expected = if name.starts_with("..") { PathBuf::from("/proc/self/root") } else { inside(&program) };
            assert_eq!(found, expected, "{name}");
        }
        let of_thread = PathBuf::from(format!("/proc/self/task/{}/root/etc", std::process::id()));
        assert_eq!(resolve(&of_thread).unwrap(), of_thread);
        assert_eq!(resolve(&folder.join("absolute")).unwrap(), program);
        assert!(resolve(&inside(&folder.join("loop"))).is_err() && resolve(&inside(&folder.join("none"))).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
