// SPDX-License-Identifier: BSD-3-Clause
//! Notable and usual causes.

use postprocess::time::Time;
use postprocess::why::compare::EXCESS_TIME_MIN;
use postprocess::why::request::Ask;
use postprocess::why::{explain, Question, Timeline};

use super::planted::{asked, made, question, trace_of};
use super::spans;

/// Six requests of 600 that take some microseconds more are usual; if it is asked, or if there are sixty, they are not.
#[test]
fn what_is_rare_and_short_does_not_stand_out() {
    let delayed = |of: u64| {
        made(600, of, |trace, at| {
            trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None).switch(at + 800, 100, "worker");
            at + 820
        })
    };
    let causes = |of: u64, excess_min: Time| {
        let question = Question { slow: 1.0 / of as f64, excess_min, ..question(Ask::Mark("q".into())) };
        let why = explain(&Timeline::new(&spans(&delayed(of))), &question).unwrap();
        let compared = why.compared.as_ref().unwrap();
        assert_eq!((why.count as u64, compared.slow.count as u64), (600, 600 / of));
        assert_eq!(why.text().contains("\nnothing stands out: "), compared.causes.is_empty(), "{}", why.text());
        compared.causes.first().map(|cause| cause.culprit.clone())
    };
    let hog = Some("hog.300".to_string());
    assert_eq!(causes(100, EXCESS_TIME_MIN), None);
    assert_eq!(causes(100, Time::ZERO), hog);
    assert_eq!(causes(10, EXCESS_TIME_MIN), hog);
}

/// The slowest of a few must take twice as long as the others: that one of eight takes half as long again is chance.
#[test]
fn of_few_requests_one_stands_out_that_takes_twice_as_long() {
    let one_of = |requests: u64, hog: u64| {
        let delayed = made(requests, requests, |trace, at| {
            let end = at + 40 + hog;
            trace.cpu(0).switch(at + 10, 300, "hog").task(at + 30, 300, "hog", None).switch(end - 20, 100, "worker");
            end
        });
        let question = Question { excess_min: Time::ZERO, ..question(Ask::Mark("q".into())) };
        let why = explain(&Timeline::new(&spans(&delayed)), &question).unwrap();
        why.compared.map(|compared| (compared.slow.count, compared.causes.first().map(|first| first.culprit.clone())))
    };
    let hog = Some("hog.300".to_string());
    assert_eq!(one_of(3, 5_000), None);
    assert_eq!(one_of(4, 5_000), Some((1, hog.clone())));
    assert_eq!(one_of(8, 5_000), Some((2, hog.clone())));
    assert_eq!(one_of(8, 100), Some((2, None)));
    assert_eq!(one_of(20, 100), Some((5, hog)));
}

#[test]
fn nothing_stands_out_where_nothing_does() {
    let why = asked(&trace_of(|_, at| at), &Ask::Mark("q".into()));
    assert!(why.text().contains("\nnothing stands out\n"), "{}", why.text());
    assert_eq!(why.compared.unwrap().causes, []);
}

#[test]
fn how_many_slow_ones_are_left_is_said() {
    let spans = spans(&trace_of(|_, at| at + 1_000));
    let asked = |slow: f64, normal| {
        explain(&Timeline::new(&spans), &Question { slow, normal, ..question(Ask::Mark("q".into())) })
    };
    let error = asked(0.01, 0.0..1.0).unwrap_err();
    assert_eq!(error, "nothing to compare: none of 60 requests is slower than --normal 0..100");
    assert!(asked(0.01, 1.0..1.0).is_err());
    let note = "more\n(60 were requested; those that are not slower than the normal ones are omitted)\n\n";
    for (slow, count, asked_for) in [(1.0, 24, 60), (0.4, 24, 24), (0.01, 5, 5)] {
        let why = asked(slow, 0.4..0.6).unwrap();
        assert_eq!(why.text().contains(note), count < asked_for, "{}", why.text());
        let compared = why.compared.unwrap();
        assert_eq!((compared.slow.count, compared.slow_asked), (count, asked_for));
    }
}
