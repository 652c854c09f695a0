// SPDX-License-Identifier: BSD-3-Clause
//! kutrace_control as a shell sees it, without a recorder: refused input, with messages and status, and results for a
//! file.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use kutrace_tests::{busy, TraceBuilder};

fn control(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kutrace_control"));
    command.current_dir(directory).stdin(Stdio::null()).env("COLUMNS", "80");
    command
}

/// Status, standard output and standard error.
fn run(directory: &Path, words: &[&str]) -> (i32, String, String) {
    ended(control(directory).args(words).output().unwrap())
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.raw"), busy(2, 3_000, 7).bytes()).unwrap();
    fs::write(folder.path().join("there"), "mine").unwrap();
    folder
}

#[test]
fn what_is_not_understood_has_status_2_and_says_what() {
    let folder = folder();
    for (words, said) in [
        (&["start"][..], "unrecognized subcommand 'start'"),
        (&["go", "now"], "--stream"),
        (&["go", "--at", "noon"], "invalid time 'noon': expected something like 16:30:00 or 16:30:00Z"),
        (&["merge", "t.raw", "-o", "x"], "2 values required"),
        (&["recover", "vmcore"], "--output <OUT>"),
        (&["record", "-b", "1K"], "'1K': buffer size must be 1M to 64G"),
        (&["record", "-b", "lots"], "invalid size 'lots': expected something like 64M or 2G"),
        (&["record", "-d", "soon"], "invalid duration 'soon': expected something like 2, 500ms or 1m"),
        (&["record", "ls"], "unexpected argument 'ls'"),
        (&["mark", "too long"], "invalid mark 'too long': expected up to 6 of a-z 0-9 - . /, or a number below 2^32"),
        (&["wait", "-1"], "unexpected argument"),
        (&["summary", "-i", "t.raw", "t.raw"], "cannot be used with"),
        (&["summary", "t.raw", "--top", "few"], "invalid value 'few'"),
        (&["completions", "cmd.exe"], "invalid value 'cmd.exe'"),
    ] {
        let (status, out, err) = run(folder.path(), words);
        assert_eq!((status, &*out), (2, ""), "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
        assert!(!err.contains('\u{1b}'), "{words:?}: {err}");
    }
}

#[test]
fn what_cannot_be_done_has_status_1_one_line_and_a_hint() {
    let folder = folder();
    for (words, said) in [
        (&["record", "-o", "there", "--", "true"][..], "kutrace_control: there: already exists\nhint: "),
        (
            &["record", "-o", "/dev/null", "--", "true"],
            "kutrace_control: /dev/null: exists and is not a regular file\nhint: ",
        ),
        (&["html", "no.raw"], "kutrace_control: no.raw: No such file or directory"),
        (&["recover", "no.core", "-o", "x"], "kutrace_control: no.core: No such file or directory"),
        (&["recover", "t.raw", "-o", "there"], "kutrace_control: there: already exists\nhint: "),
        (
            &["recover", "there", "-o", "x"],
            "kutrace_control: there: not an image of a machine's memory: too short for one\nhint: ",
        ),
        (&["html", "t.raw", "-o", "there"], "kutrace_control: there: already exists\nhint: "),
        (&["html", "t.raw", "-o", "no/t.html"], "kutrace_control: no/t.html: No such file or directory"),
        (&["html", "t.raw", "-o", "/proc/t.html"], "kutrace_control: /proc/t.html: "),
        (&["summary", "there"], "kutrace_control: there: byte 0: not a KUtrace trace"),
        (&["html"], "kutrace_control: stdin: byte 0: not a KUtrace trace: it is empty"),
        (&["summary", "."], "kutrace_control: .: Is a directory"),
    ] {
        let (status, out, err) = run(folder.path(), words);
        assert_eq!((status, &*out), (1, ""), "{words:?}: {err}");
        assert!(err.starts_with(said), "{words:?}: {err}");
        let lines = if said.ends_with("hint: ") { 2 } else { 1 };
        assert_eq!(err.lines().count(), lines, "{words:?}: {err}");
    }
    assert_eq!(fs::read(folder.path().join("there")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else was left");
}

#[test]
fn a_page_lands_beside_its_trace_and_is_replaced_only_on_request() {
    let folder = folder();
    let page = folder.path().join("t.html");
    let (status, out, err) = run(folder.path(), &["html", "t.raw", "--title", "a <title>"]);
    assert_eq!((status, &*out), (0, ""), "{err}");
    let written = fs::read_to_string(&page).unwrap();
    assert!(written.starts_with("<!doctype html>") && written.contains("a &#60;title&#62;"));
    assert_eq!(run(folder.path(), &["html", "t.raw"]).0, 1);
    assert_eq!(run(folder.path(), &["html", "t.raw", "--force"]).0, 0);
    assert!(fs::read_to_string(&page).unwrap().contains("<title>t</title>"));
    let (status, piped, _) = run(folder.path(), &["html", "t.raw", "-o", "-"]);
    assert_eq!((status, piped), (0, fs::read_to_string(&page).unwrap()));
}

#[test]
fn a_page_without_symbols_has_addresses_where_it_had_functions() {
    let folder = folder();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/words.trace");
    // The names of samples, and how many of them are addresses.
    let samples = |options: &[&str]| {
        let (status, page, err) =
            run(folder.path(), &[&["html", trace.to_str().unwrap(), "-o", "-"], options].concat());
        assert_eq!(status, 0, "{err}");
        let names = page.split("\"PC=").skip(1).map(|rest| rest.split('"').next().unwrap());
        let (addresses, functions): (Vec<_>, Vec<_>) =
            names.partition(|name| name.len() >= 12 && name.bytes().all(|c| c.is_ascii_hexdigit()));
        (addresses.len(), functions.len())
    };
    let (_, functions) = samples(&[]);
    assert!(functions > 10, "{functions}");
    let (addresses, functions) = samples(&["--no-symbols"]);
    assert!(addresses > 10 && functions == 0, "{addresses}, {functions}");
}

#[test]
fn a_summary_is_read_from_a_file_or_a_pipe() {
    let folder = folder();
    let (status, text, _) = run(folder.path(), &["summary", "t.raw"]);
    assert_eq!(status, 0);
    assert!(text.contains(" on 2 CPUs") && text.contains("PROGRAM") && text.contains("WAKEUP LATENCY"), "{text}");
    for words in [&["summary", "-"][..], &["summary"], &["summary", "-i", "-"]] {
        let mut child =
            control(folder.path()).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&fs::read(folder.path().join("t.raw")).unwrap()).unwrap();
        assert_eq!(ended(child.wait_with_output().unwrap()).1, text, "{words:?}");
    }
    assert_eq!(run(folder.path(), &["summary", "--input", "t.raw"]).1, text);
    let (_, short, _) = run(folder.path(), &["summary", "t.raw", "--top", "1"]);
    assert!(short.lines().count() < text.lines().count());
}

#[test]
fn losses_are_shown_and_are_status_3() {
    let folder = folder();
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.cpu(0).call(10, 0, 0).lose(3);
    fs::write(folder.path().join("lost.raw"), trace.bytes()).unwrap();
    let (status, text, err) = run(folder.path(), &["summary", "lost.raw"]);
    assert_eq!(status, 3);
    assert!(text.contains("3 events LOST") && err.contains("lost.raw: 3 events were lost while recording"), "{err}");
    assert_eq!(run(folder.path(), &["html", "lost.raw"]).0, 3);
    assert!(folder.path().join("lost.html").exists());
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let folder = folder();
    for words in [&["summary", "t.raw"][..], &["html", "t.raw", "-o", "-"], &["completions", "bash"], &["check"]] {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let (read_to_the_end, _, _) = run(folder.path(), words);
        let (status, _, err) = ended(control(folder.path()).args(words).stdout(write).output().unwrap());
        assert_eq!((status, &*err), (read_to_the_end, ""), "{words:?}");
    }
}

#[test]
fn a_full_disk_fails_and_leaves_nothing() {
    let folder = folder();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let (status, _, err) =
        ended(control(folder.path()).args(["html", "t.raw", "-o", "-"]).stdout(full).output().unwrap());
    assert_eq!(status, 1);
    assert!(err.contains("No space left on device"), "{err}");
}

#[test]
fn a_standard_stream_that_is_closed_is_said_to_be() {
    let folder = folder();
    let closed = |redirection: &str, words: &[&str]| {
        let mut sh = Command::new("sh");
        sh.current_dir(folder.path()).stdin(Stdio::null());
        let line = format!("exec \"$@\" {redirection}");
        ended(sh.args(["-c", &line, "sh", env!("CARGO_BIN_EXE_kutrace_control")]).args(words).output().unwrap())
    };
    let said = "kutrace_control: stdout: closed\n".to_string();
    for words in
        [&["summary", "t.raw"][..], &["html", "t.raw", "-o", "-"], &["check"], &["completions", "fish"], &["--help"]]
    {
        assert_eq!(closed(">&-", words), (1, String::new(), said.clone()), "{words:?}");
    }
    let said = "kutrace_control: stdin: closed\n".to_string();
    for words in [&["summary"][..], &["html"], &["why", "-"], &[]] {
        assert_eq!(closed("<&-", words), (1, String::new(), said.clone()), "{words:?}");
    }
    assert_eq!(closed(">&- <&-", &["html", "t.raw"]).0, 0);
}

#[test]
fn what_a_page_can_be_made_of_is_told_how() {
    let folder = folder();
    for (name, begins, hint) in [
        ("t.events", "# ## VERSION: 3\n", "hint: eventtospan t.events | spantohtml > page.html\n"),
        ("t.json", "{\n", "hint: spantohtml t.json > page.html\n"),
        ("t.html", "<!doctype html>\n", "hint: open it in a browser\n"),
    ] {
        fs::write(folder.path().join(name), begins).unwrap();
        let (status, _, err) = run(folder.path(), &["html", name]);
        assert!(status == 1 && err.ends_with(hint), "{err}");
        let (status, _, err) = run(folder.path(), &["why", name]);
        assert!(status == 1 && err.contains("hint: kutrace_control why needs the raw trace"), "{err}");
    }
}

#[test]
fn what_cannot_be_compared_is_not_taken_for_a_difference() {
    let folder = folder();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let sample = |name: &str| samples.join(name).to_str().unwrap().to_string();
    let (disk, hello, redis) = (sample("disk.trace"), sample("hello.trace"), sample("redis.trace"));
    fs::write(folder.path().join("empty"), "").unwrap();
    fs::write(folder.path().join("text"), "no trace\n").unwrap();
    let whole = fs::read(&redis).unwrap();
    fs::write(folder.path().join("cut"), &whole[..whole.len() / 3]).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2..][..64].fill(0x5a);
    fs::write(folder.path().join("damaged"), damaged).unwrap();
    let openat = ["--call", "openat"];
    let diff = |words: &[&str]| run(folder.path(), &[&["diff"][..], words].concat());
    for (words, fact) in [
        (&["empty", &redis][..], "kutrace_control: empty: byte 0: not a KUtrace trace: it is empty\n"),
        (&[&redis, "text"], "kutrace_control: text: byte 0: not a KUtrace trace\n"),
        (&[&redis, "nothing"], "kutrace_control: nothing: No such file"),
        (&["-", "-"], "kutrace_control: standard input can be only one of the traces\n"),
        (&[&sample("faults.trace"), &redis], "faults.trace: too few requests to compare: 1, at least 20 are needed; "),
        (&[&redis, &disk], "disk.trace: no requests: the trace has none of: requests of redis-benchmark"),
        (&[&redis, "cut"], "kutrace_control: cut: "),
        (&[&redis], "<AFTER>"),
        (&[&redis, &redis, "--fail-above", "much"], "not a percentage"),
    ] {
        let (status, out, err) = diff(words);
        assert!(status == 2 && out.is_empty() && err.contains(fact), "{words:?}: {status} {out} {err}");
    }
    for (words, status) in [
        (&[&*redis, &redis][..], 0),
        (&[&redis, "damaged"], 3),
        (&[&disk, &hello, openat[0], openat[1]], 1),
        (&[&disk, &hello, openat[0], openat[1], "--fail-above", "9000%"], 0),
        (&[&hello, &disk, openat[0], openat[1]], 1),
        (&[&hello, &disk, openat[0], openat[1], "--fail-above", "5%"], 0),
    ] {
        let (is, out, err) = diff(words);
        assert_eq!(is, status, "{words:?}: {out}{err}");
        assert_eq!(out.contains("\n1. "), out.contains("slower") || out.contains("faster"), "{out}");
    }
}

#[test]
fn a_build_is_let_pass_unless_it_is_slower() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let tools = Path::new(env!("CARGO_BIN_EXE_kutrace_control")).parent().unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let gate = |words: &[&str]| {
        let mut command = Command::new(samples.join("gate.sh"));
        ended(command.args(words).current_dir(&samples).env("PATH", &path).output().unwrap())
    };
    for (words, status, said) in [
        (&["hello.trace", "hello.trace", "--call", "openat"][..], 0, "gate: pass\n"),
        (&["disk.trace", "hello.trace", "--call", "openat"], 1, "gate: slower"),
        (&["hello.trace", "disk.trace", "--call", "openat"], 0, "gate: pass\n"),
        (&["hello.trace", "gate.sh"], 2, "gate: not known"),
    ] {
        let (is, out, err) = gate(words);
        assert!(is == status && out.contains(said), "{words:?}: {is} {out} {err}");
    }
    assert_eq!(gate(&[]).0, 2);
}

#[test]
fn every_shell_has_completions_with_the_options() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let (status, text, _) = run(folder.path(), &["completions", shell]);
        assert_eq!(status, 0);
        assert!(text.contains("record") && text.contains("duration") && text.contains("snapshot"), "{shell}");
    }
}

#[test]
fn waiting_and_unknown_words_need_no_recorder() {
    let folder = folder();
    assert_eq!(run(folder.path(), &["wait", "10ms"]).0, 0);
    assert_eq!(run(folder.path(), &[]), (0, String::new(), String::new()));
    let mut child = control(folder.path()).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"init\nwait 10ms\nstart\n").unwrap();
    let (status, _, err) = ended(child.wait_with_output().unwrap());
    assert_eq!(status, 2);
    let zeros = fs::File::open("/dev/zero").unwrap();
    let (endless, _, said) = ended(control(folder.path()).stdin(zeros).output().unwrap());
    assert_eq!((endless, &*said), (1, "kutrace_control: stdin: a line of 8192 bytes is not a command\n"));
    assert!(
        err.starts_with("kutrace_control: unknown command 'start'; commands: go[ipc][llc][wrap], stop [NAME]"),
        "{err}"
    );
}

#[test]
fn colour_is_for_terminals_and_not_against_no_color() {
    let folder = folder();
    let at_terminal = |no_color: &str| {
        let command = format!("{} start", env!("CARGO_BIN_EXE_kutrace_control"));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).current_dir(folder.path());
        let (status, out, _) = ended(script.env("TERM", "xterm").env("NO_COLOR", no_color).output().unwrap());
        assert_eq!(status, 2);
        assert!(out.contains("unrecognized subcommand"), "{out}");
        out.contains('\u{1b}')
    };
    assert!(at_terminal("") && !at_terminal("1"));
}

#[test]
fn every_command_has_a_manual_and_the_program_completions() {
    let folder = folder();
    assert_eq!(run(folder.path(), &["--generate", "share"]).0, 0);
    let share = folder.path().join("share");
    let commands = [
        "record",
        "go",
        "stop",
        "snapshot",
        "watch",
        "top",
        "status",
        "reset",
        "mark",
        "summary",
        "why",
        "diff",
        "html",
        "export",
        "merge",
        "recover",
        "check",
        "completions",
    ];
    for name in [""].into_iter().chain(commands) {
        let page = ["kutrace_control", name].join("-");
        let page = share.join(format!("man/man1/{}.1", page.trim_end_matches('-')));
        let text = fs::read_to_string(&page).unwrap();
        for section in ["NAME", "SYNOPSIS", "\"EXIT STATUS\"", "EXAMPLES", "\"SEE ALSO\""] {
            assert!(text.contains(&format!("\n.SH {section}\n")), "{}: no {section}", page.display());
        }
    }
    let diff = fs::read_to_string(share.join("man/man1/kutrace_control-diff.1")).unwrap();
    assert!(diff.contains("\\fB1\\fR\ndifference\n") && !diff.contains("Wrong usage"), "{diff}");
    assert_eq!(fs::read_dir(share.join("man/man1")).unwrap().count(), 1 + commands.len());
    for path in ["bash-completion/completions/kutrace_control", "zsh/site-functions/_kutrace_control"] {
        assert!(share.join(path).is_file(), "{path}");
    }
    assert!(share.join("fish/vendor_completions.d/kutrace_control.fish").is_file());
}

/// The document with the current output of `why` and `diff` for the samples, and the number of answers.
fn with_answers(document: &str, root: &Path) -> (String, usize) {
    let (mut text, mut answers, mut stale) = (String::new(), 0, false);
    for line in document.lines() {
        stale &= line != "```";
        if !stale {
            text += &format!("{line}\n");
        }
        let words = line.strip_prefix("$ kutrace_control ").map(|words| words.split(' ').collect::<Vec<_>>());
        if let Some(words @ ["why" | "diff", ..]) = words.as_deref() {
            let (status, out, err) = run(root, words);
            let differs = words[0] == "diff" && !out.contains("\nno difference: ");
            assert_eq!((status, &*err), (i32::from(differs), ""), "{line}");
            text += &out;
            (answers, stale) = (answers + 1, true);
        }
    }
    (text, answers)
}

#[test]
fn the_document_on_why_shows_what_is_said_of_the_samples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let name = "docs/why.md";
    let document = fs::read_to_string(root.join(name)).unwrap();
    let (text, answers) = with_answers(&document, root);
    assert_eq!(answers, 7, "{name}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(root.join(name), text).unwrap();
    } else {
        assert!(text == document, "{name}: UPDATE_GOLDEN=1 accepts the new text:\n{text}");
    }
}

#[test]
fn machines_that_have_nothing_in_common_are_merged_and_that_is_said() {
    let folder = folder();
    let mut later = busy(2, 3_000, 8);
    for moment in [&mut later.header.start, &mut later.header.stop] {
        moment.realtime_ns += 3 * 3_600_000_000_000;
    }
    fs::write(folder.path().join("later.raw"), later.bytes()).unwrap();
    let (status, _, err) = run(folder.path(), &["merge", "t.raw", "later.raw", "-o", "both.trace"]);
    assert_eq!(status, 3, "{err}");
    let said = "both.trace: t, later: no packets shared with the others, and not recorded at the same time\n";
    assert!(err.contains(said), "{err}");
}

#[test]
fn traces_of_several_machines_become_one_that_is_read_like_any() {
    let folder = folder();
    fs::write(folder.path().join("u.raw"), busy(3, 2_000, 8).bytes()).unwrap();
    let (status, out, err) = run(folder.path(), &["merge", "t.raw", "u.raw", "-o", "both.trace"]);
    assert_eq!((status, &*out), (0, ""), "{err}");
    let line = "both.trace: u = t + 0.000000 s + 0.0 ppm, by its time of day, as there are no packets";
    assert!(err.contains(line) && err.contains("2 machines; no packet arrives before it was sent"), "{err}");
    let (status, out, err) = run(folder.path(), &["summary", "both.trace"]);
    assert_eq!(status, 0, "{out}{err}");
    let (status, _, err) = run(folder.path(), &["html", "both.trace"]);
    assert_eq!(status, 0, "{err}");
    let page = fs::read_to_string(folder.path().join("both.html")).unwrap();
    assert!(page.contains(r#""machines":[{"name":"t","first_cpu":0,"#), "no machines in the page");
    for (words, said) in [
        (&["merge", "t.raw", "u.raw", "-o", "both.trace"][..], "both.trace: already exists"),
        (&["merge", "both.trace", "u.raw", "-o", "x"], "both.trace: byte 0: the traces of several machines, where the"),
        (&["merge", "t.raw", "there", "-o", "x"], "there: byte 0: not a KUtrace trace"),
        (&["merge", "t.raw", "absent", "-o", "x"], "absent: No such file"),
    ] {
        let (status, _, err) = run(folder.path(), words);
        assert_eq!(status, 1, "{words:?}: {err}");
        assert!(err.contains(said), "{words:?}: {err}");
        assert!(!folder.path().join("x").exists());
    }
}
