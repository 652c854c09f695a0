// SPDX-License-Identifier: BSD-3-Clause
//! A source that this machine's Debian does not have: the package of the next one, once in the cache.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::apt::Apt;
use super::files_in;
use crate::place;
use crate::progress::{self, tied};

/// A package with a source, unpacked.
pub struct Fetched {
    /// The package's version.
    pub version: String,
    /// Folder of its files.
    pub root: PathBuf,
}

impl Fetched {
    /// The source of a kernel, as it is in the package of this name.
    pub fn tarball(&self, package: &str) -> PathBuf {
        self.root.join(format!("usr/src/{package}.tar.xz"))
    }
}

/// The package of this name, downloaded if it is not in the cache. A cached one stays, even when Debian has a newer
/// one.
pub fn ensure(package: &str) -> Result<Fetched> {
    let home = place::made(place::cache()?.join("sources"))?;
    let _lock = place::lock(&home)?;
    let root = home.join(package);
    if !root.exists() {
        let partial = home.join("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial).context("source: partial")?;
        }
        place::made(partial.clone())?;
        let (log, apt) = (home.join("fetch.log"), Apt::next(&home)?);
        apt.update(&log)?;
        let step = format!("source: downloading {package}");
        apt.download(&[package.to_owned()], &partial, &step, &log)?;
        let file = files_in(&partial, ".deb")?.pop().with_context(|| format!("source: {package}: nothing came"))?;
        let mut unpack = tied("dpkg");
        progress::run("source: unpacking the package", unpack.arg("-x").arg(&file).arg(&partial), &log)?;
        let version = progress::output(tied("dpkg-deb").arg("--field").arg(&file).arg("Version"))?;
        fs::write(partial.join("version"), version.trim()).context("source: version")?;
        fs::remove_file(&file).with_context(|| file.display().to_string())?;
        // Renamed into place: files that are there are complete.
        fs::rename(&partial, &root).with_context(|| root.display().to_string())?;
    }
    let version = fs::read_to_string(root.join("version")).with_context(|| format!("source: {package}: version"))?;
    Ok(Fetched { version, root })
}
