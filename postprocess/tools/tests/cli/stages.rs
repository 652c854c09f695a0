// SPDX-License-Identifier: BSD-3-Clause
//! A raw file to a page by way of text.

use kutrace_format::abi::event;
use kutrace_tests::{busy, TraceBuilder};

use super::*;

#[test]
fn a_file_and_standard_input_give_the_same() {
    let bytes = busy(2, 2_000, 1).bytes();
    let path = temporary("same.raw", &bytes);
    let piped = run(RAWTOEVENT, &[], &bytes);
    let named = run(RAWTOEVENT, &[path.to_str().unwrap()], b"");
    let dashed = run(RAWTOEVENT, &["-"], &bytes);
    assert_eq!([code(&piped), code(&named), code(&dashed)], [0, 0, 0]);
    assert!(piped.stdout.len() > 50_000 && piped.stdout == named.stdout && piped.stdout == dashed.stdout);
}

/// Returns a raw file of the original: one block of CPU 2, in which thread 7 enters system call 1.
fn original() -> Vec<u8> {
    const USEC: u64 = 1_795_187_640_000_000;
    let header = [2 << 56 | 1 << 40, 3 << 56 | USEC, 1 << 40, USEC, (1 << 40) + 50_000_000, USEC + 1_000_000, 0, 0];
    let mut words = [&header[..], &[7, 0, 0x61, 0, 50 << 44 | u64::from(event::SYSCALL + 1) << 32]].concat();
    words.resize(8192, 0);
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn a_trace_of_the_original_is_read_like_any_other() {
    let bytes = original();
    let piped = run(RAWTOEVENT, &[], &bytes);
    let named = run(RAWTOEVENT, &[temporary("original.trace", &bytes).to_str().unwrap()], b"");
    assert_eq!((code(&piped), &piped.stdout), (0, &named.stdout));
    let text = String::from_utf8(piped.stdout).unwrap();
    assert!(text.contains("\n100 0 2049 2  7 0  0 0 0 sys#1 (801)\n"), "{text}");
    let cut = run(RAWTOEVENT, &[], &bytes[..60_001]);
    assert_eq!(code(&cut), 3);
    assert!(stderr(&cut).starts_with("rawtoevent: stdin: block 0, byte 60001: the file ends inside the block\n"));
}

#[test]
fn a_whole_trace_goes_through_both_tools_with_status_0_and_sound_spans() {
    let events = run(RAWTOEVENT, &[], &busy(4, 5_000, 2).bytes());
    let spans = run(EVENTTOSPAN, &["--check", "--title", "a <title>"], &events.stdout);
    assert_eq!((code(&events), code(&spans)), (0, 0), "{}", stderr(&spans));
    let json: serde_json::Value = serde_json::from_slice(&spans.stdout).unwrap();
    assert_eq!(json["title"], "a <title>");
    assert_eq!(json["tracebase"], "2026-11-20_15:14:00");
    assert!(json["events"].as_array().unwrap().len() > 5_000);
}

#[test]
fn the_event_lines_are_in_the_order_that_sort_would_give() {
    let events = run(RAWTOEVENT, &[], &busy(4, 5_000, 3).bytes());
    let text = String::from_utf8(events.stdout).unwrap();
    let times = text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split(' ').next().unwrap().parse().unwrap());
    assert!(times.collect::<Vec<i64>>().is_sorted());
}

#[test]
fn lost_events_give_status_3_from_both_tools() {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).call(10, 0, 0).lose(3);
    let events = run(RAWTOEVENT, &[], &trace.bytes());
    let spans = run(EVENTTOSPAN, &["--check"], &events.stdout);
    assert_eq!((code(&events), code(&spans)), (3, 3));
    assert!(stderr(&events).contains("3 lost"), "{}", stderr(&events));
    assert!(String::from_utf8(spans.stdout).unwrap().contains("\"-lost-\""));
}

#[test]
fn damage_is_named_with_its_place_and_gives_status_3() {
    let mut bytes = busy(2, 20_000, 4).bytes();
    let at = bytes.len() - 60_000;
    bytes[at] ^= 1;
    let events = run(RAWTOEVENT, &[], &bytes);
    assert_eq!(code(&events), 3);
    let said = stderr(&events);
    assert!(said.starts_with("rawtoevent: stdin: block ") && said.contains("checksum"), "{said}");
    assert_eq!(code(&run(EVENTTOSPAN, &["--check"], &events.stdout)), 3);
}

#[test]
fn a_page_is_made_of_whole_spans_with_status_0_and_of_cut_ones_with_status_3() {
    let json = json(&busy(2, 500, 4));
    let whole = run(SPANTOHTML, &["--title", "<b>"], &json);
    assert_eq!((code(&whole), stderr(&whole).as_str()), (0, ""));
    assert!(whole.stdout.starts_with(b"<!doctype html>") && whole.stdout.ends_with(b"</html>"));
    let cut = run(SPANTOHTML, &[], &json[..json.len() / 2]);
    assert_eq!(code(&cut), 3);
    assert!(stderr(&cut).starts_with("spantohtml: stdin: "), "{}", stderr(&cut));
    assert!(cut.stdout.ends_with(b"</html>"), "what was readable is drawn");
}

#[test]
fn of_two_event_texts_one_after_the_other_the_second_is_left_out() {
    let events = run(RAWTOEVENT, &[], &busy(2, 500, 4).bytes()).stdout;
    let one = run(EVENTTOSPAN, &[], &events);
    let two = run(EVENTTOSPAN, &[], &[&events[..], &events].concat());
    assert_eq!((code(&one), code(&two)), (0, 3));
    assert!(stderr(&two).contains("another trace begins; skipped"), "{}", stderr(&two));
    let spans = |json: &[u8]| String::from_utf8_lossy(json).lines().filter(|l| l.starts_with('[')).count();
    assert_eq!(spans(&one.stdout), spans(&two.stdout));
}

#[test]
fn a_file_may_be_named_by_an_option() {
    let file = temporary("named.raw", &busy(2, 500, 4).bytes());
    let name = file.to_str().unwrap();
    let [operand, option] = [&[name][..], &["--input", name]].map(|args| run(RAWTOEVENT, args, b""));
    assert_eq!((code(&option), operand.stdout), (0, option.stdout));
    assert_eq!(code(&run(RAWTOEVENT, &["-i", name, name], b"")), 2);
}
