// SPDX-License-Identifier: BSD-3-Clause
//! Traces of Perfetto's as a source: ours, written for it, come back as far as its schema carries them, and damage is
//! counted.

use std::collections::BTreeMap;

use kutrace_format::capability::Capability;
use kutrace_tests::draw::{drawn, sample, SAMPLES};
use postprocess::event::number;
use postprocess::id::{CpuId, Pid};
use postprocess::source::events::read;
use postprocess::span::what::{Activity, Share};
use postprocess::span::{build, Span, Spans};
use postprocess::time::Time;

/// From when to when each CPU was traced.
fn extents(spans: &Spans) -> BTreeMap<CpuId, (Time, Time)> {
    let mut extents = BTreeMap::new();
    for span in spans.spans.iter().filter(|span| span.is_execution()) {
        if let Some(cpu) = span.cpu {
            let (from, to) = extents.entry(cpu).or_insert((span.start, span.start));
            (*from, *to) = ((*from).min(span.start), (*to).max(span.start + span.dur));
        }
    }
    extents
}

/// Time for which each of these CPUs ran each thread within this range.
fn runs(spans: &Spans, within: &BTreeMap<CpuId, (Time, Time)>) -> BTreeMap<(CpuId, Pid), Time> {
    let mut sums = BTreeMap::new();
    for span in spans.spans.iter().filter(|span| span.is_execution()) {
        let Some((cpu, &(from, to))) = span.cpu.and_then(|cpu| Some((cpu, within.get(&cpu)?))) else { continue };
        let dur = (span.start + span.dur).min(to) - span.start.max(from);
        if let (Some(pid), true) = (span.pid, dur > Time::ZERO) {
            *sums.entry((cpu, pid)).or_insert(Time::ZERO) += dur;
        }
    }
    sums
}

/// CPUs that were lost or offline for some time, which Perfetto cannot show.
fn gaps(spans: &Spans) -> Vec<CpuId> {
    let is_gap = |a: Activity| matches!(a.share(), Share::Lost | Share::Offline);
    spans.spans.iter().filter(|s| s.activity().is_some_and(is_gap)).filter_map(|s| s.cpu).collect()
}

#[test]
fn what_was_written_for_perfetto_comes_back() {
    for name in SAMPLES {
        let spans = sample(name);
        let (again, tally) = build(read(&drawn(&spans).0[..]).unwrap());
        assert_eq!((tally.unknown, tally.late, &again.meta.quality[..]), (0, 0, &[][..]), "{name}");
        let wakeups = |spans: &Spans| -> Vec<(Time, u32)> {
            let woken = |s: &&Span| s.event() == number::RUNNABLE as i32;
            let mut all: Vec<_> = spans.spans.iter().filter(woken).map(|s| (s.start, s.arg as u32)).collect();
            all.sort();
            all
        };
        assert_eq!((&again.meta.host, wakeups(&again)), (&spans.meta.host, wakeups(&spans)), "{name}");
        assert_eq!(again.meta.tracebase, spans.meta.tracebase, "{name}");
        // A CPU exists from its first event to its last.
        let (mut within, skipped) = (extents(&again), gaps(&spans));
        within.retain(|cpu, _| !skipped.contains(cpu));
        let (told, read) = (runs(&spans, &within), runs(&again, &within));
        let all: i64 = told.values().map(|time| time.0).sum();
        let same: i64 = told.iter().map(|(of, time)| time.0.min(read.get(of).map_or(0, |time| time.0))).sum();
        assert!(same * 1_000 >= all * 999, "{name}: {same} of {all}");
        for unseen in [Capability::Calls, Capability::Softirqs, Capability::Faults] {
            assert!(!again.meta.sees(unseen), "{name}");
        }
        assert!(again.meta.sees(Capability::Wakeups) && again.meta.sees(Capability::Losses), "{name}");
    }
}

#[test]
fn a_trace_that_is_cut_off_says_where() {
    let whole = drawn(&sample(SAMPLES[0])).0;
    let all = read(&whole[..]).unwrap();
    for cut in [whole.len() - 1, whole.len() / 2, 5_000] {
        let part = read(&whole[..cut]).unwrap();
        let [said] = &part.meta.quality[..] else { panic!("{cut}: {:?}", part.meta.quality) };
        let at: usize = said.strip_prefix("byte ").unwrap().split(':').next().unwrap().parse().unwrap();
        assert!(at < cut && part.events.len() <= all.events.len(), "{said}");
        assert!(read(&whole[..at]).unwrap().meta.quality.is_empty(), "a packet begins at byte {at}");
    }
}

#[test]
fn a_damaged_trace_is_read_without_a_panic() {
    let whole = drawn(&sample(SAMPLES[0])).0;
    let whole = &whole[..whole.len().min(60_000)];
    let mut counted = 0;
    for (at, byte) in (0..whole.len()).step_by(397).zip([0, 0xff, 0x0a, 0x80, 7].iter().cycle()) {
        let mut damaged = whole.to_vec();
        damaged[at] = *byte;
        if let Ok(events) = read(&damaged[..]) {
            counted += events.meta.quality.len();
            let _ = build(events);
        }
    }
    assert!(counted > 10, "{counted}");
}
