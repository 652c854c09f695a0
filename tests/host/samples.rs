// SPDX-License-Identifier: BSD-3-Clause
//! The recorded samples are whole, and show what samples/README.md says.

use std::fs;
use std::path::Path;

use kutrace_tests::repeat::Recorded;
use postprocess::event::number::SYSCALL;
use postprocess::event::Events;
use postprocess::raw;
use postprocess::span::{build, check, Spans};

fn bytes(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name)).unwrap()
}

fn sample(name: &str) -> (Events, Spans) {
    let events = raw::decode(&bytes(name)).unwrap();
    assert!(events.meta.is_whole(), "{:?}", events.meta);
    let (spans, tally) = build(events.clone());
    assert_eq!(check(&spans, &events.meta.intervals, &tally), [""; 0]);
    assert_eq!((tally.repairs, tally.late, tally.unknown), (0, 0, 0));
    (events, spans)
}

#[test]
fn the_pipeline_forks_three_children_which_take_their_names() {
    let (events, spans) = sample("pipeline.raw");
    for program in ["seq", "sort", "tail"] {
        let user = |name: &String| name.strip_prefix(program).is_some_and(|rest| rest.starts_with('.'));
        assert!(spans.names.iter().any(user), "{program} never runs under its name");
    }
    let names = &events.names;
    let from_clone = events.events.iter().filter(|e| names.text(e.name) == "/clone" && e.ret == 0).count();
    assert_eq!(from_clone, 4, "bash and its three children begin by returning from clone");
    assert!(events.events.iter().any(|e| e.event == SYSCALL + 59), "execve");
    assert!(events.events.iter().any(|e| names.text(e.name) == "virtio0" && e.cpu == 1));
}

#[test]
fn a_sample_repeated_is_a_whole_trace_as_long() {
    let once = bytes("pipeline.raw");
    let recorded = Recorded::new(&once).unwrap();
    let mut bytes = Vec::new();
    let entries = recorded.repeat(recorded.entries() * 3 - 1, &mut bytes).unwrap();
    assert_eq!(entries, recorded.entries() * 3);
    let (once, thrice) = (raw::decode(&once).unwrap(), raw::decode(&bytes).unwrap());
    assert!(thrice.meta.is_whole(), "{:?}", thrice.meta);
    let transitions = |events: &Events| events.events.iter().filter(|e| e.event >= 0x400).count();
    let seams = 2 * 3 * once.meta.intervals.len();
    assert!((3 * transitions(&once)..=3 * transitions(&once) + seams).contains(&transitions(&thrice)));
    let (spans, tally) = build(thrice.clone());
    assert_eq!(check(&spans, &thrice.meta.intervals, &tally), [""; 0]);
    assert_eq!((tally.late, tally.unknown), (0, 0));
}
