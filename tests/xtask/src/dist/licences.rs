// SPDX-License-Identifier: BSD-3-Clause
//! The licences of the crates that are linked into the tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::read;
use crate::man::listing;
use crate::{place, progress, tools};

/// A heading and the licence's own text for each crate; the Apache License, which is always an alternative here, is in
/// /usr/share/common-licenses.
pub fn text() -> Result<String> {
    let mut text = String::from("The tools contain the Rust standard library (MIT OR Apache-2.0) and these crates.\n");
    for (name, licence) in crates()? {
        text.push_str(&format!("\n== {name}: {licence}\n"));
        for file in texts(&sources(&name)?)? {
            text.push_str(&format!("\n{}\n", read(&file)?.trim_end()));
        }
    }
    Ok(text)
}

/// Every crate of others, as `name-version`, with its licence.
fn crates() -> Result<Vec<(String, String)>> {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}\t{l}\t{r}"]);
    tree.args(["--package", "kutrace"]).args(tools::PROGRAMS);
    let listed = progress::output(tree.current_dir(place::checkout())).context("licences")?;
    let mut crates: Vec<_> = listed.lines().filter_map(of_others).collect();
    crates.sort();
    crates.dedup();
    Ok(crates)
}

/// A crate in a line of the tree, unless it is in the checkout.
fn of_others(line: &str) -> Option<(String, String)> {
    let mut fields = line.split('\t');
    let (package, licence) = (fields.next()?, fields.next()?);
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let own = words.any(|word| word.starts_with("(/"));
    (!own).then(|| (format!("{name}-{version}"), licence.to_owned()))
}

/// Folder in which cargo has unpacked a crate.
fn sources(name: &str) -> Result<PathBuf> {
    let registries = listing(&place::cargo_home()?.join("registry/src"))?;
    let mut found = registries.into_iter().map(|registry| registry.join(name)).filter(|path| path.is_dir());
    found.next().with_context(|| format!("licences: {name}: no sources"))
}

fn texts(sources: &Path) -> Result<Vec<PathBuf>> {
    let mut files = listing(sources)?;
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let says = ["LICENSE", "LICENCE", "COPYING", "UNLICENSE"].iter().any(|word| name.starts_with(word));
        says && !name.contains("APACHE") && fs::metadata(path).is_ok_and(|data| data.is_file())
    });
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_others_are_told_from_our_own() {
        assert_eq!(
            of_others("clap v4.5.1\tMIT OR Apache-2.0\t"),
            Some(("clap-4.5.1".into(), "MIT OR Apache-2.0".into()))
        );
        assert_eq!(of_others("kutrace-format v0.1.0 (/home/me/kutrace/format)\tBSD-3-Clause\t"), None);
        assert_eq!(of_others(""), None);
    }
}
