// SPDX-License-Identifier: BSD-3-Clause
//! Tests of the page's modules that need no browser: `node --test` on the files of `tests/viewer`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use kutrace_tests::skip::skip;

#[test]
fn the_modules_of_the_page_do_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("viewer");
    let mut tests: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    tests.retain(|path| path.extension().is_some_and(|ending| ending == "mjs"));
    assert!(!tests.is_empty());
    let out = match Command::new("node").arg("--test").args(&tests).output() {
        // `cargo xtask test` has installed it.
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("KUTRACE_XTASK").is_none() => {
            return skip("tests/viewer", "there is no node: apt-get install nodejs");
        }
        out => out.expect("node runs: apt-get install nodejs"),
    };
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
}
