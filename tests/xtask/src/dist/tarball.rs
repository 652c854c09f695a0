// SPDX-License-Identifier: BSD-3-Clause
//! The tools as programs that need no file of the system they run on, with their manuals.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{deb, quietly, Sources};
use crate::{man, place, tools};

/// Packs everything below a folder of the tarball's own name.
pub fn build(sources: &Sources, date: &str, work: &Path, out: &Path) -> Result<()> {
    let name = concat!("kutrace-tools-", env!("CARGO_PKG_VERSION"), "-x86_64-linux");
    let root = place::made(work.join(name))?;
    let built = tools::ensure_static()?;
    let bin = place::made(root.join("bin"))?;
    for tool in man::names()? {
        let to = bin.join(&tool);
        fs::copy(built.join(&tool), &to).with_context(|| format!("dist: {}", tool.to_string_lossy()))?;
        deb::strip(&to, true)?;
    }
    for from in [place::checkout().join("LICENSE-BSD3"), sources.path("made/third-party")] {
        fs::copy(&from, root.join(from.file_name().unwrap_or_default())).with_context(|| from.display().to_string())?;
    }
    deb::copy(&sources.share, &root.join("share"))?;
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", "--format=gnu"]);
    tar.arg(format!("--mtime=@{date}")).arg("--directory").arg(work);
    tar.args(["--use-compress-program=xz --threads=1 -6", "--create", "--file"]);
    quietly(tar.arg(out.join(format!("{name}.tar.xz"))).arg(name))
}
