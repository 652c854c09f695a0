// SPDX-License-Identifier: BSD-3-Clause
//! The same work took longer since it was done slower: fewer instructions per cycle, more cache misses, a lower frequency.

use kutrace_format::abi::event::FREQUENCY;
use postprocess::span::Spans;
use postprocess::why::compare::Excess;
use postprocess::why::request::Ask;
use postprocess::why::{explain, Question, Timeline};

use super::planted::{made, question, trace_of, REQUESTS, SLOW};
use super::spans;

/// Causes that make slow requests of `spans` slow, largest first.
fn causes(spans: &Spans) -> Vec<Excess> {
    let question = Question { slow: 1.0 / SLOW as f64, ..question(Ask::Mark("q".into())) };
    explain(&Timeline::new(spans), &question).unwrap().compared.unwrap().causes
}

/// Slow requests that take about 40 times as long; their counters have the same codes as the others, or not.
pub fn counted(flags: u32, usual: u8, slow: u8) -> Spans {
    let mut spans = spans(&made(REQUESTS, SLOW, |_, at| at + 4_000));
    spans.meta.flags |= flags;
    spans.spans.iter_mut().for_each(|span| span.ipc = if span.dur.0 > 1_000 { slow } else { usual });
    // The time between two requests belongs to neither.
    spans
}

#[test]
fn fewer_instructions_per_cycle_and_more_misses_are_causes() {
    for (flags, usual, slow, said) in [
        (0x80, 8, 2, "user code, slower: 0.31 instructions per cycle, not 1.12"),
        // Two bits of each.
        (0xa0, 0b1000, 0b0111, "user code, slower: 0.75 instructions per cycle, not 1.50"),
        (0x20, 0, 11, "user code, slower: 149.85 cache misses per us, not 0.00"),
    ] {
        let causes = causes(&counted(flags, usual, slow));
        assert_eq!(causes[0].cause, said, "{causes:#?}");
        assert!(causes[0].share > 0.4 && causes[0].in_slow == 6, "{causes:#?}");
        // At the same pace there is only more of it.
        let same = self::causes(&counted(flags, usual, usual));
        assert_eq!((same.len(), &*same[0].cause), (1, "user code"));
    }
}

/// One in ten requests takes longer, at a lower frequency or at the same.
pub fn at_frequency(mhz: u32) -> Vec<u8> {
    trace_of(move |trace, at| {
        trace.cpu(0).entry(at + 1, FREQUENCY, &[3_000]).entry(at + 4_000, FREQUENCY, &[mhz]);
        at + 4_000
    })
}

#[test]
fn a_lower_frequency_is_a_cause() {
    let slower = causes(&spans(&at_frequency(1_000)));
    assert!(slower[0].cause.starts_with("user code, slower: 1.0") && slower[0].cause.ends_with(" GHz, not 3.00"));
    assert!((0.6..0.7).contains(&slower[0].share), "{slower:#?}");
    assert_eq!((&*slower[1].cause, slower.len()), ("user code", 2));
    let same = causes(&spans(&at_frequency(3_000)));
    assert_eq!((same.len(), &*same[0].cause), (1, "user code"));
}
