// SPDX-License-Identifier: BSD-3-Clause
//! A trace that is written while it is recorded: longer than the memory, whole when its writer is killed, and where the
//! disk is too slow the losses are counted and have a place.

use std::fs;

use kutrace_format::abi::block::BYTES;
use postprocess::event::fact::Fact;
use postprocess::event::number::{MARK_A, PROGRAM_MARK, SYSCALL};
use postprocess::event::what::What;
use postprocess::event::Events;
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use postprocess::source;

use crate::guest;
use crate::trace::Recording;

/// Bytes of memory, in megabytes.
const MEMORY: u64 = 4;

#[test]
fn a_stream_is_longer_than_the_memory_and_has_what_the_kernel_counted() {
    let run = guest::succeed(
        // Next to a load that rests, and into memory: so the writer has the CPU when it wants it, and no disk keeps it
        // waiting.
        &["--cpus", "2", "--mem", "1024"],
        r#"
        cd /tmp
        dmesg --console-level 1
        # Twice the memory, and no more than half of it in a second: a paced guest's CPU is slow, and its writer, too.
        load() { for n in 1 2; do half & done; wait; sleep 1; }
        half() { for n in $(seq 20); do dd if=/dev/zero of=/dev/null bs=1 count=12500 2>/dev/null; sleep 0.1; done; }
        export -f load half
        kutrace_control record --stream -b 4M -o t.raw -- bash -c load
        kutrace_control record --stream -b 4M -o - -- bash -c load >piped.raw
        kutrace_control record --stream -b 4M -o killed.raw -- sleep 60 & victim=$!
        bash -c load
        # What happened more than a second ago is on the disk, of idle CPUs too.
        kutrace_control mark early
        sleep 1.5
        # Another reader gets the place of that, and disturbs no process.
        kutrace_control snapshot snapshot.raw 2>$SHARE/snapshot && exit 9
        cp killed.raw copied.raw
        kutrace_control mark late
        sleep 1.5
        kill -9 $victim
        wait $victim || true
        kutrace_control status >$SHARE/status
        cp t.raw piped.raw killed.raw copied.raw $SHARE
        "#,
    );
    for name in ["t.raw", "piped.raw"] {
        let path = run.file(name);
        assert!(fs::metadata(&path).unwrap().len() > MEMORY << 20, "{name} is too short to mean anything");
        Recording::read_whole_alone(&path);
        let found = judge(&fs::read(&path).unwrap()).unwrap();
        let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
        assert_eq!(verdict(&found), Verdict::Pass, "{text}");
        assert!(text.contains("info  timer interrupts: the kernel counted "), "{text}");
    }
    for (name, marks) in [("killed.raw", &["mark_a=early", "mark_a=late"][..]), ("copied.raw", &["mark_a=early"])] {
        let cut = fs::read(run.file(name)).unwrap();
        let found = judge(&cut).unwrap();
        let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
        assert_eq!(verdict(&found), Verdict::Incomplete, "{name}\n{text}");
        assert!(cut.len() > BYTES * 64, "{name}: {} bytes", cut.len());
        let events = source::decode(&cut).unwrap();
        let of_mark =
            events.events.iter().map(|e| events.names.text(e.name)).filter(|name| name.starts_with("mark_a="));
        assert_eq!(of_mark.collect::<Vec<_>>(), marks, "{name}\n{text}");
    }
    let said = fs::read_to_string(run.file("snapshot")).unwrap();
    assert!(said.contains("the trace is a stream, which process ") && said.contains("hint: read or copy"), "{said}");
    let status = fs::read_to_string(run.file("status")).unwrap();
    assert!(status.contains("state:  ") && !status.contains("tracing"), "{status}");
}

/// Everything that a killed writer has not written is still in the recorder, and nothing that it has written is.
#[test]
fn a_writer_that_is_killed_leaves_what_it_has_not_written() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        sleep 1000 7>/tmp/kept &
        kutrace_control record --stream -o $SHARE/killed.raw -- sleep 60 & victim=$!
        await eval "kutrace_control status | grep -q 'state: *tracing'"
        dd if=/dev/zero of=/dev/null bs=1 count=50000 2>/dev/null
        kutrace_control mark early
        sleep 1.5
        dd if=/dev/zero of=/dev/null bs=1 count=5000 2>/dev/null
        kill -9 $victim
        wait $victim || true
        kutrace_control stop $SHARE/rest.raw
        "#,
    );
    let [killed, rest] =
        ["killed.raw", "rest.raw"].map(|name| source::decode(&fs::read(run.file(name)).unwrap()).unwrap());
    let of_files = |events: &Events| {
        let texts = events.events.iter().filter_map(|e| match e.what {
            What::Fact(fact @ Fact::File(_)) => Some(fact.text(events.names.text(e.name)).into_owned()),
            _ => None,
        });
        texts.filter(|text| text.ends_with(":/tmp/kept")).collect::<Vec<_>>()
    };
    assert_eq!([of_files(&killed), of_files(&rest)], [["7:start:/tmp/kept"], ["7:end:/tmp/kept"]]);
    let is_early = |events: &Events| events.events.iter().any(|e| events.names.text(e.name) == "mark_a=early");
    assert!(is_early(&killed) && !is_early(&rest));
    let calls = |events: &Events| events.events.iter().filter(|e| e.event() >= SYSCALL).count();
    assert!(calls(&killed) >= 100_000 && calls(&rest) > 0, "{} {}", calls(&killed), calls(&rest));
}

#[test]
fn a_stream_whose_reader_stands_still_counts_what_it_loses_and_where() {
    let run = guest::run(
        &["--cpus", "2"],
        r#"
        kutrace_control record --stream -b 1M -o $OUT/t.raw -- sleep 600 & victim=$!
        await eval "kutrace_control status | grep -q 'state: *tracing'"
        kill -STOP $victim
        dd if=/dev/zero of=/dev/null bs=1 count=300000 2>/dev/null
        kill -CONT $victim
        # All of the megabyte is written, so there is room again.
        await eval '[ $(stat -c %s $OUT/t.raw) -gt 1000000 ]'
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
    assert_eq!(told, lost, "the gaps have the number of losses in each: {gaps:?}");
    let end = trace.events.meta.intervals.iter().map(|i| i.to).max().unwrap();
    assert!(gaps.iter().all(|gap| gap.ts.0 + 50_000_000 < end.0), "recording went on after it");
    assert!(trace.events.events.iter().any(|e| trace.event_name(e) == "mark_a=after"));
    trace.check();
}

/// Programs' records arrive as they are made: many times their memory, each mark once, in any file of a ring; to a
/// pipe; and records older than a second are there if the writer is killed.
#[test]
fn programs_record_more_than_their_memory() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        cp $(dirname $(command -v kutrace_control))/libkutrace.so $BIN/programs .
        export LD_LIBRARY_PATH=/tmp
        # One after the other, of which each finds what those before it gave back.
        several() { echo $1=$(($(for n in 1 2 3 4; do echo "$(./programs slowly 25000) +"; done) 0)); }
        export -f several
        stream="record --stream --no-symbols --marks-memory 1M,1M -b 64M"
        kutrace_control $stream -o $SHARE/t.raw -- bash -c 'echo one=$(./programs slowly 150000); several more'
        kutrace_control $stream --rotate 1M --keep 100 -o ring.trace -- bash -c 'echo ring=$(./programs slowly 200000)'
        for file in ring.*; do rawtoevent -q $file | grep -c ' before (230)$\| after (230)$'; done >counts
        echo files=$(wc -l <counts)
        echo found=$(($(paste -sd+ counts)))
        kutrace_control $stream -o - -- bash -c './programs slowly 50000 >marked' 2>said | rawtoevent --live >$SHARE/live.events 2>$SHARE/live.said
        kutrace_control $stream -o $SHARE/killed.raw -- sleep 60 & victim=$!
        until kutrace_control status | grep -q "state: *tracing"; do sleep 0.1; done
        echo killed=$(./programs slowly 40000)
        sleep 1.5
        kill -9 $victim
        wait $victim || true
        "#,
    );
    let marks = |trace: &Recording| {
        let is_mark = |name: &str| name == "before" || name == "after";
        trace.of(PROGRAM_MARK).filter(|e| is_mark(trace.event_name(e))).count() as u64
    };
    let trace = Recording::read_whole_alone(&run.file("t.raw"));
    assert_eq!((run.number("one"), run.number("more")), (300_000, 200_000));
    assert_eq!(marks(&trace), 500_000);
    assert!(run.number("files") > 3, "{}", run.out);
    assert_eq!((run.number("ring"), run.number("found")), (400_000, 400_000));
    let live = fs::read_to_string(run.file("live.events")).unwrap();
    let shown = live.lines().filter(|line| line.ends_with(" before (230)") || line.ends_with(" after (230)")).count();
    assert_eq!(shown, 100_000, "{}", fs::read_to_string(run.file("live.said")).unwrap());
    assert!(!live.contains("marks of programs came after"), "late");
    let killed = source::decode(&fs::read(run.file("killed.raw")).unwrap()).unwrap();
    let named = |name: &str| killed.events.iter().filter(|e| killed.names.text(e.name) == name).count();
    assert_eq!((named("before"), named("after")), (40_000, 40_000));
}

/// A ring of files is the recording in pieces: each is a trace that passes, no event is in two files or in none, and no
/// more files than asked for are left.
#[test]
fn every_event_is_in_exactly_one_file_of_a_ring() {
    let run = guest::succeed(
        &[guest::AT_ONCE, "--cpus", "2"],
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

/// A CPU that goes offline keeps its last block until it comes back: it is written all the same, and files are cut.
#[test]
fn a_ring_is_cut_while_a_cpu_is_offline() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        mkdir /tmp/ring
        cd /tmp/ring
        work() {
            n=0
            until_file() {
                until test -e $1; do
                    n=$((n + 1))
                    kutrace_control mark $n
                    dd if=/dev/zero of=/dev/null bs=1 count=20000 2>/dev/null
                done
            }
            taskset -c 1 kutrace_control mark last
            echo 0 >/sys/devices/system/cpu/cpu1/online
            until_file t.000003.trace
            echo 1 >/sys/devices/system/cpu/cpu1/online
            until_file t.000005.trace
            echo marks=$n
        }
        export -f work
        kutrace_control record --stream --no-symbols -b 64M --rotate 1M --keep 100 -o t.trace -- bash -c work
        cp *.trace $SHARE"#,
    );
    let mut files: Vec<_> = fs::read_dir(run.share.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "trace"));
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let traces: Vec<_> = files.iter().map(|path| Recording::read_whole_alone(path)).collect();
    let of = |kind| traces.iter().flat_map(move |trace| trace.of(kind).map(move |e| (trace, e)));
    let marks: Vec<_> = of(postprocess::event::number::MARK_D).map(|(_, mark)| mark.arg).collect();
    assert_eq!(marks, (1..=run.number("marks") as u32).collect::<Vec<_>>());
    let last: Vec<_> = of(postprocess::event::number::MARK_A).map(|(trace, mark)| trace.event_name(mark)).collect();
    assert_eq!(last, ["mark_a=last"]);
}

/// The events of a stream are shown while it grows: a mark after it was set, with all CPUs' events before it in
/// order; and at the end they are those of the same stream read as a file.
#[test]
fn events_of_a_stream_are_shown_as_they_happen() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cd /tmp
        kutrace_control record --stream --no-symbols -b 16M -o - -- bash -c 'until [ -e enough ]; do sleep 0.1; done' 2>told |
            tee t.raw | rawtoevent --live -q >events & live=$!
        await [ -s events ]
        kutrace_control mark now
        await grep -q mark_a=now events
        kill -0 $live
        ls -R /etc >/dev/null
        touch enough
        wait $live
        cp t.raw events $SHARE"#,
    );
    let told = |text: &[u8]| {
        let events = source::events::read(text).unwrap();
        let told = |e: &postprocess::event::Event| (e.what.number(), e.cpu.number(), e.pid.number(), e.arg, e.ret);
        let happened = events.events.iter().filter(|e| e.what.is_event());
        let ordered = happened.clone().map(|e| e.ts).is_sorted();
        // A stream may list CPUs in another order at the same time, if one of them had recorded nothing before.
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

/// A CPU that is stuck does not end a stream: the others' blocks are written, and its own once it is back. Nor does it
/// end watching, which reports it. Of the night: the gate has a CPU that is stuck in `lifecycle`, and rings without
/// one.
#[cfg(feature = "night")]
#[test]
fn a_ring_outlives_a_cpu_that_takes_no_interrupts() {
    let run = guest::succeed(
        &guest::STUCK,
        r#"
        taskset -p -c 0 $$ >/dev/null
        insmod $KUTRACE_BESIDE/stick.ko
        kutrace_control record --stream --no-symbols -b 64M --rotate 1M --keep 100 -o t.trace 2>$SHARE/said & writer=$!
        until test -e t.000001.trace; do sleep 0.1; done
        taskset -c 1 kutrace_control mark before
        # As much as two files have.
        work() { taskset -c 2 dd if=/dev/zero of=/dev/null bs=1 count=200000 2>/dev/null; }
        work
        echo 300 >/sys/module/stick/parameters/seconds
        for n in 1 2 3; do work; sleep 5; done
        kill -0 $writer
        rmmod stick
        taskset -c 1 kutrace_control mark back
        work
        sleep 2
        kill -INT $writer
        wait $writer || true
        cp t.*.trace $SHARE

        insmod $KUTRACE_BESIDE/stick.ko
        kutrace_control gowrap
        kutrace_control watch --bare --when signal -o kept >lines 2>watched & watch=$!
        until grep -q watching watched; do sleep 0.1; done
        echo 300 >/sys/module/stick/parameters/seconds
        until grep -q 'a CPU takes no interrupts, or runs no other thread: its events are judged later' watched; do
            sleep 0.2
            kill -0 $watch
        done
        rmmod stick
        kill -USR1 $watch
        until [ -s lines ]; do sleep 0.2; kill -0 $watch; done
        kill -INT $watch
        wait $watch || true"#,
    );
    let said = fs::read_to_string(run.file("said")).unwrap();
    assert!(
        said.contains("a CPU takes no interrupts, or runs no other thread: its events are written later"),
        "{said}"
    );
    assert!(said.contains(" 0 events lost"), "{said}");
    let mut files: Vec<_> = fs::read_dir(run.share.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "trace"));
    files.sort();
    let mut marks = Vec::new();
    for path in &files {
        let trace = Recording::read_whole_alone(path);
        marks.extend(trace.of(MARK_A).map(|e| (e.cpu.number(), trace.event_name(e).to_string())));
    }
    println!("{} files: {said}", files.len());
    assert_eq!(marks, [(1, "mark_a=before".to_string()), (1, "mark_a=back".to_string())]);
    assert!(files.len() > 3, "{files:?}");
}

/// The writer of a ring knows the running and ended programs, however many came and went, and needs no more memory for
/// them the longer it writes. It keeps some thousand parts of ended programs, a few megabytes, before it looks for
/// those it can forget: only a long storm distinguishes that from keeping all, which is not in the gate.
#[cfg(feature = "night")]
#[test]
fn a_ring_under_a_storm_of_programs_names_functions_in_bounded_memory() {
    let (warm, storm) = guest::by_form((300, 900), (300, 900), (1500, 10_000));
    let script = r#"
        mkdir /tmp/ring
        cd /tmp/ring
        cp $BIN/functions/whole program
        for n in 1 2; do (while :; do /bin/true; done) & storms="$storms $!"; done
        kutrace_control record --stream -b 16M --rotate 1M --keep 8 -o t.trace 2>told & writer=$!
        forks() { sed -n 's/^processes //p' /proc/stat; }
        # Without the pages of the recorder's memory that it has mapped.
        resident() { sed -n 's/^RssAnon:\s*\([0-9]*\) kB/\1/p' /proc/$writer/status; }
        until_forks() { local from=$(forks); until [ $(($(forks) - from)) -ge $1 ]; do sleep 0.2; done; }
        files() { ls | sed -n 's/^t\.0*\([0-9]*\)\.trace$/\1/p' | tail -1; }
        until_forks WARM
        echo early=$(resident)
        echo first=$(files)
        until_forks STORM
        echo late=$(resident)
        echo last=$(files)
        # It is loaded and ends while the storm continues.
        ./program 0.5
        kill $storms
        kill -INT $writer
        wait $writer || true
        named=0
        for file in t.*.trace; do
            rawtoevent -q $file >events
            named=$((named + $(grep -c ' PC=inner@outer ' events || true)))
        done
        echo named=$named
        cp $(ls t.*.trace | tail -n 1) $SHARE/last.trace
        cat told"#;
    let script = script.replace("WARM", &warm.to_string()).replace("STORM", &storm.to_string());
    let run = guest::succeed(&["--cpus", "2", "--timeout", "1200"], &script);
    let (early, late) = (run.number("early"), run.number("late"));
    let (first, last) = (run.number("first"), run.number("last"));
    println!("{early} kB in file {first}, {late} kB in file {last}");
    assert!(last > first + 2, "too few files to mean anything");
    // The kernel's records of a program are more than a kilobyte; the kernel's symbols, that end every file, take ten
    // megabytes, and the kept parts of programs up to five.
    assert!(late < 20_000 && (!guest::SOAK || late < early + storm * 6 / 10), "{early} kB, then {late} kB");
    assert!(run.number("named") > 5, "{}", run.out);
    assert!(!run.out.contains("came too fast"), "{}", run.out);
    Recording::read_whole_alone(&run.file("last.trace"));
}
