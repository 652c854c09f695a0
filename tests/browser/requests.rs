// SPDX-License-Identifier: BSD-3-Clause
//! The panel of requests: it reports the same as the terminal, leads to each request, and draws its path.

use std::fs;
use std::path::Path;

use kutrace_tests::chromium;
use postprocess::sink::page;
use postprocess::source;
use postprocess::span::build;
use postprocess::why::carry::carried;
use postprocess::why::{explain, Question, Timeline};
use serde_json::json;

use crate::drive::run_on;
use crate::spans::workload;

#[test]
fn requests_are_compared_as_in_the_terminal_and_shown_with_their_paths() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/redis.trace");
    let (spans, _) = build(source::decode(&fs::read(sample).unwrap()).unwrap());
    let why = explain(&Timeline::new(&spans), &Question::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("t.html");
    page::render_with(&spans, carried(&spans).as_ref(), &mut fs::File::create(&page).unwrap()).unwrap();
    let expected = serde_json::to_value(&why).unwrap();
    chromium::run("requests", &page, &expected);
    chromium::run("calm", &page, &json!({ "first": true }));
}

#[test]
fn a_page_without_requests_has_no_panel_of_them() {
    run_on("without_requests", &workload(3), &json!({}));
}
