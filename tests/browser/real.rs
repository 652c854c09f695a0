// SPDX-License-Identifier: BSD-3-Clause
//! The page of the demo, if there is one: `cargo xtask test` sees to it that there is.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use kutrace_tests::chromium::run;
use postprocess::span::json;

use crate::spans::expectations;

/// The page under test; nothing if none was named and the demo has not run.
fn page() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("KUTRACE_PAGE") {
        let named = PathBuf::from(named);
        assert!(named.exists(), "KUTRACE_PAGE: {}: no such file", named.display());
        return Some(named);
    }
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/demo/t.html");
    if !demo.exists() {
        eprintln!("skipped: no page at {}, run `cargo xtask demo`", demo.display());
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
fn the_demo_finds_and_hits_what_its_json_holds() {
    let Some(page) = page() else { return };
    let json = page.with_extension("json");
    let Ok(file) = File::open(&json) else {
        eprintln!("skipped: no spans at {}", json.display());
        return;
    };
    let spans = json::read(&mut BufReader::new(file)).unwrap();
    let expected = expectations(&spans);
    for scenario in ["open", "search", "hit"] {
        run(scenario, &page, &expected);
    }
}
