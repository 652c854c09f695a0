// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask man`: manual pages and completions below `target/share`, as a package puts them below `/usr/share`.
//!
//! Each tool writes its own, from the definition of its command line; the other pages are in `docs/man`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::place;
use crate::progress;
use crate::tools;

/// Writes all pages; returns the folder.
pub fn run() -> Result<PathBuf> {
    let tools = tools::ensure()?;
    let share = place::target().join("share");
    if share.exists() {
        fs::remove_dir_all(&share).with_context(|| format!("{}", share.display()))?;
    }
    for name in names()? {
        let tool = tools.join(&name);
        progress::output(Command::new(&tool).arg("--generate").arg(&share))
            .with_context(|| format!("man: {}", tool.display()))?;
    }
    let pages = place::checkout().join("docs/man");
    for page in listing(&pages)? {
        let section = page.extension().context("a page is named after its section")?.to_string_lossy().into_owned();
        let folder = place::made(share.join(format!("man/man{section}")))?;
        let name = page.file_name().unwrap_or_default();
        fs::copy(&page, folder.join(name)).with_context(|| format!("man: {}", page.display()))?;
    }
    Ok(share)
}

/// Every tool: kutrace_control, and what has a file or folder in the folders of tools.
pub fn names() -> Result<Vec<OsString>> {
    let mut tools = listing(&place::checkout().join("postprocess/tools/src/bin"))?;
    tools.extend(listing(&place::checkout().join("postprocess/parquet/src/bin"))?);
    let stems = tools.iter().filter_map(|path| path.file_stem());
    Ok(stems.map(OsString::from).chain(["kutrace_control".into()]).collect())
}

/// Entries of a folder, in order.
pub fn listing(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_concepts_gives_rights_by_the_commands_of_the_documents() {
        let read = |path: &str| fs::read_to_string(place::checkout().join(path)).unwrap();
        let (document, page) = (read("docs/operate.md"), read("docs/man/kutrace.7").replace('\\', ""));
        let section = document.split("## Without root\n").nth(1).unwrap();
        let commands = section.split("```\n").nth(1).unwrap();
        assert_eq!(commands.lines().count(), 4);
        assert!(page.contains(&format!(".EX\n{commands}.EE\n")), "{commands}");
    }

    #[test]
    fn the_page_on_concepts_and_the_document_of_tools_name_every_tool() {
        let read = |path: &str| fs::read_to_string(place::checkout().join(path)).unwrap();
        let (page, tools) = (read("docs/man/kutrace.7"), read("docs/tools.md"));
        let names = names().unwrap();
        assert!(names.contains(&"rawtoevent".into()), "{names:?}");
        for name in names {
            let name = name.to_string_lossy();
            let reference = format!(".BR {name} (1)");
            assert!(page.lines().any(|line| line.trim_end_matches(',') == reference), "docs/man/kutrace.7: {name}");
            assert!(tools.contains(&format!("\n| `{name}` | ")), "docs/tools.md: {name}");
        }
    }
}
