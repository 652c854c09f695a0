// SPDX-License-Identifier: BSD-3-Clause
//! The page's tables, `viewer/data/tables.js`, made from the format crate's; `UPDATE_GOLDEN=1` rewrites them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use kutrace_format::abi::word::EVENT_BITS;
use kutrace_format::capability::Capability;
use kutrace_format::event::{rows, Kind, Place, Row};
use kutrace_format::flag;

const TABLES: &str = "../../postprocess/viewer/data/tables.js";
const ERRNOS: &str = "../../postprocess/src/tables/errno.txt";
/// Columns of a line.
const WIDTH: usize = 120;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A constant of these items, as many on a line as fit.
fn constant(text: &mut String, doc: &str, name: &str, [open, close]: [&str; 2], items: &[String]) {
    writeln!(text, "\n/** {doc} */\nexport const {name} = Object.freeze({open}").unwrap();
    let mut line = String::from(" ");
    for item in items {
        if line.len() + item.len() + 2 > WIDTH {
            writeln!(text, "{line}").unwrap();
            line = String::from(" ");
        }
        write!(line, " {item},").unwrap();
    }
    writeln!(text, "{line}\n{close});").unwrap();
}

/// The form of a number: as everywhere else if it is an event's.
fn number(n: i32) -> String {
    if n < 0 {
        n.to_string()
    } else {
        format!("{n:#05x}")
    }
}

/// The name of a constant that is named after a type.
fn constant_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

/// The name of a kind in the page's code. A switch is an event there, and names are not drawn.
fn kind(kind: Kind) -> &'static str {
    let shown = match kind {
        Kind::Switch => Kind::Point,
        Kind::Name => Kind::Other,
        other => other,
    };
    Kind::ALL[shown as usize].1
}

/// The rows of spans, first those that come before others with the same number.
fn of_spans() -> impl Iterator<Item = &'static Row> {
    let of = |place| rows().filter(move |row| row.place == place);
    of(Place::Span).chain(of(Place::Line)).chain(of(Place::Everywhere))
}

fn errnos() -> Vec<String> {
    let text = read(ERRNOS);
    let known: Vec<(usize, &str)> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(number, name)| (number.parse().unwrap(), name))
        .collect();
    let mut names = vec![String::new(); known.iter().map(|(number, _)| number + 1).max().unwrap()];
    known.into_iter().for_each(|(number, name)| names[number] = name.to_string());
    names
}

fn tables() -> String {
    let mut text = String::from(
        "// SPDX-License-Identifier: BSD-3-Clause\n// Numbers and names that the page shares with the tools.\n// \
         kernel-module/format/tests/page.rs makes this file of the crate's tables.\n",
    );
    let kinds = &Kind::ALL[..=Kind::Other as usize];
    let numbered: Vec<String> = (0..).zip(kinds).map(|(n, (_, name, _))| format!("{name}: {n}")).collect();
    let doc = "Sorts of spans. Those up to SCHED are execution: on one CPU they never overlap. LOST is time without a \
               record,\n * OFFLINE and STALLED are time in which a CPU did nothing at all.";
    constant(&mut text, doc, "Kind", ["{", "}"], &numbered);
    let names: Vec<String> = kinds.iter().map(|(_, _, name)| format!("{name:?}")).collect();
    constant(&mut text, "What each kind is called, for people.", "KIND_NAMES", ["[", "]"], &names);
    let mut constants: Vec<String> = Vec::new();
    for row in of_spans() {
        constants.push(format!("{}: {}", row.constant, number(row.first)));
        constants.extend(row.last_constant.map(|name| format!("{name}: {}", number(row.last))));
    }
    constant(&mut text, "Numbers of events.", "EVENT", ["{", "}"], &constants);
    let ranges: Vec<String> = of_spans()
        .filter(|row| row.first < 1 << EVENT_BITS)
        .map(|row| format!("[{}, {}, Kind.{}]", number(row.first), number(row.last), kind(row.kind)))
        .collect();
    let doc = "The first and last number of each sort of event, and its kind; the first that has a number counts.";
    constant(&mut text, doc, "KIND_RANGES", ["[", "]"], &ranges);
    let flags = [("LLC", flag::LLC), ("WRAPPED", flag::WRAPPED), ("IPC", flag::IPC), ("COUNTERS", flag::COUNTERS)];
    let flags = flags.map(|(name, bits)| format!("{name}: {bits:#04x}"));
    constant(&mut text, "Flags of a trace.", "FLAG", ["{", "}"], &flags);
    let unseen =
        Capability::ALL.iter().map(|one| format!("{}: {:?}", constant_case(&format!("{one:?}")), one.unseen()));
    let doc = "Facts that a trace cannot show, by the capabilities that its source lacks.";
    constant(&mut text, doc, "CANNOT_SHOW", ["{", "}"], &unseen.collect::<Vec<_>>());
    let doc = "Names of errno values on Linux, by number, for traces that do not bring their machine's.";
    let errnos: Vec<String> = errnos().iter().map(|name| format!("{name:?}")).collect();
    constant(&mut text, doc, "ERRNO", ["[", "]"], &errnos);
    text
}

#[test]
fn the_page_has_the_tools_tables() {
    let tables = tables();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLES), &tables).unwrap();
    }
    assert!(read(TABLES) == tables, "{TABLES} differs from the tables; UPDATE_GOLDEN=1 makes it again");
}
