// SPDX-License-Identifier: BSD-3-Clause
//! Exit statuses independent of the reader, and messages about invalid files.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use kutrace_format::abi::{block, event};
use kutrace_tests::{busy, sign, TraceBuilder};

use super::*;

const RAWTOCTF: &str = env!("CARGO_BIN_EXE_rawtoctf");

/// Runs a tool whose reader closes the pipe immediately.
fn unread(tool: &str, args: &[&str], input: &Path) -> Output {
    let mut child =
        Command::new(tool).args(args).arg(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.wait_with_output().unwrap()
}

/// Returns a trace in which events were lost.
fn lossy() -> Vec<u8> {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).call(10, 0, 0).lose(3);
    trace.bytes()
}

/// Returns a trace with a damaged block.
fn damaged() -> Vec<u8> {
    let mut bytes = busy(2, 20_000, 4).bytes();
    let at = bytes.len() - 60_000;
    bytes[at] ^= 1;
    bytes
}

#[test]
fn the_status_is_the_same_whoever_reads() {
    let (lossy, damaged) = (temporary("unread.lossy", &lossy()), temporary("unread.damaged", &damaged()));
    let events = run(RAWTOEVENT, &[], &fs::read(&damaged).unwrap()).stdout;
    let spans = run(EVENTTOSPAN, &[], &events).stdout;
    let page = run(SPANTOHTML, &[], &spans).stdout;
    let (events, spans) = (temporary("unread.events", &events), temporary("unread.json", &spans));
    let page = temporary("unread.html", &page);
    for (tool, args, input, status) in [
        (CHECKTRACE, &[][..], &damaged, 1),
        (CHECKTRACE, &["-q"], &lossy, 3),
        (RAWTOEVENT, &[], &damaged, 3),
        (RAWTOEVENT, &["--binary"], &damaged, 3),
        (RAWTOEVENT, &[], &lossy, 3),
        (KUOD, &[], &damaged, 3),
        (KUOD, &[], &lossy, 3),
        (EVENTTOSPAN, &["--check"], &events, 3),
        (EVENTTOSPAN, &["--check", "--binary"], &events, 3),
        (SPANTOPROF, &[], &spans, 3),
        (SPANTOHTML, &[], &spans, 3),
        (HTMLTOSPAN, &[], &page, 3),
    ] {
        let read = run(tool, args, &fs::read(input).unwrap());
        let gone = unread(tool, args, input);
        assert_eq!((code(&read), code(&gone)), (status, status), "{tool} {args:?}: {}", stderr(&gone));
        assert!(!stderr(&gone).contains("roken pipe"), "{}", stderr(&gone));
    }
}

#[test]
fn a_wrong_file_is_named_with_the_command_line_that_is_right() {
    let raw = busy(2, 500, 4).bytes();
    let events = run(RAWTOEVENT, &[], &raw).stdout;
    let frames = run(RAWTOEVENT, &["--binary"], &raw).stdout;
    let spans = run(EVENTTOSPAN, &[], &events).stdout;
    let page = run(SPANTOHTML, &[], &spans).stdout;
    for (tool, args, input, said) in [
        (SPANTOHTML, &[][..], &raw, "not spans: it is a raw trace\nhint: rawtoevent FILE | eventtospan | spantohtml\n"),
        (SPANTOPROF, &[], &page, "not spans: it is a page\nhint: htmltospan FILE | spantoprof\n"),
        (
            SPANTOWHY,
            &["--call", "read"],
            &raw,
            "not spans: it is a raw trace\nhint: rawtoevent FILE | eventtospan | spantowhy --call read\n",
        ),
        (SPANTOTRIM, &["0"], &frames, "not spans: it is events\nhint: eventtospan FILE | spantotrim 0\n"),
        (EVENTTOSPAN, &[], &raw, "not events: it is a raw trace\nhint: rawtoevent FILE | eventtospan\n"),
        (EVENTTOSPAN, &[], &spans, "not events: it is spans\nhint: spantohtml FILE > page.html\n"),
        (HTMLTOSPAN, &[], &spans, "not a page: it is spans\nhint: spantohtml FILE > page.html\n"),
        (RAWTOEVENT, &[], &events, "not a KUtrace trace: it is events\nhint: rawtoevent needs the raw trace"),
        (CHECKTRACE, &[], &page, "not a KUtrace trace: it is a page\nhint: checktrace needs the raw trace"),
    ] {
        let output = run(tool, args, input);
        let expected = format!("{}: stdin: byte 0: {said}", Path::new(tool).file_name().unwrap().to_str().unwrap());
        assert_eq!((code(&output), output.stdout.len()), (1, 0));
        assert!(stderr(&output).starts_with(&expected), "{}", stderr(&output));
    }
}

#[test]
fn what_never_ends_is_refused_by_its_beginning() {
    for tool in [RAWTOEVENT, CHECKTRACE, KUOD, EVENTTOSPAN, SPANTOHTML, HTMLTOSPAN] {
        let zeros = Stdio::from(File::open("/dev/zero").unwrap());
        let output = Command::new(tool).stdin(zeros).output().unwrap();
        assert_eq!((code(&output), stderr(&output).lines().count()), (1, 1), "{}", stderr(&output));
    }
    for (tool, args) in [(EVENTTOSPAN, &[][..]), (SPANTOHTML, &[])].into_iter().chain(FILTERS) {
        let yes = Command::new("sh").args(["-c", "yes | \"$@\"", "sh", tool]).args(args).output().unwrap();
        assert_eq!((code(&yes), stderr(&yes).lines().count(), yes.stdout.len()), (1, 1, 0), "{}", stderr(&yes));
        assert!(stderr(&yes).contains("65536 lines, and none is of "), "{}", stderr(&yes));
    }
}

#[test]
fn the_command_line_that_is_right_can_be_pasted() {
    let raw = busy(2, 500, 4).bytes();
    let path = temporary("a trace.raw", &raw);
    let output = run(SPANTOTRIM, &["it's", "-i", path.to_str().unwrap(), "--quiet"], b"");
    let hint = format!("hint: rawtoevent '{}' | eventtospan | spantotrim 'it'\\''s' --quiet\n", path.display());
    assert!(code(&output) == 1 && stderr(&output).ends_with(&hint), "{}", stderr(&output));
}

#[test]
fn of_several_traces_one_behind_the_other_none_is_dropped_in_silence() {
    let raw = busy(2, 500, 4).bytes();
    let events = run(RAWTOEVENT, &["--binary"], &raw).stdout;
    let spans = run(EVENTTOSPAN, &["--binary"], &events).stdout;
    let json = run(EVENTTOSPAN, &[], &events).stdout;
    let page = run(SPANTOHTML, &[], &json).stdout;
    for (tool, one, status, fact) in [
        (RAWTOEVENT, &raw, 3, "another trace follows the last block; skipped"),
        (EVENTTOSPAN, &events, 3, "more follows the end of the frames"),
        (SPANTOHTML, &spans, 3, "more follows the end of the frames"),
        (SPANTOHTML, &json, 3, "another trace begins; skipped"),
        (SPANTOPROF, &json, 3, "another trace begins; skipped"),
        (HTMLTOSPAN, &page, 1, "another page follows"),
    ] {
        let output = run(tool, &[], &[&one[..], one].concat());
        assert_eq!(code(&output), status, "{tool}: {}", stderr(&output));
        assert!(stderr(&output).contains(fact), "{tool}: {}", stderr(&output));
    }
    let twice = json.repeat(2);
    let (first, both) = (run(SPANTOTRIM, &["0"], &json), run(SPANTOTRIM, &["0"], &twice));
    let spans = |text: &[u8]| String::from_utf8_lossy(text).lines().filter(|l| l.starts_with('[')).count();
    assert_eq!(spans(&first.stdout), spans(&both.stdout));
    // A third copy is not even read: there may be endlessly many.
    let thrice = run(RAWTOEVENT, &[], &raw.repeat(3));
    assert_eq!((code(&thrice), thrice.stdout), (3, run(RAWTOEVENT, &[], &raw.repeat(2)).stdout));
}

#[test]
fn events_in_another_order_are_put_in_theirs() {
    let events = run(RAWTOEVENT, &[], &busy(4, 5_000, 2).bytes()).stdout;
    let (head, lines): (Vec<&[u8]>, Vec<&[u8]>) =
        events.split_inclusive(|&c| c == b'\n').partition(|line| line.starts_with(b"#"));
    let (late, early) = lines.split_at(lines.len() / 3);
    let moved = [&head[..], early, late].concat().concat();
    let (sorted, output) = (run(EVENTTOSPAN, &[], &events), run(EVENTTOSPAN, &["--check"], &moved));
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(output.stdout == sorted.stdout);
}

#[test]
fn what_cannot_be_is_not_dropped_in_silence() {
    for (line, said) in [
        ("100 0 2049 4294967295  7 0  0 0 0 read (801)", "1 event has an impossible number or CPU; skipped"),
        ("100 0 99999 0  7 0  0 0 0 read (801)", "1 event has an impossible number or CPU; skipped"),
        ("# ## FORMAT: 99999", "format 99999, newer than this program"),
    ] {
        let text = format!("{line}\n100 0 2049 0  7 0  0 0 0 read (801)\n200 0 2561 0  7 0  0 0 0 read (a01)\n");
        let output = run(EVENTTOSPAN, &[], text.as_bytes());
        assert_eq!(code(&output), 3, "{line}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    let json = String::from_utf8(json(&busy(1, 500, 5))).unwrap();
    let at = json.find("\n[").unwrap() + 1;
    let backward =
        format!("{}[  1.00000000, -0.00000100, 0, 1, 0, 2052, 0, 0, 0, \"read\"],\n{}", &json[..at], &json[at..]);
    for tool in [SPANTOHTML, SPANTOPROF] {
        let output = run(tool, &[], backward.as_bytes());
        assert_eq!(code(&output), 3);
        assert!(stderr(&output).contains("1 span ends before it begins"), "{}", stderr(&output));
    }
}

#[test]
fn an_output_file_is_new_and_whole_or_not_there() {
    let (raw, folder) = (busy(2, 500, 4).bytes(), tempfile::tempdir().unwrap());
    let path = folder.path().join("t.events");
    let args = ["--quiet", "-o", path.to_str().unwrap()];
    let output = run(RAWTOEVENT, &args, &raw);
    assert_eq!((code(&output), stderr(&output).as_str(), output.stdout.len()), (0, "", 0));
    assert!(fs::read(&path).unwrap() == run(RAWTOEVENT, &[], &raw).stdout);
    let again = run(RAWTOEVENT, &args, &raw);
    assert_eq!((code(&again), stderr(&again).ends_with("already exists\nhint: name another file\n")), (1, true));
    let missing = folder.path().join("none").join("t.json");
    let output = run(EVENTTOSPAN, &["-o", missing.to_str().unwrap()], &fs::read(&path).unwrap());
    let said = format!("eventtospan: {}: No such file or directory (os error 2)\n", missing.display());
    assert_eq!((code(&output), stderr(&output)), (1, said));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_of_ctf_says_what_is_missing_and_is_replaced_only_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("t.ctf");
    let dir = dir.to_str().unwrap();
    let output = run(RAWTOCTF, &[dir], &lossy());
    assert_eq!((code(&output), stderr(&output).as_str()), (3, "rawtoctf: stdin: 3 events were lost while recording\n"));
    assert_eq!(code(&run(RAWTOCTF, &["-", dir], &lossy())), 1);
    assert_eq!(code(&run(RAWTOCTF, &["--force", "-", dir], &busy(2, 500, 4).bytes())), 0);
    fs::write(folder.path().join("t.ctf/precious"), "").unwrap();
    let kept = run(RAWTOCTF, &["--force", "-", dir], &lossy());
    assert_eq!((code(&kept), folder.path().join("t.ctf/precious").exists()), (1, true));
}

#[test]
fn blocks_that_are_not_there_are_missed() {
    let none = TraceBuilder::new(1, 1_000).bytes();
    let mut early = TraceBuilder::new(2, 100_000_000);
    early.cpu(0).call(10, 0, 0);
    early.cpu(1).call(20, 0, 0);
    let mut early = early.bytes();
    let at = early.len() - block::BYTES;
    let last = &mut early[at..];
    // The end, 0.5 s before the stop.
    let end = u64::from_le_bytes(last[32..40].try_into().unwrap()) - 50_000_000;
    last[32..40].copy_from_slice(&end.to_le_bytes());
    sign(last);
    let mut hole = TraceBuilder::new(1, 1_000);
    hole.cpu(0).entry(10, event::IRQ + 0xec, &[]).skip(1, 100).entry(300, event::IRQ + 0xec, &[]);
    for (bytes, fact) in [
        (&none, "the file has no blocks: nothing was recorded"),
        (&early, "the last block of cpu 1 ends 500000 us before the stop: later ones are missing"),
        (&hole.bytes(), "before it 1 block of cpu 0 is missing"),
    ] {
        let checked = run(CHECKTRACE, &[], bytes);
        assert_eq!(code(&checked), 1);
        assert!(String::from_utf8_lossy(&checked.stdout).contains(fact), "{checked:?}");
        for tool in [RAWTOEVENT, KUOD] {
            assert_eq!(code(&run(tool, &[], bytes)), 3, "{tool}: {fact}");
        }
    }
}
