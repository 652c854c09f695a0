// SPDX-License-Identifier: BSD-3-Clause
//! The recorded samples are whole, and show what samples/README.md says.

use std::fs;
use std::path::Path;

use postprocess::event::number::SYSCALL;
use postprocess::event::Events;
use postprocess::raw;
use postprocess::span::{build, check, Spans};

fn sample(name: &str) -> (Events, Spans) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name);
    let events = raw::decode(&fs::read(path).unwrap()).unwrap();
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
