// SPDX-License-Identifier: BSD-3-Clause
//! From spans to spans: what trimming, merging and adding up keep.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use kutrace_format::abi::event::{IRQ, IRQ_RETURN, MARK_A, RUNNABLE};
use kutrace_tests::number::{idle, on_cpu};
use kutrace_tests::{busy, TraceBuilder};
use postprocess::event::number::{user, SYSCALL, WAIT_A, WAIT_Z};
use postprocess::id::{CpuId, Pid};
use postprocess::sink::profile::{profile, Rows};
use postprocess::source::events::read;
use postprocess::span::trim::{labelled, trim, Range};
use postprocess::span::what::What;
use postprocess::span::{build, coarsen::coarsen, Span, Spans, NONE};
use postprocess::time::Time;
use proptest::prelude::*;

use crate::golden::assert_golden;
use crate::span::{decode, show};

fn spans(trace: &TraceBuilder) -> Spans {
    build(decode(trace)).0
}

/// Two threads that meet: one blocks in futex, is woken from another CPU, and continues.
fn meeting() -> Spans {
    let mut trace = TraceBuilder::new(2, 3_000);
    trace.cpu(0).running(100, "a", None).entry(150, MARK_A, &[39_187_408]).call(200, 202, 5).switch(210, 0, "");
    let cpu1 = trace.cpu(1).running(101, "a", None).entry(900, IRQ + 0xec, &[]).entry(950, IRQ_RETURN + 0xec, &[]);
    cpu1.call(1_000, 202, 1).entry(1_010, RUNNABLE, &[100]).small_return(1_020, 1);
    let cpu0 = trace.cpu(0).switch(2_000, 100, "a").small_return(2_060, 0);
    cpu0.entry(2_500, MARK_A, &[1_567_496_359]);
    spans(&trace)
}

fn text(spans: &Spans) -> String {
    let mut text = String::new();
    spans.spans.iter().for_each(|s| show(&mut text, s, &spans.names[s.name]));
    text
}

/// From when to when each CPU's execution spans go; panics if they leave a hole or overlap.
fn cover(spans: &Spans) -> BTreeMap<Option<CpuId>, (i64, i64)> {
    let mut cpus: BTreeMap<Option<CpuId>, (i64, i64)> = BTreeMap::new();
    for s in spans.spans.iter().filter(|s| s.is_execution() && s.dur > Time::ZERO) {
        let cover = cpus.entry(s.cpu).or_insert((s.start.0, s.start.0));
        assert_eq!(s.start.0, cover.1, "cpu {:?}", s.cpu);
        cover.1 += s.dur.0;
    }
    cpus
}

/// CPU, thread, event and name.
type Doer<'a> = (Option<CpuId>, Option<Pid>, i32, &'a str);

/// The time of each.
fn sums(spans: &Spans) -> BTreeMap<Doer<'_>, i64> {
    let mut sums = BTreeMap::new();
    for s in spans.spans.iter().filter(|s| s.is_execution() && s.dur > Time::ZERO) {
        *sums.entry((s.cpu, s.pid, s.event(), spans.names[s.name].as_str())).or_default() += s.dur.0;
    }
    sums
}

#[test]
fn what_is_open_at_the_edges_is_cut_there() {
    let mut part = meeting();
    trim(&mut part, Range { from: Time(205), to: Time(1_015) });
    assert_golden("trimmed.txt", &text(&part));
}

#[test]
fn a_label_stands_for_the_time_from_its_mark_to_the_mark_that_ends_it() {
    let whole = meeting();
    assert_eq!(labelled(&whole, "Hello"), Some(Range { from: Time(150), to: Time(2_501) }));
    assert_eq!(labelled(&whole, "/hello"), Some(Range { from: Time(2_500), to: Time(i64::MAX) }));
    assert_eq!(labelled(&whole, "hell"), None);
    let mut part = whole.clone();
    trim(&mut part, labelled(&whole, "hello").unwrap());
    let marks = part.spans.iter().filter(|s| s.event() == i32::from(MARK_A)).count();
    assert_eq!((marks, cover(&part)), (2, [0, 1].map(|cpu| (on_cpu(cpu), (150, 2_501))).into()));
}

#[test]
fn within_a_step_there_is_one_span_for_each_thing_done() {
    let mut coarse = meeting();
    coarsen(&mut coarse, NonZeroU32::new(1_000).unwrap());
    assert_golden("coarse.txt", &text(&coarse));
}

#[test]
fn merged_spans_keep_a_value_only_if_all_had_it() {
    let call = Span { dur: Time(10), what: What::of(SYSCALL as i32), arg: 3, ret: 5, ipc: 8, ..idle() };
    let user = Span { dur: Time(10), what: What::of(user(Pid::new(7)) as i32), ..idle() };
    let list = [call, user, Span { ret: 6, ipc: 2, ..call }, user];
    let list = list.into_iter().zip(0..).map(|(s, i)| Span { start: Time(i * 10), ..s }).collect();
    let mut spans = Spans { names: vec!["x".into()], spans: list, ..Spans::default() };
    coarsen(&mut spans, NonZeroU32::new(100).unwrap());
    // IPC 1 to 1.25 and 1/4 to 3/8, each for half of the time.
    let merged = Span { dur: Time(20), ret: NONE, ipc: 5, ..call };
    assert_eq!(spans.spans, [merged, Span { start: Time(20), dur: Time(20), ..user }]);
}

#[test]
fn a_profile_shows_each_row_longest_first_and_idle_last() {
    let mut rows = meeting();
    profile(&mut rows, Rows::Each);
    assert_golden("profile_rows.txt", &text(&rows));
}

/// Number of times each of these began on CPU 0, according to a profile.
fn began(text: &str, names: &[&str]) -> Vec<i64> {
    let (mut rows, _) = build(read(&mut text.as_bytes()).unwrap());
    profile(&mut rows, Rows::Each);
    let count =
        |name: &&str| rows.spans.iter().find(|s| s.cpu == on_cpu(0) && rows.names[s.name] == **name).unwrap().arg;
    names.iter().map(count).collect()
}

#[test]
fn a_profile_does_not_count_what_began_before_the_trace() {
    let head = "# ## FORMAT: 5\n0 1 512 0  7 0  7 0 0 a.7 (200)\n";
    let lines = |first: &str| {
        let later = [
            (50, 2028, 0, "/timer (7ec)"),
            (60, 2047, 1, "/BH:timer (7ff)"),
            (70, 1550, 0, "/page_fault (60e)"),
            (80, 1038, 0, "page_fault (40e)"),
            (90, 1516, 0, "timer (5ec)"),
            (100, 2028, 0, "/timer (7ec)"),
            (110, 1535, 1, "BH:timer (5ff)"),
            (120, 2047, 1, "/BH:timer (7ff)"),
            (130, 1550, 0, "/page_fault (60e)"),
            (140, 3583, 0, "-sched- (dff)"),
        ];
        let line = |(ts, event, arg, name)| format!("{ts} 0 {event} 0  7 0  {arg} 0 0 {name}\n");
        [head.to_string(), first.to_string()].into_iter().chain(later.map(line)).collect::<String>()
    };
    assert_eq!(began(&lines(""), &["timer", "BH:timer", "page_fault"]), [1, 1, 1]);
    // After a gap the same.
    let gap = "10 0 512 0  7 0  7 0 0 a.7 (200)\n20 0 196608 0  7 0  0 0 0 -lost- (30000)\n30 1 512 0  7 0  7 0 0 a.7 (200)\n";
    assert_eq!(began(&lines(gap), &["timer", "BH:timer", "page_fault"]), [1, 1, 1]);
}

#[test]
fn a_profile_of_groups_averages_threads_of_the_same_name() {
    let mut groups = meeting();
    profile(&mut groups, Rows::Groups(2));
    assert_golden("profile_groups.txt", &text(&groups));
}

#[test]
fn a_group_of_one_row_is_shown_only_if_asked_for() {
    let whole = spans(&busy(1, 500, 3));
    for (min, shown) in [(1, true), (2, false)] {
        let mut groups = whole.clone();
        profile(&mut groups, Rows::Groups(min));
        assert_eq!(groups.names.contains(&"cpu_AVG (1)".to_string()), shown);
    }
}

#[test]
fn a_profile_of_rows_has_the_time_of_the_trace() {
    let whole = spans(&busy(3, 4_000, 9));
    let mut rows = whole.clone();
    profile(&mut rows, Rows::Each);
    let of_cpus = |spans: &Spans| {
        let mut sums: BTreeMap<(Option<CpuId>, i32, String), i64> = BTreeMap::new();
        for s in spans.spans.iter().filter(|s| s.cpu.is_some() && s.is_execution() && s.dur > Time::ZERO) {
            *sums.entry((s.cpu, s.event(), spans.names[s.name].clone())).or_default() += s.dur.0;
        }
        sums
    };
    assert_eq!(of_cpus(&rows), of_cpus(&whole));
    let of_threads = |spans: &Spans| {
        let time =
            |s: &&Span| s.thread().is_some() && (s.is_execution() || (WAIT_A..=WAIT_Z).contains(&(s.event() as u32)));
        spans.spans.iter().filter(time).map(|s| s.dur.0).sum::<i64>()
    };
    assert_eq!(of_threads(&rows), of_threads(&whole));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_part_of_a_trace_is_covered_exactly(seed in 1u64..1_000, from in -100i64..60_000, length in 1i64..60_000) {
        let whole = spans(&busy(2, 500, seed));
        let mut part = whole.clone();
        let to = from + length;
        trim(&mut part, Range { from: Time(from), to: Time(to) });
        let expected: BTreeMap<Option<CpuId>, (i64, i64)> = cover(&whole)
            .into_iter()
            .map(|(cpu, (first, last))| (cpu, (first.max(from), last.min(to))))
            .filter(|(_, (first, last))| first < last)
            .collect();
        prop_assert_eq!(cover(&part), expected);
        prop_assert!(part.spans.iter().all(|s| s.start.0 >= from && s.start.0 + s.dur.0 <= to.max(s.start.0 + 1)));
    }

    #[test]
    fn parts_end_to_end_are_the_whole(seed in 1u64..1_000, cut in 0i64..60_000) {
        let whole = spans(&busy(2, 500, seed));
        let (mut before, mut after) = (whole.clone(), whole.clone());
        trim(&mut before, Range { from: Time(i64::MIN), to: Time(cut) });
        trim(&mut after, Range { from: Time(cut), to: Time(i64::MAX) });
        let mut both = sums(&before);
        for (key, dur) in sums(&after) {
            *both.entry(key).or_default() += dur;
        }
        prop_assert_eq!(both, sums(&whole));
    }

    #[test]
    fn merging_keeps_the_sums_and_the_cover(seed in 1u64..1_000, step in 1u32..20_000) {
        let whole = spans(&busy(2, 500, seed));
        let mut coarse = whole.clone();
        coarsen(&mut coarse, NonZeroU32::new(step).unwrap());
        prop_assert_eq!(sums(&coarse), sums(&whole));
        prop_assert_eq!(cover(&coarse), cover(&whole));
        prop_assert!(coarse.spans.len() <= whole.spans.len());
    }
}
