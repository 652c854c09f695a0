// SPDX-License-Identifier: BSD-3-Clause
//! QEMU 8.2 or newer: from Debian's backports where Debian 12's own is older.
//!
//! An older one translates code without locking its page. While the kernel patches hooks in or out, another virtual CPU
//! can so keep a translation of the breakpoint that stands there for a moment, run it later, and die of an unexpected
//! int3: seen within some ten starts and stops under load with 7.2, never with 10.0.

use std::fs;
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

use crate::packages::apt;
use crate::{place, progress};

const OLDEST: (u32, u32) = (8, 2);
const PACKAGE: &str = "qemu-system-x86";
const SOURCES: &str = "/etc/apt/sources.list.d";

/// Replaces a QEMU that is too old.
pub fn ensure() -> Result<()> {
    let found = version()?;
    if found >= OLDEST {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        let hint = format!("sudo apt-get install -t bookworm-backports {PACKAGE}, with the backports in your sources");
        bail!("packages: QEMU {}.{} loses patched code, 8.2 is needed\nhint: {hint}", found.0, found.1);
    }
    install()?;
    ensure!(version()? >= OLDEST, "packages: {PACKAGE}: still older than 8.2 after an install from the backports");
    Ok(())
}

/// Installs from the backports suite of the archive that apt uses already; apt's own sources stay as they are.
fn install() -> Result<()> {
    let (archive, release) = archive()?;
    let parts = tempfile::tempdir().context("packages: sources")?;
    for entry in fs::read_dir(SOURCES).into_iter().flatten().flatten() {
        fs::copy(entry.path(), parts.path().join(entry.file_name())).context("packages: sources")?;
    }
    let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let line = format!("deb [signed-by={key}] {archive} {release}-backports main\n");
    fs::write(parts.path().join("backports.list"), line).context("packages: sources")?;

    let with_backports = || {
        let mut command = apt();
        command.arg("-o").arg(format!("Dir::Etc::SourceParts={}", parts.path().display()));
        command
    };
    let log = place::cache()?.join("emulator.log");
    progress::run("packages: updating the lists", with_backports().arg("update"), &log)?;
    let mut install = with_backports();
    install.args(["install", "-y", "--no-install-recommends", "-t", &format!("{release}-backports"), PACKAGE]);
    progress::run(&format!("packages: installing {PACKAGE} from the backports"), &mut install, &log)
}

/// The Debian archive that apt is set up with, and its release.
fn archive() -> Result<(String, String)> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(LABEL)", "Created-By: Packages"]);
    let listed = progress::output(&mut targets)?;
    main_suite(&listed).context("packages: backports: apt has no source of Debian itself")
}

/// The first target of Debian's main archive that is a release and not its updates.
fn main_suite(targets: &str) -> Option<(String, String)> {
    let mut fields = targets.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (archive, release, label) = (words.next()?, words.next()?, words.next()?);
        (label == "Debian" && !release.contains('-')).then(|| (archive.to_string(), release.to_string()))
    });
    fields.next()
}

fn version() -> Result<(u32, u32)> {
    let said = progress::output(Command::new("qemu-system-x86_64").arg("--version"))?;
    parse_version(&said).with_context(|| format!("packages: qemu-system-x86_64: no version in {said:?}"))
}

fn parse_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.split("version ").nth(1)?.split(['.', ' ']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_qemu_says() {
        assert_eq!(parse_version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg)"), Some((7, 2)));
        assert_eq!(parse_version("QEMU emulator version 10.0.2"), Some((10, 0)));
        assert_eq!(parse_version("no number"), None);
    }

    #[test]
    fn the_archive_is_that_of_the_release_itself() {
        let targets =
            "http://x/debian/ bookworm-updates Debian\nhttp://x/security/ bookworm-security Debian-Security\n\
                       http://x/debian/ bookworm Debian\n";
        assert_eq!(main_suite(targets), Some(("http://x/debian/".into(), "bookworm".into())));
        assert_eq!(main_suite("http://y/ stable Other\n"), None);
    }
}
