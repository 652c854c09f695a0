// SPDX-License-Identifier: BSD-3-Clause
//! One case for every rule of the state machine, each a file of `tests/golden/rules`: its purpose, the events, under
//! each the spans it closed, then the pending spans.
//!
//! The events of the file are the test's input: a new case is a file of comments and event lines, and
//! `UPDATE_GOLDEN=1`.

use std::fs;
use std::path::Path;

use postprocess::event::Events;
use postprocess::source::events::read;
use postprocess::span::build::Builder;
use postprocess::span::{build, Span};

use crate::golden::assert_golden;
use crate::span::told;

/// The spans of events if all that are certain are taken after each event.
fn taken_at_once(events: Events) -> Vec<Span> {
    let mut builder = Builder::new(&events.meta, events.names);
    let mut spans = Vec::new();
    for event in &events.events {
        builder.push(event);
        spans.append(&mut builder.take());
    }
    spans.extend(builder.finish(events.meta).0.spans);
    spans.sort_by_key(|span| (span.start, span.dur, span.cpu, span.pid, span.event()));
    spans
}

/// The spans of events, in the same order.
fn whole(events: Events) -> Vec<Span> {
    let mut spans = build(events).0.spans;
    spans.sort_by_key(|span| (span.start, span.dur, span.cpu, span.pid, span.event()));
    spans
}

#[test]
fn every_rule_is_as_its_case_shows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/rules");
    let mut names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() >= 40);
    for name in names {
        let case = fs::read_to_string(folder.join(&name)).unwrap();
        let said = case.lines().take_while(|line| *line != "pending").filter(|line| !line.starts_with(' '));
        let (comments, lines): (Vec<&str>, Vec<&str>) = said.partition(|line| line.starts_with('#'));
        let events = read(&mut [&comments[..], &lines].concat().join("\n").as_bytes()).unwrap();
        assert_eq!((events.meta.quality.len(), events.events.len()), (0, lines.len()), "{name}");
        assert_eq!(taken_at_once(events.clone()), whole(events.clone()), "{name}: taken after each event");
        assert_golden(&format!("rules/{name}"), &format!("{}\n{}", comments.join("\n"), told(events, i64::MIN)));
    }
}
