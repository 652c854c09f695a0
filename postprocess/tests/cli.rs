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
const KUOD: &str = env!("CARGO_BIN_EXE_kuod");
const SPANTOTRIM: &str = env!("CARGO_BIN_EXE_spantotrim");
const SPANTOSPAN: &str = env!("CARGO_BIN_EXE_spantospan");
const SPANTOPROF: &str = env!("CARGO_BIN_EXE_spantoprof");
const HTMLTOSPAN: &str = env!("CARGO_BIN_EXE_htmltospan");
const SAMPTONAME_K: &str = env!("CARGO_BIN_EXE_samptoname_k");
const SAMPTONAME_U: &str = env!("CARGO_BIN_EXE_samptoname_u");

/// The tools from spans to spans, with what they need to know.
const FILTERS: [(&str, &[&str]); 3] = [(SPANTOTRIM, &["0"]), (SPANTOSPAN, &["10"]), (SPANTOPROF, &[])];

/// Tools that read one file, with what stands before its name.
const ONE_FILE: [(&str, &[&str]); 8] = [
    (RAWTOEVENT, &[]),
    (EVENTTOSPAN, &[]),
    (CHECKTRACE, &[]),
    (KUOD, &[]),
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

/// A raw file of the original: one block of CPU 2, in which thread 7 enters system call 1.
fn original() -> Vec<u8> {
    const USEC: u64 = 1_795_187_640_000_000;
    let header = [2 << 56 | 1 << 40, 3 << 56 | USEC, 1 << 40, USEC, (1 << 40) + 50_000_000, USEC + 1_000_000, 0, 0];
    let mut words = [&header[..], &[7, 0, 0x61, 0, 50 << 44 | 0x801 << 32]].concat();
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
fn frames_go_wherever_text_goes() {
    let raw = busy(2, 500, 4).bytes();
    let (text, events) = (run(RAWTOEVENT, &[], &raw), run(RAWTOEVENT, &["--binary"], &raw));
    assert_eq!((code(&events), stderr(&events)), (0, stderr(&text)));
    assert!(events.stdout.starts_with(b"KUevent1") && 2 * events.stdout.len() < text.stdout.len());
    let json = run(EVENTTOSPAN, &[], &text.stdout).stdout;
    assert!(run(EVENTTOSPAN, &[], &events.stdout).stdout == json);
    let spans = run(EVENTTOSPAN, &["--binary"], &events.stdout).stdout;
    assert!(spans.starts_with(b"KUspans1") && 2 * spans.len() < json.len());
    for (tool, args) in FILTERS {
        let of_text = run(tool, args, &json);
        assert!(run(tool, args, &spans).stdout == of_text.stdout, "{tool}");
        let framed = run(tool, &[args, &["--binary"]].concat(), &spans);
        assert!(framed.stdout.starts_with(b"KUspans1"), "{tool}");
        assert!(run(SPANTOTRIM, &["0"], &framed.stdout).stdout == run(SPANTOTRIM, &["0"], &of_text.stdout).stdout);
    }
    let page = run(SPANTOHTML, &[], &spans);
    assert!(run(HTMLTOSPAN, &["--binary"], &page.stdout).stdout.starts_with(b"KUspans1"));
    assert_eq!(code(&page), 0);
}

#[test]
fn frames_that_are_cut_or_of_another_version_are_said_to_be() {
    let mut events = run(RAWTOEVENT, &["--binary"], &busy(2, 500, 4).bytes()).stdout;
    let cut = run(EVENTTOSPAN, &["--binary"], &events[..events.len() - 5]);
    assert_eq!(code(&cut), 3);
    assert!(stderr(&cut).contains("the frames end before their end mark"), "{}", stderr(&cut));
    let page = run(SPANTOHTML, &[], &cut.stdout);
    assert_eq!(code(&page), 3, "the damage is passed on");
    assert!(stderr(&page).contains("the frames end before their end mark"), "{}", stderr(&page));
    events[7] = b'9';
    let newer = run(EVENTTOSPAN, &[], &events);
    let said = "eventtospan: stdin: byte 7: frames of a version not known\n";
    assert_eq!((code(&newer), stderr(&newer).as_str()), (1, said));
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
    assert_eq!((code(&none), stderr(&none).as_str()), (1, "htmltospan: stdin: not a page of KUtrace\n"));
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

/// Spans as JSON that are samples with this event number of this thread, at these addresses.
fn samples(event: u32, thread: u32, addresses: impl Iterator<Item = u64>) -> Vec<u8> {
    let line = |pc| format!("[0.0, 0.1, 0, {thread}, 0, {event}, 7, 0, 0, \"PC={pc:012x}\"],\n");
    let lines: String = addresses.map(line).collect();
    format!("{{\n\"events\" : [\n{lines}[999.0, 0.0, 0, 0, 0, 0, 0, 0, 0, \"\"]\n]}}\n").into_bytes()
}

/// Names and arguments of the spans in a tool's output.
fn named(output: &Output) -> Vec<(String, i64)> {
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let spans = json["events"].as_array().unwrap().iter();
    spans.filter(|s| s[0] != 999.0).map(|s| (s[9].as_str().unwrap().into(), s[6].as_i64().unwrap())).collect()
}

#[test]
fn kernel_samples_get_the_names_of_functions() {
    let list = temporary("kallsyms", b"ffffffff81000010 T second\nffffffff81000000 T first\n");
    let list = list.to_str().unwrap();
    let addresses = [0xffff_ffff_8100_0004, 0xffff_ffff_8100_0010, 16, 0xffff_ffff_8100_0008];
    let output = run(SAMPTONAME_K, &[list], &samples(641, 7, addresses.into_iter()));
    assert_eq!((code(&output), stderr(&output).as_str()), (0, "samptoname_k: 3 samples named, 1 not known\n"));
    let named_spans = named(&output);
    let names: Vec<&str> = named_spans.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["PC=first", "PC=second", "PC=000000000010", "PC=first"]);
    assert!(named_spans[0].1 == named_spans[3].1 && named_spans[0].1 != named_spans[1].1 && named_spans[2].1 == 7);
    let user = run(SAMPTONAME_K, &[list], &samples(640, 7, addresses.into_iter()));
    assert_eq!(stderr(&user), "samptoname_k: 0 samples named, 0 not known\n");
}

#[inline(always)]
fn inside(number: u64) -> u64 {
    std::hint::black_box(number).wrapping_mul(3)
}

#[inline(never)]
extern "C" fn landmark(number: u64) -> u64 {
    inside(std::hint::black_box(number)).rotate_left(1)
}

#[test]
fn user_samples_get_the_names_of_functions_and_of_those_put_into_them() {
    assert_eq!(std::hint::black_box(landmark as extern "C" fn(u64) -> u64)(1), 6);
    let maps = format!("==== /proc/66/maps\n{}", std::fs::read_to_string("/proc/self/maps").unwrap());
    let maps = temporary("maps", maps.as_bytes());
    let start = landmark as *const () as u64;
    let input = samples(640, 66, (start..start + 40).chain([1]));
    let output = run(SAMPTONAME_U, &[maps.to_str().unwrap()], &input);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, "samptoname_u: 40 samples named, 1 not known\n"));
    let names = named(&output);
    assert_eq!(names[0].0, "PC=cli::landmark");
    assert!(names.iter().any(|(name, _)| name.ends_with("cli::inside in cli::landmark")), "{names:?}");
    assert_eq!(names[40].0, "PC=000000000001");
    let elsewhere = run(SAMPTONAME_U, &[maps.to_str().unwrap(), "--root", "/nowhere"], &input);
    assert!(stderr(&elsewhere).starts_with("samptoname_u: /nowhere/"), "{}", stderr(&elsewhere));
    assert!(named(&elsewhere)[0].0.starts_with("PC=cli-"), "the file is known, the function is not");
}

extern "C" {
    fn getpid() -> i32;
}

#[test]
fn user_samples_in_a_stripped_library_get_the_names_of_symbols() {
    let maps = format!("==== /proc/66/maps\n{}", std::fs::read_to_string("/proc/self/maps").unwrap());
    let maps = temporary("maps_of_libc", maps.as_bytes());
    let start = getpid as *const () as u64;
    let output = run(SAMPTONAME_U, &[maps.to_str().unwrap()], &samples(640, 66, [start].into_iter()));
    let names = named(&output);
    assert!(names[0].0.ends_with("getpid"), "{names:?}");
}

#[test]
fn lists_that_name_nothing_are_refused_in_one_line() {
    let hidden = temporary("hidden", b"0000000000000000 T first\n");
    for (tool, list, fact) in [
        (SAMPTONAME_K, temporary("empty", b""), "no kernel symbols; expected lines like those of /proc/kallsyms"),
        (SAMPTONAME_K, hidden, "every address is 0, because the kernel hides them; copy /proc/kallsyms as root"),
        (SAMPTONAME_U, temporary("nomaps", b""), "no maps; expected a line `==== /proc/PID/maps` before each"),
        (SAMPTONAME_U, PathBuf::from("/nowhere"), "No such file or directory (os error 2)"),
    ] {
        let list = list.to_str().unwrap();
        let output = run(tool, &[list], b"");
        let said = stderr(&output);
        assert_eq!((code(&output), output.stdout.as_slice(), said.lines().count()), (1, &b""[..], 1), "{said}");
        assert!(said.ends_with(&format!(": {list}: {fact}\n")), "{said}");
    }
}

/// All tools of this package.
const TOOLS: [&str; 12] = [
    RAWTOEVENT,
    EVENTTOSPAN,
    SPANTOHTML,
    CHECKTRACE,
    KUOD,
    SPANTOTRIM,
    SPANTOSPAN,
    SPANTOPROF,
    HTMLTOSPAN,
    SAMPTONAME_K,
    SAMPTONAME_U,
    env!("CARGO_BIN_EXE_rawtoctf"),
];

#[test]
fn every_help_fits_a_screen_and_ends_with_two_examples() {
    for tool in TOOLS {
        let name = Path::new(tool).file_name().unwrap().to_str().unwrap();
        let output = Command::new(tool).arg("--help").env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), help.lines().count() <= 24), (Some(0), true), "{name}:\n{help}");
        assert!(help.lines().all(|line| line.len() <= 80), "{name}:\n{help}");
        let examples: Vec<&str> = help.trim_end().lines().rev().take_while(|line| *line != "Examples:").collect();
        assert_eq!(examples.len(), 2, "{name}:\n{help}");
        assert!(examples.iter().all(|example| example.contains(name)), "{name}:\n{help}");
        let version = run(tool, &["--version"], b"");
        assert!(String::from_utf8(version.stdout).unwrap().starts_with(&format!("{name} ")), "{name}");
    }
}

#[test]
fn a_wrong_option_is_a_usage_error_in_colour_only_at_a_terminal() {
    for tool in TOOLS {
        let wrong = run(tool, &["--no-such-option"], b"");
        assert_eq!((code(&wrong), wrong.stdout.len()), (2, 0), "{tool}");
        assert!(stderr(&wrong).contains("--no-such-option") && !stderr(&wrong).contains('\u{1b}'), "{tool}");
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

#[test]
fn every_tool_writes_its_manual_and_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    for tool in TOOLS {
        let name = Path::new(tool).file_name().unwrap().to_str().unwrap();
        assert_eq!(code(&run(tool, &["--generate", folder.path().to_str().unwrap()], b"")), 0, "{name}");
        let page = std::fs::read_to_string(folder.path().join(format!("man/man1/{name}.1"))).unwrap();
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "\"EXIT STATUS\"", "EXAMPLES", "\"SEE ALSO\""] {
            assert!(sections.contains(&section), "{name}: no {section} in {sections:?}");
        }
        for path in [
            format!("bash-completion/completions/{name}"),
            format!("zsh/site-functions/_{name}"),
            format!("fish/vendor_completions.d/{name}.fish"),
        ] {
            assert!(std::fs::read_to_string(folder.path().join(&path)).unwrap().contains(name), "{path}");
        }
    }
}
