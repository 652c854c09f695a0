// SPDX-License-Identifier: BSD-3-Clause
//! The host stops the whole machine, at random times for random times: the trace shows each stop, with its length, and
//! `why` names it.
//!
//! Of the night: a host that has other work stops the machine at other times, too.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use postprocess::id::Pid;
use postprocess::span::what::STALLED;
use postprocess::time::Time;
use postprocess::why::request::{Ask, Request};
use postprocess::why::{explain, Question, Timeline};

use crate::guest;
use crate::trace::Recording;

const STOPS: usize = 20;
/// From one tick to the next, with the time by which a missing one is late. A shorter stop may be one without a tick.
const PERIOD_MS: f64 = 4.3;
/// Error of a length at most, and drift between the guest's clock and the host's over the whole trace.
const LENGTH_MS: f64 = 0.2;
const DRIFT_MS: f64 = 2.0;

/// Stops a process, $1, $2 times, for 2 to 50 ms, and prints when: microseconds of the host's clock.
const STOP: &str = r"
for n in $(seq $2); do
    sleep .$(printf %03d $((60 + RANDOM % 100)))
    time=.0$(printf %05d $((2000 + RANDOM % 48000)))
    kill -STOP $1; from=${EPOCHREALTIME/[.,]/}
    sleep $time
    to=${EPOCHREALTIME/[.,]/}; kill -CONT $1
    echo $from $to
done
sleep .2";

/// Start and end of a stop, in ms of one of the clocks.
type Stop = (f64, f64);

/// A time in which CPUs stood still.
#[derive(Clone, Copy)]
struct Still {
    from: f64,
    to: f64,
}

/// Stops the machine that has this share, once its script has begun, and returns when.
fn stop_often(share: &Path, over: &AtomicBool) -> Vec<Stop> {
    while !share.join("begin").exists() {
        if over.load(Relaxed) {
            return Vec::new();
        }
        sleep(Duration::from_millis(20));
    }
    let script = format!("RANDOM={}\n{STOP}", guest::seed());
    let stops =
        Command::new("bash").args(["-c", &script, "stop", &machine(share), &STOPS.to_string()]).output().unwrap();
    fs::write(share.join("end"), "").unwrap();
    let ms = |text: &str| text.parse::<f64>().unwrap() / 1e3;
    let stops = String::from_utf8(stops.stdout).unwrap();
    stops.lines().map(|line| line.split_once(' ').unwrap()).map(|(from, to)| (ms(from), ms(to))).collect()
}

/// The process of the machine that has this share.
fn machine(share: &Path) -> String {
    let share = share.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let its = |pid: &String| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.starts_with(b"qemu-system") && String::from_utf8_lossy(&command).contains(share)
    };
    processes.filter(|pid| pid.parse::<u32>().is_ok()).find(its).expect("QEMU runs")
}

/// The times in which CPUs of a trace stood still, all together.
fn stood_still(trace: &Recording) -> Vec<Still> {
    let ms = |time: Time| time.0 as f64 / 1e5;
    let spans = trace.spans.spans.iter().filter(|s| s.what == STALLED);
    let mut all: Vec<Stop> = spans.map(|s| (ms(s.start), ms(s.start + s.dur))).collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut joined: Vec<Still> = Vec::new();
    for (from, to) in all {
        match joined.last_mut().filter(|last| from <= last.to) {
            Some(last) => last.to = last.to.max(to),
            None => joined.push(Still { from, to }),
        }
    }
    joined
}

/// Returns for each stop the time in which CPUs stood still, if there is one. As many as possible align the clocks.
fn found(stops: &[Stop], still: &[Still]) -> Vec<Option<Still>> {
    let covers = |(from, to): Stop, ahead: f64| {
        let begun = still.partition_point(|s| s.from <= from + ahead + LENGTH_MS + DRIFT_MS);
        let last = still[..begun].last().filter(|s| s.to >= to + ahead - LENGTH_MS - DRIFT_MS);
        last.copied()
    };
    let ends =
        |stop: &&Stop, ahead: f64| covers(**stop, ahead).is_some_and(|s| (s.to - ahead - stop.1).abs() < DRIFT_MS);
    let ahead = stops.iter().flat_map(|stop| still.iter().map(move |s| s.to - stop.1));
    let best = ahead.max_by_key(|ahead| stops.iter().filter(|stop| ends(stop, *ahead)).count()).unwrap();
    stops.iter().map(|stop| covers(*stop, best)).collect()
}

#[test]
fn each_stop_of_the_machine_is_found_with_its_length_and_why_names_it() {
    let stops = Mutex::new(Vec::new());
    let script = "
        kutrace_control go
        for cpu in 0 1; do taskset -c $cpu dd if=/dev/zero of=/dev/null bs=64k 2>$OUT/dd.$cpu & done
        sleep 0.3
        touch $SHARE/begin
        until [ -e $SHARE/end ]; do sleep 0.1; done
        kutrace_control stop $SHARE/t.trace
        kill %1 %2";
    let options = ["--cpus", "2", guest::AT_ONCE];
    let run = guest::run_beside(&options, script, |share, over| *stops.lock().unwrap() = stop_often(share, over));
    let trace = Recording::read_and_ask(&run.succeeded().file("t.trace"));
    let stops = stops.into_inner().unwrap();
    assert_eq!(stops.len(), STOPS);
    let found = found(&stops, &stood_still(&trace));
    let timeline = Timeline::new(&trace.spans);
    let pids: Vec<Pid> = trace.pids_of("dd").into_iter().collect();
    let mut exact = 0;
    for (stop, still) in stops.iter().zip(&found) {
        let length = stop.1 - stop.0;
        let Some(still) = still else {
            assert!(length < PERIOD_MS, "{length:.3} ms were not found");
            continue;
        };
        // A host that has other work may stop the machine right before or after, too: for longer, never for shorter.
        let longer = still.to - still.from - length;
        assert!(longer > -LENGTH_MS, "{longer:+.3} of {length:.3} ms");
        exact += usize::from(longer < LENGTH_MS);
        // The other thread may wait for a CPU that runs the script's own programs.
        let [start, end] = [still.from - 0.5, still.to + 0.5].map(|ms| Time((ms * 1e5) as i64));
        let first = |pid: &Pid| {
            let ask = Ask::Range(Request { pid: *pid, start, end });
            let why = explain(&timeline, &Question { ask, ..Question::default() }).unwrap();
            why.causes[0].cause.clone()
        };
        let causes: Vec<String> = pids.iter().map(first).collect();
        assert!(causes.iter().any(|cause| cause.contains("stood still")), "{length:.3} ms: {causes:?}");
    }
    println!("{} of {STOPS} were found, {exact} with their length", found.iter().flatten().count());
    assert!(exact > STOPS / 2, "{exact}");
}
