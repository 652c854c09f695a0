// SPDX-License-Identifier: BSD-3-Clause
//! The page of the demo, if there is one: `cargo xtask test` sees to it that there is.

use std::fs;
use std::path::{Path, PathBuf};

use kutrace_tests::chromium::run;
use kutrace_tests::skip::skip;
use postprocess::sink::page;

use crate::spans::expectations;

/// The page under test; skips, with a message, if neither a name for one nor a demo exists.
fn page() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("KUTRACE_PAGE") {
        return Some(named.into());
    }
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/demo/t.html");
    if !demo.exists() {
        skip(&demo.display().to_string(), "no such page: cargo xtask demo");
        return None;
    }
    Some(demo)
}

#[test]
fn the_demo_opens_zooms_and_takes_keys() {
    let Some(page) = page() else { return };
    for scenario in ["open", "wheel", "keys", "pointer"] {
        run(scenario, &page, &serde_json::json!({}));
    }
}

#[test]
fn the_demo_finds_and_hits_what_it_was_made_of() {
    let Some(page) = page() else { return };
    let spans = page::lift(&fs::read_to_string(&page).unwrap()).unwrap();
    let expected = expectations(&spans);
    for scenario in ["open", "search", "hit"] {
        run(scenario, &page, &expected);
    }
}
