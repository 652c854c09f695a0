// SPDX-License-Identifier: BSD-3-Clause
//! Pages made for one question each.

use std::fs;
use std::path::Path;

use kutrace_format::x86::softirq;
use kutrace_tests::chromium::in_firefox;
use kutrace_tests::number::{idle, of_thread, on_cpu};
use postprocess::event::number::{user, IRQ, MARK_A, OFFLINE_SPAN, SOFTIRQ, STALLED, SYSCALL, USER, WAIT_A};
use postprocess::id::{CpuId, Pid};
use postprocess::sink::{self, page};
use postprocess::source;
use postprocess::span::limit::{SpanLimit, OF_A_PART};
use postprocess::span::what::{Arc, What};
use postprocess::span::{build, Meta, Span, Spans};
use postprocess::time::Time;
use serde_json::json;

use crate::drive::run_on;
use crate::spans::{expectations, workload, Made, Row};

const HOSTILE: &str = "</script><img src=x onerror=window.broken=1>";

#[test]
fn a_page_opens_without_network_console_or_violation_and_then_rests() {
    run_on("open", &workload(300), &expectations(&workload(300)));
}

#[test]
fn a_browser_without_base64_and_workers_for_files_opens_a_page_too() {
    let spans = workload(300);
    run_on("open", &spans, &json!({ "spans": spans.spans.len(), "older": true }));
}

#[test]
fn a_search_finds_as_many_spans_as_the_trace_has() {
    let spans = workload(300);
    run_on("search", &spans, &expectations(&spans));
}

#[test]
fn a_point_of_the_picture_answers_with_the_span_drawn_there() {
    let spans = workload(300);
    run_on("hit", &spans, &expectations(&spans));
}

#[test]
fn low_power_is_dashed_wherever_it_began() {
    let mut made = Made::default();
    let span = Span { what: What::of(USER as i32), arg: 1, dur: Time(1_000_000), ..idle() };
    made.add(span, "-idlelp-");
    let views: Vec<_> = (0..12).map(|k| [k * 10_007, k * 10_007 + 5_000 + k]).collect();
    run_on("dashes", &made.done(), &json!({ "spans": views }));
}

/// Interrupt `disk` wakes `a`, whose `write` wakes `b` out of the bottom half at its end.
fn relay() -> Spans {
    let mut made = Made::default();
    let rows: [Row; 13] = [
        (0, 0, USER, 0, 1000, "-idle-"),
        (0, 0, IRQ + 0x0b, 1000, 30, "disk"),
        (0, 0, SOFTIRQ, 1030, 20, "BH:block"),
        (0, 0, USER, 1050, 1950, "-idle-"),
        (1, 21, user(Pid::new(21)), 150, 100, "a.21"),
        (1, 0, USER, 250, 850, "-idle-"),
        (1, 21, user(Pid::new(21)), 1100, 100, "a.21"),
        (1, 21, SYSCALL + 1, 1200, 50, "write"),
        (1, 21, SYSCALL + 1, 1270, 30, "write"),
        (2, 0, USER, 0, 1360, "-idle-"),
        (2, 22, user(Pid::new(22)), 1360, 140, "b.22"),
        (-1, 21, WAIT_A + 3, 250, 790, "wait_disk"),
        (-1, 22, WAIT_A + 13, 500, 760, "wait_net"),
    ];
    rows.into_iter().for_each(|row| made.row(row));
    let (cpu, pid, what, arg) = (on_cpu(1), of_thread(21), What::of(SOFTIRQ as i32), softirq::NET_RX.into());
    made.add(Span { cpu, pid, what, arg, start: Time(1250), dur: Time(20), ..idle() }, "BH:rx");
    for (cpu, pid, to_cpu, to_pid, start, dur) in
        [(0, 0, 1, 21, 100, 50), (0, 0, 1, 21, 1040, 60), (1, 21, 2, 22, 1260, 100)]
    {
        let arc = Span {
            cpu: on_cpu(cpu),
            pid: of_thread(pid),
            what: What::Arc(Arc::Wakeup { to: CpuId::new(to_cpu), woken: Pid::new(to_pid) }),
            start: Time(start),
            dur: Time(dur),
            ..idle()
        };
        made.add(arc, "-wakeup-");
    }
    made.done()
}

#[test]
fn a_wakeup_is_followed_back_through_threads_to_an_interrupt() {
    let steps = json!([[1260, "write", "wait_net"], [1040, "disk", "wait_disk"]]);
    let from_a = json!([[1040, "disk", "wait_disk"]]);
    let first_of_a = json!([[100, "-idle-", null]]);
    let expected = json!([
        ["b.22", 1360, steps],
        ["wait_net", 500, steps],
        ["-wakeup-", 1260, steps],
        ["write", 1270, from_a],
        ["wait_disk", 250, from_a],
        ["a.21", 150, first_of_a],
        ["-idle-", 0, steps],
        ["-idle-", 1050, []],
        ["disk", 1000, []]
    ]);
    run_on("chain", &relay(), &json!({ "chains": expected }));
}

#[test]
fn more_rows_than_fit_scroll() {
    let mut made = Made::default();
    for cpu in 0..2000 {
        made.add(
            Span {
                cpu: on_cpu(cpu),
                what: What::of(USER as i32),
                start: Time(i64::from(cpu)),
                dur: Time(1000),
                ..idle()
            },
            "-idle-",
        );
    }
    run_on("scroll", &made.done(), &json!({ "rows": 2000 }));
}

#[test]
fn a_hostile_name_shows_as_itself() {
    let mut made = Made::default();
    made.0.meta =
        Meta { title: HOSTILE.into(), host: HOSTILE.into(), quality: vec![HOSTILE.into()], ..Meta::default() };
    made.add(
        Span { pid: of_thread(7), what: What::of(user(Pid::new(7)) as i32), dur: Time(1000), ..idle() },
        &format!("{HOSTILE}.7"),
    );
    made.add(
        Span {
            pid: of_thread(7),
            what: What::of(WAIT_A as i32 + 3),
            cpu: None,
            start: Time(1000),
            dur: Time(900),
            ..idle()
        },
        HOSTILE,
    );
    made.add(
        Span { pid: of_thread(7), what: What::of(MARK_A as i32), start: Time(10), dur: Time(1), ..idle() },
        HOSTILE,
    );
    run_on("hostile", &made.done(), &json!({ "name": HOSTILE, "thread": format!("{HOSTILE}.7") }));
}

#[test]
fn nothing_and_a_single_instant_are_traces_too() {
    run_on("open", &Spans::default(), &json!({ "spans": 0, "empty": true }));
    let mut made = Made::default();
    made.add(Span { what: What::of(SYSCALL as i32), ..idle() }, "read");
    run_on("open", &made.done(), &json!({ "spans": 1 }));
}

#[test]
fn a_trace_with_losses_says_so_above_the_picture() {
    let mut spans = workload(3);
    spans.meta.lost = 4321;
    spans.meta.quality = vec!["2 blocks are damaged".into()];
    run_on("open", &spans, &json!({ "spans": spans.spans.len(), "banner": ["4,321", "2 blocks are damaged"] }));
}

#[test]
fn what_delayed_all_in_a_trace_stands_above_the_picture_with_a_way_to_the_longest() {
    let mut made = Made::default();
    let rows: [Row; 7] = [
        (0, 0, USER, 0, 1000, "-idle-"),
        (0, 0, STALLED, 1000, 300_000, "-stalled-"),
        (0, 7, user(Pid::new(7)), 301_000, 1000, "a.7"),
        (0, 7, STALLED, 302_000, 500_000, "-stalled-"),
        (1, 0, OFFLINE_SPAN, 0, 802_000, "-offline-"),
        (-1, 8, WAIT_A + 16, 0, 100_000, "wait_quota"),
        (-1, 8, WAIT_A + 13, 100_000, 700_000, "wait_net"),
    ];
    rows.into_iter().for_each(|row| made.row(row));
    let lines = json!([
        ["CPUs stood still 2 times, 8 ms together", "5 ms", 302_000],
        ["CPUs were offline once, 8.02 ms together", "8.02 ms", 0],
        ["Threads waited for the CPU quota of their group once, 1 ms together", "1 ms", 0],
    ]);
    let spans = made.done();
    run_on("delays", &spans, &json!({ "lines": lines }));
    run_on("folded", &spans, &json!({}));
    run_on("delays", &workload(3), &json!({ "lines": [] }));
}

#[test]
fn a_page_of_too_many_spans_is_coarse_and_says_how_to_see_all_of_a_part() {
    let all = workload(300);
    let mut text = Vec::new();
    sink::json::write(&all, &mut text).unwrap();
    let coarse =
        source::open(&text[..]).expect("memory can be read").spans(SpanLimit::new(all.spans.len() / 4)).unwrap();
    assert!(coarse.spans.len() <= all.spans.len() / 4);
    let banner = ["there were more than", "added up in steps of", OF_A_PART];
    run_on("open", &coarse, &json!({ "spans": coarse.spans.len(), "banner": banner }));
}

/// Requirements on a page in any current browser, tried in another one.
#[test]
fn a_page_opens_and_answers_in_firefox_too() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/pipeline.trace");
    let (spans, _) = build(source::decode(&fs::read(sample).unwrap()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("t.html");
    page::render(&spans, &mut fs::File::create(&page).unwrap()).unwrap();
    let mut expected = expectations(&spans);
    expected["search"] = expected["searches"][1].clone();
    in_firefox(&page, &expected);
}

#[test]
fn the_largest_numbers_are_shown_in_full() {
    let hour = 360_000_000_000;
    let span = Span { cpu: on_cpu(4095), pid: of_thread(4_194_303), ..idle() };
    let call = Span {
        what: What::of(SYSCALL as i32 + 61),
        start: Time(5 * hour + 1),
        dur: Time(2 * hour),
        arg: 4_294_967_295,
        ret: 65_534,
        ..span
    };
    let mut made = Made::default();
    made.add(Span { what: What::of(USER as i32 + 4_194_303), dur: Time(5 * hour + 1), ..span }, "long.4194303");
    made.add(call, "wait4");
    let spans = made.done();
    let mut expected = expectations(&spans);
    expected["texts"] = json!(["18000.00000001", "wait4(4294967295)=ENOENT", "7200 s", "CPU 4095", "long.4194303"]);
    run_on("hit", &spans, &expected);
}

#[test]
fn a_million_spans_open_and_redraw() {
    let spans = workload(28_000);
    assert!(spans.spans.len() > 1_000_000);
    let numbers = run_on("bench", &spans, &json!({}));
    // How fast is a question for `cargo xtask bench page`.
    assert!(numbers["openMs"].is_number() && numbers["redrawP95Ms"].is_number(), "{numbers}");
}
