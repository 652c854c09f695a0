// SPDX-License-Identifier: BSD-3-Clause
//! The text of `rawtoevent` for the original's raw files against the original's, line by line.

use std::collections::HashMap;

use postprocess::event::names::Names;
use postprocess::event::write::Writer;
use postprocess::source;

use super::{reference, Differences, STEMS};

#[test]
fn text_from_raw_files_of_the_original_is_the_originals_text() {
    for stem in STEMS {
        let (raw, theirs) = (reference(&format!("{stem}.trace")), reference(&format!("{stem}.events")));
        let (Some(raw), Some(theirs)) = (raw, theirs) else { continue };
        let (ours, theirs) = (text(&raw), String::from_utf8(theirs).unwrap());
        let mut differences = Differences::default();
        let (ours, moved) = sorted(&ours);
        differences.count("lines with equal times", moved);
        let unexplained = compare(&theirs.lines().collect::<Vec<_>>(), &ours, &mut differences);
        differences.assert_named(stem, &unexplained);
    }
}

fn text(raw: &[u8]) -> String {
    let trace = source::trace(raw).unwrap();
    let mut names = Names::default();
    let mut decoder = trace.decoder(&mut names);
    let (mut text, head) = (Vec::new(), trace.head());
    let mut out = Writer::new(&mut text);
    out.head(head.format, head.flags, head.base, &head.blocks).unwrap();
    while let Some(event) = decoder.next(&mut names) {
        out.event(&event, &names).unwrap();
    }
    let meta = decoder.meta();
    assert_eq!(meta.quality, [""; 0]);
    out.finish(&meta).unwrap();
    String::from_utf8(text).unwrap()
}

fn ts(line: &str) -> i64 {
    line.split(' ').next().and_then(|ts| ts.parse().ok()).unwrap_or(0)
}

/// The lines in the order of the original's pipeline, by time and then by bytes, and how many events this moved.
fn sorted(text: &str) -> (Vec<&str>, usize) {
    let events =
        |lines: &[&str]| -> Vec<String> { lines.iter().filter(|l| ts(l) > 0).map(|l| l.to_string()).collect() };
    let mut lines: Vec<&str> = text.lines().collect();
    let before = events(&lines);
    assert!(before.is_sorted_by_key(|l| ts(l)), "time goes back");
    lines.sort_by_key(|l| (ts(l), *l));
    let moved = before.iter().zip(events(&lines)).filter(|(a, b)| **a != *b).count();
    (lines, moved)
}

/// Counts the lines that differ by reason; returns those without one.
fn compare(theirs: &[&str], ours: &[&str], differences: &mut Differences) -> Vec<String> {
    let mut only_ours: HashMap<&str, usize> = HashMap::new();
    ours.iter().for_each(|line| *only_ours.entry(line).or_default() += 1);
    let mut only_theirs: Vec<&str> = Vec::new();
    for line in theirs {
        match only_ours.get_mut(line).filter(|n| **n > 0) {
            Some(n) => *n -= 1,
            None => only_theirs.push(line),
        }
    }
    let mut rest: Vec<&str> = only_ours.iter().flat_map(|(line, n)| std::iter::repeat_n(*line, *n)).collect();
    let comments = only_theirs.iter().chain(&rest).filter(|l| l.starts_with('#')).count();
    differences.count("comments", comments);
    let mut unexplained = Vec::new();
    for their in only_theirs.into_iter().filter(|l| !l.starts_with('#')) {
        let explained = rest.iter().enumerate().find_map(|(n, our)| Some((n, reason(their, our)?)));
        match explained {
            Some((n, entry)) => {
                rest.swap_remove(n);
                differences.count(entry, 1);
            }
            None => unexplained.push(format!("< {their}")),
        }
    }
    unexplained.extend(rest.into_iter().filter(|l| !l.starts_with('#')).map(|l| format!("> {l}")));
    unexplained
}

/// Why the original's line and ours differ, if they are the same event or name.
fn reason(their: &str, our: &str) -> Option<&'static str> {
    const ARG: usize = 6;
    const NAME: usize = 9;
    let (t, o): (Vec<&str>, Vec<&str>) = (their.split_whitespace().collect(), our.split_whitespace().collect());
    if t[0] != o[0] {
        return None;
    }
    let squeezed = |text: &str| text.replace([' ', '_'], "");
    let number: u32 = t[2].parse().ok()?;
    if number < 512 {
        let same = t[3] == o[3] && squeezed(&t[4..].join(" ")) == squeezed(&o[4..].join(" "));
        return same.then_some("blanks in names");
    }
    let differ: Vec<usize> = (0..t.len()).filter(|&n| t.get(n) != o.get(n)).collect();
    let thread = |name: &str| name.rsplit('.').next().map(str::to_string);
    match (number, &differ[..]) {
        (512, [ARG]) if t[1] == "1" && t[ARG] == "0" && o[ARG] == o[4] => Some("who runs at the start"),
        (512, [NAME]) if squeezed(t[NAME]) == squeezed(o[NAME]) => Some("blanks in names"),
        (512, [NAME]) if thread(t[NAME]) == thread(o[NAME]) => Some("name of a thread"),
        (2047, [ARG, ..]) | (2047, [NAME]) if t[NAME] == "/BH:hi" && t[ARG] == "0" => Some("softirq return"),
        _ => None,
    }
}
