// SPDX-License-Identifier: BSD-3-Clause
//! One case for every rule of the state machine, each a file of `tests/golden/rules`: its purpose, the events, under
//! each the spans it closed, then the pending spans.
//!
//! The events of the file are the test's input: a new case is a file of comments and event lines, and
//! `UPDATE_GOLDEN=1`.

use std::fs;
use std::path::Path;

use postprocess::source::events::read;

use crate::golden::assert_golden;
use crate::span::told;

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
        assert_golden(&format!("rules/{name}"), &format!("{}\n{}", comments.join("\n"), told(events, i64::MIN)));
    }
}
