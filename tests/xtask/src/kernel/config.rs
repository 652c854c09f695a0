// SPDX-License-Identifier: BSD-3-Clause
//! Writes a tree's `.config`: the smallest kernel, the fragments, and a check that every line of them took effect.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};

use crate::place;
use crate::progress;
use crate::toolchain::Toolchain;

/// The fragment of this name, the same for every series.
pub fn fragment(name: &str) -> PathBuf {
    place::checkout().join("patches/config").join(format!("{name}.config"))
}

/// Configures `tree` with `fragments`, a later one of which has the last word; an option that Kconfig dropped is an
/// error.
pub fn write(name: &str, tree: &Path, fragments: &[PathBuf], toolchain: &Toolchain, log: &Path) -> Result<()> {
    let step = format!("{name}: configuring");
    let path = tree.join(".config");
    progress::run(&step, toolchain.make().arg("tinyconfig").current_dir(tree), log)?;
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("{}", path.display()));
    let wanted = fragments.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?.join("\n");
    fs::write(&path, read(&path)? + &wanted).with_context(|| format!("{}", path.display()))?;
    progress::run(&step, toolchain.make().arg("olddefconfig").current_dir(tree), log)?;
    let lost = lost(&wanted, &read(&path)?);
    if !lost.is_empty() {
        bail!("{name}: config: not possible in this kernel: {}", lost.join(" "));
    }
    Ok(())
}

/// The lines of `wanted` that did not survive in `config`. The last line about an option counts; off is the absence of
/// a value.
fn lost<'a>(wanted: &'a str, config: &str) -> Vec<&'a str> {
    let set: BTreeMap<&str, &str> = config.lines().filter_map(setting).collect();
    let last: BTreeMap<&str, &str> = wanted.lines().filter_map(setting).collect();
    let is_lost = |line: &&str| {
        setting(line).is_some_and(|(option, value)| last[option] == value && set.get(option).unwrap_or(&"n") != &value)
    };
    wanted.lines().filter(is_lost).collect()
}

/// Option and value of a line; `n` for a line `# CONFIG_X is not set`.
fn setting(line: &str) -> Option<(&str, &str)> {
    match line.strip_prefix("# ").and_then(|line| line.strip_suffix(" is not set")) {
        Some(option) => Some((option, "n")),
        None => line.split_once('=').filter(|(option, _)| option.starts_with("CONFIG_")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_kconfig_dropped_are_found() {
        let config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_NR=16\nCONFIG_ON=y\n";
        assert!(lost("# why\n\nCONFIG_A=y\nCONFIG_B=n\n# CONFIG_B is not set\nCONFIG_NR=16\n", config).is_empty());
        assert_eq!(lost("CONFIG_A=m\nCONFIG_B=y\nCONFIG_NR=8", config), ["CONFIG_A=m", "CONFIG_B=y", "CONFIG_NR=8"]);
        assert_eq!(lost("CONFIG_ON=n\n# CONFIG_A is not set", config), ["CONFIG_ON=n", "# CONFIG_A is not set"]);
    }

    #[test]
    fn a_later_line_has_the_last_word() {
        let config = "CONFIG_A=y\n";
        assert!(lost("CONFIG_A=n\nCONFIG_B=y\nCONFIG_A=y\n# CONFIG_B is not set", config).is_empty());
        assert_eq!(lost("CONFIG_A=y\nCONFIG_A=n", config), ["CONFIG_A=n"]);
    }
}
