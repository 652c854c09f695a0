// SPDX-License-Identifier: BSD-3-Clause
//! A trace that is written while it is recorded: longer than the memory, whole when its writer is killed, and where the
//! disk is too slow the losses are counted and have a place.

use std::fs;

use kutrace_format::abi::block::BYTES;
use postprocess::sink::verdict::{judge, verdict, Verdict};
use postprocess::source;

use crate::guest;
use crate::trace::Recording;

/// Bytes of memory, in megabytes.
const MEMORY: u64 = 4;

#[test]
fn a_stream_is_longer_than_the_memory_and_has_what_the_kernel_counted() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        dmesg --console-level 1
        load() { for n in 1 2; do dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null & done; wait; sleep 1; }
        export -f load
        kutrace_control record --stream -b 4M -o $SHARE/t.raw -- bash -c load
        kutrace_control record --stream -b 4M -o - -- bash -c load >$SHARE/piped.raw
        kutrace_control record --stream -b 4M -o $SHARE/killed.raw -- sleep 60 & victim=$!
        bash -c load
        # What happened more than a second ago is on the disk, of idle CPUs too.
        kutrace_control mark early
        sleep 1.5
        kill -9 $victim
        wait $victim || true
        kutrace_control status >$SHARE/status
        "#,
    );
    for name in ["t.raw", "piped.raw"] {
        let path = run.file(name);
        assert!(fs::metadata(&path).unwrap().len() > (2 * MEMORY) << 20, "{name} is too short to mean anything");
        Recording::read_whole_alone(&path);
        let found = judge(&fs::read(&path).unwrap()).unwrap();
        let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
        assert_eq!(verdict(&found), Verdict::Pass, "{text}");
        assert!(text.contains("info  timer interrupts: the kernel counted "), "{text}");
    }
    let killed = fs::read(run.file("killed.raw")).unwrap();
    let found = judge(&killed).unwrap();
    let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
    assert_eq!(verdict(&found), Verdict::Incomplete, "{text}");
    assert!(killed.len() > BYTES * 64, "{} bytes", killed.len());
    let events = source::decode(&killed).unwrap();
    assert!(events.events.iter().any(|e| events.names.text(e.name) == "mark_a=early"), "the mark is missing\n{text}");
    let status = fs::read_to_string(run.file("status")).unwrap();
    assert!(status.contains("state:  ") && !status.contains("tracing"), "{status}");
}

#[test]
fn a_stream_whose_reader_stands_still_counts_what_it_loses_and_where() {
    let run = guest::run(
        &["--cpus", "2"],
        r#"
        kutrace_control record --stream -b 1M -o $SHARE/t.raw -- sleep 60 & victim=$!
        sleep 1
        kill -STOP $victim
        dd if=/dev/zero of=/dev/null bs=1 count=600000 2>/dev/null
        kill -CONT $victim
        sleep 1
        kutrace_control mark after
        sleep 1
        kill -INT $victim
        wait $victim
        "#,
    );
    assert_eq!(run.status, 130, "{}\n{}", run.out, run.err);
    let trace = Recording::read_and_ask(&run.file("t.raw"));
    let lost = trace.events.meta.lost;
    assert!(lost > 1000, "{lost}");
    let gaps: Vec<_> = trace.of(postprocess::event::number::LOST).collect();
    let told: u64 = gaps.iter().map(|gap| u64::from(gap.arg)).sum();
    assert_eq!(told, lost, "the gaps say how much is missing in each: {gaps:?}");
    let end = trace.events.meta.intervals.iter().map(|i| i.to).max().unwrap();
    assert!(gaps.iter().all(|gap| gap.ts.0 + 50_000_000 < end.0), "recording went on after it");
    assert!(trace.events.events.iter().any(|e| trace.event_name(e) == "mark_a=after"));
    trace.check();
}

/// A ring of files is the recording in pieces: each is a trace that passes, no event is in two files or in none, and no
/// more files than asked for are left.
#[test]
fn every_event_is_in_exactly_one_file_of_a_ring() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        mkdir /tmp/ring
        cd /tmp/ring
        # Marks with numbers of their own, and calls between them, until there are enough files.
        marks() {
            n=0
            until test -e $1; do
                n=$((n + 1))
                kutrace_control mark $n
                dd if=/dev/zero of=/dev/null bs=1 count=20000 2>/dev/null
            done
            echo marks=$n
        }
        export -f marks
        # All that is recorded has room in the memory, however slow the disk is.
        stream="record --stream --no-symbols -b 64M --rotate 1M"
        kutrace_control $stream --keep 100 -o t.trace -- bash -c 'marks t.000005.trace'
        kutrace_control $stream --keep 2 -o few.trace -- bash -c 'marks few.000004.trace >/dev/null'
        cp *.trace $SHARE"#,
    );
    let files = |start: &str| {
        let mut files: Vec<_> = fs::read_dir(run.share.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(start))
            .collect();
        files.sort();
        files
    };
    let (all, few) = (files("t."), files("few."));
    assert!(all.len() > 3, "{all:?}");
    assert_eq!(few.len(), 2, "{few:?}");
    let mut marks = Vec::new();
    for path in all.iter().chain(&few) {
        let trace = Recording::read_whole_alone(path);
        let found = judge(&fs::read(path).unwrap()).unwrap();
        let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
        assert_eq!(verdict(&found), Verdict::Pass, "{}\n{text}", path.display());
        assert!(text.contains("the kernel counted "), "{text}");
        if all.contains(path) {
            marks.extend(trace.of(postprocess::event::number::MARK_D).map(|mark| mark.arg));
        }
    }
    let last = run.number("marks") as u32;
    assert_eq!(marks, (1..=last).collect::<Vec<_>>());
}

/// The events of a stream are shown while it goes on: a mark, soon after it was set, with all CPUs' events before it in
/// order; and at the end they are those of the same stream read as a file.
#[test]
fn events_of_a_stream_are_shown_as_they_happen() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        kutrace_control record --stream --no-symbols -b 16M -o - -- sleep 12 2>told |
            tee t.raw | rawtoevent --live -q >events & live=$!
        sleep 3
        kutrace_control mark now
        for n in $(seq 80); do
            grep -q mark_a=now events && break
            sleep 0.1
        done
        echo waited=$n
        kill -0 $live
        ls -R /usr/share/doc >/dev/null
        wait $live
        cp t.raw events $SHARE"#,
    );
    println!("shown after {} looks, 0.1 s apart", run.number("waited"));
    assert!(run.number("waited") < 80);
    let told = |text: &[u8]| {
        let events = source::events::read(text).unwrap();
        let told = |e: &postprocess::event::Event| (e.what.number(), e.cpu.number(), e.pid.number(), e.arg, e.ret);
        let happened = events.events.iter().filter(|e| e.what.is_event());
        let ordered = happened.clone().map(|e| e.ts).is_sorted();
        // At the same time a stream may tell of CPUs in another order, where one of them had told nothing before.
        let mut of_each = happened.map(told).collect::<Vec<_>>();
        of_each.sort_by_key(|told| told.1);
        (of_each, ordered, events.meta.is_whole())
    };
    let live = told(&fs::read(run.file("events")).unwrap());
    let whole = told(&kutrace_tests::reader::lines(&fs::read(run.file("t.raw")).unwrap()));
    assert!((live.1, live.2) == (true, true) && whole.2);
    assert_eq!(live.0.len(), whole.0.len());
    let differs = live.0.iter().zip(&whole.0).position(|(live, whole)| live != whole);
    assert_eq!(differs.map(|at| (live.0[at], whole.0[at])), None);
}
