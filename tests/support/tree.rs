// SPDX-License-Identifier: BSD-3-Clause
//! The repository's own files, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// Generated files, at any place.
const MADE: [&str; 3] = [".git", "target", "node_modules"];

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests have a folder of their own")
}

/// All files below `folder`, in order, except those whose path ends with one of `passed_over`; none if the folder does
/// not exist.
pub fn files(folder: &Path, passed_over: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    add(folder, passed_over, &mut files);
    files.sort();
    files
}

fn add(folder: &Path, passed_over: &[&str], files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        match MADE.iter().chain(passed_over).any(|over| path.ends_with(over)) {
            true => {}
            false if path.is_dir() => add(&path, passed_over, files),
            false => files.push(path),
        }
    }
}
