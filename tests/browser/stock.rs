// SPDX-License-Identifier: BSD-3-Clause
//! The page of a trace from a stock kernel: it names everything that such a trace cannot show, and shows nothing
//! unknown.

use std::fs;
use std::path::Path;

use kutrace_format::capability::Unseen;
use kutrace_tests::cut::{entries, told_by};
use postprocess::span::build;
use postprocess::{raw, source};
use serde_json::json;

use crate::drive::run_on;

#[test]
fn what_a_stock_kernel_cannot_tell_is_said_and_nowhere_made_up() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/faults.trace");
    let bytes = fs::read(sample).unwrap();
    let raw = raw::parse(&bytes).unwrap();
    let told = told_by(&raw, &entries(&raw), Unseen::TRACEPOINTS).bytes();
    let (spans, _) = build(source::decode(&told).unwrap());
    assert!(!spans.meta.unseen.is_empty());
    run_on("stock", &spans, &json!({ "unseen": spans.meta.unseen }));
}
