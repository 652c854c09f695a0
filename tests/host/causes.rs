// SPDX-License-Identifier: BSD-3-Clause
//! Small traces with a planted cause, as `cargo xtask bench why` records them: `why` names it first.
//!
//! `KUTRACE_CAUSES=$PWD/target/bench/why cargo test -p kutrace-tests --test host causes` makes the missing ones from its
//! recordings: for each case the shortest part in which the planted cause still comes first.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kutrace_tests::causes::{cases, Case, Found};
use postprocess::why::request::Ask;
use postprocess::why::Why;

use crate::why::files;

/// Bytes of one of them, and of all, at most.
const MAX: u64 = 220_000;
const MAX_OF_ALL: u64 = 3_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/causes")
}

/// The cases, and those that are recorded, unpacked, by name.
pub fn recorded() -> &'static [(Case, Vec<u8>)] {
    static RECORDED: OnceLock<Vec<(Case, Vec<u8>)>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let all = cases(include_str!("../causes/cases.txt"));
        if let Some(recordings) = env::var_os("KUTRACE_CAUSES") {
            all.iter().for_each(|case| renew(case, Path::new(&recordings)));
        }
        let unpacked = files("golden/causes", "xz").into_iter().map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
            let case = all.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("{name}: no such case"));
            let unpacked =
                Command::new("xz").arg("-dc").arg(&path).output().expect("xz runs: apt-get install xz-utils");
            (case.clone(), unpacked.stdout)
        });
        unpacked.collect()
    })
}

/// Cuts the recording of a case short, if there is one and its planted cause comes first.
fn renew(case: &Case, recordings: &Path) {
    let path = folder().join(format!("{}.trace", case.name));
    let packed = path.with_extension("trace.xz");
    let Ok(bytes) = fs::read(recordings.join(format!("{}.trace", case.name))) else { return };
    if packed.exists() {
        return;
    }
    let Some(cut) = case.shortest(&bytes) else { return eprintln!("{}: not what was planted comes first", case.name) };
    fs::write(&path, cut).unwrap();
    let status = Command::new("xz").arg("-9ef").arg(&path).status().expect("xz runs: apt-get install xz-utils");
    assert!(status.success(), "{}", case.name);
    if fs::metadata(&packed).unwrap().len() >= MAX {
        eprintln!("{}: too large", case.name);
        fs::remove_file(packed).unwrap();
    }
}

fn explained((case, bytes): &(Case, Vec<u8>)) -> Why {
    case.explained(bytes).unwrap_or_else(|fact| panic!("{}: {fact}", case.name))
}

#[test]
fn what_was_planted_comes_first_and_nothing_where_nothing_was() {
    for one in recorded() {
        let (case, why) = (&one.0, explained(one));
        assert_eq!(case.found(&why), Found::At(1), "{}: {}", case.name, why.text());
        // The requirements of a planted cause do not hold for a control, nor the reverse.
        let answers =
            if case.answers.is_empty() { cases("x one\n= user |  | user code\n")[0].answers.clone() } else { vec![] };
        assert_eq!(Case { answers, ..case.clone() }.found(&why), Found::Not, "{}", case.name);
    }
}

#[test]
fn a_server_that_was_stopped_is_told_from_its_own_side() {
    let (case, bytes) = recorded().iter().find(|(case, _)| case.name == "stopped").unwrap();
    let why = Case { ask: Ask::Serve("mc-worker".into()), ..case.clone() }.explained(bytes).unwrap();
    let first = &why.compared.as_ref().unwrap().causes[0];
    assert!(first.cause.starts_with("stopped until a signal of halt.") && first.share > 0.9, "{}", why.text());
}

#[test]
fn they_are_small() {
    recorded();
    let sizes = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    let all: u64 = sizes.iter().sum();
    assert!(all < MAX_OF_ALL && sizes.iter().all(|size| *size < MAX), "{all}: {sizes:?}");
}
