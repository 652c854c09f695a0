// SPDX-License-Identifier: BSD-3-Clause
//! The recorded samples are whole, and show what samples/README.md says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kutrace_tests::repeat::Recorded;
use postprocess::event::number::{RUNNABLE, SPECIAL, SPECIAL_LAST, SYSCALL, SYSCALL_RETURN, TRAP, WAIT_A, WAIT_Z};
use postprocess::event::{Event, Events};
use postprocess::id::{CpuId, Pid};
use postprocess::sink::{json, page};
use postprocess::source;
use postprocess::span::{build, check, Span, Spans};
use postprocess::time::Time;

use crate::golden::assert_golden;

fn bytes(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name)).unwrap()
}

fn sample(name: &str) -> (Events, Spans) {
    let events = source::decode(&bytes(name)).unwrap();
    assert!(events.meta.is_whole(), "{:?}", events.meta);
    let (spans, tally) = build(events.clone());
    assert_eq!(check(&spans, &events.meta.intervals, &tally), [""; 0]);
    assert_eq!((tally.repairs, tally.late, tally.unknown), (0, 0, 0));
    (events, spans)
}

/// What the spans add up to: of each activity, point, arc and wait the number of spans and their time.
fn summary(spans: &Spans) -> String {
    let mut sums: BTreeMap<(Kind, &str), (usize, i64)> = BTreeMap::new();
    for s in &spans.spans {
        let (count, time) = sums.entry((Kind::of(s), &spans.names[s.name])).or_default();
        *count += 1;
        *time += s.dur.0;
    }
    let line =
        |((kind, name), (count, time)): (&(Kind, &str), &(usize, i64))| format!("{kind:?} {name}: {count}, {time}\n");
    sums.iter().map(line).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Arc,
    Execution,
    Point,
    Wait,
    Other,
}

impl Kind {
    fn of(s: &Span) -> Kind {
        match s.event() {
            ..0 => Kind::Arc,
            _ if s.is_execution() => Kind::Execution,
            event => match event as u32 {
                SPECIAL..=SPECIAL_LAST => Kind::Point,
                WAIT_A..=WAIT_Z => Kind::Wait,
                _ => Kind::Other,
            },
        }
    }
}

#[test]
fn the_samples_add_up_as_recorded() {
    for name in ["hello", "convoy", "pipeline", "faults", "slices", "disk", "redis"] {
        let (_, spans) = sample(&format!("{name}.trace"));
        assert_golden(&format!("samples/{name}.txt"), &summary(&spans));
    }
}

#[test]
fn the_pipeline_forks_three_children_which_take_their_names() {
    let (events, spans) = sample("pipeline.trace");
    for program in ["seq", "sort", "tail"] {
        let user = |name: &String| name.strip_prefix(program).is_some_and(|rest| rest.starts_with('.'));
        assert!(spans.names.iter().any(user), "{program} never runs under its name");
    }
    let names = &events.names;
    let from_clone = events.events.iter().filter(|e| names.text(e.name) == "/clone" && e.ret == 0).count();
    assert_eq!(from_clone, 4, "bash and its three children begin by returning from clone");
    assert!(events.events.iter().any(|e| e.event() == SYSCALL + 59), "execve");
    assert!(events.events.iter().any(|e| names.text(e.name) == "virtio0" && e.cpu == CpuId::new(1)));
}

/// The waits of this name, and the threads that waited.
fn waits(spans: &Spans, name: &str) -> (usize, BTreeSet<Pid>) {
    let found: Vec<Pid> = spans.spans.iter().filter(|s| spans.names[s.name] == name).filter_map(|s| s.pid).collect();
    (found.len(), found.into_iter().collect())
}

#[test]
fn hello_is_one_write_after_many_waits_for_the_disk() {
    let (events, spans) = sample("hello.trace");
    let write = events.events.iter().find(|e| e.event() == SYSCALL + 1 && e.ret == 13).unwrap();
    for program in ["bash", "echo"] {
        assert!(spans.names.contains(&format!("{program}.{}", write.pid)), "the thread was {program}");
    }
    assert_eq!(waits(&spans, "wait_disk").0, 197);
    assert!(waits(&spans, "wait_disk").1.contains(&write.pid));
}

#[test]
fn the_threads_of_the_convoy_wait_for_their_lock() {
    let (_, spans) = sample("convoy.trace");
    let (count, threads) = waits(&spans, "wait_lock");
    assert_eq!(count, 187);
    assert!(threads.iter().all(|pid| spans.names.contains(&format!("convoy.{pid}"))), "{threads:?}");
}

/// The spans of this name, by start, of threads that are ever called so.
fn of_program<'a>(spans: &'a Spans, program: &str, name: &str) -> Vec<&'a Span> {
    let called = |n: &String| n.strip_prefix(program)?.strip_prefix('.')?.parse().ok().map(Pid::new);
    let threads: BTreeSet<Pid> = spans.names.iter().filter_map(called).collect();
    let named = |s: &&Span| spans.names[s.name] == name && s.pid.is_some_and(|pid| threads.contains(&pid));
    spans.spans.iter().filter(named).collect()
}

#[test]
fn fresh_memory_faults_at_its_first_touch_and_again_after_it_was_given_back() {
    let (_, spans) = sample("faults.trace");
    let named = |name| of_program(&spans, "faults", name);
    let given_back = named("madvise")[0];
    let mapped = named("mmap").into_iter().rfind(|s| s.start < given_back.start).unwrap();
    let faults = named("page_fault");
    let first = faults.iter().filter(|s| (mapped.start..given_back.start).contains(&s.start));
    let last = first.clone().next_back().unwrap();
    assert_eq!(first.count(), 256);
    assert!((256..260).contains(&faults.iter().filter(|s| s.start > given_back.start).count()));
    let between = given_back.start - last.start - last.dur;
    assert!((150_000..170_000).contains(&between.0), "{between} units in user code without a fault");
}

#[test]
fn threads_that_compute_lose_their_cpu_and_wait_for_one_without_a_wakeup() {
    let (_, spans) = sample("slices.trace");
    let woken: BTreeSet<(i64, Option<Pid>)> =
        spans.spans.iter().filter(|s| s.woken().is_some()).map(|s| (s.start.0, s.woken())).collect();
    let waits = of_program(&spans, "slices", "wait_cpu");
    let lost: Vec<_> = waits.into_iter().filter(|s| !woken.contains(&(s.start.0, s.pid))).collect();
    let threads: BTreeSet<Option<Pid>> = lost.iter().map(|s| s.pid).collect();
    assert!(threads.len() >= 7 && lost.len() >= 14, "{} threads, {} waits", threads.len(), lost.len());
    assert!(lost.iter().any(|s| s.dur > Time(2_000_000)), "a wait of more than 20 ms");
}

#[test]
fn each_write_of_dd_waits_for_the_disk() {
    let (events, spans) = sample("disk.trace");
    let waits = of_program(&spans, "dd", "wait_disk");
    let is_write = |e: &&Event| e.event() == SYSCALL + 1 && e.arg == 1 && events.names.text(e.name) == "write";
    let begins: Vec<&Event> = events.events.iter().filter(is_write).collect();
    let mut found = 0;
    for begin in begins {
        let mut after = events.events.iter().filter(|e| e.ts > begin.ts && e.pid == begin.pid);
        let Some(end) = after.find(|e| e.event() == SYSCALL_RETURN + 1 && e.ret == 4096) else { continue };
        let slept =
            |s: &&&Span| s.pid == Some(begin.pid) && s.dur > Time(250_000) && (begin.ts..end.ts).contains(&s.start);
        assert!(waits.iter().any(|s| slept(&s)), "the write at {}", begin.ts);
        found += 1;
    }
    assert_eq!(found, 8);
}

#[test]
fn a_request_wakes_the_server_inside_the_softirq_of_its_sending() {
    let (events, spans) = sample("redis.trace");
    let server = spans.names.iter().find_map(|n| n.strip_prefix("redis-server.")?.parse::<u32>().ok()).unwrap();
    let woken = events.events.iter().filter(|e| e.event() == RUNNABLE && e.arg == server);
    let in_softirq = |e: &&Event| {
        let mut before = events.events.iter();
        let last = before.rfind(|b| b.cpu == e.cpu && b.ts <= e.ts && b.event() >= TRAP);
        last.is_some_and(|b| events.names.text(b.name) == "BH:rx")
    };
    assert!(woken.filter(in_softirq).count() > 40);
    assert!(waits(&spans, "wait_net").1.contains(&Pid::new(server)));
}

#[test]
fn the_threads_of_a_process_are_known_in_spans_json_and_page() {
    let (_, spans) = sample("redis.trace");
    let server = spans.names.iter().find_map(|n| n.strip_prefix("redis-server.")?.parse::<u32>().ok()).unwrap();
    // Its threads for work in the background, and that of its allocator.
    assert_eq!(spans.meta.processes, (server + 3..server + 7).map(|pid| (pid, server)).collect());
    let mut json = Vec::new();
    json::write(&spans, &mut json).unwrap();
    assert_eq!(source::json::read(&mut &json[..]).unwrap().meta.processes, spans.meta.processes);
    let mut page = Vec::new();
    page::render(&spans, &mut page).unwrap();
    let lifted = page::lift(std::str::from_utf8(&page).unwrap()).unwrap();
    assert_eq!(lifted.meta.processes, spans.meta.processes);
}

#[test]
fn a_pid_that_is_used_again_leaves_its_process() {
    let of = |lines: &str| {
        let text = format!("# ## VERSION: 3\n# ## FORMAT: 5\n{lines}1 1 512 0  5 0  5 0 0 a.5 (200)\n");
        build(source::events::read(&mut text.as_bytes()).unwrap()).0.meta.processes
    };
    assert_eq!(of("-1 1 283 5 4\n"), [(5, 4)].into());
    assert_eq!(of("-1 1 283 5 4\n0 1 283 5 5\n"), [].into());
    assert_eq!(of("-1 1 283 5 4\n0 1 283 5 x\n"), [].into());
}

#[test]
fn a_sample_repeated_is_a_whole_trace_as_long() {
    let once = bytes("pipeline.trace");
    let recorded = Recorded::new(&once).unwrap();
    let mut bytes = Vec::new();
    let entries = recorded.repeat(recorded.entries() * 3 - 1, &mut bytes).unwrap();
    assert_eq!(entries, recorded.entries() * 3);
    let (once, thrice) = (source::decode(&once).unwrap(), source::decode(&bytes).unwrap());
    assert!(thrice.meta.is_whole(), "{:?}", thrice.meta);
    let transitions = |events: &Events| events.events.iter().filter(|e| e.event() >= TRAP).count();
    let seams = 2 * 3 * once.meta.intervals.len();
    assert!((3 * transitions(&once)..=3 * transitions(&once) + seams).contains(&transitions(&thrice)));
    let (spans, tally) = build(thrice.clone());
    assert_eq!(check(&spans, &thrice.meta.intervals, &tally), [""; 0]);
    assert_eq!((tally.late, tally.unknown), (0, 0));
}
