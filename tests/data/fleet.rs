// SPDX-License-Identifier: BSD-3-Clause
//! The queries of samples/fleet on a small fleet: they find the planted differences, and the table of durations agrees
//! with the spans.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use kutrace_parquet::write::write;
use kutrace_tests::fleet::{found, Base, Plan};
use kutrace_tests::tree;
use kutrace_tools::spans::Ordering;
use postprocess::direct::spans_of_raw;
use postprocess::span::limit::{Keep, SpanLimit};
use serde_json::Value;

use crate::script;

/// Traces of the small fleet.
const TRACES: usize = 48;

#[test]
fn duckdb_finds_the_hosts_that_differ_and_no_others() {
    let packed = tree::root().join("tests/golden/causes/hog.trace.xz");
    let raw = Command::new("xz").arg("-dc").arg(packed).output().expect("xz runs: apt-get install xz-utils").stdout;
    let (spans, _) = spans_of_raw(&raw, SpanLimit::new(usize::MAX)).expect("a trace");
    let base = Base::new(spans).expect("requests");
    let plan = Plan::new(TRACES, &base.calls(), 3);
    let folder = tempfile::tempdir().expect("a folder");
    for trace in 0..plan.traces() {
        let mut ordering = Ordering::default();
        let last = Keep::finish(&mut ordering, base.vary(&plan, trace));
        write(ordering.finish(last).expect("order"), folder.path(), None).expect("tables");
    }
    for name in ["shared", "wakeups", "causes"] {
        let sql = fs::read(tree::root().join("samples/fleet").join(name).with_extension("sql")).expect("a query");
        let Some(text) = script("tables.py", &[&folder.path().to_string_lossy()], &sql) else { return };
        let rows: Vec<Vec<Value>> = serde_json::from_str(&text).expect("rows");
        let planted: BTreeSet<Vec<String>> = serde_json::from_value(plan.planted()[name].clone()).expect("a list");
        let found = found(name, &rows);
        assert!(!planted.is_empty() && found == planted, "{name}: {rows:?}, planted: {planted:?}");
    }
    // From the spans and arcs themselves: the same number of everything, and the same sum of times.
    let sql = "select kind, sum(times)::bigint, sum(times * dur_ns)::bigint from durations
            where kind = 'wakeup' group by kind
        union all select kind, count(*), sum(dur_ns)::bigint from arcs where kind = 'wakeup' group by kind";
    let Some(text) = script("tables.py", &[&folder.path().to_string_lossy()], sql.as_bytes()) else { return };
    let rows: Vec<(String, i64, i64)> = serde_json::from_str(&text).expect("rows");
    assert!(rows.len() == 2 && rows[0] == rows[1] && rows[0].1 > 10_000, "{rows:?}");
}
