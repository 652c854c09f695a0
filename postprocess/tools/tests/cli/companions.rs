// SPDX-License-Identifier: BSD-3-Clause
//! Tools other than the stages.

use kutrace_tests::draw::Drawn;
use kutrace_tests::{busy, TraceBuilder};

use super::*;

/// Returns the last line of a tool's output.
fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_string()
}

#[test]
fn the_verdict_on_a_raw_trace_is_its_status_and_its_last_line() {
    let whole = busy(2, 500, 8).bytes();
    let mut lost = TraceBuilder::new(1, 1_000);
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
fn a_page_gives_back_its_spans_and_they_give_the_page() {
    let json = json(&busy(2, 500, 4));
    let page = run(SPANTOHTML, &["--title", "a 'title' </script>"], &json);
    let lifted = run(HTMLTOSPAN, &[], &page.stdout);
    assert_eq!((code(&lifted), stderr(&lifted).as_str()), (0, ""));
    let again = run(SPANTOHTML, &[], &lifted.stdout);
    assert!(again.stdout == page.stdout && page.stdout.len() > 10_000);
    let more = run(HTMLTOSPAN, &[], &[&page.stdout[..], b"\n", &json].concat());
    assert_eq!((code(&more), stderr(&more).lines().count()), (3, 1));
    assert!(stderr(&more).ends_with(": something follows the end of the page; skipped\n"));
    let none = run(HTMLTOSPAN, &[], b"<html></html>");
    assert_eq!((code(&none), stderr(&none).as_str()), (1, "htmltospan: stdin: not a page of KUtrace\n"));
}

#[test]
fn a_range_that_makes_no_sense_is_refused_in_one_line() {
    let json = json(&busy(2, 500, 4));
    for (args, fact) in
        [(&["5", "6"][..], "no spans there, the trace goes from 0.00000000 to "), (&["nowhere"], "no mark nowhere")]
    {
        let output = run(SPANTOTRIM, args, &json);
        assert_eq!((code(&output), output.stdout.as_slice()), (1, &b""[..]));
        let said = stderr(&output);
        assert!(said.starts_with(&format!("spantotrim: stdin: {fact}")) && said.lines().count() == 1, "{said}");
    }
    for args in [&[][..], &["1", "x"], &["1", "2", "3"], &["2", "1"], &["hello", "1"], &["nan"], &["1", "inf"]] {
        assert_eq!(code(&run(SPANTOTRIM, args, b"")), 2);
    }
    assert_eq!(code(&run(SPANTOSPAN, &["10000001"], b"")), 2);
    assert_eq!(code(&run(SPANTOPROF, &["--all"], b"")), 2);
}

#[test]
fn requests_are_explained_from_text_and_from_frames_alike() {
    let sample = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/redis.trace")).unwrap();
    let text = run(EVENTTOSPAN, &[], &run(RAWTOEVENT, &[], &sample).stdout).stdout;
    let frames = run(EVENTTOSPAN, &["--binary"], &run(RAWTOEVENT, &["--binary"], &sample).stdout).stdout;
    for args in [&["--check"][..], &["--serve", "redis-server"], &["--json", "--top", "3"], &["--normal", "30..70"]] {
        let [of_text, of_frames] = [&text, &frames].map(|spans| run(SPANTOWHY, args, spans));
        assert_eq!((code(&of_text), stderr(&of_text).as_str()), (0, ""), "{args:?}");
        assert!(of_text.stdout == of_frames.stdout && of_text.stdout.len() > 500, "{args:?}");
    }
    let file = temporary("redis_why.json", &text);
    let named = run(SPANTOWHY, &[file.to_str().unwrap()], b"");
    assert!(String::from_utf8(named.stdout).unwrap().contains(" redis_why.html#request="));
    let cut = run(SPANTOWHY, &[], &text[..text.len() / 2]);
    assert_eq!(code(&cut), 3, "losses are reported: {}", stderr(&cut));
    for (args, said) in [
        (
            &["--call", "fsync"][..],
            "spantowhy: stdin: no requests: the trace has none of: fsync: each from its start to its return\n",
        ),
        (&["--thread", "1", "--from", "x"], "error: invalid value 'x' for '--from <S>': not a time in seconds\n"),
        (&["--slow", "101"], "error: invalid value '101' for '--slow <PERCENT>': not a percentage from 0 to 100\n"),
        (
            &["--normal", "60..40"],
            "error: invalid value '60..40' for '--normal <A..B>': the second number is not larger than the first\n",
        ),
        (
            &["--call", "read", "--mark", "a"],
            "error: the argument '--call <NAME>' cannot be used with '--mark <LABEL>'\n",
        ),
    ] {
        let output = run(SPANTOWHY, args, &text);
        assert!(code(&output) != 0 && output.stdout.is_empty(), "{args:?}");
        assert!(stderr(&output).starts_with(said), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn what_perfetto_is_not_told_is_said() {
    let mut trace = TraceBuilder::new(1, 3_000);
    trace.cpu(0).running(100, "a", None).call(200, 202, 5).switch(210, 0, "").switch(2_000, 100, "a");
    let spans = json(&trace);
    let (told, quiet) = (run(SPANTOPERFETTO, &[], &spans), run(SPANTOPERFETTO, &["--quiet"], &spans));
    assert_eq!((code(&told), code(&quiet)), (0, 0), "{}", stderr(&told));
    assert!(stderr(&told).contains(": the trace has no process with several threads: each"), "{}", stderr(&told));
    assert!(stderr(&told).contains(": 1 slice is still open at the end of the trace"), "{}", stderr(&told));
    assert_eq!(stderr(&quiet), "");
    assert!(told.stdout.len() > 300 && told.stdout == quiet.stdout);
    let cut = run(SPANTOPERFETTO, &["--quiet"], &spans[..spans.len() - 60]);
    assert_eq!(code(&cut), 3, "{}", stderr(&cut));
    Drawn::perfetto(&cut.stdout);
}

#[test]
fn requests_are_drawn_below_their_threads() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/disk.trace");
    let events = run(RAWTOEVENT, &[], &std::fs::read(sample).unwrap());
    let spans = run(EVENTTOSPAN, &["--binary"], &events.stdout);
    let drawn = run(SPANTOPERFETTO, &[], &spans.stdout);
    let why: serde_json::Value = serde_json::from_slice(&run(SPANTOWHY, &["--json"], &spans.stdout).stdout).unwrap();
    let requests = Drawn::perfetto(&drawn.stdout).beside["requests"][why["asked"].as_str().unwrap()];
    assert!(requests > 0 && why["count"] == requests, "{requests}");
}
