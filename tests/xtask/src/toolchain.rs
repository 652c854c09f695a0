// SPDX-License-Identifier: BSD-3-Clause
//! The environment of kernel and module builds: Debian's rustc before rustup's, clang 19, and a bindgen new enough.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::place::{self, Key};
use crate::progress::{self, tied};

/// Debian 12's own bindgen is too old for 6.12, which asks for 0.65.1.
const BINDGEN: &str = "0.71.1";

/// Folder of programs of the machine's packages.
const SYSTEM: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Compiles C and links.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// Clang and LLVM's linker, which a kernel with Rust needs.
    Clang,
    /// gcc and GNU's linker.
    Gcc,
}

impl Compiler {
    /// As its command is called.
    pub fn name(self) -> &'static str {
        match self {
            Compiler::Clang => "clang",
            Compiler::Gcc => "gcc",
        }
    }
}

/// Compilers of kernels and modules.
pub struct Toolchain {
    compiler: Compiler,
    /// Place of `bindgen`.
    bindgen: PathBuf,
    /// Version text of each compiler.
    versions: String,
}

impl Toolchain {
    /// Installs bindgen into the cache unless it is there.
    pub fn ensure(compiler: Compiler) -> Result<Self> {
        let root = place::cache()?.join(format!("bindgen-{BINDGEN}"));
        let bindgen = root.join("bin");
        if !bindgen.join("bindgen").is_file() {
            let _lock = place::lock(&place::cache()?)?;
            let mut install = tied("cargo");
            install.args(["install", "bindgen-cli", "--locked", "--version", BINDGEN, "--root"]).arg(&root);
            // Built outside of the checkout's target folder, which a running `cargo test` may hold.
            install.env_remove("CARGO_TARGET_DIR");
            progress::run("bindgen: building", &mut install, &place::cache()?.join("bindgen.log"))?;
        }
        let mut toolchain = Self { compiler, bindgen, versions: String::new() };
        for compiler in ["rustc", "clang-19", "ld.lld-19", "bindgen"] {
            let version = progress::output(toolchain.command(compiler).arg("--version")).context("toolchain")?;
            toolchain.versions.push_str(&version);
        }
        Ok(toolchain)
    }

    /// `program` in the environment of a kernel build, which takes nothing from the caller's but its home.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Self::plain(program);
        command.env("PATH", format!("{SYSTEM}:{}", self.bindgen.display()));
        command
    }

    /// The same with programs of the machine's own packages.
    pub fn plain(program: &str) -> Command {
        let mut command = tied(program);
        command.env_clear().env("PATH", SYSTEM);
        command.envs(std::env::vars_os().filter(|(name, _)| name == "HOME"));
        command.env("LC_ALL", "C");
        command.envs([("KBUILD_BUILD_USER", "kutrace"), ("KBUILD_BUILD_HOST", "vm")]);
        command
    }

    /// `make` for the kernel's build system, on every CPU. An empty LOCALVERSION keeps git's state out of the release.
    pub fn make(&self) -> Command {
        let mut command = self.command("make");
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        command.args(["LOCALVERSION=", &format!("-j{jobs}")]);
        if self.compiler == Compiler::Clang {
            command.arg("LLVM=-19");
        }
        command
    }

    /// Adds the compilers to a build's key.
    pub fn add_to(&self, key: &mut Key) {
        key.add("compilers", self.versions.as_bytes());
    }
}
