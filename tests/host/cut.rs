// SPDX-License-Identifier: BSD-3-Clause
//! Recordings begin, end and lose events in the middle of anything: the spans of every part of a trace match the
//! events.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use kutrace_tests::check::{self, Texts};
use kutrace_tests::cut::{entries, part, Part};
use kutrace_tests::{reader, Random};
use postprocess::raw;
use postprocess::source;
use postprocess::span::{self, build};

/// Counts in a millisecond, about.
const MS: u64 = 160_000;

/// Parts of each trace: one, or `KUTRACE_CUTS`; `cargo xtask test` sets 4, `night` 12.
fn cuts() -> u64 {
    env::var("KUTRACE_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(1)
}

/// The samples; `KUTRACE_TRACES` is a folder with others.
fn traces() -> Vec<PathBuf> {
    let samples = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let folder = env::var_os("KUTRACE_TRACES").map_or_else(samples, PathBuf::from);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "trace" || ending == "raw"));
    files.sort();
    files
}

/// One of the parts: of one in three nothing is missing, one in three lost events, and one in three wrapped.
fn any(moments: &[u64], cpus: u32, n: u64, random: &mut Random) -> Part {
    let mut moment = || moments[random.below(moments.len() as u64) as usize];
    let (a, b) = (moment(), moment());
    let mut part = Part { from: a.min(b), to: a.max(b), ..Part::default() };
    match n % 3 {
        1 => {
            for _ in 0..=random.below(3) {
                let from = part.from + random.below(part.to - part.from + 1);
                part.lost.push((random.below(cpus.into()) as u32, from, from + 1 + random.below(20 * MS)));
            }
        }
        2 => part.late = (0..cpus).map(|cpu| (cpu, random.below((part.to - part.from) / 2 + 1))).collect(),
        _ => {}
    }
    part
}

#[test]
fn of_every_part_of_a_trace_the_spans_say_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = String::new();
    for (path, first) in traces().into_iter().zip(0..) {
        let mut parts = Vec::new();
        let bytes = fs::read(&path).unwrap();
        let raw = raw::parse(&bytes).unwrap();
        let entries = entries(&raw);
        let moments: Vec<u64> = entries.iter().map(|(_, timed)| timed.at).collect();
        let mut random = Random(env::var("KUTRACE_SEED").map_or(7, |seed| seed.parse().unwrap()));
        for n in first..first + cuts() {
            let cut = any(&moments, raw.header.cpus, n, &mut random);
            let name = format!("{}_{n}", path.file_stem().unwrap().to_string_lossy());
            let bytes = part(&raw, &entries, &cut).bytes();
            let at = folder.path().join(&name);
            fs::create_dir(&at).unwrap();
            fs::write(at.join("raw"), &bytes).unwrap();
            let events = source::decode(&bytes).unwrap();
            let intervals = events.meta.intervals.clone();
            let (spans, tally) = build(events);
            assert_eq!(span::check(&spans, &intervals, &tally), [""; 0], "{name}");
            Texts::of(&bytes).write(&at).unwrap();
            parts.push(at);
        }
        let whole = folder.path().join("whole");
        fs::write(&whole, reader::lines(&bytes)).unwrap();
        if let Err(said) = check::parts(&whole, &parts) {
            wrong += &said;
        }
    }
    if !wrong.is_empty() {
        panic!("{}:\n{wrong}", folder.keep().display());
    }
}

#[test]
fn a_cpu_that_begins_late_inside_of_anything_needs_no_repair() {
    let (before, after) = (300, 2000);
    for path in traces() {
        let bytes = fs::read(&path).unwrap();
        let raw = raw::parse(&bytes).unwrap();
        let entries = entries(&raw);
        let at = |n: usize| entries[n].1.at;
        for n in (before..entries.len().saturating_sub(after)).step_by(4001 / cuts() as usize) {
            let mut cut = Part { from: at(n - before), to: at(n + after), ..Part::default() };
            cut.late.insert(entries[n].0, at(n) + 1 - cut.from);
            let (_, tally) = build(source::decode(&part(&raw, &entries, &cut).bytes()).unwrap());
            assert_eq!(tally.repairs, 0, "{}, entry {n}: {:?}", path.display(), tally.first);
        }
    }
}

#[test]
fn what_a_cpu_recorded_just_before_the_start_is_read_alike_by_all() {
    for path in traces() {
        let bytes = fs::read(&path).unwrap();
        let raw = raw::parse(&bytes).unwrap();
        let all = entries(&raw);
        let mut late = part(&raw, &all, &Part { to: all[3000].1.at, ..Part::default() });
        late.header.start.tsc += all[300].1.at << raw.header.shift;
        let bytes = late.bytes();

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("late.raw");
        fs::write(&file, &bytes).unwrap();
        reader::compare(&file, &reader::lines(&bytes)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Texts::of(&bytes).check(folder.path()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));

        let raw = raw::parse(&bytes).unwrap();
        let again = entries(&raw);
        assert!(again[200].1.at == 0 && again[again.len() - 1].1.at > 0, "{}", path.display());
        part(&raw, &again, &Part { to: again[1000].1.at, ..Part::default() });
    }
}
