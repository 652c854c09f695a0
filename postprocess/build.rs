// SPDX-License-Identifier: BSD-3-Clause
//! Joins the modules of the page for `src/sink/page/render.rs`: `SCRIPTS`, pairs of path and text in the order in which they
//! run.

use std::path::Path;
use std::{env, fs};

#[path = "src/sink/page/join.rs"]
mod join;

const VIEWER: &str = "viewer";

fn main() {
    println!("cargo:rerun-if-changed={VIEWER}");
    println!("cargo:rerun-if-changed=src/sink/page/join.rs");
    let read = |path: &str| fs::read_to_string(Path::new(VIEWER).join(path));
    let scripts = join::join("main.js", read).unwrap_or_else(|fact| panic!("{VIEWER}/{fact}"));
    let code = format!("static SCRIPTS: [(&str, &str); {}] = {scripts:#?};\n", scripts.len());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("scripts.rs"), code).expect("OUT_DIR can be written");
}
