// SPDX-License-Identifier: BSD-3-Clause
//! The tools as a shell sees them: files and pipes, exit statuses, one line on stderr.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kutrace_tests::{busy, Trace};

const RAWTOEVENT: &str = env!("CARGO_BIN_EXE_rawtoevent");
const EVENTTOSPAN: &str = env!("CARGO_BIN_EXE_eventtospan");
const SPANTOHTML: &str = env!("CARGO_BIN_EXE_spantohtml");
const CHECKTRACE: &str = env!("CARGO_BIN_EXE_checktrace");
const SPANTOTRIM: &str = env!("CARGO_BIN_EXE_spantotrim");
const SPANTOSPAN: &str = env!("CARGO_BIN_EXE_spantospan");
const SPANTOPROF: &str = env!("CARGO_BIN_EXE_spantoprof");
const HTMLTOSPAN: &str = env!("CARGO_BIN_EXE_htmltospan");

/// The tools from spans to spans, with what they need to know.
const FILTERS: [(&str, &[&str]); 3] = [(SPANTOTRIM, &["0"]), (SPANTOSPAN, &["10"]), (SPANTOPROF, &[])];

/// Tools that read one file, with what stands before its name.
const ONE_FILE: [(&str, &[&str]); 7] = [
    (RAWTOEVENT, &[]),
    (EVENTTOSPAN, &[]),
    (CHECKTRACE, &[]),
    (SPANTOTRIM, &["0", "--input"]),
    (SPANTOSPAN, &["10"]),
    (SPANTOPROF, &[]),
    (HTMLTOSPAN, &[]),
];

/// Runs a tool with this on its standard input.
fn run(tool: &str, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(tool)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn temporary(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

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
    let mut trace = Trace::new(1, 1_000);
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
fn what_is_no_trace_gives_one_line_and_status_1() {
    for (tool, input, fact) in [
        (RAWTOEVENT, &b""[..], "rawtoevent: stdin: byte 0: not a KUtrace trace\n"),
        (RAWTOEVENT, b"something else", "rawtoevent: stdin: byte 0: not a KUtrace trace\n"),
        (EVENTTOSPAN, b"", "eventtospan: stdin: no event lines\n"),
    ] {
        let output = run(tool, &[], input);
        assert_eq!((code(&output), stderr(&output).as_str()), (1, fact));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_file_that_is_not_there_gives_one_line_and_status_1() {
    for (tool, args) in ONE_FILE {
        let output = run(tool, &[args, &["/nowhere/t.raw"]].concat(), b"");
        assert_eq!(code(&output), 1);
        let said = stderr(&output);
        assert!(said.contains(": /nowhere/t.raw: No such file") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_folder_is_not_a_trace() {
    for (tool, args) in ONE_FILE {
        let output = run(tool, &[args, &["/"]].concat(), b"");
        assert_eq!((code(&output), stderr(&output).lines().count()), (1, 1), "{}", stderr(&output));
    }
}

#[test]
fn wrong_usage_gives_status_2() {
    for (tool, _) in ONE_FILE {
        assert_eq!(code(&run(tool, &["--nonsense"], b"")), 2);
        assert_eq!(code(&run(tool, &["--help"], b"")), 0);
        assert_eq!(code(&run(tool, &["--version"], b"")), 0);
    }
}

#[test]
fn a_full_disk_gives_one_line_and_status_1() {
    let bytes = busy(2, 20_000, 6).bytes();
    let events = run(RAWTOEVENT, &[], &bytes).stdout;
    for (tool, input) in [(RAWTOEVENT, temporary("full.raw", &bytes)), (EVENTTOSPAN, temporary("full.events", &events))]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(tool).arg(input).stdout(full).output().unwrap();
        assert_eq!(code(&output), 1);
        let said = stderr(&output);
        assert!(said.contains("stdout: No space left") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_a_tool_quietly() {
    let bytes = busy(2, 20_000, 7).bytes();
    let events = run(RAWTOEVENT, &[], &bytes).stdout;
    for (tool, input) in [(RAWTOEVENT, temporary("gone.raw", &bytes)), (EVENTTOSPAN, temporary("gone.events", &events))]
    {
        let mut child = Command::new(tool).arg(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    }
}

/// The JSON of a trace.
fn json(trace: &Trace) -> Vec<u8> {
    run(EVENTTOSPAN, &[], &run(RAWTOEVENT, &[], &trace.bytes()).stdout).stdout
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
fn no_page_is_made_of_nothing_of_no_json_or_onto_a_full_disk() {
    for input in [&b""[..], b"\x89PNG\r\n\x1a\n", b"no json\nat all\n"] {
        let output = run(SPANTOHTML, &[], input);
        assert_eq!((code(&output), stderr(&output).as_str()), (1, "spantohtml: stdin: no spans\n"));
        assert_eq!(output.stdout, b"");
    }
    let missing = run(SPANTOHTML, &["/no/such.json"], b"");
    assert_eq!((code(&missing), stderr(&missing).lines().count()), (1, 1));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let path = temporary("full.json", &json(&busy(1, 500, 5)));
    let output = Command::new(SPANTOHTML).arg(path).stdout(full).output().unwrap();
    assert_eq!((code(&output), stderr(&output).lines().count()), (1, 1), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("spantohtml: stdout: "));
}

/// The last line of what a tool printed.
fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_string()
}

#[test]
fn the_verdict_on_a_raw_trace_is_its_status_and_its_last_line() {
    let whole = busy(2, 500, 8).bytes();
    let mut lost = Trace::new(1, 1_000);
    lost.cpu(0).call(10, 0, 0).lose(3);
    let mut damaged = whole.clone();
    damaged[70_000] ^= 1;
    for (bytes, status, verdict) in [(&whole, 0, "PASS"), (&lost.bytes(), 3, "INCOMPLETE"), (&damaged, 1, "FAIL")] {
        let output = run(CHECKTRACE, &[], bytes);
        assert_eq!((code(&output), last_line(&output).as_str()), (status, verdict), "{}", stderr(&output));
        let quiet = run(CHECKTRACE, &["-q"], bytes);
        assert_eq!((code(&quiet), quiet.stdout), (status, format!("{verdict}\n").into_bytes()));
    }
    let none = run(CHECKTRACE, &[], b"something else");
    assert_eq!((code(&none), stderr(&none).as_str()), (1, "checktrace: stdin: byte 0: not a KUtrace trace\n"));
}

#[test]
fn tools_from_spans_to_spans_give_what_a_page_can_be_made_of() {
    let json = json(&busy(2, 500, 4));
    for (tool, args) in FILTERS {
        let output = run(tool, args, &json);
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{tool}");
        assert_eq!(code(&run(SPANTOHTML, &[], &output.stdout)), 0, "{tool}");
        let cut = run(tool, args, &json[..json.len() / 2]);
        assert_eq!(code(&cut), 3, "{tool}");
        assert_eq!(code(&run(SPANTOHTML, &[], &cut.stdout)), 3, "{tool}: the damage is passed on");
        let none = run(tool, args, b"no json\n");
        assert_eq!((code(&none), none.stdout.as_slice()), (1, &b""[..]));
        assert!(stderr(&none).ends_with(": stdin: no spans\n") && stderr(&none).lines().count() == 1);
    }
    let copied = [run(SPANTOTRIM, &["0"], &json), run(SPANTOSPAN, &["0"], &json)];
    assert!(copied.iter().all(|c| c.stdout == json), "0 copies");
}

#[test]
fn a_page_gives_back_its_spans_and_they_give_the_page() {
    let json = json(&busy(2, 500, 4));
    let page = run(SPANTOHTML, &["--title", "a 'title' </script>"], &json);
    let lifted = run(HTMLTOSPAN, &[], &page.stdout);
    assert_eq!((code(&lifted), stderr(&lifted).as_str()), (0, ""));
    let again = run(SPANTOHTML, &[], &lifted.stdout);
    assert!(again.stdout == page.stdout && page.stdout.len() > 10_000);
    let none = run(HTMLTOSPAN, &[], b"<html></html>");
    assert_eq!((code(&none), stderr(&none).as_str()), (1, "htmltospan: stdin: not a page of spantohtml\n"));
}

#[test]
fn a_range_that_makes_no_sense_is_refused_in_one_line() {
    let json = json(&busy(2, 500, 4));
    for (args, fact) in [
        (&["5", "6"][..], "no spans there, the trace goes from 0.00000000 to "),
        (&["2", "1"], "the stop is not after the start"),
        (&["nowhere"], "no mark nowhere"),
        (&["hello", "1"], "a stop goes with a time, and hello is none"),
    ] {
        let output = run(SPANTOTRIM, args, &json);
        assert_eq!((code(&output), output.stdout.as_slice()), (1, &b""[..]));
        let said = stderr(&output);
        assert!(said.starts_with(&format!("spantotrim: stdin: {fact}")) && said.lines().count() == 1, "{said}");
    }
    for args in [&[][..], &["1", "x"], &["1", "2", "3"]] {
        assert_eq!(code(&run(SPANTOTRIM, args, b"")), 2);
    }
    assert_eq!(code(&run(SPANTOSPAN, &["10000001"], b"")), 2);
    assert_eq!(code(&run(SPANTOPROF, &["--all"], b"")), 2);
}

#[test]
fn a_full_disk_and_a_reader_that_goes_away_end_every_companion() {
    let json = json(&busy(2, 20_000, 6));
    let page = run(SPANTOHTML, &[], &json).stdout;
    let (json, page) = (temporary("companions.json", &json), temporary("companions.html", &page));
    let runs = [
        (SPANTOTRIM, ["0", "--input"].as_slice(), &json),
        (SPANTOSPAN, &["0"], &json),
        (SPANTOPROF, &["--group"], &json),
        (HTMLTOSPAN, &[], &page),
    ];
    for (tool, args, input) in runs {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(tool).args(args).arg(input).stdout(full).output().unwrap();
        assert_eq!((code(&output), stderr(&output).lines().count()), (1, 1), "{tool}: {}", stderr(&output));
        assert!(stderr(&output).contains(": stdout: No space left"), "{}", stderr(&output));
        let mut child =
            Command::new(tool).args(args).arg(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{tool}");
    }
}
