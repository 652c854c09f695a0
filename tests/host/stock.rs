// SPDX-License-Identifier: BSD-3-Clause
//! A trace as a kernel without the hooks would have recorded it: its spans agree with those of the whole trace, as far
//! as both can show.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use kutrace_format::abi::event::SWITCH;
use kutrace_format::capability::{Capability, Unseen};
use kutrace_tests::check::Texts;
use kutrace_tests::cut::{entries, told_by};
use kutrace_tests::TraceBuilder;
use postprocess::event::number::{self, Level};
use postprocess::event::work::Work;
use postprocess::id::{CpuId, Pid};
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use postprocess::raw;
use postprocess::source;
use postprocess::span::stall::STALL_MIN;
use postprocess::span::what::{Activity, What, STALLED};
use postprocess::span::{self, build, Span, Spans, NONE};
use postprocess::time::Time;

/// A page fault's event.
const PAGE_FAULT: u8 = 14;
/// A wait for a quota is as long.
const QUOTA: Time = Time(100_000);
/// A wait that is longer than this is in both.
const SHORT: Time = Time(2_000);

/// Limits of such a source: on a kernel up to 6.12, and on one that records its scheduler.
fn sources() -> [Unseen; 2] {
    let all = Unseen::TRACEPOINTS.and(Unseen::of(&[Capability::Frequency, Capability::Packets]));
    [all.and(Unseen::of(&[Capability::Scheduler])), all]
}

/// Spans of a CPU's time, in order.
fn of_cpu(spans: &Spans, cpu: CpuId) -> Vec<&Span> {
    spans.spans.iter().filter(|s| s.cpu == Some(cpu) && s.is_execution() && s.dur > Time::ZERO).collect()
}

/// Returns whether both agree about the time they share. `after` is the part after the first.
fn agree(whole: &Span, after: Option<&&Span>, told: &Span) -> bool {
    let of_either = || told.pid == whole.pid || after.is_some_and(|after| told.pid == after.pid);
    match whole.what() {
        What::Run(Activity::Call(work)) if work.level() == Level::Sched => of_either(),
        // Of the kernel's faults and of exceptions there are points only.
        What::Run(Activity::Call(Work::Trap(vector))) if told.what != whole.what => {
            told.pid == whole.pid && (vector != PAGE_FAULT || !matches!(told.activity(), Some(Activity::User(_))))
        }
        // A tick shows it if the work was not an interrupt's.
        What::Run(Activity::User(_)) if told.work() == Some(Work::ExitWork) => told.pid == whole.pid,
        _ if whole.work() == Some(Work::ExitWork) => told.pid == whole.pid,
        _ => (told.what, told.pid, told.arg) == (whole.what, whole.pid, whole.arg),
    }
}

/// True if a CPU is shown to stand still with its machine from an earlier time on: from the last event of any CPU, and the
/// source lacks some.
fn stands_still_earlier(whole: &Span, told: &Span) -> bool {
    told.what == STALLED && (told.pid, told.arg) == (whole.pid, whole.event().into())
}

/// The part of the CPUs' time that both show, and their differences.
fn compare(whole: &Spans, told: &Spans) -> (Time, Vec<String>) {
    let (mut same, mut differ) = (Time::ZERO, Vec::new());
    let cpus: std::collections::BTreeSet<CpuId> = whole.spans.iter().filter_map(|s| s.cpu).collect();
    for cpu in cpus {
        let (these, those) = (of_cpu(whole, cpu), of_cpu(told, cpu));
        let mut at = 0;
        for (n, this) in these.iter().enumerate() {
            let end = this.start + this.dur;
            while those.get(at).is_some_and(|that| that.start + that.dur <= this.start) {
                at += 1;
            }
            for that in those[at..].iter().take_while(|that| that.start < end) {
                let both = end.min(that.start + that.dur) - this.start.max(that.start);
                let after = these[n + 1..].iter().find(|s| s.event() != number::SCHED as i32);
                match agree(this, after, that) || both < STALL_MIN && stands_still_earlier(this, that) {
                    true => same += both,
                    false => differ.push(format!("{both} units: {this:?}\n    {that:?}")),
                }
            }
        }
    }
    (same, differ)
}

/// The waits that are longer, by thread: reason, start and end.
fn waits(spans: &Spans, min: Time) -> BTreeMap<Option<Pid>, Vec<(&str, Time, Time)>> {
    let mut waits: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for s in spans.spans.iter().filter(|s| matches!(s.what(), What::Wait(_)) && s.dur > min) {
        waits.entry(s.pid).or_default().push((spans.names[s.name.index()].as_str(), s.start, s.start + s.dur));
    }
    waits
}

/// Start of a wakeup: its time, CPU and waker; and the woken thread.
type Wakeup = (Time, Option<CpuId>, Option<Pid>, Pid);

fn wakeups(spans: &Spans) -> Vec<Wakeup> {
    let wakeup = |s: &Span| Some((s.start, s.cpu, s.pid, s.woken()?));
    let mut wakeups: Vec<_> = spans.spans.iter().filter_map(wakeup).collect();
    wakeups.sort_unstable();
    wakeups
}

/// Return values of each thread's calls, in order.
fn returned(spans: &Spans) -> HashMap<Option<Pid>, Vec<(i32, i64)>> {
    let mut values: HashMap<_, Vec<_>> = HashMap::new();
    for s in &spans.spans {
        if s.work().is_some_and(Work::is_call) && s.ret != NONE {
            values.entry(s.pid).or_default().push((s.event(), s.ret));
        }
    }
    values
}

#[test]
fn what_a_stock_kernel_tells_agrees_with_the_whole() {
    for name in ["convoy", "disk", "faults", "hello", "pipeline", "redis", "slices"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../samples/{name}.trace"));
        let bytes = fs::read(path).unwrap();
        let raw = raw::parse(&bytes).unwrap();
        let (whole, of_whole) =
            build(source::decode(&told_by(&raw, &entries(&raw), Unseen::default()).bytes()).unwrap());
        for unseen in sources() {
            let bytes = told_by(&raw, &entries(&raw), unseen).bytes();
            let events = source::decode(&bytes).unwrap();
            let intervals = events.meta.intervals.clone();
            let (told, tally) = build(events);
            assert_eq!(span::check(&told, &intervals, &tally), [""; 0], "{name}");
            let found = judge(&bytes).unwrap();
            assert_eq!(verdict(&found), Verdict::Pass, "{name}: {found:?}");
            assert_eq!(
                (of_whole.repairs, tally.repairs),
                (0, 0),
                "{name}: {:?}",
                tally.first.map(|r| r.text(&told.names))
            );
            let scheduled = told.spans.iter().filter(|s| s.event() == number::SCHED as i32).count();
            assert_eq!(scheduled > 0, !unseen.has(Capability::Scheduler), "{name}");
            let (same, differ) = compare(&whole, &told);
            assert!(
                differ.is_empty(),
                "{name}: {} next to {same}:\n{}",
                differ.len(),
                differ[..differ.len().min(20)].join("\n")
            );
            let (these, those) = (wakeups(&whole), wakeups(&told));
            let missing: Vec<_> = these.iter().filter(|one| !those.contains(one)).collect();
            let more: Vec<_> = those.iter().filter(|one| !these.contains(one)).collect();
            assert!(missing.is_empty() && more.is_empty(), "{name}: {missing:?} {more:?}");
            assert_eq!(returned(&whole), returned(&told), "{name}");
            same_waits(name, &whole, &told);
            let folder = tempfile::tempdir().unwrap();
            Texts::of(&bytes).check(folder.path()).unwrap_or_else(|said| panic!("{name}: {said}"));
        }
    }
}

/// Long waits have the same reasons, and the same times but for the scheduler's own.
fn same_waits(name: &str, whole: &Spans, told: &Spans) {
    let scheduler: Vec<&Span> = whole.spans.iter().filter(|s| s.event() == number::SCHED as i32).collect();
    let is_scheduler = |a: Time, b: Time| {
        let (from, to) = (a.min(b), a.max(b));
        from == to || scheduler.iter().any(|s| s.start < to && s.start + s.dur > from)
    };
    let those = waits(told, Time::ZERO);
    for (pid, these) in waits(whole, SHORT) {
        for (why, start, end) in these {
            let beside = || those.get(&pid).into_iter().flatten().filter(|w| w.1 < end && w.2 > start);
            // At other times, half is next to interrupts. And next to a CPU that is idle for long, it may be for a
            // quota.
            let for_a_cpu = |w: &str| ["wait_cpu", "wait_idle"].contains(&w);
            let may_differ = |e: Time| e != end || end - start >= QUOTA;
            let same = |w: &str, e: Time| w == why || may_differ(e) && for_a_cpu(w) && for_a_cpu(why);
            let found = beside().any(|&(w, s, e)| same(w, e) && is_scheduler(s, start) && is_scheduler(e, end));
            assert!(found, "{name}: {pid:?} {why} from {start} to {end}: {:?}", beside().collect::<Vec<_>>());
        }
    }
}

/// Two threads of a program load another, one after the other; in between the second has got the CPU.
fn loads(unseen: Unseen) -> (Vec<(i64, i64)>, u64) {
    let mut trace = TraceBuilder::new(1, 1_000);
    trace.header.unseen = unseen;
    let cpu = trace.cpu(0).running(97, "a", None).folded(10, 39, 0, 5, 7).call(50, 59, 1);
    cpu.task(100, 96, "b", Some(59)).entry(100, SWITCH, &[96]).task(200, 95, "c", Some(59)).small_return(300, 0);
    let events = source::decode(&trace.bytes()).unwrap();
    let switches = events.events.iter().filter(|e| e.event() == number::SWITCH);
    let switches = switches.map(|e| (e.dur.0, i64::from(e.arg))).collect();
    (switches, build(events).1.repairs)
}

#[test]
fn a_thread_that_runs_next_is_told_from_one_that_another_becomes() {
    let seen = loads(Unseen::of(&[Capability::Scheduler]));
    assert_eq!(seen, (vec![(1, 97), (0, 96), (1, 95)], 0));
    // Where the scheduler is seen, it is not entered here.
    assert_eq!(loads(Unseen::default()).0, [(1, 97), (1, 96), (0, 96), (1, 95)]);
}
