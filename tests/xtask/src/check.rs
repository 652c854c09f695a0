// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask patches check`: requirements on each patch of the series, tried on the source it is made for.
//!
//! After each patch the kernel builds without a warning: with gcc and with clang, without the hooks and with them. At
//! the end, the kernels without hooks consist of the same instructions as those without the series.
//! All are built from one source, each in a folder of its own, so that a patch costs only what it changes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{stdout, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::kernel::series::Series;
use crate::kernel::{config, files_in, source};
use crate::toolchain::{Compiler, Toolchain};
use crate::{packages, place, progress};

/// Checks a series from the patch with this number on.
pub fn run(series: Series, from: usize) -> Result<()> {
    packages::ensure()?;
    let dir = series.patches();
    let patches = files_in(&dir, ".patch")?;
    if !(1..=patches.len()).contains(&from) {
        bail!("check: {from}: the series has the patches 1 to {}", patches.len());
    }
    let home = place::made(series.home()?.join("check"))?;
    let _lock = place::lock(&home)?;
    source::ensure(series, &home)?;
    let tree = source::tree(series, &home);
    source::apply(&tree, &[])?;
    for patch in &patches[from - 1..] {
        check_style(&tree, patch, &home.join("style.log"))?;
    }

    let config = config::fragment("check");
    let mut without = Vec::new();
    let mut with = Vec::new();
    for compiler in [Compiler::Clang, Compiler::Gcc] {
        let build = Build::new(compiler, "without", &home, vec![config.clone()])?;
        build.configure(&tree)?;
        build.make("no patch")?;
        without.push((functions(&build.image())?, build));
        with.push(Build::new(compiler, "with", &home, vec![config.clone(), config::fragment("kutrace")])?);
    }
    for count in from..=patches.len() {
        source::apply(&tree, &patches[..count])?;
        let name = name_of(&patches[count - 1]);
        for ((_, without), with) in without.iter().zip(&with) {
            without.make(&name)?;
            if count == from {
                with.begin_as(without)?;
                with.configure(&tree)?;
            }
            with.make(&name)?;
        }
        writeln!(stdout(), "{name}: style and 4 builds: no complaints")?;
    }
    for (before, build) in &without {
        compare(&build.name, before, &functions(&build.image())?)?;
    }
    Ok(())
}

fn check_style(tree: &Path, patch: &Path, log: &Path) -> Result<()> {
    let mut command = Command::new("perl");
    // The sender signs the patches off, and names the maintainers of their files.
    command.args([
        "scripts/checkpatch.pl",
        "--strict",
        "--quiet",
        "--no-signoff",
        "--ignore",
        "FILE_PATH_CHANGES,ENOSYS",
    ]);
    command.arg(patch).current_dir(tree);
    progress::run(&format!("{}: style", name_of(patch)), &mut command, log)
}

/// One of the four kernels.
struct Build {
    /// Its compiler, and whether it has hooks.
    name: String,
    toolchain: Toolchain,
    fragments: Vec<PathBuf>,
    out: PathBuf,
    log: PathBuf,
}

impl Build {
    fn new(compiler: Compiler, hooks: &str, home: &Path, fragments: Vec<PathBuf>) -> Result<Self> {
        let name = format!("{} {hooks} hooks", compiler.name());
        let out = home.join(format!("{}-{hooks}", compiler.name()));
        let log = out.with_extension("log");
        Ok(Self { name, toolchain: Toolchain::ensure(compiler)?, fragments, out, log })
    }

    /// Begins with another build's results, most of which are the same.
    fn begin_as(&self, other: &Self) -> Result<()> {
        if self.out.exists() {
            return Ok(());
        }
        // Renamed into place: a folder that exists is whole.
        let partial = self.out.with_extension("partial");
        let mut copy = progress::tied("cp");
        copy.args(["--archive", "--no-target-directory"]).arg(&other.out).arg(&partial);
        progress::run(&format!("{}: copying", self.name), &mut copy, &self.log)?;
        fs::rename(&partial, &self.out).with_context(|| format!("{}", self.out.display()))
    }

    fn configure(&self, tree: &Path) -> Result<()> {
        let out = place::made(self.out.clone())?;
        let mut make = self.toolchain.make();
        make.arg(format!("O={}", out.display())).arg("outputmakefile").current_dir(tree);
        progress::run(&format!("{}: configuring", self.name), &mut make, &self.log)?;
        config::write(&self.name, &out, &self.fragments, &self.toolchain, &self.log)
    }

    /// Builds with the source as it is; fails on any warning.
    fn make(&self, patch: &str) -> Result<()> {
        let step = format!("{patch}: {}", self.name);
        let mut make = self.toolchain.make();
        // A patch may bring options.
        make.args(["olddefconfig", "vmlinux"]).current_dir(&self.out);
        progress::run(&step, &mut make, &self.log)?;
        let said = fs::read(&self.log).with_context(|| format!("{}", self.log.display()))?;
        match warnings(&String::from_utf8_lossy(&said))[..] {
            [] => Ok(()),
            ref warnings => bail!("{step}: {}", warnings.join("\n")),
        }
    }

    /// The whole kernel before its addresses are decided, so that what moves stays the same.
    fn image(&self) -> PathBuf {
        self.out.join("vmlinux.o")
    }
}

/// The warnings of compilers, linkers, objtool and modpost.
fn warnings(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.to_ascii_lowercase().contains("warning:")).collect()
}

/// Name and instructions of every function, without addresses. The padding before it, `__pfx_`, is none.
fn functions(image: &Path) -> Result<BTreeSet<String>> {
    let mut objdump = progress::tied("objdump");
    objdump.args(["--disassemble", "--reloc", "--no-addresses", "--no-show-raw-insn"]).arg(image);
    let listing = progress::output(&mut objdump)?;
    let functions = listing.split("\n\n").filter(|text| text.starts_with('<') && !text.starts_with("<__pfx_"));
    Ok(functions.map(|text| text.lines().map(without_offset).collect::<Vec<_>>().join("\n")).collect())
}

/// A line of a listing; of a relocation against a section only the section's name: with gcc's order of functions, which
/// is not that of the source, the contents of sections move.
fn without_offset(line: &str) -> &str {
    match line.rsplit_once('\t') {
        Some((before, symbol)) if before.contains("R_X86_64_") && symbol.starts_with('.') => {
            &line[..before.len() + 1 + symbol.find(['+', '-']).unwrap_or(symbol.len())]
        }
        _ => line,
    }
}

/// Fails with the names of functions that differ.
fn compare(name: &str, before: &BTreeSet<String>, after: &BTreeSet<String>) -> Result<()> {
    let differing: BTreeSet<&str> = before.symmetric_difference(after).filter_map(|text| text.lines().next()).collect();
    if !differing.is_empty() {
        let names: Vec<&str> = differing.into_iter().collect();
        bail!("{name}: other instructions than without the series: {}", names.join(" "));
    }
    writeln!(stdout(), "{name}: {} functions: the same instructions as without the series", after.len())?;
    Ok(())
}

fn name_of(patch: &Path) -> String {
    patch.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_found_whoever_gives_them() {
        let log =
            "  CC a.o\na.c:1:2: warning: unused\nvmlinux.o: warning: objtool: f()+0x1: call\nWARNING: modpost: x\n";
        assert_eq!(warnings(log).len(), 3);
        assert!(warnings("  CC kernel/warning.o\n").is_empty());
    }

    #[test]
    fn a_place_in_a_section_counts_by_its_section() {
        assert_eq!(without_offset("\t\t\tR_X86_64_32S\t.rodata.str1.1+0x5bfa"), "\t\t\tR_X86_64_32S\t.rodata.str1.1");
        for line in ["\t\t\tR_X86_64_PLT32\t_printk-0x4", "\tmov    $0x0,%rdi", "<f>:"] {
            assert_eq!(without_offset(line), line);
        }
    }

    #[test]
    fn a_function_that_differs_is_named() {
        let kernel = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<BTreeSet<String>>();
        let before = kernel(&["<f>:\nnop", "<g>:\nret"]);
        compare("gcc", &before, &before.clone()).unwrap();
        let error = compare("gcc", &before, &kernel(&["<f>:\nnop", "<g>:\nint3"])).unwrap_err();
        assert!(error.to_string().ends_with("series: <g>:"), "{error}");
    }
}
