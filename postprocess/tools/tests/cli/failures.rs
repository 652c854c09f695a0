// SPDX-License-Identifier: BSD-3-Clause
//! Missing or invalid input, and output without a destination.

use std::fs::File;
use std::process::{Command, Stdio};

use kutrace_tests::busy;

use super::*;

#[test]
fn what_is_no_trace_gives_one_line_and_status_1() {
    for (tool, input, fact) in [
        (RAWTOEVENT, &b""[..], "rawtoevent: stdin: byte 0: not a KUtrace trace: it is empty\n"),
        (RAWTOEVENT, b"something else", "rawtoevent: stdin: byte 0: not a KUtrace trace\n"),
        (KUOD, b"something else", "kuod: stdin: byte 0: not a KUtrace trace\n"),
        (CHECKTRACE, b"something else", "checktrace: stdin: byte 0: not a KUtrace trace\n"),
        (EVENTTOSPAN, b"", "eventtospan: stdin: no events\n"),
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
fn who_waits_for_the_end_of_a_stream_that_goes_on_says_so() {
    let stream = busy(2, 20_000, 7).stream();
    assert!(!stderr(&run(RAWTOEVENT, &[], &stream)).contains("growing stream"), "it has come to its end");
    let said = |tool: &str, args: &[&str]| {
        let mut command = Command::new(tool);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&stream[..stream.len() / 2]).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(3));
        stdin.write_all(&stream[stream.len() / 2..]).unwrap();
        drop(stdin);
        stderr(&child.wait_with_output().unwrap())
    };
    for tool in [RAWTOEVENT, CHECKTRACE] {
        let said = said(tool, &[]);
        let fact = "stdin: a growing stream, which is first read to its end; ";
        assert!(said.contains(fact) && said.contains("rawtoevent --live\n"), "{said}");
    }
    assert!(!said(RAWTOEVENT, &["--live"]).contains("growing stream"));
}

#[test]
fn a_folder_is_not_a_trace() {
    for (tool, args) in ONE_FILE {
        let output = run(tool, &[args, &["/"]].concat(), b"");
        assert_eq!((code(&output), stderr(&output).lines().count()), (1, 1), "{}", stderr(&output));
    }
}

#[test]
fn a_full_disk_gives_one_line_and_status_1() {
    let bytes = busy(2, 20_000, 6).bytes();
    let events = run(RAWTOEVENT, &[], &bytes).stdout;
    let (raw, events) = (temporary("full.raw", &bytes), temporary("full.events", &events));
    for (tool, input) in [(RAWTOEVENT, &raw), (EVENTTOSPAN, &events)] {
        for form in [&[][..], &["--binary"]] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let output = Command::new(tool).args(form).arg(input).stdout(full).output().unwrap();
            assert_eq!(code(&output), 1);
            let said = stderr(&output);
            assert!(said.contains("stdout: No space left") && said.lines().count() == 1, "{said}");
        }
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

#[test]
fn a_standard_stream_that_is_closed_is_said_to_be() {
    let raw = temporary("closed.raw", &busy(1, 500, 6).bytes());
    let events = temporary("closed.events", &run(RAWTOEVENT, &[], &busy(1, 500, 6).bytes()).stdout);
    let json = temporary("closed.json", &json(&busy(1, 500, 6)));
    let page = temporary("closed.html", &run(SPANTOHTML, &[], &std::fs::read(&json).unwrap()).stdout);
    let tools = ONE_FILE.into_iter().chain([(SPANTOHTML, &[][..])]);
    for (tool, args) in tools {
        let input = match tool {
            RAWTOEVENT | CHECKTRACE | KUOD => &raw,
            EVENTTOSPAN | FTRACETOSPAN | PERFTOSPAN | PERFETTOTOSPAN => &events,
            HTMLTOSPAN => &page,
            _ => &json,
        };
        let closed = |redirection: &str, args: &[&str]| {
            let line = format!("exec \"$@\" {redirection}");
            Command::new("sh").args(["-c", &line, "sh", tool]).args(args).stdin(Stdio::null()).output().unwrap()
        };
        let input = input.to_str().unwrap();
        for args in [&[args, &[input]].concat()[..], &["--help"], &["--version"]] {
            let output = closed(">&-", args);
            assert_eq!((code(&output), output.stdout.len()), (1, 0), "{tool} {args:?}");
            assert!(stderr(&output).ends_with(": stdout: closed\n"), "{}", stderr(&output));
        }
        let from = closed("<&-", &[args, &["-"]].concat());
        assert!(code(&from) == 1 && stderr(&from).ends_with(": stdin: closed\n"), "{}", stderr(&from));
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("closed.out");
        let _ = std::fs::remove_file(&file);
        let to_file = closed(">&- <&-", &[args, &[input], &["-o", file.to_str().unwrap()]].concat());
        assert_eq!((code(&to_file), file.exists()), (0, true), "{tool}: {}", stderr(&to_file));
    }
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

#[test]
fn a_full_disk_and_a_reader_that_goes_away_end_every_companion() {
    let trace = busy(2, 20_000, 6);
    let json = json(&trace);
    let page = run(SPANTOHTML, &[], &json).stdout;
    let raw = temporary("companions.raw", &trace.bytes());
    let (json, page) = (temporary("companions.json", &json), temporary("companions.html", &page));
    let runs = [
        (KUOD, [].as_slice(), &raw),
        (SPANTOTRIM, &["0", "--input"], &json),
        (SPANTOSPAN, &["0"], &json),
        (SPANTOPROF, &["--group"], &json),
        (HTMLTOSPAN, &[], &page),
        (SPANTOPERFETTO, &["--quiet"], &json),
        (SPANTOOTLP, &["--quiet"], &json),
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

#[test]
fn a_full_standard_error_does_not_end_a_tool() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let path = temporary("silent.raw", &busy(2, 2_000, 1).bytes());
    let output = Command::new(RAWTOEVENT).arg(path).stderr(full).output().unwrap();
    assert_eq!(code(&output), 0);
    assert!(output.stdout.len() > 50_000);
}
