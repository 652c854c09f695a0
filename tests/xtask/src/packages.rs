// SPDX-License-Identifier: BSD-3-Clause
//! The Debian packages that everything below this line of the machine needs, installed when they are missing.

use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::{place, progress};

/// To build the kernel and the module.
const KERNEL: &[&str] = &[
    "linux-source-6.12",
    "rustc-web",
    "rust-web-src",
    "clang-19",
    "lld-19",
    "llvm-19",
    "libclang-19-dev",
    "flex",
    "bison",
    "bc",
    "libelf-dev",
    "libssl-dev",
    "dwarves",
    "xz-utils",
    "lz4",
    "rsync",
    "make",
    "git",
    "patch",
    "gcc",
    "libc6-dev",
];
/// To run the guest, and for the programs in it.
const GUEST: &[&str] = &[
    "qemu-system-x86",
    "busybox-static",
    "cpio",
    "kmod",
    "redis-server",
    "redis-tools",
    "sqlite3",
    "nginx-light",
    "memcached",
    "e2fsprogs",
    "stress-ng",
    "python3",
    "g++",
    "perl",
    "procps",
    "libcap2-bin",
    "acpica-tools",
    "makedumpfile",
    "runc",
    "ca-certificates",
];
/// To count the instructions of a program.
const COUNTER: &[&str] = &["valgrind"];
/// To read traces as others do, and to read quickly with programs in Python.
const READER: &[&str] = &["babeltrace2", "pypy3", "trace-cmd"];
/// To make packages.
const PACKER: &[&str] = &["dpkg-dev", "gcc", "make", "rustc-web", "rust-web-src"];
/// To make those of a kernel, in addition to its build.
const KERNEL_PACKER: &[&str] = &["debhelper"];
/// To try packages.
const INSPECTOR: &[&str] = &["debootstrap", "lintian"];
/// To be compared with.
const RIVALS: &[&str] = &["lttng-tools", "liblttng-ust-dev"];
/// To look at pages.
const BROWSER: &[&str] = &["chromium-headless-shell", "firefox-esr"];
/// Also for pages; often present without dpkg's knowing, so their commands are looked for instead.
const BROWSER_COMMANDS: &[(&str, &str)] = &[("node", "nodejs"), ("npm", "npm")];

/// Installs missing packages as root; otherwise prints the line to run.
pub fn ensure() -> Result<()> {
    ensure_all(missing)
}

/// The same for what [`crate::dist`] needs.
pub fn ensure_packer() -> Result<()> {
    ensure_all(|| Ok(absent(PACKER.to_vec(), &listed()?)))
}

/// The same for what makes packages of a kernel.
pub fn ensure_kernel_packer() -> Result<()> {
    ensure_all(|| Ok(absent([KERNEL, KERNEL_PACKER].concat(), &listed()?)))
}

/// The same for the long tests of packages.
pub fn ensure_inspectors() -> Result<()> {
    ensure_all(|| Ok(absent([PACKER, INSPECTOR].concat(), &listed()?)))
}

/// The same for the tracers that the bench compares with.
pub fn ensure_rivals() -> Result<()> {
    ensure_all(|| Ok(absent(RIVALS.to_vec(), &listed()?)))
}

fn ensure_all(missing: impl Fn() -> Result<Vec<&'static str>>) -> Result<()> {
    if missing()?.is_empty() {
        return Ok(());
    }
    // apt's own lock guards the database, not the archives that a second run would find half unpacked.
    let _lock = place::lock(&place::cache()?)?;
    let mut missing = missing()?;
    missing.sort();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !rustix::process::geteuid().is_root() {
        bail!(
            "packages: missing: {names}\nhint: sudo apt-get update && sudo apt-get install -y --no-install-recommends {names}"
        );
    }
    let log = place::cache()?.join("packages.log");
    progress::run("packages: updating the lists", apt().arg("update"), &log)?;
    let mut install = apt();
    install.args(["install", "-y", "--no-install-recommends"]).args(&missing);
    progress::run(&format!("packages: installing {} ({names})", missing.len()), &mut install, &log)
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn missing() -> Result<Vec<&'static str>> {
    let mut missing = absent([KERNEL, GUEST, READER, COUNTER, PACKER, BROWSER].concat(), &listed()?);
    missing.extend(BROWSER_COMMANDS.iter().filter(|(command, _)| !is_on_path(command)).map(|(_, package)| package));
    Ok(missing)
}

/// State of every package, from dpkg.
fn listed() -> Result<String> {
    let listed = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\n"])
        .output()
        .context("packages: dpkg-query: cannot be started\nhint: the VM is built from Debian 12's packages")?;
    Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
}

/// Those of `wanted` which no line of dpkg's `listed` calls installed.
fn absent(wanted: Vec<&'static str>, listed: &str) -> Vec<&'static str> {
    let installed: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(" installed")).collect();
    wanted.into_iter().filter(|name| !installed.contains(name)).collect()
}

fn is_on_path(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(command).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_only_when_installed() {
        let listed = "bc installed\nbison config-files\nbc-doc installed\n";
        assert_eq!(absent(vec!["bc", "bison", "flex"], listed), ["bison", "flex"]);
    }
}
