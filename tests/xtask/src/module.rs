// SPDX-License-Identifier: BSD-3-Clause
//! Builds kernel modules in a copy of their sources under `target/`, so that the checkout stays clean.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::kernel::series::Series;
use crate::kernel::stock::Stock;
use crate::kernel::{Build, Kernel};
use crate::mutants::{sources, Entry};
use crate::place::{self, Key};
use crate::progress;
use crate::toolchain::Toolchain;

/// The modules to build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The recorder that people load.
    Plain,
    /// One that also counts its records, for tests.
    Counting,
    /// Modules that tests need in addition to the recorder.
    Beside,
}

impl Kind {
    /// Folder of the sources in the checkout.
    fn sources(self) -> &'static str {
        match self {
            Kind::Plain | Kind::Counting => "kernel-module",
            Kind::Beside => "tests/vm/modules",
        }
    }

    /// Arguments of `make`.
    fn words(self) -> &'static [&'static str] {
        match self {
            Kind::Plain | Kind::Beside => &[],
            Kind::Counting => &["COUNT=1"],
        }
    }

    /// The folder below `target/` for this kind, built against that kernel.
    fn folder(self, kernel: Build) -> String {
        match (kernel.series, kernel.variant.folder()) {
            (Series::USUAL, variant) => self.folder_for(variant),
            (newer, "") => self.folder_for(newer.name()),
            (newer, variant) => self.folder_for(&format!("{}-{variant}", newer.name())),
        }
    }

    /// The same against the kernel that is called so.
    fn folder_for(self, kernel: &str) -> String {
        let kind = match self {
            Kind::Plain => "",
            Kind::Counting => "count",
            Kind::Beside => "beside",
        };
        ["module", kernel, kind].iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join("-")
    }
}

/// The built recorder, made again when its sources or its kernel changed.
pub fn ensure(kernel: &Kernel, kind: Kind, toolchain: &Toolchain) -> Result<PathBuf> {
    built_in(&build(kernel, kind, toolchain)?)
}

/// The folder of the files built of `kind`.
pub fn build(kernel: &Kernel, kind: Kind, toolchain: &Toolchain) -> Result<PathBuf> {
    build_anew(kind, &kind.folder(kernel.build), kernel.key(), |target| make(kernel, kind, toolchain, target))
}

/// As [`ensure`], for a kernel of Debian's.
pub fn ensure_stock(kernel: &Stock, kind: Kind) -> Result<PathBuf> {
    built_in(&build_stock(kernel, kind)?)
}

/// As [`build`], for a kernel of Debian's.
pub fn build_stock(kernel: &Stock, kind: Kind) -> Result<PathBuf> {
    let folder = kind.folder_for(&format!("stock-{}", kernel.release));
    build_anew(kind, &folder, &kernel.release, |target| make_stock(kernel, kind, target))
}

/// As [`ensure`], with a mutant.
pub fn ensure_mutant(kernel: &Kernel, kind: Kind, toolchain: &Toolchain, mutant: &Entry) -> Result<PathBuf> {
    let folder = format!("{}-mutant", kind.folder(kernel.build));
    build_mutant(mutant, kind, &folder, kernel.key(), |target| make(kernel, kind, toolchain, target))
}

/// As [`ensure_stock`], with a mutant.
pub fn ensure_stock_mutant(kernel: &Stock, kind: Kind, mutant: &Entry) -> Result<PathBuf> {
    let folder = kind.folder_for(&format!("stock-{}-mutant", kernel.release));
    build_mutant(mutant, kind, &folder, &kernel.release, |target| make_stock(kernel, kind, target))
}

fn build_mutant(
    mutant: &Entry,
    kind: Kind,
    folder: &str,
    kernel: &str,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    built_in(&build_anew(kind, folder, &format!("{kernel} {}", mutant.name()), |target| {
        sources::plant(&target.join("build"), mutant)?;
        make(target)
    })?)
}

/// Has `make` build a copy of the sources in a folder of `target/`, unless that was done with the same inputs.
fn build_anew(kind: Kind, folder: &str, kernel: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let sources = place::checkout().join(kind.sources());
    let files = files_below(&sources)?;
    let mut key = Key::default();
    key.add("kernel", kernel.as_bytes());
    for file in &files {
        key.add_file(&file.to_string_lossy(), &sources.join(file))?;
    }
    let key = key.finish();
    let target = place::made(place::target().join(folder))?;
    let (build, stamp) = (target.join("build"), target.join("built"));
    let _lock = place::lock(&target)?;
    if !place::is_stamped(&stamp, &key) {
        place::put_stamp(&stamp, "")?;
        copy(&sources, &files, &build)?;
        make(&target)?;
        place::put_stamp(&stamp, &key)?;
    }
    Ok(build)
}

fn make(kernel: &Kernel, kind: Kind, toolchain: &Toolchain, target: &Path) -> Result<()> {
    let _lock = kernel.lock()?;
    let mut make = toolchain.make();
    make.arg(format!("KDIR={}", kernel.tree(toolchain)?.display())).args(kind.words());
    progress::run("module: building", make.current_dir(target.join("build")), &target.join("module.log"))
}

/// The sources in `to`, for kernels of Debian's, with the Rust parts compiled: building the module from them takes a C
/// compiler and headers.
pub fn ship(to: &Path) -> Result<()> {
    copy_sources(to)?;
    make_recorder(to, Kind::Plain, &place::target().join("recorder.log"))
}

/// The sources of the recorder in `to`.
pub fn copy_sources(to: &Path) -> Result<()> {
    let sources = place::checkout().join(Kind::Plain.sources());
    copy(&sources, &files_below(&sources)?, to)
}

fn make_recorder(build: &Path, kind: Kind, log: &Path) -> Result<()> {
    let core = place::made(place::cache()?.join("stock/core"))?;
    let _lock = place::lock(&core)?;
    let mut make = Toolchain::plain("make");
    make.args(["recorder", "RUSTC=/usr/bin/rustc"]).arg(format!("OUT={}", core.display())).args(kind.words());
    progress::run("module: building the recorder", make.current_dir(build), log)
}

/// As a user who installs the package: the Rust parts first, without the kernel, then the module, without Rust.
fn make_stock(kernel: &Stock, kind: Kind, target: &Path) -> Result<()> {
    let (build, log) = (target.join("build"), target.join("module.log"));
    if kind != Kind::Beside {
        make_recorder(&build, kind, &log)?;
    }
    kernel.make(&build, kind.words(), &log)
}

/// The one `.ko` of a build.
fn built_in(build: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(build).with_context(|| format!("{}", build.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let mut modules = paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "ko"));
    match (modules.next(), modules.next()) {
        (Some(module), None) => Ok(module),
        (None, _) => bail!("module: {}: the build left no .ko", build.display()),
        (Some(_), Some(_)) => bail!("module: {}: the build left more than one .ko", build.display()),
    }
}

/// Makes `build` a copy of the files.
pub fn copy(sources: &Path, files: &[PathBuf], build: &Path) -> Result<()> {
    if build.exists() {
        fs::remove_dir_all(build).with_context(|| format!("{}", build.display()))?;
    }
    for file in files {
        let to = build.join(file);
        place::made(to.parent().context("a copy is in a folder")?.to_path_buf())?;
        fs::copy(sources.join(file), &to).with_context(|| format!("module: {}", to.display()))?;
    }
    Ok(())
}

/// The files below `dir` that git has or would take, relative to it: no build's leavings.
pub fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = progress::output(&mut git).with_context(|| format!("module: {}", dir.display()))?;
    let mut files: Vec<PathBuf> = listed.split_terminator('\0').map(PathBuf::from).collect();
    files.retain(|file| dir.join(file).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_holds_every_file_and_nothing_old() {
        let dir = tempfile::tempdir().unwrap();
        let (sources, build) = (dir.path().join("from"), dir.path().join("to"));
        for name in ["Kbuild", "format/src/word.rs"] {
            place::made(sources.join(name).parent().unwrap().to_path_buf()).unwrap();
            fs::write(sources.join(name), name).unwrap();
        }
        place::made(build.clone()).unwrap();
        fs::write(build.join("stale.o"), "").unwrap();

        copy(&sources, &["Kbuild".into(), "format/src/word.rs".into()], &build).unwrap();
        assert_eq!(fs::read(build.join("format/src/word.rs")).unwrap(), b"format/src/word.rs");
        assert!(build.join("Kbuild").exists() && !build.join("stale.o").exists());
    }
}
