// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's source in the cache: Debian's tarball as one git commit, and the series on top of it.
//!
//! A series is first applied to an index of its own, which makes a commit without touching a file; the work tree is
//! then moved to that commit, and git writes only the files that differ from the existing ones. So a changed series
//! recompiles only its changes, however long it is, and `git apply` takes no patch with fuzz.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::fetched;
use super::series::Series;
use crate::place;
use crate::progress::{self, tied};

/// The tag of the commit that holds the tarball's content.
const PRISTINE: &str = "pristine";

/// The package with the source of a series.
fn package(series: Series) -> String {
    format!("linux-source-{}", series.linux())
}

/// The source package's version, which determines the pristine commit, and its tarball.
fn origin(series: Series) -> Result<(String, PathBuf)> {
    let package = package(series);
    match series {
        // Installed with the packages that every build needs.
        Series::V6_12 => {
            let query = ["--show", "--showformat", "${Version}", &package];
            let version = progress::output(Command::new("dpkg-query").args(query));
            Ok((version.with_context(|| format!("kernel: {package}"))?, format!("/usr/src/{package}.tar.xz").into()))
        }
        Series::V7 => fetched::ensure(&package).map(|fetched| (fetched.version.clone(), fetched.tarball(&package))),
    }
}

/// The version of the source package.
pub fn version(series: Series) -> Result<String> {
    origin(series).map(|(version, _)| version)
}

/// The work tree in the folder `home`.
pub fn tree(series: Series, home: &Path) -> PathBuf {
    home.join(format!("linux-{}", series.linux()))
}

/// Makes the work tree in `home` from the source package, unless it is there and from the same version.
pub fn ensure(series: Series, home: &Path) -> Result<()> {
    let (stamp, (version, tarball)) = (home.join("source.version"), origin(series)?);
    if !place::is_stamped(&stamp, &version) {
        unpack(&tarball, &tree(series, home), &home.join("source.log"))?;
        place::put_stamp(&stamp, &version)?;
    }
    Ok(())
}

fn unpack(tarball: &Path, base: &Path, log: &Path) -> Result<()> {
    if base.exists() {
        fs::remove_dir_all(base).with_context(|| format!("kernel: {}", base.display()))?;
    }
    place::made(base.to_path_buf())?;
    let mut tar = tied("tar");
    tar.args(["--extract", "--strip-components=1", "--file"]).arg(tarball).arg("--directory").arg(base);
    progress::run("kernel: unpacking the source", &mut tar, log)?;
    progress::run("kernel: making the source a commit", git(base).args(["init", "--quiet"]), log)?;
    progress::run("kernel: adding the files", git(base).args(["add", "--all", "--force"]), log)?;
    progress::run("kernel: committing", git(base).args(["commit", "--quiet", "--message", PRISTINE]), log)?;
    progress::run("kernel: tagging", git(base).args(["tag", PRISTINE]), log)
}

/// Moves `tree` to the pristine source with `patches` on top, leaving every file that stays the same untouched.
pub fn apply(tree: &Path, patches: &[PathBuf]) -> Result<()> {
    let index = tempfile::NamedTempFile::new().context("kernel: series")?;
    let with_index = || {
        let mut command = git(tree);
        command.env("GIT_INDEX_FILE", index.path());
        command
    };
    succeed(with_index().args(["read-tree", PRISTINE])).context("kernel: series")?;
    for patch in patches {
        let applied = succeed(with_index().args(["apply", "--cached", "--whitespace=nowarn"]).arg(patch));
        applied.with_context(|| format!("kernel: {}: does not apply", patch.display()))?;
    }
    let content = progress::output(with_index().arg("write-tree")).context("kernel: series")?;
    let commit = progress::output(git(tree).args(["commit-tree", &content, "-p", PRISTINE, "-m", "series"]))
        .context("kernel: series")?;
    succeed(git(tree).args(["checkout", "--quiet", "--force", "--detach", &commit])).context("kernel: series")
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().context("git: cannot be started")?;
    if !output.status.success() {
        bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(())
}

/// git in `tree`, free of the caller's settings and fast with a big first commit.
pub fn git(tree: &Path) -> Command {
    let mut command = tied("git");
    command.arg("-C").arg(tree);
    let settings = ["core.compression=0", "core.looseCompression=0", "gc.auto=0", "core.autocrlf=false"];
    for setting in settings.into_iter().chain(["user.name=kutrace", "user.email=kutrace@localhost"]) {
        command.args(["-c", setting]);
    }
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree like the kernel's, two files big, with its pristine commit.
    fn small_tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("hook.c"), "one\ntwo\nthree\n").unwrap();
        fs::write(dir.path().join("other.c"), "same\n").unwrap();
        for words in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "p"], &["tag", PRISTINE]] {
            succeed(git(dir.path()).args(words)).unwrap();
        }
        dir
    }

    fn patch(dir: &Path, from: &str, to: &str) -> PathBuf {
        let path = dir.join("0001.patch");
        let text =
            format!("--- a/hook.c\n+++ b/hook.c\n@@ -1,3 +1,3 @@\n one\n-{from}\n+{to}\n three\n--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+new\n");
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_series_changes_its_files_only_and_its_absence_restores_them() {
        let (dir, patches) = (small_tree(), tempfile::tempdir().unwrap());
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        let untouched = fs::metadata(dir.path().join("other.c")).unwrap().modified().unwrap();

        apply(dir.path(), &[patch(patches.path(), "two", "TWO")]).unwrap();
        assert_eq!((read("hook.c").as_str(), read("new.c").as_str()), ("one\nTWO\nthree\n", "new\n"));
        apply(dir.path(), &[]).unwrap();
        assert_eq!((read("hook.c").as_str(), read("new.c").as_str()), ("one\ntwo\nthree\n", ""));
        assert_eq!(fs::metadata(dir.path().join("other.c")).unwrap().modified().unwrap(), untouched);
    }

    #[test]
    fn a_patch_that_does_not_fit_is_named() {
        let (dir, patches) = (small_tree(), tempfile::tempdir().unwrap());
        let error = apply(dir.path(), &[patch(patches.path(), "2", "TWO")]).unwrap_err();
        assert!(format!("{error:#}").contains("0001.patch: does not apply"), "{error:#}");
    }
}
