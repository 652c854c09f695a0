// SPDX-License-Identifier: BSD-3-Clause
//! The viewer's scripts against the types that their comments state.

use std::process::Command;

use kutrace_tests::chromium::{packages, source};

#[test]
fn the_scripts_keep_the_types_they_state() {
    let out = Command::new("node")
        .arg(packages().join("typescript/bin/tsc"))
        .arg("--project")
        .arg(source())
        .output()
        .expect("node runs: apt-get install nodejs npm");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
