// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask dist`: Debian packages, a tarball of static tools for any Linux, and their checksums, in `target/dist`.
//!
//! The content of a package is listed in `tests/xtask/debian`, as Debian keeps it: control, changelog and copyright for
//! all, a list of files and scripts for each. The same sources make the same bytes, wherever and whenever they are
//! built.

mod deb;
mod kernel;
mod licences;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::{man, module, packages, place, progress, tools};

/// The packages, by the names that `debian/control` has.
const PACKAGES: &[&str] = &["kutrace", "kutrace-dkms", "libkutrace0", "libkutrace-dev"];

/// Origin of a package's files, by the first word of their path in a list; others are in the checkout.
struct Sources {
    /// `tools/`: what cargo built.
    tools: PathBuf,
    /// `share/`: manuals and completions.
    share: PathBuf,
    /// `made/`: files made for packages only.
    made: PathBuf,
}

impl Sources {
    /// The file or pattern that a list names.
    fn path(&self, named: &str) -> PathBuf {
        match named.split_once('/') {
            Some(("tools", rest)) => self.tools.join(rest),
            Some(("share", rest)) => self.share.join(rest),
            Some(("made", rest)) => self.made.join(rest),
            _ => place::checkout().join(named),
        }
    }
}

#[derive(Args)]
pub struct DistArgs {
    /// Leave the tarball out, for which all tools are built once more
    #[arg(long)]
    packages_only: bool,
    /// Also the packages of the kernel in TREE, patched and configured: they are built, with the module in that of the image
    #[arg(long, value_name = "TREE")]
    kernel: Option<PathBuf>,
    /// Folder for them, which is emptied first
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    out: PathBuf,
}

/// Makes everything again; returns the folder.
pub fn run(args: &DistArgs) -> Result<PathBuf> {
    packages::ensure_packer()?;
    let share = man::run()?;
    let out = emptied(&args.out)?;
    let work = tempfile::tempdir().context("dist")?;
    let work = work.path();
    let sources = Sources { tools: tools::ensure()?, share, made: place::made(work.join("made"))? };
    let date = date()?;
    make(&sources.made)?;
    for package in PACKAGES {
        deb::build(package, &sources, &date, work, &out)?;
    }
    if let Some(tree) = &args.kernel {
        kernel::build(tree, work, &out)?;
    }
    if !args.packages_only {
        tarball::build(&sources, &date, work, &out)?;
    }
    let names = man::listing(&out)?;
    let names = names.iter().filter_map(|path| path.file_name());
    let sums = progress::output(Command::new("sha256sum").args(names).current_dir(&out)).context("dist")?;
    write(&out.join("SHA256SUMS"), format!("{sums}\n").as_bytes())?;
    Ok(out)
}

/// Files that only packages need.
fn make(made: &Path) -> Result<()> {
    write(&made.join("third-party"), licences::text()?.as_bytes())?;
    let sources = made.join(concat!("kutrace-", env!("CARGO_PKG_VERSION")));
    module::ship(&sources)?;
    let settings = sources.join("dkms.conf");
    write(&settings, versioned(&settings)?.as_bytes())?;
    let library = tools::ensure_library()?;
    fs::copy(&library, made.join(tools::SONAME)).with_context(|| library.display().to_string())?;
    for (name, to) in
        [("kutrace.pc", "kutrace.pc"), ("kutrace-dkms.module", "build-module"), ("kutrace-dkms.hook", "kutrace")]
    {
        write(&made.join(to), template(name)?.as_bytes())?;
    }
    Ok(())
}

/// Folder of the packages' descriptions.
fn folder() -> PathBuf {
    place::checkout().join("tests/xtask/debian")
}

/// A file of [`folder`], with the version in it.
fn template(name: &str) -> Result<String> {
    versioned(&folder().join(name))
}

fn versioned(path: &Path) -> Result<String> {
    Ok(read(path)?.replace("@VERSION@", env!("CARGO_PKG_VERSION")))
}

/// The seconds since 1970 that files in packages bear: `SOURCE_DATE_EPOCH`, or else the date of the changelog.
fn date() -> Result<String> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(date) => Ok(date),
        Err(_) => changelog("Timestamp"),
    }
}

/// A field of the newest entry of the changelog.
fn changelog(field: &str) -> Result<String> {
    let mut parse = Command::new("dpkg-parsechangelog");
    progress::output(parse.args(["--show-field", field, "--file"]).arg(folder().join("changelog"))).context("dist")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("dist: {}", path.display()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("dist: {}", path.display()))
}

/// `dir`, with nothing in it; its whole path.
fn emptied(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("dist: {}", dir.display()))?;
    }
    let dir = place::made(dir.to_path_buf())?;
    dir.canonicalize().with_context(|| format!("dist: {}", dir.display()))
}

/// Runs a program to its end without showing its output, unless it fails.
fn quietly(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().with_context(|| format!("dist: {name}: cannot be started"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    anyhow::ensure!(done.status.success(), "dist: {name}: {}: {}", done.status, said.trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changelog_and_the_module_for_python_are_of_this_version() {
        assert!(read(&folder().join("changelog")).unwrap().starts_with(concat!(
            "kutrace (",
            env!("CARGO_PKG_VERSION"),
            ") "
        )));
        let python = read(&place::checkout().join("kutrace-control/kutrace/python/pyproject.toml")).unwrap();
        assert!(python.contains(concat!("\nversion = \"", env!("CARGO_PKG_VERSION"), "\"\n")));
    }

    #[test]
    fn the_package_of_tools_has_all_of_them() {
        let list = read(&folder().join("kutrace.install")).unwrap();
        let packed: Vec<_> = list.lines().filter_map(|line| line.strip_prefix("tools/")?.split(' ').next()).collect();
        let mut tools = man::names().unwrap();
        tools.sort_by_key(|name| (name != "kutrace_control", name.clone()));
        assert_eq!(packed, tools);
    }

    #[test]
    fn every_package_is_described_and_no_other() {
        let control = read(&folder().join("control")).unwrap();
        let described: Vec<_> = control.lines().filter_map(|line| line.strip_prefix("Package: ")).collect();
        assert_eq!(described, PACKAGES);
    }
}
