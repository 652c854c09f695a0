// SPDX-License-Identifier: BSD-3-Clause
//! The table of events: every row can be met, and headers and documents agree with it.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use kutrace_format::abi::event::{self, line, may_insert, may_name, Origin, TaskState, SPECIAL, SPECIAL_LAST};
use kutrace_format::abi::word::{Call, EVENT_BITS};
use kutrace_format::event::{of_entry, of_line, rows, Event, Kind, Place, Row, Work};

/// The number from which the document counts small returns, which are those of -128 and more.
const RETURN_OF_ZERO: u32 = event::SMALL_RETURN as u32 + 128;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// The part of `text` from a line that begins with `from` up to the first that is empty.
fn paragraph<'a>(text: &'a str, from: &str) -> &'a str {
    let at = text.find(from).unwrap_or_else(|| panic!("no {from:?}"));
    text[at..].split("\n\n").next().unwrap_or_default()
}

/// The hexadecimal numbers in a text, and ranges of them such as `0x201-0x203`.
fn ranges(text: &str) -> Vec<RangeInclusive<u32>> {
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    let mut before = "";
    for part in text.split("0x").skip(1) {
        let digits = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        let number = u32::from_str_radix(&part[..digits], 16).unwrap_or_else(|_| panic!("no number: {part:?}"));
        match (matches!(before, "-" | " to "), ranges.pop()) {
            (true, Some(first)) => ranges.push(*first.start()..=number),
            (_, last) => ranges.extend(last.into_iter().chain([number..=number])),
        }
        before = &part[digits..];
    }
    ranges
}

fn numbers(text: &str) -> BTreeSet<u32> {
    ranges(text).into_iter().flatten().collect()
}

fn insertable() -> BTreeSet<u32> {
    (0..1 << 16).filter(|&number| may_insert(number.into())).collect()
}

fn nameable() -> BTreeSet<u32> {
    (0..1 << 16).filter(|&number| may_name(number.into())).collect()
}

/// Returns whether a number of this row is this row's, and not that of an earlier one.
fn is_met(row: &Row) -> bool {
    (row.first..=row.last).any(|number| {
        let found = match row.place {
            Place::Block => of_entry(number as u16),
            Place::Everywhere => of_entry(number as u16).filter(|_| of_line(number as u32).is_some()),
            Place::Line => of_line(number as u32),
            Place::Span | Place::Original => Some(row),
        };
        found.is_some_and(|found| found.constant == row.constant && found.place == row.place)
    })
}

#[test]
fn no_row_is_hidden_by_another() {
    for row in rows() {
        assert!(is_met(row), "{row:?}");
        assert!(row.first <= row.last && row.last_constant.is_some() == (row.first < row.last), "{row:?}");
    }
}

#[test]
fn a_name_s_number_has_no_length_in_it() {
    for row in rows().filter(|row| row.place == Place::Line && row.kind == Kind::Name && row.last_constant.is_none()) {
        assert_eq!(row.first & 0xf0, 0, "{row:?}");
    }
}

/// The rows of the table in docs/format.md: numbers, name, argument words.
fn documented(text: &str) -> Vec<(Vec<RangeInclusive<u32>>, &str, usize)> {
    let rows = paragraph(text, "| event | name | argument words |").lines().skip(2);
    rows.map(|text| {
        let columns: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        let [event, name, words] = columns[..] else { panic!("three columns: {text}") };
        let words = words.split(':').next().and_then(|words| words.parse().ok());
        (ranges(event), name, words.unwrap_or_else(|| panic!("a number of words: {text}")))
    })
    .collect()
}

#[test]
fn the_format_s_document_has_every_event_with_its_words_and_no_other() {
    let text = read("docs/format.md");
    let mut missing: BTreeSet<i32> = rows()
        .filter(|row| row.shape.is_some() && !matches!(row.origin, Origin::Tools | Origin::Original))
        .filter(|row| row.constant != "SPECIAL")
        .map(|row| row.first)
        .collect();
    for (events, name, words) in documented(&text) {
        for number in events.into_iter().flatten() {
            let first = if number == RETURN_OF_ZERO { event::SMALL_RETURN.into() } else { number };
            assert!(missing.remove(&(first as i32)), "{number:#x} {name}: not in the table, or twice");
            let row = of_entry(first as u16).unwrap();
            assert_eq!(row.shape.map(|shape| shape.words()), Some(words), "{number:#x} {name}");
            let said = name.split(':').next().unwrap_or_default();
            if said.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
                assert_eq!(said, row.constant);
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/format.md: {missing:x?}");
}

#[test]
fn the_format_s_document_tells_how_to_pass_over_what_is_not_in_its_table() {
    let text = read("docs/format.md");
    let (one, none) = paragraph(&text, "Numbers that are not in the table").split_once("have one word").unwrap();
    let none = none.split(" none").next().unwrap();
    for number in 0..1 << EVENT_BITS {
        let said = match (ranges(one), ranges(none)) {
            (one, _) if one.iter().any(|range| range.contains(&number)) => Some(1),
            (_, none) if none.iter().any(|range| range.contains(&number)) => Some(0),
            _ => None,
        };
        let row = of_entry(number as u16);
        let listed = row.is_some_and(|row| {
            documented(&text).iter().any(|(events, ..)| {
                let all = events.iter().cloned().flatten().map(|n| {
                    if n == RETURN_OF_ZERO {
                        event::SMALL_RETURN.into()
                    } else {
                        n
                    }
                });
                all.into_iter().any(|n| n as i32 == row.first)
            })
        });
        if said.is_some() || !listed {
            assert_eq!(said, event::argument_words(number as u16), "{number:#x}");
        }
    }
}

#[test]
fn the_document_of_hooks_names_the_points_that_the_kernel_records() {
    let text = read("docs/hooks.md");
    let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).collect();
    // Events that the document describes in other words: the switch, the wakeup's arc, and packets with their suffixes.
    let others = [event::SWITCH, event::RUNNABLE, event::RX_PACKET, event::TX_PACKET, event::SPECIAL];
    let points = rows().filter(|row| row.shape.is_some() && row.origin == Origin::Kernel);
    for row in points
        .filter(|row| (SPECIAL..=SPECIAL_LAST).contains(&(row.first as u16)) && !others.contains(&(row.first as u16)))
    {
        let name = if row.first == i32::from(event::WAIT) { "wait_..." } else { row.name.trim_start_matches('/') };
        assert!(named.contains(name), "{name} is not in docs/hooks.md");
    }
    assert_eq!(numbers(paragraph(&text, "32-bit calls")), BTreeSet::from([0x80, line::SYSCALL32]));
    for (_, value, name) in event::IDLES {
        assert!(text.contains(&value.to_string()), "{name}");
    }
}

#[test]
fn headers_and_documents_for_programs_list_what_they_may_insert_and_name() {
    let header = read("kutrace-control/kutrace/include/kutrace_original.h");
    let comment = header.split("/*").find(|text| text.contains("Records an event by its number")).unwrap();
    let (events, names) = comment.split_once("Names a number").unwrap();
    assert_eq!(numbers(events), insertable());
    let digits = names.split("kind ").nth(1).unwrap().split('.').next().unwrap();
    let decimal = digits.split([' ', ',']).filter_map(|word| word.parse().ok());
    assert_eq!(numbers(digits).into_iter().chain(decimal).collect::<BTreeSet<u32>>(), nameable());
    assert_eq!(numbers(paragraph(&read("docs/original-api.md"), "| Rust; in C")), insertable());
    let compat = read("docs/compat.md");
    let inserted = compat.lines().find(|line| line.starts_with("| 7, insert an event")).unwrap();
    assert_eq!(numbers(inserted), insertable());
}

#[test]
fn the_original_s_header_has_its_names_for_the_same_numbers() {
    let originals = [
        ("METHODNAME", line::METHOD_NAME),
        ("LOCKNAME", line::LOCK_NAME),
        ("QUEUE_NAME", line::QUEUE_NAME),
        ("RES_NAME", line::RESOURCE_NAME),
        ("RPCIDREQ", line::RPC_REQUEST),
        ("RPCIDRESP", line::RPC_RESPONSE),
        ("RPCIDMID", line::RPC_MIDDLE),
        ("MARKA", line::MARK_A),
        ("MARKB", line::MARK_B),
        ("MARKC", line::MARK_C),
        ("MARKD", line::MARK_D),
        ("LOCKNOACQUIRE", line::LOCK_TRY),
        ("LOCKACQUIRE", line::LOCK_ACQUIRED),
        ("LOCKWAKEUP", line::LOCK_RELEASED),
        ("RX_USER", line::RX_USER),
        ("TX_USER", line::TX_USER),
        ("RESOURCE", line::RESOURCE),
        ("ENQUEUE", line::ENQUEUE),
        ("DEQUEUE", line::DEQUEUE),
    ];
    let header = read("kutrace-control/kutrace/original/kutrace_lib.h");
    let lines = header.lines().filter_map(|line| line.trim().strip_prefix("KUTRACE_")?.split_once(" = 0x"));
    let said: Vec<(&str, u32)> =
        lines.map(|(name, digits)| (name, u32::from_str_radix(digits.trim_end_matches(','), 16).unwrap())).collect();
    assert_eq!(said, originals);
    let all: BTreeSet<u32> = said.into_iter().map(|(_, number)| number).collect();
    assert_eq!(all, insertable().union(&nameable()).copied().collect());
}

#[test]
fn every_entry_reads_as_its_event_and_nothing_else_does() {
    let words = [0; 4 * event::ENTRY_WORDS_MAX];
    for number in 0..1 << EVENT_BITS {
        let read = Event::read(number, &words);
        assert_eq!(read.is_some(), of_entry(number).is_some(), "{number:#x}");
        assert_eq!(read == Some(Event::Nop), number == event::NOP, "{number:#x}");
        if let Some(arguments @ 1..) = event::argument_words(number) {
            assert_eq!(Event::read(number, &words[..4 * arguments - 1]), None, "{number:#x}: a byte is missing");
        }
    }
    assert_eq!(Event::read(event::SMALL_RETURN, &[]), Some(Event::Return { nr: None, value: -128 }));
    assert_eq!(Event::read(event::IRQ_RETURN_LAST, &[]), Some(Event::End(Work::Irq(255))));
    let call = Call { arg: 7, folded: None };
    let word = Call::open(7).to_le_bytes();
    assert_eq!(Event::read(event::SYSCALL + 3, &word), Some(Event::Call { nr: 3, call }));
    let nr = TaskState::COMPAT + 3;
    assert_eq!(Event::read(event::SYSCALL32 + 3, &word), Some(Event::Call { nr, call }));
}
