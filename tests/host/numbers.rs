// SPDX-License-Identifier: BSD-3-Clause
//! The format crate's table has the numbers of events: Rust and JavaScript use their names.

use std::fs;

use kutrace_format::event::rows;
use kutrace_tests::tree;

/// The table, and the code generated from it.
const TABLE: [&str; 2] = ["kernel-module/format/src", "postprocess/viewer/data/tables.js"];
/// Numbers of another kind, and those in a program in C inside a test.
const OTHERS: [(&str, &str); 4] = [
    ("kernel-module/ffi.rs", "0x20000"),
    ("postprocess/viewer/data/format.js", "0x10000"),
    ("postprocess/viewer/data/groups.js", "0x10000"),
    ("tests/vm/lifecycle.rs", "0x007"),
];

/// A line of code without its comment and the texts that begin and end on it.
fn code(line: &str) -> String {
    let line = line.replace("\\\"", "");
    let parts: Vec<&str> = line.split('"').collect();
    let whole = parts.len() % 2 == 1;
    let outside = parts.iter().enumerate().filter(|(n, _)| !whole || n % 2 == 0).map(|(_, &part)| part);
    outside.collect::<Vec<_>>().join(" ").split("//").next().unwrap_or_default().to_string()
}

/// The words of a line of code that are numbers of events: written as the table does it, or next to the word `event`.
fn event_numbers(line: &str) -> Vec<String> {
    let code = code(line);
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = code.split(|c| !word(c)).filter(|word| !word.is_empty()).collect();
    let mut found: Vec<String> = words.iter().filter(|word| as_in_table(word)).map(ToString::to_string).collect();
    for (at, _) in code.match_indices("event") {
        let after = code[at + "event".len()..].trim_start_matches([':', ' ', '=', '!', '<', '>']);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(after.len());
        if after[..end].parse().is_ok_and(|number: i32| number != 0 && is_event(number)) {
            found.push(after[..end].into());
        }
    }
    found
}

/// Returns whether a word is hexadecimal with three digits, as events are, or with five and the end of a range.
fn as_in_table(word: &str) -> bool {
    let Some(digits) = word.strip_prefix("0x") else { return false };
    let digits = digits.split(['u', 'i']).next().unwrap_or_default().trim_end_matches('_');
    match (i32::from_str_radix(digits, 16), digits.len()) {
        (Ok(number), 3) => is_event(number),
        (Ok(number), 5) => rows().any(|row| [row.first, row.last, row.last + 1].contains(&number)),
        _ => false,
    }
}

fn is_event(number: i32) -> bool {
    rows().any(|row| (row.first..=row.last).contains(&number))
}

#[test]
fn events_are_said_by_name() {
    let mut files = tree::files(tree::root(), &TABLE);
    files.retain(|file| file.extension().is_some_and(|ending| ["rs", "js", "mjs"].iter().any(|code| ending == *code)));
    assert!(files.len() > 200, "only {} files of code", files.len());
    let mut said = Vec::new();
    for file in files {
        let path = file.strip_prefix(tree::root()).unwrap().to_str().unwrap();
        for (n, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let numbers = event_numbers(line).into_iter().filter(|number| !OTHERS.contains(&(path, number)));
            said.extend(numbers.map(|number| format!("{path}:{}: {number} is an event: use its name", n + 1)));
        }
    }
    assert!(said.is_empty(), "{}", said.join("\n"));
}

#[test]
fn a_number_of_an_event_is_seen_wherever_it_stands() {
    for (line, number) in [
        ("let e = Event { event: 0x801, ..e };", "0x801"),
        ("(0x300u32..).contains(&e)", "0x300u32"),
        ("if (hit.event === 0x10000) return;", "0x10000"),
        ("s.event >= 2048 && x", "2048"),
        ("Span { event: -3, ..s }", "-3"),
        ("entry(5, 0x5ec, \"0x801\") // 0x802", "0x5ec"),
    ] {
        assert_eq!(event_numbers(line), [number], "{line}");
    }
    for line in ["// 0x801", "x(\"0x801\")", "0x12345", "0xffff", "0x22", "event < 0", "event: 0, arg: 5"] {
        assert_eq!(event_numbers(line), [""; 0], "{line}");
    }
}
