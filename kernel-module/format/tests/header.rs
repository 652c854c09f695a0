// SPDX-License-Identifier: BSD-3-Clause
//! The numbers and layouts written by hand in C are those of the format crate and `ffi.rs`: the header of the patches,
//! and that for stock kernels.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kutrace_format::abi::event::{self, Origin};
use kutrace_format::abi::user;
use kutrace_format::capability::Capability;
use kutrace_format::event::rows;

const HEADER: &str = "include/linux/kutrace.h";

/// Events that the header does not name: a switch, a return and a computed number have operations of their own, packets
/// are no longer recorded by their content, and no program records an event younger than itself.
const NOT_NAMED: [u16; 6] =
    [event::SWITCH, event::SYSCALL_RETURN, event::SMALL_RETURN, event::RX_PACKET, event::TX_PACKET, event::SPECIAL];

/// The header's macros that are numbers, without their prefix.
fn expected() -> BTreeMap<&'static str, u64> {
    let kernels = rows().filter(|row| row.shape.is_some() && row.origin == Origin::Kernel);
    let named = kernels.filter(|row| !NOT_NAMED.contains(&(row.first as u16)));
    let events = named.map(|row| (row.constant, row.first as u64));
    let values = [event::IDLES, event::WAITS, event::WORKS].into_iter().flatten();
    let others = [
        ("USER_CALL", user::CALL.into()),
        ("INSERT_MANY", user::INSERT_MANY),
        ("USER_WORDS", user::WORDS as u64),
        ("VECTOR_NAME", event::NAME_BYTES as u64),
    ];
    events.chain(values.map(|&(name, value, _)| (name, value.into()))).chain(others).collect()
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The header as the series leaves it.
fn header() -> String {
    let dir = tempfile::tempdir().unwrap();
    let entries = fs::read_dir(checkout().join("patches/v6.12")).unwrap().map(|entry| entry.unwrap().path());
    let mut patches: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "patch")).collect();
    patches.sort();
    let include = format!("--include={HEADER}");
    let mut git = Command::new("git");
    git.args(["apply", &include]).args(&patches).current_dir(dir.path());
    // The folder is not a repository, wherever it is.
    git.env("GIT_CEILING_DIRECTORIES", dir.path().parent().unwrap()).env_remove("GIT_DIR");
    assert!(git.status().unwrap().success());
    fs::read_to_string(dir.path().join(HEADER)).unwrap()
}

/// The numbers of `#define KUTRACE_NAME NUMBER`, by name.
fn defines(header: &str) -> BTreeMap<&str, u64> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    header
        .lines()
        .filter_map(|line| line.strip_prefix("#define KUTRACE_")?.split_once(char::is_whitespace))
        .filter(|(name, value)| !name.contains('(') && !value.trim_start().starts_with('('))
        .map(|(name, value)| {
            let value = value.split_whitespace().next().unwrap_or_default();
            (name, number(value).unwrap_or_else(|_| panic!("{name}: not a number: {value}")))
        })
        .collect()
}

/// The lines of `text` after the one that is `head`, up to a closing brace.
fn body<'a>(text: &'a str, head: &str) -> impl Iterator<Item = &'a str> {
    let (_, body) = text.split_once(&format!("{head}\n")).unwrap_or_else(|| panic!("no {head}"));
    body.lines().take_while(|line| !line.starts_with('}')).map(str::trim)
}

/// A member of `struct kutrace_ops`, `type *name;`, as `ffi.rs` has to spell it. Its type is that of a function,
/// `typedef void type(type argument, ...);`.
fn in_rust(member: &str, header: &str) -> String {
    if member == "unsigned int version;" {
        return "pub version: u32,".to_string();
    }
    let named = member.trim_end_matches(';').split_once(" *");
    let (named, name) = named.unwrap_or_else(|| panic!("no pointer to a function: {member}"));
    let mut types = header.split("typedef ").filter_map(|text| text.split_once(");"));
    let function = types.find_map(|(text, _)| text.split_once(&format!(" {named}(")));
    let (returns, arguments) = function.unwrap_or_else(|| panic!("no typedef of {named}"));
    let arguments: Vec<&str> = arguments.split(',').map(|text| argument(text.trim())).collect();
    let returns = match returns {
        "void" => String::new(),
        other => format!(" -> {}", kind(other)),
    };
    format!("pub {name}: unsafe extern \"C\" fn({}){returns},", arguments.join(", "))
}

/// An argument with its name, which determines how many words there are.
fn argument(c: &str) -> &str {
    match c {
        "const u64 *words" => "*const [u64; user::WORDS]",
        "const char *name" => "*const c_char",
        other => kind(other.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_')),
    }
}

fn kind(c: &str) -> &str {
    match c.trim() {
        "unsigned int" => "u32",
        "unsigned long" => "u64",
        "long" => "i64",
        "bool" => "bool",
        "struct task_struct *" => "*mut bindings::task_struct",
        other => panic!("a type ffi.rs has no word for: {other}"),
    }
}

#[test]
fn every_number_of_the_header_is_the_formats() {
    let (header, expected) = (header(), expected());
    let mut differences = defines(&header);
    differences.retain(|name, value| expected.get(name) != Some(value));
    let missing: Vec<_> = expected.keys().filter(|name| !defines(&header).contains_key(*name)).collect();
    assert!(differences.is_empty() && missing.is_empty(), "differ: {differences:?}; the header lacks {missing:?}");
}

#[test]
fn the_modules_operations_are_the_kernels() {
    let ffi = fs::read_to_string(checkout().join("kernel-module/ffi.rs")).unwrap();
    let header = header();
    let kernels: Vec<String> = body(&header, "struct kutrace_ops {").map(|member| in_rust(member, &header)).collect();
    assert_eq!(body(&ffi, "pub struct Ops {").collect::<Vec<_>>(), kernels);
}

#[test]
fn the_header_for_stock_kernels_says_what_the_kernels_says() {
    let whole = header();
    let part = fs::read_to_string(checkout().join("kernel-module/source/kutrace.h")).unwrap();
    let kernels = defines(&whole);
    for (name, value) in defines(&part) {
        assert_eq!(kernels.get(name), Some(&value), "{name}");
    }
    let ops = |text: &str| -> Vec<String> {
        let types = text.lines().filter(|line| line.starts_with("typedef "));
        types.chain(body(text, "struct kutrace_ops {")).map(str::to_owned).collect()
    };
    assert_eq!(ops(&part), ops(&whole));
}

#[test]
fn the_tracepoints_lack_capabilities_by_their_bits() {
    let read = |file: &str| fs::read_to_string(checkout().join("kernel-module/source").join(file)).unwrap();
    let own =
        read("source.c").lines().find_map(|line| line.strip_prefix("enum { ")?.strip_suffix(" };").map(String::from));
    let c = read("tracepoints.c");
    let bits: Vec<(String, u8)> = body(&c, "enum {")
        .chain([own.as_deref().unwrap()])
        .flat_map(|line| line.split(','))
        .filter_map(|one| one.trim().split_once(" = "))
        .map(|(name, bit)| (name.replace('_', "").to_lowercase(), bit.parse().unwrap()))
        .collect();
    assert!(!bits.is_empty());
    for (name, bit) in bits {
        let of_bit = Capability::ALL.iter().find(|&&one| one as u8 == bit);
        assert_eq!(of_bit.map(|one| format!("{one:?}").to_lowercase()), Some(name));
    }
}
