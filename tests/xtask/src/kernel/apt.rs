// SPDX-License-Identifier: BSD-3-Clause
//! Packages by apt's lists: this machine's own, or those of the next Debian, which has newer kernels.
//!
//! Nothing is installed. The lists of the next Debian are kept next to the kernels, and apt takes this machine for one
//! on which nothing is installed: so it names all that a package needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::place;
use crate::progress::{self, tied};

/// The Debian after that of this machine, and its suites with kernels.
const NEXT: [&str; 2] = ["trixie", "trixie-backports"];
/// By which apt knows that packages are Debian's.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Packages for building a module of the next Debian's kernel in addition to the headers, which need their compiler.
const BUILDERS: &[&str] =
    &["make", "binutils", "dash", "bash", "coreutils", "sed", "grep", "mawk", "findutils", "diffutils"];

/// Lists of packages.
pub struct Apt {
    /// Configuration that apt reads instead of this machine's.
    config: Option<PathBuf>,
}

impl Apt {
    /// Those of this machine.
    pub fn own() -> Apt {
        Apt { config: None }
    }

    /// Those of the next Debian, from where this machine has its own; in a folder below `home`.
    pub fn next(home: &Path) -> Result<Apt> {
        let targets = ["indextargets", "--format", "$(REPO_URI)", "Codename: bookworm"];
        let known = progress::output(Command::new("apt-get").args(targets))?;
        let mirror = known.lines().next().context("stock: apt knows no Debian")?;
        let home = place::made(home.join("next"))?;
        place::made(home.join("state/lists/partial"))?;
        place::made(home.join("cache/archives/partial"))?;
        let sources = NEXT.map(|suite| format!("deb [signed-by={KEYS}] {mirror} {suite} main\n")).concat();
        let config = home.join("apt.conf");
        for (file, text) in [("status", String::new()), ("sources.list", sources), ("apt.conf", configuration(&home))] {
            fs::write(home.join(file), text).with_context(|| format!("stock: {file}"))?;
        }
        Ok(Apt { config: Some(config) })
    }

    /// True if these are of the next Debian.
    pub fn is_next(&self) -> bool {
        self.config.is_some()
    }

    fn command(&self, mut command: Command) -> Command {
        command.envs(self.config.iter().map(|config| ("APT_CONFIG", config)));
        command
    }

    /// Asks for the newest lists.
    pub fn update(&self, log: &Path) -> Result<()> {
        progress::run("stock: updating the lists", self.command(tied("apt-get")).arg("update"), log)
    }

    /// Output of `apt-cache`.
    pub fn says(&self, words: &[&str]) -> Result<String> {
        progress::output(self.command(Command::new("apt-cache")).args(words))
    }

    /// Downloads packages to a folder.
    pub fn download(&self, packages: &[String], to: &Path, step: &str, log: &Path) -> Result<()> {
        let mut download = self.command(tied("apt-get"));
        // As root apt would give up its rights, and then not reach a folder of root's.
        download.args(["-o", "APT::Sandbox::User=root", "download"]).args(packages).current_dir(to);
        progress::run(step, &mut download, log)
    }

    /// Downloads what `package`, the headers of a kernel, needs for a module to be built.
    pub fn download_builders(&self, package: &str, to: &Path, step: &str, log: &Path) -> Result<()> {
        place::made(to.join("partial"))?;
        let mut install = self.command(tied("apt-get"));
        install.arg("-o").arg(format!("Dir::Cache::archives={}", to.display()));
        install.args(["install", "--yes", "--download-only", "--no-install-recommends", package]).args(BUILDERS);
        progress::run(step, &mut install, log)
    }
}

fn configuration(home: &Path) -> String {
    format!(
        r#"Dir "{0}";
Dir::State "state";
Dir::State::status "{0}/status";
Dir::Cache "cache";
Dir::Etc "{0}";
Dir::Etc::SourceList "sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Parts "/dev/null";
APT::Sandbox::User "root";
Acquire::Languages "none";
"#,
        home.display()
    )
}
