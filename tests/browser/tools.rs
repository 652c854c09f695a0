// SPDX-License-Identifier: BSD-3-Clause
//! Tools around the picture: look, notes, views, strip, table, figures, the keyboard.

use std::fs;
use std::path::Path;

use kutrace_tests::chromium::{self, run, source};
use kutrace_tests::skip::skip;
use postprocess::sink::{self, page};
use postprocess::source;
use postprocess::span::{build, Spans};
use serde_json::json;

use crate::drive::run_on;
use crate::spans::workload;

#[test]
fn a_saved_copy_opens_as_it_was_is_itself_savable_and_holds_the_same_spans() {
    let spans = workload(300);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("t.html");
    page::render(&spans, &mut fs::File::create(&page).unwrap()).unwrap();
    run("copy", &page, &json!({ "folder": folder.path(), "name": "workload.html" }));
    let copy = fs::read_to_string(folder.path().join("copy1.html")).unwrap();
    let mut lifted = page::lift(&copy).unwrap();
    assert_eq!((&lifted.names, &lifted.spans), (&spans.names, &spans.spans));
    // A page made again from the extracted data, by way of JSON and without its first spans, still has the notes and
    // views.
    let added = lifted.meta.added.clone();
    lifted.spans.drain(..100);
    let mut text = Vec::new();
    sink::json::write(&lifted, &mut text).unwrap();
    run_on("kept", &source::json::read(&mut &text[..]).unwrap(), &added);
}

#[test]
fn a_view_becomes_a_figure_alike_as_png_and_as_svg() {
    run_on("figure", &workload(300), &json!({ "title": "workload" }));
}

/// Six views of a sample, compared with the pictures in `views/`; with UPDATE_GOLDEN set, those are made again.
#[test]
fn six_views_of_a_sample_look_as_they_did() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/pipeline.trace");
    let (spans, _) = build(source::decode(&fs::read(sample).unwrap()).unwrap());
    let views = json!({
        "whole": { "address": "#t=0..1000&open=CPU" },
        "close": { "address": "#t=57.4950..57.4985&open=CPU,PID", "notes": [
            ["openat", "CPU", -250, -78, "system call: the kernel, full height"],
            ["tail.90", "CPU", 10, -78, "user code: middle height"],
            ["page_fault", "CPU", 40, 38, "page fault, between two stretches of it"],
            ["virtio0", "CPU", -130, -36, "interrupt of the disk"],
            ["wait_cpu", "PID", 90, -46, "woken, and waits for a CPU"],
        ] },
        "threads": { "address": "#t=57.44..57.50&open=CPU,PID" },
        "dark": { "address": "#t=57.45..57.46&open=CPU,PID&theme=dark" },
        "contrast": { "address": "#t=57.45..57.46&open=CPU&theme=contrast&colors=safe&text=130" },
        "search": { "address": "#t=0..1000&open=CPU&find=page_fault&min=1" },
    });
    let bless = std::env::var_os("UPDATE_GOLDEN").is_some();
    if !bless && !chromium::is_known() {
        return skip("six views", "they were drawn by another Chromium: tests/versions.txt");
    }
    run_on("screenshots", &spans, &json!({ "folder": source().join("views"), "bless": bless, "views": views }));
}

#[test]
fn a_page_that_is_opened_first_has_threads_open_and_says_how_to_read_it() {
    let first = |threads: bool, callouts: u32| json!({ "first": true, "threads": threads, "callouts": callouts });
    run_on("first", &workload(300), &first(true, 3));
    run_on("first", &Spans::default(), &first(false, 0));
}

#[test]
fn whole_calls_are_listed_as_often_as_the_recorder_counted_them() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/redis.trace");
    let (spans, _) = build(source::decode(&fs::read(sample).unwrap()).unwrap());
    run_on("whole_calls", &spans, &json!({}));
    run_on("filters", &spans, &json!({}));
    run_on("worded", &spans, &json!({}));
}
