// SPDX-License-Identifier: BSD-3-Clause
//! The search box: calls and times, each compared with a count of the spans themselves.

use postprocess::span::{Span, Spans};
use serde_json::{json, Value};

use crate::drive::run_on;
use crate::spans::{workload, Made};

#[test]
fn calls_are_found_by_argument_and_result_and_times_are_gone_to() {
    let spans = workload(3000);
    let tame = spans.spans.iter().filter(|s| !spans.names[s.name as usize].starts_with('-')).count();
    let reads = spans.spans.iter().filter(|s| s.event == 0x800);
    let failed = reads.clone().filter(|s| s.ret == 65_534).count();
    let calls = json!([
        ["=|.", tame],
        ["=ENOENT", failed],
        [r"read\(3\)=5$", reads.clone().count() - failed],
        [r"read\(4\)", 0],
        [r"^page_fault\(3\)$", reads.clone().count()],
        [
            "ipc=5/8",
            spans.spans.iter().filter(|s| s.event >= 0x400 && !spans.names[s.name as usize].starts_with('-')).count()
        ],
        ["^mark_a=hello$", spans.spans.iter().filter(|s| s.event == 0x20a).count()],
    ]);
    run_on("calls", &spans, &json!({ "calls": calls, "tracebase": spans.meta.tracebase }));
}

/// A search as the page is asked for it, and what it must find: spans that hold `wanted`.
struct Search {
    pattern: &'static str,
    invert: bool,
    wanted: fn(&Span, &str) -> bool,
}

impl Search {
    fn of(pattern: &'static str, wanted: fn(&Span, &str) -> bool) -> Search {
        Search { pattern, invert: false, wanted }
    }

    fn inverted(self) -> Search {
        Search { invert: true, ..self }
    }

    fn expected(&self, spans: &Spans) -> Value {
        let found = spans.spans.iter().filter(|s| (self.wanted)(s, &spans.names[s.name as usize]));
        let (count, total) = found.fold((0u64, 0i64), |(n, total), s| (n + 1, total + s.dur));
        json!({ "pattern": self.pattern, "least": "", "most": "", "invert": self.invert, "count": count, "total": total })
    }
}

/// Runs searches of which each but the last must find something.
fn run_searches(spans: &Spans, searches: &[Search]) {
    let searches: Vec<_> = searches.iter().map(|search| search.expected(spans)).collect();
    for search in &searches[..searches.len() - 1] {
        assert!(search["count"].as_u64() > Some(0), "{search}");
    }
    run_on("searches", spans, &json!({ "searches": searches }));
}

#[test]
fn calls_are_told_apart_however_many_there_are_and_large_their_numbers() {
    let mut made = Made::default();
    for k in 0..70_000 {
        let call = Span { pid: 7, event: 0x800, start: k * 10, dur: 5, arg: k, ret: k % 7, ..Span::default() };
        made.add(call, "read");
    }
    // 5 billion and 705 million have the same low 32 bits, and so have the two results.
    for (arg, ret) in [(5_000_000_000, -2), (5_000_000_000, 4_294_967_294), (705_032_704, -2), (4, 65_534)] {
        let call = Span { pid: 7, event: 0x800, start: 800_000 + ret, dur: 5, arg, ret, ..Span::default() };
        made.add(call, "read");
    }
    let searches = [
        Search::of(r"^read\(69999\)=", |s, _| s.arg == 69_999),
        Search::of(r"\(6\d\d\d\d\)=3$", |s, _| (60_000..70_000).contains(&s.arg) && s.ret == 3),
        Search::of("=ENOENT", |s, _| matches!(s.ret, -2 | 65_534)),
        Search::of("=4294967294", |s, _| s.ret == 4_294_967_294),
        Search::of(r"\(5000000000\)", |s, _| s.arg == 5_000_000_000),
        Search::of(r"\(705032704\)=ENOENT", |s, _| s.arg == 705_032_704),
        Search::of("=[0-6]$", |s, _| !(0..7).contains(&s.ret)).inverted(),
        Search::of("=ENOSPC", |_, _| false),
    ];
    run_searches(&made.done(), &searches);
}
