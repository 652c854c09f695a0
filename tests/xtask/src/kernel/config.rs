// SPDX-License-Identifier: BSD-3-Clause
//! Writes a tree's `.config`: the smallest kernel, the fragments, and a check that every line of them took effect.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};

use crate::progress;
use crate::toolchain::Toolchain;

/// Configures `tree` with `fragments`; an option that Kconfig dropped is an error.
pub fn write(name: &str, tree: &Path, fragments: &[PathBuf], toolchain: &Toolchain) -> Result<()> {
    let log = super::log(name)?;
    let step = format!("{name}: configuring");
    let path = tree.join(".config");
    progress::run(&step, toolchain.make().arg("tinyconfig").current_dir(tree), &log)?;
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("{}", path.display()));
    let wanted = fragments.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?.join("\n");
    fs::write(&path, read(&path)? + &wanted).with_context(|| format!("{}", path.display()))?;
    progress::run(&step, toolchain.make().arg("olddefconfig").current_dir(tree), &log)?;
    let lost = lost(&wanted, &read(&path)?);
    if !lost.is_empty() {
        bail!("{name}: config: not possible in this kernel: {}", lost.join(" "));
    }
    Ok(())
}

/// The lines of `wanted` that did not survive in `config`. Off is the absence of a value.
fn lost<'a>(wanted: &'a str, config: &str) -> Vec<&'a str> {
    let set: Vec<&str> = config.lines().filter(|line| line.starts_with("CONFIG_")).collect();
    let has = |option: &str| set.iter().any(|line| line.split('=').next() == Some(option));
    let survived = |line: &str| match line.strip_suffix("=n").or(off(line)) {
        Some(option) => !has(option),
        None => !line.starts_with("CONFIG_") || set.contains(&line),
    };
    wanted.lines().filter(|line| !survived(line)).collect()
}

/// The option of a line `# CONFIG_X is not set`.
fn off(line: &str) -> Option<&str> {
    line.strip_prefix("# ")?.strip_suffix(" is not set")
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
}
