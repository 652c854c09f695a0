// SPDX-License-Identifier: BSD-3-Clause
//! The recorded samples are complete, and show everything that samples/README.md describes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kutrace_tests::repeat::Recorded;
use postprocess::event::number::{RUNNABLE, SPECIAL, SPECIAL_LAST, SYSCALL, SYSCALL_RETURN, TRAP, WAIT_A, WAIT_Z};
use postprocess::event::{Event, Events};
use postprocess::id::{CpuId, Pid};
use postprocess::sink::{json, page};
use postprocess::source;
use postprocess::span::what::What;
use postprocess::span::{build, check, Span, Spans};
use postprocess::time::Time;
use postprocess::why::request::{find, Ask};
use postprocess::why::Timeline;

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

/// Sums over the spans: of each activity, point, arc and wait the number of spans and their time.
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
    for name in ["hello", "convoy", "pipeline", "faults", "slices", "disk", "redis", "web", "words", "postgres"] {
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

/// The spans whose names begin so, by start.
fn beginning<'a>(spans: &'a Spans, name: &str) -> Vec<&'a Span> {
    let mut found: Vec<_> = spans.spans.iter().filter(|s| spans.names[s.name].starts_with(name)).collect();
    found.sort_by_key(|s| s.start);
    found
}

/// Returns whether a span lies in another, of the same thread.
fn is_in(inner: &Span, outer: &Span) -> bool {
    inner.pid == outer.pid && outer.start <= inner.start && inner.start + inner.dur <= outer.start + outer.dur
}

#[test]
fn requests_of_a_web_server_are_parts_of_the_workers_that_poll_their_tasks() {
    let (_, spans) = sample("web.trace");
    let named = |name: &str| beginning(&spans, name);
    let polls = [3, 4].map(|task| named(&format!("connection(task={task})")));
    for polls in &polls {
        assert_eq!(polls.iter().map(|s| s.pid).collect::<BTreeSet<_>>().len(), 2);
    }
    let (answers, reads, all) = (named("answer("), named("read"), polls.concat());
    let reads: Vec<_> = reads.into_iter().filter(|read| answers.iter().any(|answer| is_in(read, answer))).collect();
    assert_eq!(reads.iter().filter(|read| spans.names[read.name] == "read" && read.cpu.is_none()).count(), 18);
    assert!(answers.iter().all(|answer| all.iter().any(|poll| is_in(answer, poll))));
    let [quick, slow] = ["sum(times=1)", "sum(times=20)"].map(named);
    assert_eq!((quick.len(), slow.len()), (12, 6));
    assert!(slow.iter().map(|s| s.dur).min().unwrap().0 > 4 * quick.iter().map(|s| s.dur).max().unwrap().0);
    // Half of the requests wait for the disk, and in nothing but reading.
    let disk = named("wait_disk");
    let waiting = |part: &&&Span| disk.iter().any(|wait| is_in(wait, part));
    assert!(reads.iter().filter(waiting).count() >= 9, "{}", reads.iter().filter(waiting).count());
    // Late once, as the worker's CPU stood still.
    let late: Vec<_> = named("connection.ready(id=4)").into_iter().filter(|s| s.dur > Time(900_000)).collect();
    let [late] = late[..] else { panic!("{late:?}") };
    let poll = polls[1].iter().find(|poll| poll.start >= late.start + late.dur).unwrap();
    let stalled = named("wait_stall").into_iter().filter(|s| s.pid == poll.pid && s.start > late.start);
    assert!(stalled.filter(|s| s.start < poll.start).map(|s| s.dur.0).sum::<i64>() > 800_000);
    // A poll is a request from the time at which its task is ready; parts are requests whatever their fields.
    let timeline = Timeline::new(&spans);
    let requests = |label: &str| find(&timeline, &Ask::Mark(label.into())).unwrap().requests;
    assert!(requests("connection").iter().any(|r| (r.start, r.end) == (late.start, poll.start + poll.dur)));
    assert_eq!((requests("connection").len(), requests("sum").len()), (polls.concat().len(), 18));
}

#[test]
fn threads_in_python_wait_for_the_interpreter_but_pack_at_the_same_time() {
    let (_, spans) = sample("words.trace");
    let named = |name: &str| beginning(&spans, name);
    let parts = ["file(path=", "count", "pack(size="].map(named);
    assert!(parts.iter().all(|part| part.iter().filter(|s| s.cpu.is_none()).count() == 6), "{parts:?}");
    let [_, count, pack] = parts;
    let overlap = |a: &Span, b: &Span| a.pid != b.pid && a.start < b.start + b.dur && b.start < a.start + a.dur;
    let lock: Vec<_> = [named("wait_time"), named("wait_lock")].concat();
    let second = count.iter().find(|other| lock.iter().any(|wait| overlap(wait, other) && wait.dur > Time(100_000)));
    assert!(second.is_some(), "no thread waits while another counts");
    let both = pack.iter().any(|a| pack.iter().any(|b| overlap(a, b) && a.dur > Time(1_000_000)));
    assert!(both, "{pack:?}");
}

#[test]
fn probes_of_postgres_stand_between_the_calls_of_the_process_that_meets_them() {
    let (events, spans) = sample("postgres.trace");
    let probes = |name: &str| -> Vec<&Event> {
        let name = format!("postgresql:{name}");
        events.events.iter().filter(|e| events.names.text(e.name).starts_with(&name)).collect()
    };
    let [starts, plans, commits, dones] =
        ["query__start", "query__plan__start", "transaction__commit", "query__done"].map(probes);
    let texts: Vec<_> = starts.iter().map(|e| events.names.text(e.name)).collect();
    assert!(
        texts.len() == 3 && texts[0].contains("arg1=SELECT_count(*)_FROM_words") && texts[2].contains("UPDATE_words")
    );
    assert_eq!((plans.len(), dones.len(), probes("sort__start").len(), probes("sort__done").len()), (3, 3, 1, 1));
    let process = starts[0].pid;
    assert!(spans.names.contains(&format!("postgres.{process}")) && dones.iter().all(|done| done.pid == process));
    let calls = |name: &str, from: &Event, to: &Event| {
        let of_process = events.events.iter().filter(|e| e.pid == process && events.names.text(e.name) == name);
        of_process.filter(|e| from.ts < e.ts && e.ts < to.ts).count()
    };
    // The first query reads the catalogs for its plan; the change is written before it is committed.
    assert!(calls("pread64", starts[0], plans[0]) > 0 && calls("pwrite64", plans[2], commits[commits.len() - 1]) > 0);
    // Between queries it answers, and waits for the next, unless that has arrived already.
    let between = |name: &str| [0, 1].map(|n| calls(name, dones[n], starts[n + 1]));
    assert_eq!((between("sendto"), between("epoll_wait")), ([1, 1], [1, 0]));
    assert!(calls("Breakpoint", starts[0], dones[0]) >= 3, "what a probe costs");
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
        let meta = build(source::events::read(&mut text.as_bytes()).unwrap()).0.meta;
        (meta.processes, meta.quality.len())
    };
    assert_eq!(of("-1 1 283 5 4\n"), ([(5, 4)].into(), 0));
    assert_eq!(of("-1 1 283 5 4\n0 1 283 5 5\n"), ([].into(), 0));
    // Invalid lines have no effect, and are counted.
    assert_eq!(of("-1 1 283 5 4\n0 1 283 5 x\n"), ([(5, 4)].into(), 1));
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

#[test]
fn a_wait_says_who_ended_it() {
    for (name, most) in [("redis.trace", 150), ("postgres.trace", 1)] {
        let (_, spans) = sample(name);
        let wakeups: BTreeMap<(Option<Pid>, Time), Option<Pid>> =
            spans.spans.iter().filter_map(|s| Some(((Some(s.woken()?), s.start), s.pid))).collect();
        let mut told = 0;
        for wait in spans.spans.iter().filter(|s| matches!(s.what(), What::Wait(why) if !why.could_run())) {
            // One that is woken when the trace ends has no arc.
            let Some(by) = wakeups.get(&(wait.pid, wait.start + wait.dur)) else { continue };
            let number = by.map_or(0, i64::from);
            assert_eq!(
                wait.values().1,
                if by.is_some_and(|by| by != Pid::IDLE) { number } else { 0 },
                "{name}: {wait:?}"
            );
            told += usize::from(wait.values().1 != 0);
        }
        assert!(told > most, "{name}: {told}");
    }
}
