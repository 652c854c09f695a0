// SPDX-License-Identifier: BSD-3-Clause
//! Two traces: equal things are not reported as different, planted differences are found, and their cause is named
//! first.

use std::collections::BTreeSet;

use kutrace_tests::cases::cases;
use kutrace_tests::TraceBuilder;
use postprocess::why::change::{changes, Verdict};
use postprocess::why::diff::{Before, Diff, Question};
use postprocess::why::request::{find, Ask};
use postprocess::why::Timeline;
use serde_json::Value;

use crate::golden::assert_golden;
use crate::schema::wrong;
use crate::why::{holder_in_fsync, made, sample, spans};

/// Changes by less do not matter.
const ABOVE: f64 = 0.05;

fn question(ask: Ask) -> Question {
    Question { ask, above: ABOVE, top: 10, page: "t.html".to_string() }
}

fn diff(before: &[u8], after: &[u8]) -> Diff {
    let [before, after] = [before, after].map(spans);
    let kept = Before::new(&Timeline::new(&before), question(Ask::Mark("q".into()))).unwrap();
    kept.diff(&Timeline::new(&after)).unwrap()
}

/// Requests of a sample, in the order of their start.
fn durations(name: &str, ask: &Ask) -> Vec<i64> {
    let spans = sample(name);
    let mut requests = find(&Timeline::new(&spans), ask).unwrap().requests;
    requests.sort_by_key(|request| (request.start, request.pid));
    requests.iter().map(|request| request.dur().0).collect()
}

fn differ(before: &[i64], after: &[i64]) -> bool {
    changes(before, after, ABOVE).iter().any(|change| change.verdict != Verdict::Same)
}

/// Numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    /// Between 0 and 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[test]
fn halves_of_one_recording_do_not_differ() {
    let (client, server) = (Ask::Client("redis-benchmark".into()), Ask::Serve("redis-server".into()));
    let (lock, fault, open) = (Ask::Call("futex".into()), Ask::Call("page_fault".into()), Ask::Call("openat".into()));
    for (name, ask) in [("redis", client), ("redis", server), ("convoy", lock), ("faults", fault), ("hello", open)] {
        let all = durations(name, &ask);
        let every_other = |from: usize| all.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
        assert!(!differ(&every_other(0), &every_other(1)), "{name} {ask:?}");
        let mut dice = Dice(1);
        let drawn = (0..20).filter(|_| {
            let halves: (Vec<i64>, Vec<i64>) = all.iter().partition(|_| dice.next() < 0.5);
            differ(&halves.0, &halves.1)
        });
        let alarms = drawn.count();
        assert!(alarms <= 1, "{name} {ask:?}: {alarms} of 20");
    }
}

/// The requests of a load whose state changes now and then: what follows each other is alike, and some take much
/// longer.
fn load(dice: &mut Dice, requests: usize, change: f64) -> Vec<i64> {
    let mut state = 0.0;
    let durations = (0..requests).map(|_| {
        state = 0.9 * state + 0.1 * (dice.next() - 0.5);
        let tail = if dice.next() < 0.03 { 1.0 + 9.0 * dice.next() } else { 1.0 };
        (10_000.0 * (1.0 + change) * (1.0 + state + 0.2 * dice.next()) * tail) as i64
    });
    durations.collect()
}

#[test]
fn few_pairs_of_one_load_differ_and_a_fifth_more_is_found() {
    let mut dice = Dice(2);
    let pairs = cases(20);
    let mut of = |change: f64, requests: usize| {
        (0..pairs).filter(|_| differ(&load(&mut dice, requests, 0.0), &load(&mut dice, requests, change))).count()
    };
    for (requests, percent) in [(40, 2), (400, 1)] {
        let alarms = of(0.0, requests);
        assert!(alarms * 100 <= pairs * percent, "{alarms} of {pairs} pairs of {requests}");
    }
    // A change too small to matter is not a difference either.
    assert!(of(0.04, 400) * 100 <= pairs);
    for change in [0.2, -0.2] {
        let found = of(change, 400);
        assert!(found * 1000 >= pairs * 975, "{found} of {pairs}");
    }
}

#[test]
fn a_change_in_a_few_requests_is_found_in_a_high_percentile() {
    let mut dice = Dice(3);
    let before = load(&mut dice, 2_000, 0.0);
    let mut after = load(&mut dice, 2_000, 0.0);
    after.iter_mut().step_by(20).for_each(|dur| *dur += 200_000);
    let verdicts: Vec<_> = changes(&before, &after, ABOVE).iter().map(|c| (c.percentile, c.verdict)).collect();
    assert_eq!(verdicts[0], (0.5, Verdict::Same));
    assert_eq!(verdicts[2], (0.99, Verdict::Slower));
}

/// Asserts that the difference planted in one of this many requests is named first, both when it appears and when it
/// goes.
fn assert_first(of: u64, cause: &str, culprit: &str, plant: impl FnMut(&mut TraceBuilder, u64) -> u64) {
    let (without, with) = (made(200, 1, |_, at| at), made(200, of, plant));
    let slower = diff(&without, &with);
    assert_eq!(slower.verdict, Verdict::Slower, "{}", slower.text());
    let through = slower.through.as_ref().unwrap();
    let first = &through.causes[0];
    assert_eq!((&*first.cause, &*first.culprit), (cause, culprit), "{}", slower.text());
    assert!(first.share > 0.9 && first.in_before == 0 && first.in_after > 0 && first.time > 0.0, "{first:?}");
    assert!(first.examples.len() == 3 && first.examples[0].address.starts_with("t.html#request="), "{first:?}");
    assert!(slower.text().lines().any(|line| line.starts_with("1. ") && line.ends_with(cause)), "{}", slower.text());
    let faster = diff(&with, &without);
    assert_eq!(faster.verdict, Verdict::Faster);
    let first = &faster.through.as_ref().unwrap().causes[0];
    assert!(first.cause == cause && first.time < 0.0 && first.share > 0.9 && first.in_after == 0, "{first:?}");
    for same in [&without, &with] {
        let same = diff(same, same);
        assert_eq!((same.verdict, same.through), (Verdict::Same, None));
    }
}

#[test]
fn who_has_the_cpu_since_is_told() {
    assert_first(1, "waiting for a CPU that ran hog", "hog", |trace, at| {
        trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None).switch(at + 5_000, 100, "worker");
        at + 5_020
    });
}

#[test]
fn a_holder_of_a_lock_that_waits_for_the_disk_since_is_told() {
    let cause = "waiting for a lock of other, meanwhile waiting for the disk (irq#36)";
    assert_first(2, cause, "other", holder_in_fsync);
}

#[test]
fn a_call_that_takes_longer_in_a_sixth_of_the_requests_is_told() {
    assert_first(6, "running in write", "write", |trace, at| {
        trace.cpu(0).call(at + 10, 1, 3).small_return(at + 3_000, 0);
        at + 3_000
    });
}

#[test]
fn samples_are_compared_and_said_of() {
    let [disk, hello] = ["disk", "hello"].map(sample);
    let between =
        |a, b| Before::new(&Timeline::new(a), question(Ask::Call("openat".into()))).unwrap().diff(&Timeline::new(b));
    let slower = between(&disk, &hello).unwrap();
    assert_eq!(slower.verdict, Verdict::Slower);
    assert_golden("diff/slower.txt", &slower.text());
    assert_golden("diff/faster.txt", &between(&hello, &disk).unwrap().text());
    assert_golden("diff/same.txt", &between(&hello, &hello).unwrap().text());
}

#[test]
fn what_cannot_be_compared_is_no_difference_but_said() {
    let [redis, faults] = ["redis", "faults"].map(sample);
    let asked = |spans, ask| Before::new(&Timeline::new(spans), question(ask)).map(|_| ());
    let few = asked(&faults, Ask::Best).unwrap_err();
    let said = "too few requests to compare: 1, at least 20 are needed; processes named faults, from start to end";
    assert_eq!(few, said);
    assert!(asked(&redis, Ask::Call("fsync".into())).unwrap_err().starts_with("no requests: "));
    // The first trace decides the kind of request.
    let kept = Before::new(&Timeline::new(&redis), question(Ask::Best)).unwrap();
    let none = kept.diff(&Timeline::new(&faults)).unwrap_err();
    assert!(none.starts_with("no requests: the trace has none of: requests of redis-benchmark"), "{none}");
}

#[test]
fn its_json_is_as_its_schema_says() {
    let schema: Value = serde_json::from_str(include_str!("../../docs/diff.schema.json")).unwrap();
    let samples = ["convoy", "disk", "faults", "hello", "pipeline", "slices"].map(sample);
    let mut verdicts = BTreeSet::new();
    for (before, after) in samples.iter().flat_map(|before| samples.iter().map(move |after| (before, after))) {
        let kept = Before::new(&Timeline::new(before), question(Ask::Call("page_fault".into()))).unwrap();
        let diff = kept.diff(&Timeline::new(after)).unwrap();
        let value = serde_json::to_value(&diff).unwrap();
        assert_eq!(wrong(&schema, &value), [""; 0]);
        verdicts.insert(format!("{:?}", diff.verdict));
    }
    assert_eq!(verdicts.len(), 3, "{verdicts:?}");
    assert!(wrong(&schema, &serde_json::json!({ "before": "many", "more": 1 })).len() > 5);
}
