// SPDX-License-Identifier: BSD-3-Clause
//! The stories of docs/stories.md: the answers in it are those of the tools, and the cause that it names comes first
//! before the fix and not after it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use kutrace_tests::causes::{cases, Case, Found};
use kutrace_tools::ask::{Asked, Between};
use postprocess::span::Spans;
use postprocess::why::change::Verdict;
use postprocess::why::diff::{Before, Question};
use postprocess::why::{Timeline, Why};

use crate::why::{files, spans};

/// Bytes of a packed trace, at most.
const MAX: u64 = 220_000;

/// Per story, as in tests/causes/cases.txt: its requests, and what their first cause has to be before the fix.
const STORIES: &str = include_str!("../causes/stories.txt");

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/stories.md")
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/stories"))
}

/// A trace of a story, unpacked: `NAME.before.trace` or `NAME.after.trace`.
fn unpacked(name: &str) -> Vec<u8> {
    let packed = folder().join(format!("{name}.xz"));
    let unpacked = Command::new("xz").arg("-dc").arg(&packed).output().expect("xz runs: apt-get install xz-utils");
    assert!(unpacked.status.success(), "{}", packed.display());
    unpacked.stdout
}

/// A story's requests before the fix and after it.
fn both(case: &Case) -> [Vec<u8>; 2] {
    ["before", "after"].map(|when| unpacked(&format!("{}.{when}.trace", case.name)))
}

/// True if the story's cause comes first: among those of slow requests if any stand out, else among those of all.
fn is_first(case: &Case, why: &Why) -> bool {
    match &why.compared {
        Some(compared) if !compared.causes.is_empty() => case.found(why) == Found::At(1),
        _ => case.is_most_of_all(why),
    }
}

#[test]
fn the_cause_of_each_story_comes_first_before_the_fix_and_not_after() {
    for case in &cases(STORIES) {
        let [before, after] =
            both(case).map(|bytes| case.explained(&bytes).unwrap_or_else(|fact| panic!("{}: {fact}", case.name)));
        assert!(is_first(case, &before), "{}: {}", case.name, before.text());
        assert!(!is_first(case, &after), "{}: {}", case.name, after.text());
    }
}

#[test]
fn each_fix_makes_requests_faster() {
    for case in &cases(STORIES) {
        let [before, after] = both(case).map(|bytes| spans(&bytes));
        let question = Question { ask: case.ask.clone(), above: 0.05, top: 10, page: "t.html".to_string() };
        let kept = Before::new(&Timeline::new(&before), question).unwrap();
        let diff = kept.diff(&Timeline::new(&after)).unwrap();
        assert_eq!(diff.verdict, Verdict::Faster, "{}: {}", case.name, diff.text());
    }
}

/// Options of a command, as its tool reads them.
fn options<A: Args>(words: &[&str]) -> A {
    let command = A::augment_args(clap::Command::new("kutrace_control").no_binary_name(true));
    A::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn trace(name: &str) -> Spans {
    spans(&unpacked(name))
}

/// Output of a command, given without `kutrace_control`.
fn answer(command: &str) -> String {
    let answer = match command.split(' ').collect::<Vec<_>>()[..] {
        ["why", file, ref rest @ ..] => {
            let asked: Asked = options(rest);
            asked.answer(&Timeline::new(&trace(file)), Some(Path::new(file))).unwrap()
        }
        ["diff", before, after, ref rest @ ..] => {
            let between: Between = options(rest);
            let kept = between.before(&Timeline::new(&trace(before)), Some(Path::new(after))).unwrap();
            between.answer(kept, &Timeline::new(&trace(after))).unwrap().text
        }
        _ => panic!("{command}"),
    };
    answer.trim_end().to_string()
}

/// With UPDATE_GOLDEN set, the document is written again.
#[test]
fn the_answers_in_the_document_are_those_of_the_tools() {
    const BEGINS: &str = "```\n$ kutrace_control ";
    const ENDS: &str = "\n```";
    let document = fs::read_to_string(document()).unwrap();
    let mut parts = document.split(BEGINS);
    let mut renewed = parts.next().unwrap().to_string();
    let mut count = 0;
    for part in parts {
        let (block, rest) = part.split_once(ENDS).unwrap();
        let command = block.lines().next().unwrap();
        renewed += &format!("{BEGINS}{command}\n{}{ENDS}{rest}", answer(command));
        count += 1;
    }
    assert!(count >= 2 * cases(STORIES).len());
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(self::document(), renewed).unwrap();
    } else {
        assert_eq!(document, renewed);
    }
}

#[test]
fn each_story_is_told_and_recorded_and_shown() {
    let document = fs::read_to_string(document()).unwrap();
    for Case { name, .. } in cases(STORIES) {
        for told in [format!("`{name}.sh`"), format!("pictures/story-{name}.png")] {
            assert!(document.contains(&told), "{told}");
        }
        assert!(folder().join(format!("{name}.sh")).exists());
        assert!(folder().join(format!("../../docs/pictures/story-{name}.png")).exists());
    }
    for packed in files("../samples/stories", "xz") {
        assert!(packed.metadata().unwrap().len() < MAX, "{}", packed.display());
    }
}
