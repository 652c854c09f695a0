// SPDX-License-Identifier: BSD-3-Clause
//! A recorder whose memory is too small: what is lost is counted, what is kept is right.

use crate::guest;
use crate::trace::Trace;

const STORM: &str = "stress-ng --quiet --switch 2 --fork 1 --timeout 2";

#[test]
fn a_full_recorder_keeps_the_oldest_and_counts_the_rest() {
    let run = guest::run(
        &["--no-load"],
        &format!("insmod $KUTRACE_MODULE tracemb=1\nkutrace_control go\n{STORM}\nkutrace_control stop $SHARE/t.raw"),
    );
    assert_eq!(run.status, 3, "lost events are an exit status of their own\n{}", run.err);
    let trace = Trace::read(&run.file("t.raw"));
    let lost = trace.events.meta.lost;
    assert!(lost > 1000, "{lost}");
    assert!(run.err.contains(&format!(" {lost} events lost")), "{}", run.err);
    assert_eq!(std::fs::metadata(run.file("t.raw")).unwrap().len() >> 16, 16, "16 blocks are in 1 MiB");
    trace.check();
}

#[test]
fn a_wrapped_trace_keeps_the_newest_and_every_name() {
    let run = guest::succeed(
        &["--no-load"],
        &format!(
            "insmod $KUTRACE_MODULE tracemb=2\nkutrace_control gowrap\n{STORM}\ncp /bin/true /tmp/lastone\n\
             /tmp/lastone\nkutrace_control status >&2\nkutrace_control stop $SHARE/t.raw"
        ),
    );
    let trace = Trace::read(&run.file("t.raw"));
    assert_eq!(trace.events.meta.lost, 0);
    assert_eq!(trace.events.meta.flags & 0x40, 0x40, "it did wrap: {}", run.err);
    trace.check();
    assert!(!trace.pids_of("lastone").is_empty(), "the last program before stop is not there");
    for e in trace.switches().filter(|e| e.arg != 0) {
        let name = trace.event_name(e);
        let suffix = format!(".{}", e.arg);
        assert!(name.ends_with(&suffix) && name.len() > suffix.len(), "pid {} is named {name:?}", e.arg);
    }
}
