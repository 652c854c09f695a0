// SPDX-License-Identifier: BSD-3-Clause
//! Small traces in which a cause was planted, as `cargo xtask bench why` records them: `why` names it first.

use std::fs;
use std::path::Path;
use std::process::Command;

use kutrace_tests::causes::{cases, Case, Found};
use postprocess::why::check::check;
use postprocess::why::{explain, Question, Timeline, Why};

use crate::why::{files, spans};

/// Bytes of all of them, at most.
const MAX: u64 = 1_000_000;

/// The recorded cases, each with what `why` makes of it.
fn recorded() -> Vec<(Case, Why)> {
    let all = cases(include_str!("../causes/cases.txt"));
    let explained = files("golden/causes", "xz").into_iter().map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
        let case = all.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("{name}: no such case"));
        let unpacked = Command::new("xz").arg("-dc").arg(&path).output().expect("xz runs: apt-get install xz-utils");
        let spans = spans(&unpacked.stdout);
        let timeline = Timeline::new(&spans);
        assert_eq!(check(&timeline, &case.ask).unwrap(), [""; 0], "{name}");
        let why = explain(&timeline, &Question { ask: case.ask.clone(), ..Question::default() }).unwrap();
        (case.clone(), why)
    });
    explained.collect()
}

#[test]
fn what_was_planted_comes_first_and_nothing_where_nothing_was() {
    for (case, why) in recorded() {
        assert_eq!(case.found(&why), Found::At(1), "{}: {}", case.name, why.text());
        // What is asked of a planted cause does not hold of a control, nor the other way round.
        let answers =
            if case.answers.is_empty() { cases("x one\n= user |  | user code\n")[0].answers.clone() } else { vec![] };
        assert_eq!(Case { answers, ..case.clone() }.found(&why), Found::Not, "{}", case.name);
    }
}

#[test]
fn they_are_small() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/causes");
    let sizes = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let all: u64 = sizes.sum();
    assert!(all < MAX, "{all}");
}
