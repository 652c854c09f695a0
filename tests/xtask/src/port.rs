// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask patches port TREE`: the series on another kernel, as far as it goes by itself.
//!
//! Only the files that the series touches are copied, into a git repository of their own; TREE stays unchanged and need
//! not be a git tree. Hunks that fit become a new series; each of the others is left next to its patch.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{stdout, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::kernel::files_in;
use crate::kernel::series::Series;
use crate::kernel::source::git;
use crate::place;
use crate::progress;

/// Status when a hunk needs a hand.
const NEEDS_A_HAND: u8 = 3;

/// Applies the series to the kernel source in `tree`, reports the hunks to look at, and exports the result to the new
/// folder `out`.
pub fn run(tree: &Path, out: &Path) -> Result<u8> {
    if !tree.join("Kconfig").is_file() {
        bail!("{}: no kernel source", tree.display());
    }
    if out.exists() {
        bail!("{}: exists already", out.display());
    }
    let out = place::made(out.to_path_buf())?;
    let patches = files_in(&Series::USUAL.patches(), ".patch")?;
    let work = tempfile::tempdir().context("port")?;
    copy(tree, &patches, work.path())?;
    commit_all(work.path(), "base", None)?;
    let (mut facts, mut whole) = (0, 0);
    for patch in &patches {
        let name = patch.file_name().unwrap_or_default().to_string_lossy();
        let found = apply(work.path(), patch, &out.join(format!("{name}.rej")))?;
        for fact in &found {
            writeln!(stdout(), "{name}: {fact}")?;
        }
        facts += found.len();
        whole += usize::from(found.is_empty());
    }
    let mut export = git(work.path());
    export.args(["format-patch", "--quiet", "--no-numbered", "--zero-commit", "--no-signature", "--always"]);
    succeed(export.arg("--output-directory").arg(fs::canonicalize(&out)?).arg("--root").arg("HEAD"))?;
    // The first commit is the source itself.
    let exported = files_in(&out, ".patch")?;
    fs::remove_file(&exported[0])?;
    for (patch, exported) in patches.iter().zip(&exported[1..]) {
        fs::rename(exported, out.join(patch.file_name().unwrap_or_default()))?;
    }
    let all = patches.len();
    writeln!(stdout(), "{whole} of {all} patches fit as they are; the series is in {}", out.display())?;
    Ok(if facts == 0 { 0 } else { NEEDS_A_HAND })
}

/// Copies those files of `tree` that the series touches.
fn copy(tree: &Path, patches: &[PathBuf], work: &Path) -> Result<()> {
    for path in touched(patches)? {
        let (from, to) = (tree.join(&path), work.join(&path));
        if from.is_file() {
            place::made(to.parent().unwrap_or(work).to_path_buf())?;
            fs::copy(&from, &to).with_context(|| format!("{}", from.display()))?;
        }
    }
    succeed(git(work).args(["init", "--quiet"]))
}

/// The files that patches change.
fn touched(patches: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut paths = BTreeSet::new();
    for patch in patches {
        let text = fs::read_to_string(patch).with_context(|| format!("{}", patch.display()))?;
        paths.extend(text.lines().filter_map(|line| line.strip_prefix("--- a/")).map(PathBuf::from));
    }
    Ok(paths)
}

/// Applies a patch and commits the hunks that fit under its own message. Returns the hunks to look at; those that do
/// not fit go to `rejects`.
fn apply(work: &Path, patch: &Path, rejects: &Path) -> Result<Vec<String>> {
    let mut command = Command::new("patch");
    command.args(["--strip=1", "--force", "--no-backup-if-mismatch", "--reject-file"]).arg(rejects);
    let output = command.arg("--input").arg(patch).env("LC_ALL", "C").current_dir(work).output();
    let output = output.context("patch: cannot be started")?;
    commit_all(work, "", Some(patch))?;
    Ok(facts(&String::from_utf8_lossy(&output.stdout)))
}

/// Output of `patch` about hunks that did not fit exactly. One that only has other line numbers fits.
fn facts(said: &str) -> Vec<String> {
    let mut file = "";
    let mut facts = Vec::new();
    for line in said.lines() {
        if let Some(path) = line.strip_prefix("patching file ") {
            file = path;
        } else if let Some((_, path)) = line.split_once("|--- a/") {
            file = path;
        } else if line.starts_with("No file to patch") {
            facts.push(format!("{file}: no such file"));
        } else if let Some((hunk, _)) = line.strip_prefix("Hunk #").and_then(|hunk| hunk.split_once(' ')) {
            if line.contains("FAILED") {
                facts.push(format!("{file}: hunk {hunk}: does not fit"));
            } else if line.contains("with fuzz") {
                facts.push(format!("{file}: hunk {hunk}: fits, but the lines around it differ"));
            }
        }
    }
    facts
}

/// Commits everything, with the author, date and message of `mail` or else with `message`.
fn commit_all(work: &Path, message: &str, mail: Option<&Path>) -> Result<()> {
    succeed(git(work).args(["add", "--all", "--force"]))?;
    let mut commit = git(work);
    commit.args(["commit", "--quiet", "--allow-empty", "--allow-empty-message"]);
    let text = tempfile::NamedTempFile::new()?;
    if let Some(mail) = mail {
        let mut info = git(work);
        info.arg("mailinfo").arg(text.path()).arg("/dev/null").stdin(File::open(mail)?);
        let info = progress::output(&mut info)?;
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_string();
        let body = fs::read_to_string(text.path())?;
        fs::write(text.path(), format!("{}\n\n{body}", field("Subject: ")))?;
        commit.arg(format!("--author={} <{}>", field("Author: "), field("Email: ")));
        commit.arg(format!("--date={}", field("Date: "))).arg("--file").arg(text.path());
    } else {
        commit.args(["--message", message]);
    }
    succeed(&mut commit)
}

fn succeed(command: &mut Command) -> Result<()> {
    progress::output(command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_that_moved_fit_and_others_are_told() {
        let said =
            "patching file a.c\nHunk #1 succeeded at 9 (offset 2 lines).\nHunk #2 succeeded at 30 with fuzz 2.\n\
                    patching file b.c\nHunk #3 FAILED at 12.\n1 out of 3 hunks FAILED -- saving rejects to file x\n";
        let expected = ["a.c: hunk 2: fits, but the lines around it differ", "b.c: hunk 3: does not fit"];
        assert_eq!(facts(said), expected);
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        let said = "can't find file to patch at input line 3\nThe text leading up to this was:\n\
                    --------------------------\n|--- a/gone.c\n|+++ b/gone.c\n--------------------------\n\
                    No file to patch.  Skipping patch.\n2 out of 2 hunks ignored\n";
        assert_eq!(facts(said), ["gone.c: no such file"]);
    }
}
