// SPDX-License-Identifier: BSD-3-Clause
//! The packages of a kernel with the hooks, made by the kernel's own rule in the tree in which it was configured, with
//! the module inside of that of the image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{deb, quietly};
use crate::man::listing;
use crate::toolchain::{Compiler, Toolchain};
use crate::{module, packages, place, progress};

/// The packages that the kernel makes and people install.
const WANTED: [&str; 2] = ["linux-image-", "linux-headers-"];

/// Builds what of the kernel in `tree` is not built yet, and leaves its packages in `out`.
pub fn build(tree: &Path, work: &Path, out: &Path) -> Result<()> {
    packages::ensure_kernel_packer()?;
    let tree = tree.canonicalize().with_context(|| format!("dist: {}", tree.display()))?;
    let (toolchain, log) = (Toolchain::ensure(Compiler::Clang)?, place::target().join("dist-kernel.log"));
    let make = || {
        // The tree's configuration decides the kernel's name.
        let mut make = toolchain.make();
        make.arg("-C").arg(&tree);
        make
    };
    progress::run("kernel: building its packages", make().arg("bindeb-pkg"), &log)?;
    let release = progress::output(make().args(["-s", "kernelrelease"])).context("dist: kernelrelease")?;
    let sources = work.join("kernel-module");
    module::copy_sources(&sources)?;
    for package in WANTED.map(|kind| format!("{kind}{release}")) {
        let made = newest(tree.parent().context("dist: the tree is the root folder")?, &format!("{package}_"))?;
        let root = work.join(&package);
        quietly(Command::new("dpkg-deb").arg("--raw-extract").arg(&made).arg(&root))?;
        if package.starts_with(WANTED[0]) {
            // One after the other: a make of several jobs would install files that are not built yet.
            for (what, rule) in [("building", "modules"), ("installing", "modules_install")] {
                let mut make = toolchain.make();
                make.arg("-C").arg(&sources).arg(format!("KDIR={}", tree.display()));
                make.arg(format!("INSTALL_MOD_PATH={}", root.display())).args(["INSTALL_MOD_STRIP=1", rule]);
                progress::run(&format!("module: {what}"), &mut make, &log)?;
            }
            deb::sum(&root)?;
        }
        let archive = out.join(made.file_name().context("a package has a name")?);
        quietly(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&root).arg(archive))?;
    }
    Ok(())
}

/// The package of a folder whose name begins so, of several the one that was made last.
fn newest(folder: &Path, start: &str) -> Result<PathBuf> {
    let mut found = listing(folder)?;
    found.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)));
    found.retain(|path| path.extension().is_some_and(|end| end == "deb"));
    let made = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    found.into_iter().max_by_key(made).with_context(|| format!("dist: {}: no {start}*.deb", folder.display()))
}
