// SPDX-License-Identifier: BSD-3-Clause
//! Places: the checkout, its target folder, the cache outside of it, and the keys and locks of the cache.
//!
//! The cache holds things that are slow to make and independent of the checkout's place (bindgen, kernels). Deleting it
//! costs time and nothing else. Several checkouts may share it: a process that changes it holds its lock.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{flock, FlockOperation};
use sha2::{Digest, Sha256};

/// The root of the checkout this program was built from.
pub fn checkout() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("the crate lives in tests/xtask").to_path_buf()
}

/// Cargo's target folder for the checkout.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => checkout().join(dir),
        None => checkout().join("target"),
    }
}

/// The cache folder, `$XDG_CACHE_HOME/kutrace`, made if absent.
pub fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(std::env::var_os("HOME").context("cache: neither XDG_CACHE_HOME nor HOME is set")?)
            .join(".cache"),
    };
    made(base.join("kutrace"))
}

/// Folder of cargo's downloads.
pub fn cargo_home() -> Result<PathBuf> {
    match std::env::var_os("CARGO_HOME") {
        Some(home) => Ok(PathBuf::from(home)),
        None => Ok(PathBuf::from(std::env::var_os("HOME").context("cargo: neither CARGO_HOME nor HOME is set")?)
            .join(".cargo")),
    }
}

/// `dir`, after making it and its parents.
pub fn made(dir: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&dir).with_context(|| format!("{}: cannot be made", dir.display()))?;
    Ok(dir)
}

/// Held while the returned file lives; waits for other runs of xtask that build into the same folder.
pub fn lock(dir: &Path) -> Result<File> {
    let path = dir.join("lock");
    let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return Ok(file);
    }
    eprintln!("{}: waiting for another xtask", dir.display());
    flock(&file, FlockOperation::LockExclusive).with_context(|| format!("{}: cannot be locked", path.display()))?;
    Ok(file)
}

/// Names a build by everything that goes into it.
#[derive(Default)]
pub struct Key(Sha256);

impl Key {
    /// Adds one input. Lengths are hashed too, so two inputs never run together.
    pub fn add(&mut self, name: &str, content: &[u8]) -> &mut Self {
        for part in [name.as_bytes(), content] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
        self
    }

    /// Adds a file under `name`.
    pub fn add_file(&mut self, name: &str, path: &Path) -> Result<&mut Self> {
        let content = fs::read(path).with_context(|| format!("{}", path.display()))?;
        Ok(self.add(name, &content))
    }

    /// Sixteen hexadecimal digits: short enough for a file name, long enough to be the only one.
    pub fn finish(self) -> String {
        self.0.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns whether `stamp` records a build of `key`.
pub fn is_stamped(stamp: &Path, key: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|found| found == key)
}

/// Records in `stamp` that `key` is built.
pub fn put_stamp(stamp: &Path, key: &str) -> Result<()> {
    fs::write(stamp, key).with_context(|| format!("{}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(inputs: &[(&str, &str)]) -> String {
        let mut key = Key::default();
        for (name, content) in inputs {
            key.add(name, content.as_bytes());
        }
        key.finish()
    }

    #[test]
    fn a_key_is_the_same_for_the_same_inputs() {
        assert_eq!(key_of(&[("a", "1"), ("b", "2")]), key_of(&[("a", "1"), ("b", "2")]));
        assert_eq!(key_of(&[]).len(), 16);
    }

    #[test]
    fn a_key_changes_with_content_name_order_and_split() {
        let base = key_of(&[("a", "1"), ("b", "2")]);
        for other in [
            key_of(&[("a", "1"), ("b", "3")]),
            key_of(&[("a", "1"), ("c", "2")]),
            key_of(&[("b", "2"), ("a", "1")]),
            key_of(&[("a", "1b"), ("", "2")]),
            key_of(&[("a", "1")]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn a_stamp_holds_for_its_key_only() {
        let dir = tempfile::tempdir().unwrap();
        let stamp = dir.path().join("stamp");
        assert!(!is_stamped(&stamp, "k1"));
        put_stamp(&stamp, "k1").unwrap();
        assert!(is_stamped(&stamp, "k1"));
        assert!(!is_stamped(&stamp, "k2"));
    }
}
