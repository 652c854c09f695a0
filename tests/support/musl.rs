// SPDX-License-Identifier: BSD-3-Clause
//! Programs that use the library of marks and are linked with musl, in whole: they run wherever there is a kernel.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip::skip;

/// The target they are built for.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// The example in Rust, built in a folder, and that in C where there is a compiler; nothing where rustup has not installed
/// what Rust needs for that.
///
/// # Panics
/// If one cannot be built.
pub fn programs(folder: &Path) -> Vec<PathBuf> {
    let found = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let rust = found.map(|out| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim())).unwrap_or_default();
    if !rust.is_dir() {
        skip("marks of programs that are linked with musl", "no target: rustup target add x86_64-unknown-linux-musl");
        return Vec::new();
    }
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--offline", "--target", TARGET]);
    cargo.args(["--package", "kutrace", "--lib", "--example", "requests", "--target-dir"]).arg(folder);
    let built = cargo.current_dir(&checkout).output().expect("cargo is there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let made = folder.join(TARGET).join("release");
    let mut programs = vec![made.join("examples/requests")];
    let (library, program) = (checkout.join("kutrace-control/kutrace"), made.join("service"));
    let mut gcc = Command::new("musl-gcc");
    gcc.args(["-O2", "-Wall", "-Werror", "-static"]).arg(format!("-I{}/include", library.display()));
    gcc.arg(library.join("examples/service.c")).arg(made.join("libkutrace.a"));
    // What Debian's compiler has to unwind the stack by needs glibc.
    gcc.arg("-nodefaultlibs").arg(rust.join("self-contained/libunwind.a")).arg("-lc").arg("-o").arg(&program);
    match gcc.output() {
        Err(_) => skip("marks from C with musl", "no musl-gcc: apt-get install musl-tools"),
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            programs.push(program);
        }
    }
    programs
}
