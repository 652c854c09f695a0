// SPDX-License-Identifier: BSD-3-Clause
//! Runs one scenario of `drive.mjs` on a page made of spans.

use std::fs;

use kutrace_tests::chromium;
use postprocess::sink::page;
use postprocess::span::Spans;
use serde_json::Value;

/// Runs `scenario` on a page made of `spans`; it fails with the first thing that is not as it should be.
pub fn run_on(scenario: &str, spans: &Spans, expected: &Value) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("t.html");
    page::render(spans, &mut fs::File::create(&page).unwrap()).unwrap();
    chromium::run(scenario, &page, expected)
}
