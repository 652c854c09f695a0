// SPDX-License-Identifier: BSD-3-Clause
//! Recordings kept by `watch`: slow moments are in a recording that has them whole, fast ones are not, the worst stay,
//! and the folder does not grow.

use std::fs;
use std::path::{Path, PathBuf};

use kutrace_format::x86::vector;
use postprocess::event::number::{IRQ, PROGRAM_MARK, SOFTIRQ, SYSCALL};
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use serde_json::Value;

use crate::guest::{self, Run};
use crate::marks::TAKE;
use crate::trace::Recording;

const CLOCK_NANOSLEEP: u32 = SYSCALL + 230;

/// The lines of JSON that a run of `watch` printed.
fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The file that a line names, on this side of the share.
fn file(run: &Run, line: &Value) -> Option<PathBuf> {
    Some(run.file("kept").join(Path::new(line["file"].as_str()?).file_name().unwrap()))
}

#[test]
fn what_is_slow_is_kept_whole_with_its_page_and_its_reason() {
    let script = format!(
        r#"{TAKE}
        take slow keep
        insmod $KUTRACE_MODULE tracemb=2
        kutrace_control gowrap
        kutrace_control watch --when 'call:clock_nanosleep > 500ms' --when 'mark:begin..end > 500ms' \
            --when 'span:a slow thing > 500ms' --when 'span:an upload > 500ms' \
            --when 'mark:before the nap..after the nap > 500ms' --when 'rpc:get > 500ms' --when 'run:hog > 50ms' --when keep --when signal \
            -o $SHARE/kept >$OUT/lines 2>$OUT/told & watch=$!
        await grep -q watching $OUT/told
        sleep 1
        ./slow fast
        wc -l <$OUT/lines >$SHARE/fast
        ./slow slow
        ./keep
        PYTHONPATH=$LIBRARY/python PYTHONDONTWRITEBYTECODE=1 python3 -c 'import kutrace; assert kutrace.keep("Python")'
        sleep 1
        kill -USR1 $watch
        await grep -q '"signal"' $OUT/lines
        kill -INT $watch
        wait $watch || echo status=$?
        kutrace_control status >$SHARE/status
        cat $OUT/told"#
    );
    let run = guest::succeed(&["--cpus", "2", "--no-load"], &script);
    assert_eq!(run.number("status"), 130, "{}", run.out);
    assert!(fs::read_to_string(run.file("status")).unwrap().contains("tracing"), "it continues");
    let lines = lines(&run.file("lines"));
    let fast: usize = fs::read_to_string(run.file("fast")).unwrap().trim().parse().unwrap();
    // Only a test's own sleep may be as slow, and a hog that is none yet.
    assert!(lines[..fast].iter().all(|line| line["program"] != "slow"), "{lines:#?}");
    let conditions = [
        "call:clock_nanosleep > 500ms",
        "mark:begin..end > 500ms",
        "mark:before the nap..after the nap > 500ms",
        "span:a slow thing > 500ms",
        "span:an upload > 500ms",
        "rpc:get > 500ms",
        "run:hog > 50ms",
    ];
    for when in conditions {
        let found: Vec<_> = lines.iter().filter(|line| line["when"] == when && line["program"] == "hog").collect();
        // How often a run is cut short by others is not known.
        let expected = if when.starts_with("call") { 3 } else { 1 };
        let is_run = when.starts_with("run");
        assert!(found.len() == expected || is_run && !found.is_empty(), "{when}: {lines:#?}");
        for line in found {
            let (took, worse) = (line["took_ns"].as_f64().unwrap(), line["worse"].as_f64().unwrap());
            let limit = if is_run { 50e6 } else { 500e6 };
            assert!((worse - took / limit).abs() < 0.01 && worse > 1.0, "{line}");
            // The moment is in its file, from its start on.
            let trace = Recording::read(&file(&run, line).unwrap());
            let pids = trace.pids_of("hog");
            assert!(trace.of(CLOCK_NANOSLEEP).any(|e| pids.contains(&e.pid)), "{line}");
        }
    }
    let asked: Vec<_> = lines.iter().filter(|line| line["worse"].is_null()).collect();
    assert_eq!(
        asked.iter().map(|l| (l["when"].as_str(), l["reason"].as_str())).collect::<Vec<_>>(),
        [
            (Some("keep"), Some("it was slow")),
            (Some("keep"), Some("C++")),
            (Some("keep"), Some("Python")),
            (Some("signal"), None),
        ]
    );
    let call = lines.iter().find(|line| line["when"] == conditions[0] && line["program"] == "hog").unwrap();
    let recording = file(&run, call).unwrap();
    Recording::read_and_ask(&recording).check();
    let page = fs::read_to_string(recording.with_extension("html")).unwrap();
    assert!(page.contains("</html>"), "{}", run.out);
    let why = fs::read_to_string(recording.with_extension("txt")).unwrap();
    assert!(why.contains("clock_nanosleep: each from its start to its return"), "{why}");
}

#[test]
fn the_worst_stay_within_the_budget_under_a_storm() {
    let run = guest::succeed(
        &["--cpus", "2", "--no-load"],
        r#"
        insmod $KUTRACE_MODULE tracemb=4
        kutrace_control gowrap
        # 4 MB of memory and some more are at most 8 MB each.
        kutrace_control watch --bare --when 'call:clock_nanosleep > 20ms' --keep 3 --budget 20M \
            -o $SHARE/kept >$OUT/lines 2>$OUT/told & watch=$!
        await grep -q watching $OUT/told
        for n in 1 2 3 4 5 6 7 8; do
            sleep 0.0$n
            sleep 0.2
            du -sk --apparent-size $SHARE/kept | cut -f1
        done >$SHARE/sizes
        await eval '[ $(wc -l <$OUT/lines) -gt 8 ]'
        kill -INT $watch
        wait $watch || true
        cat $OUT/told"#,
    );
    let lines = lines(&run.file("lines"));
    assert!(lines.len() > 8, "{}", run.out);
    for size in fs::read_to_string(run.file("sizes")).unwrap().lines() {
        assert!(size.parse::<u64>().unwrap() <= 21 << 10, "{size} KiB");
    }
    let kept: Vec<f64> = fs::read_dir(run.file("kept"))
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let told: Value =
                serde_json::from_slice(&fs::read(&path).ok().filter(|_| path.extension().unwrap() == "json")?).unwrap();
            assert!(path.with_extension("trace").exists());
            told["worse"].as_f64()
        })
        .collect();
    assert!((1..=3).contains(&kept.len()), "{kept:?}");
    let worst = lines.iter().filter_map(|line| line["worse"].as_f64()).fold(0.0, f64::max);
    assert!(kept.contains(&worst), "{worst} of {kept:?}: {}", fs::read_to_string(run.file("lines")).unwrap());
}

/// On a kernel of Debian's, which measures pressure: each condition's requirement on the kernel is provoked, twice.
#[test]
fn pressure_and_long_interrupts_are_seen_as_often_as_they_come() {
    let run = guest::succeed(
        &["--kernel", "stock", "--cpus", "2", "--beside", "--no-load"],
        r#"
        insmod $KUTRACE_MODULE tracemb=8
        insmod $KUTRACE_BESIDE/provoke.ko
        do=/sys/module/provoke/parameters/do
        kutrace_control gowrap
        kutrace_control watch --bare --when 'psi:cpu some 25%' --when 'softirq:timer > 400ms' --when 'irq:irq_work_ipi > 50us' \
            -o $SHARE/kept >$OUT/lines 2>$OUT/told & watch=$!
        await grep -q watching $OUT/told
        for kind in softirq irq softirq irq; do
            echo $kind 600 >$do
            sleep 2
        done
        (for n in 1 2 3 4 5 6; do (while :; do :; done) & done; wait) & load=$!
        await grep -q psi $OUT/lines
        kill -INT $watch
        wait $watch || true
        cat $OUT/told"#,
    );
    let lines = lines(&run.file("lines"));
    let of = |when: &str| lines.iter().filter(|line| line["when"] == when).collect::<Vec<_>>();
    assert_eq!(of("softirq:timer > 400ms").len(), 2, "{lines:#?}");
    // Such interrupts come for other work, too, and an emulated CPU cuts their delays short.
    for (when, least) in [("softirq:timer > 400ms", 600e6), ("irq:irq_work_ipi > 50us", 50e3)] {
        let found = of(when);
        assert!(!found.is_empty(), "{when}: {lines:#?}");
        for line in &found {
            let took = line["took_ns"].as_f64().unwrap();
            // For the requested time, and not much longer.
            assert!((least..3e9).contains(&took) && line["cpu"].is_u64(), "{line}");
        }
        // Moments at the end of the watching are reported, and no longer written.
        let written: Vec<_> = found.iter().filter_map(|line| Some((line, file(&run, line)?))).collect();
        assert!(!written.is_empty(), "{when}: {found:#?}");
        for (line, path) in written {
            let trace = Recording::read(&path);
            let is_there = match when.starts_with("irq") {
                true => trace.of(IRQ + vector::IRQ_WORK).next().is_some(),
                // The number of softirq TIMER.
                false => trace.of(SOFTIRQ).any(|e| e.arg == 1),
            };
            assert!(is_there, "{line}");
        }
    }
    let pressure = of("psi:cpu some 25%");
    assert!(!pressure.is_empty(), "{lines:#?}");
    for line in pressure {
        let part: f64 = line["reason"].as_str().unwrap().trim_end_matches('%').parse().unwrap();
        assert!((25.0..=101.0).contains(&part) && line["worse"].as_f64().unwrap() >= 1.0, "{line}");
    }
}

/// Planted among storms, and for how long: 200 in 20 minutes in the long form.
const STORM: (u32, &str) = guest::by_form((4, "0.5"), (12, "1.5"), (200, "5.7"));

#[test]
fn no_trigger_is_missed_in_a_storm_and_memory_and_disk_are_bounded() {
    let (planted, pause) = STORM;
    let run = guest::succeed(
        &["--cpus", "2", "--no-load", "--timeout", "2400"],
        &format!(
            r#"
        insmod $KUTRACE_MODULE tracemb=16
        kutrace_control gowrap
        # Ten thousand switches, forks and calls a second, on all CPUs.
        stress-ng --quiet --switch 1 --fork 1 --sock 1 --timer 1 --timer-freq 2000 --fault 1 & load=$!
        kutrace_control watch --bare --when 'call:rt_sigtimedwait > 200ms' --keep 5 --budget 130M \
            -o $SHARE/kept >$OUT/lines 2>$OUT/told & watch=$!
        await grep -q watching $OUT/told
        sleep 1
        memory() {{ sed -n 's/^VmRSS:\s*\([0-9]*\) kB/\1/p' /proc/$watch/status; }}
        for n in $(seq {planted}); do
            # No other program calls it: rt_sigtimedwait of nothing, for 250 ms and more.
            perl -e 'my ($set, $time) = ("\0" x 8, pack("qq", 0, 250e6 + $ARGV[0] * 1e6)); syscall 128, $set, 0, $time, 8' $n
            sleep {pause}
            [ $n = $((({planted} + 2) / 3)) ] && echo early=$(memory)
            du -sk --apparent-size $SHARE/kept | cut -f1 >>$SHARE/sizes
        done
        await eval "[ \$(wc -l <$OUT/lines) -ge {planted} ]"
        echo late=$(memory)
        kutrace_control status | sed -n 's/^lost: *\([0-9]*\) .*/lost=\1/p'
        kill -INT $watch
        wait $watch || true
        kill $load
        wait $load || true
        cat $OUT/told"#
        ),
    );
    let lines = lines(&run.file("lines"));
    assert_eq!(lines.len(), planted as usize, "{lines:#?}");
    let told = fs::read_to_string(run.file("told")).unwrap();
    assert!(!told.contains("were overwritten before"), "{told}");
    assert_eq!(run.number("lost"), 0);
    let (early, late) = (run.number("early"), run.number("late"));
    println!("resident: {early} kB after a third, {late} kB at the end");
    assert!(late < early + early / 4, "{early} kB, then {late} kB");
    for size in fs::read_to_string(run.file("sizes")).unwrap().lines() {
        assert!(size.parse::<u64>().unwrap() <= 131 << 10, "{size} KiB");
    }
    let worst = lines.iter().filter_map(|line| line["took_ns"].as_u64()).max().unwrap();
    let kept = fs::read_dir(run.file("kept")).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = kept.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    // What comes while a recording is written is in the next one, however many come.
    assert!((1..=planted.min(5) as usize).contains(&kept.len()), "{kept:?}");
    let is_worst = |path: &PathBuf| {
        let told: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        told["took_ns"].as_u64() == Some(worst)
    };
    assert!(kept.iter().any(is_worst), "{worst} ns is not kept");
}

/// A recorder that has overwritten its beginning is compared with the kernel's counts since then.
#[test]
fn what_is_kept_of_a_recorder_that_wrapped_is_judged_and_has_no_older_marks() {
    let run = guest::succeed(
        &["--cpus", "2", "--no-load"],
        &format!(
            r#"{TAKE}
        take programs
        insmod $KUTRACE_MODULE tracemb=2
        # Each fills the memory that a program can have, before the oldest block that there is later.
        kutrace_control gowrap
        for n in 1 2 3; do ./programs calls 200000; done
        lap() {{ kutrace_control status | sed -n 's/.*(lap \([0-9]*\)).*/\1/p' | grep . || echo 1; }}
        before=$(lap)
        nice -n 19 stress-ng --quiet --switch 1 --timer 1 --timer-freq 2000 --fork 1 & load=$!
        kutrace_control watch --bare --when signal --budget 10M -o $SHARE/kept >$OUT/lines 2>$OUT/told & watch=$!
        await grep -q watching $OUT/told
        until [ $(lap) -gt $((before + 1)) ]; do sleep 0.5; done
        sleep 1
        kill -USR1 $watch
        await grep -q signal $OUT/lines
        ./programs calls 1
        # Without the readings of `watch`, nothing is known about the same recorder.
        kutrace_control snapshot /tmp/alone.trace
        kill -INT $watch
        wait $watch || true
        kill $load
        wait $load || true
        checktrace /tmp/alone.trace | sed 's/^/alone /'
        checktrace $SHARE/kept/*.trace
        cp /tmp/alone.trace $SHARE
        cat $OUT/told"#
        ),
    );
    // The blocks, names, and what programs recorded since: 12 MB of marks are older.
    for file in [file(&run, &lines(&run.file("lines"))[0]).unwrap(), run.file("alone.trace")] {
        let bytes = fs::metadata(&file).unwrap().len();
        assert!(bytes < 6 << 20, "{}: {bytes} bytes", file.display());
    }
    let marks = Recording::read(&run.file("alone.trace"));
    assert!(marks.of(PROGRAM_MARK).map(|e| marks.event_name(e)).eq(["before", "after"]));
    let path = file(&run, &lines(&run.file("lines"))[0]).unwrap();
    let trace = Recording::read_whole_alone(&path);
    assert_eq!(trace.events.meta.flags & 0x40, 0x40, "it did not wrap");
    let found = judge(&fs::read(&path).unwrap()).unwrap();
    let text: String = found.iter().map(|finding| format!("{finding}\n")).collect();
    assert_eq!(verdict(&found), Verdict::Pass, "{text}");
    assert!(!text.contains("not judged") && !text.contains("; without "), "{text}");
    for kind in ["timer interrupts", "context switches", "softirqs SCHED"] {
        let told =
            text.lines().find_map(|line| line.split_once(&format!("{kind}: the kernel counted "))?.1.split(',').next());
        let counted: u64 = told.unwrap_or_else(|| panic!("{kind}: {text}")).parse().unwrap();
        assert!(counted > 10, "{kind}: too few to mean anything: {text}");
    }
    let alone: String = run.out.lines().filter(|line| line.starts_with("alone ")).collect();
    assert!(alone.contains("not judged") || alone.contains("; without "), "{}", run.out);
}
