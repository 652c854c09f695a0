// SPDX-License-Identifier: BSD-3-Clause
//! The spans of the original's events against the original's spans, one by one.
//!
//! Equal spans are set aside. Each rule then pairs some of the rest: it computes the original's span without a
//! difference that docs/compat.md names, and pairs it with our span that is equal except for the values that the
//! difference leaves open.

use std::collections::{HashMap, HashSet};

use postprocess::event::names::NameId;
use postprocess::event::number::{self, IDLE_EXIT, IPI_ARC, RUNNABLE, SCHED_OLD, SOFTIRQ, WAKEUP_ARC};
use postprocess::event::{Event, Events};
use postprocess::id::{CpuId, Pid};
use postprocess::source;
use postprocess::source::events::read;
use postprocess::span::what::What;
use postprocess::span::{build, check, Spans};

use super::{reference, Differences, STEMS};

const WAIT_CPU: i32 = number::WAIT_A as i32 + 2;
const WAIT_UNKNOWN: i32 = number::WAIT_Z as i32;
const RESCHEDULE: i32 = number::IRQ as i32 + 0xfd;
/// Waits shorter than this are not drawn.
const SHORT: i64 = 10;
/// Begin of the names of the kernel's threads whose wakeups the original takes for those of a pipe.
const WORKER: &str = "kworker";
/// Acts of a waker from which the original infers the reason of a wait, in its spelling.
const TELLING: &str =
    " BH:block BH:irq_p syncfs fdatasync BH:hi BH:taskl futex page_fault mmap munmap mprotect madvise \
    BH:tx BH:rx write writev sendto open openat BH:sched local_timer_vector arch_timer riscv-timer BH:timer BH:hrtim \
    BH:rcu ";

/// A span with its name; values that a rule leaves open are the same in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Line {
    start: i64,
    dur: i64,
    cpu: i64,
    pid: i64,
    rpc: i32,
    event: i32,
    arg: i64,
    ret: i64,
    ipc: u8,
    name: String,
}

impl Line {
    fn is_execution(&self) -> bool {
        matches!(What::of(self.event), What::Run(_))
    }

    fn is_wait(&self) -> bool {
        (number::WAIT_A..=number::WAIT_Z).contains(&(self.event as u32))
    }

    fn end(&self) -> i64 {
        self.start + self.dur
    }
}

fn lines(spans: &Spans) -> Vec<Line> {
    let name = |id: NameId| spans.names[id].clone();
    let line = |s: &postprocess::span::Span| Line {
        start: s.start.0,
        dur: s.dur.0,
        cpu: CpuId::column(s.cpu),
        pid: Pid::column(s.pid),
        rpc: s.rpc,
        event: s.event(),
        arg: s.values().0,
        ret: s.values().1,
        ipc: s.ipc,
        name: name(s.name),
    };
    spans.spans.iter().map(line).collect()
}

/// Facts from the events that a rule needs.
struct Facts {
    /// The scheduler is system call 511, as in kernels before 6.
    old_scheduler: bool,
    /// Times at which each thread got a name, and was woken, with the CPU; and at which each CPU switched.
    named: HashSet<(i64, u32)>,
    woken: HashMap<(i64, u32), u32>,
    switched: HashSet<(i64, u32)>,
    /// Times at which each thread was woken before the scheduler that it had called returned on its CPU.
    woken_in_scheduler: HashSet<(i64, u32)>,
    /// The names of each thread, with the time from which on it had them.
    names: HashMap<u32, Vec<(i64, String)>>,
    /// Activity of each CPU in the original's spans: its start, and the name.
    done: HashMap<i64, Vec<(i64, String)>>,
    /// Time of the first event of each CPU, and of the last of any.
    first: HashMap<u32, i64>,
    last: i64,
}

impl Facts {
    fn new(Events { events, names: texts, .. }: &Events, theirs: &[Line]) -> Facts {
        let of = |number: u32, key: fn(&Event) -> u32| -> HashSet<(i64, u32)> {
            events.iter().filter(|e| e.event() == number).map(|e| (e.ts.0, key(e))).collect()
        };
        let mut first = HashMap::new();
        for e in events.iter().filter(|e| e.event() >= number::SWITCH) {
            first.entry(e.cpu.number()).or_insert(e.ts.0);
        }
        let mut names: HashMap<u32, Vec<(i64, String)>> = HashMap::new();
        for e in events.iter().filter(|e| e.event() == number::PID_NAME) {
            let text = texts.text(e.name).trim_start_matches("./");
            names.entry(e.arg).or_default().push((e.ts.0, format!("{text}.{}", e.arg)));
        }
        let mut done: HashMap<i64, Vec<(i64, String)>> = HashMap::new();
        for l in theirs.iter().filter(|l| l.is_execution()) {
            done.entry(l.cpu).or_default().push((l.start, l.name.clone()));
        }
        Facts {
            old_scheduler: events.iter().any(|e| e.event() == SCHED_OLD),
            named: of(number::PID_NAME, |e| e.arg),
            woken: events.iter().filter(|e| e.event() == RUNNABLE).map(|e| ((e.ts.0, e.arg), e.cpu.number())).collect(),
            switched: of(number::SWITCH, |e| e.cpu.number()),
            woken_in_scheduler: woken_in_scheduler(events),
            names,
            done,
            first,
            last: events.iter().map(|e| e.ts.0 + e.dur.0).max().unwrap_or_default(),
        }
    }

    /// Returns whether a span of user code has a name that its thread ever had, or none.
    fn had_name(&self, l: &Line) -> bool {
        let had = self.names.get(&(l.pid as u32)).into_iter().flatten().any(|(_, name)| *name == l.name);
        had || l.name == format!(".{}", l.pid)
    }

    /// Returns whether a span of user code has the last name of its thread.
    fn has_newest_name(&self, l: &Line) -> bool {
        let mut names = self.names.get(&(l.pid as u32)).into_iter().flatten();
        names.rfind(|n| n.0 <= l.start).is_some_and(|(_, name)| *name == l.name)
    }

    /// Waker of the thread at the end of a wait, by the name of the original's span.
    fn waker(&self, l: &Line) -> Option<&str> {
        let cpu = self.woken.get(&(l.end(), l.pid as u32))?;
        let done = self.done.get(&i64::from(*cpu))?;
        let next = done.partition_point(|(start, _)| *start <= l.end());
        Some(&done[next.checked_sub(1)?].1)
    }

    /// Returns whether a wait ends in a wakeup from which the original cannot infer a reason.
    fn is_untold(&self, l: &Line) -> bool {
        self.waker(l).is_some_and(|waker| !TELLING.contains(&format!(" {waker} ")) && !waker.starts_with(WORKER))
    }
}

/// Times at which each thread was woken before the scheduler that it had called returned, or so soon after that no wait
/// is drawn.
fn woken_in_scheduler(events: &[Event]) -> HashSet<(i64, u32)> {
    // By CPU: who called its scheduler last, and when that returned.
    let mut called: HashMap<CpuId, (u32, i64)> = HashMap::new();
    let mut woken = HashSet::new();
    for e in events {
        match e.event() {
            SCHED_OLD => drop(called.insert(e.cpu, (e.pid.number(), i64::MAX))),
            RUNNABLE if called.values().any(|&(pid, until)| pid == e.arg && e.ts.0 < until.saturating_add(SHORT)) => {
                woken.insert((e.ts.0, e.arg));
            }
            event if event == SCHED_OLD | number::RETURN_BIT => {
                called.entry(e.cpu).and_modify(|(_, until)| *until = e.ts.0);
            }
            _ => {}
        }
    }
    woken
}

/// Spans that have no equal on the other side yet.
struct Unequal {
    theirs: Vec<Line>,
    ours: Vec<Line>,
    differences: Differences,
}

impl Unequal {
    fn new(theirs: Vec<Line>, ours: Vec<Line>) -> Unequal {
        let mut all = Unequal { theirs, ours, differences: Differences::default() };
        all.pair("", |t| Some(t.clone()), |o| Some(o.clone()));
        all.differences = Differences::default();
        all
    }

    /// Pairs the spans that these make the same.
    fn pair(
        &mut self,
        entry: &'static str,
        their: impl Fn(&Line) -> Option<Line>,
        our: impl Fn(&Line) -> Option<Line>,
    ) {
        let mut free: HashMap<Line, Vec<usize>> = HashMap::new();
        for (n, line) in self.ours.iter().enumerate() {
            our(line).into_iter().for_each(|key| free.entry(key).or_default().push(n));
        }
        let mut gone = HashSet::new();
        self.theirs.retain(|line| match their(line).and_then(|key| free.get_mut(&key)?.pop()) {
            Some(n) => !gone.insert(n),
            None => true,
        });
        let mut n = 0..;
        self.ours.retain(|_| n.next().is_some_and(|n| !gone.contains(&n)));
        self.differences.count(entry, gone.len());
    }

    /// Takes away spans of the original's that ours has not.
    fn only_theirs(&mut self, entry: &'static str, is_such: impl Fn(&Line) -> bool) {
        let before = self.theirs.len();
        self.theirs.retain(|line| !is_such(line));
        self.differences.count(entry, before - self.theirs.len());
    }

    /// Takes away spans of ours that the original's has not.
    fn only_ours(&mut self, entry: &'static str, is_such: impl Fn(&Line) -> bool) {
        let before = self.ours.len();
        self.ours.retain(|line| !is_such(line));
        self.differences.count(entry, before - self.ours.len());
    }

    fn explain(&mut self, facts: &Facts) {
        self.pieces(facts);
        self.schedulers(facts);
        self.edges(facts);
        self.arcs(facts);
        self.waits(facts);
    }

    /// Spans of a CPU that differ in their attributes.
    fn pieces(&mut self, facts: &Facts) {
        let plain = |l: &Line| l.is_execution() && l.event != IDLE_EXIT as i32;
        let said = |l: &Line| plain(l).then(|| Line { arg: 0, ret: 0, ..l.clone() });
        self.pair("resumed pieces of a call", said, said);
        let exit = |l: &Line| (l.event == IDLE_EXIT as i32).then(|| Line { arg: 0, ..l.clone() });
        self.pair("argument of `-c-exit-`", exit, exit);
        let after_point = |l: &Line| Line { start: l.start - 1, dur: l.dur + 1, arg: 0, ret: 0, ..l.clone() };
        let whole = |l: &Line| l.is_execution().then(|| Line { arg: 0, ret: 0, ..l.clone() });
        self.pair("cover of a CPU's time", |l| l.is_execution().then(|| after_point(l)), whole);
        let softirq = |l: &Line| {
            let unnamed = Line { arg: 0, ret: 0, name: String::new(), ..l.clone() };
            (l.event == SOFTIRQ as i32).then_some(unnamed)
        };
        self.pair("softirq return", softirq, softirq);
        self.only_theirs("pieces of no length", |l| l.is_execution() && l.dur == 0);
        let user =
            |l: &Line| (l.event > number::USER as i32).then(|| Line { ret: 0, name: String::new(), ..l.clone() });
        let cut = |l: &Line| l.name.starts_with("kutrace_contro.").then(|| user(l)).flatten();
        self.pair("name of the control program", cut, user);
        // Ours has the newest name in the events, the original's span an older one of the same thread.
        let newest = |l: &Line| user(l).filter(|_| facts.has_newest_name(l));
        let older = |l: &Line| user(l).filter(|_| facts.had_name(l));
        self.pair("name of a thread", older, newest);
        let ended = |l: Line| Line { start: 0, dur: l.end(), ..l };
        let from_name = |l: &Line| newest(l).map(ended).filter(|_| facts.named.contains(&(l.start, l.pid as u32)));
        self.pair("name of a thread", |l| older(l).map(ended), from_name);
        self.only_ours("name of a thread", |l| user(l).is_some() && facts.named.contains(&(l.end(), l.pid as u32)));
    }

    /// The original's model of the scheduler: it cannot be interrupted, and before Linux 6 it is a system call.
    fn schedulers(&mut self, facts: &Facts) {
        let old =
            |l: &Line| (l.event == SCHED_OLD as i32).then(|| Line { pid: 0, arg: 0, ret: 0, ipc: 0, ..l.clone() });
        self.pair("scheduler before Linux 6", old, old);
        let place = |l: &Line| {
            let open = Line { event: 0, arg: 0, ret: 0, ipc: 0, name: String::new(), ..l.clone() };
            l.is_execution().then_some(open)
        };
        let in_softirq = |l: &Line| place(l).filter(|_| l.event == SOFTIRQ as i32);
        self.pair("interrupt inside a softirq", place, in_softirq);
        let in_scheduler = |l: &Line| place(l).filter(|_| l.event == SCHED_OLD as i32);
        self.pair("interrupt inside the scheduler", place, in_scheduler);
        let lasting = |l: &Line| place(l).filter(|_| l.event == RESCHEDULE);
        self.pair("interrupt inside the scheduler", lasting, place);
        let begun = |l: &Line| lasting(l).map(|l| Line { dur: 0, ..l });
        let to_switch = |l: &Line| begun(l).filter(|_| facts.switched.contains(&(l.end(), l.cpu as u32)));
        self.pair("interrupt inside the scheduler", begun, to_switch);
        let from_switch = |l: &Line| l.event == SCHED_OLD as i32 && facts.switched.contains(&(l.start, l.cpu as u32));
        self.only_ours("interrupt inside the scheduler", from_switch);
    }

    /// The first and last pieces of a CPU's time.
    fn edges(&mut self, facts: &Facts) {
        let first = |l: &Line| l.is_execution() && facts.first.get(&(l.cpu as u32)) == Some(&l.start);
        let ended = |l: &Line| {
            let open = Line { start: 0, dur: l.end(), arg: 0, ret: 0, name: String::new(), ..l.clone() };
            l.is_execution().then_some(open)
        };
        self.pair("cover of a CPU's time", ended, |l| ended(l).filter(|_| first(l)));
        self.only_ours("cover of a CPU's time", |l| first(l) || (l.is_execution() && l.end() == facts.last));
    }

    fn arcs(&mut self, facts: &Facts) {
        let unnamed = |l: &Line| (l.event == RUNNABLE as i32).then(|| Line { name: String::new(), ..l.clone() });
        self.pair("wakeup from the value that `clone` returns", unnamed, unnamed);
        self.only_theirs("wakeup from the value that `clone` returns", |l| {
            l.event == RUNNABLE as i32 && l.name == "runnable" && !facts.woken.contains_key(&(l.start, l.arg as u32))
        });
        let wakeup = |l: &Line| l.event == WAKEUP_ARC;
        let ended = |l: &Line| wakeup(l).then(|| Line { start: 0, dur: l.end(), ..l.clone() });
        self.pair("wakeup from the value that `clone` returns", ended, ended);
        let begun = |l: &Line| wakeup(l).then(|| Line { dur: 0, ..l.clone() });
        self.pair("scheduler before Linux 6", |l| begun(l).filter(|_| facts.old_scheduler), begun);
        let ipi = |l: &Line| (l.event == IPI_ARC).then(|| l.clone());
        let shorter = |l: &Line| ipi(l).map(|l| Line { dur: l.dur - 1, ..l });
        self.pair("cover of a CPU's time", shorter, ipi);
        let sent = |l: &Line| ipi(l).map(|l| Line { dur: 0, ..l });
        self.pair("interrupt sent to a CPU that leaves idle", sent, sent);
    }

    fn waits(&mut self, facts: &Facts) {
        let wait = |l: &Line| l.is_wait().then(|| l.clone());
        for late in [1, 2] {
            let early = |l: &Line| wait(l).map(|l| Line { start: l.start - late, dur: l.dur + late, ..l });
            self.pair("begin and end of waits", early, wait);
        }
        let ended = |l: &Line| wait(l).map(|l| Line { start: 0, dur: l.end(), ..l });
        let clone = |l: &Line| ended(l).filter(|l| !facts.old_scheduler && l.event == WAIT_CPU);
        self.pair("wakeup from the value that `clone` returns", clone, ended);
        let old = |l: &Line| ended(l).filter(|_| facts.old_scheduler);
        self.pair("scheduler before Linux 6", old, ended);
        let begun = |l: &Line| wait(l).filter(|l| l.event == WAIT_CPU).map(|l| Line { dur: 0, ..l });
        let late = |l: &Line| begun(l).map(|l| Line { start: l.start - 2, ..l }).filter(|_| facts.old_scheduler);
        self.pair("scheduler before Linux 6", late, begun);
        let from_worker = |l: &Line| facts.waker(l).is_some_and(|waker| waker.starts_with(WORKER));
        let unsaid = |l: &Line| ended(l).map(|l| Line { event: 0, name: String::new(), ..l });
        self.pair(
            "wakeup by a thread of the kernel",
            |l| unsaid(l).filter(|_| l.name == "wait_pipe" && from_worker(l)),
            |l| unsaid(l).filter(|_| l.event != WAIT_CPU && from_worker(l)),
        );
        self.only_theirs("scheduler before Linux 6", |l| {
            l.is_wait() && facts.woken_in_scheduler.contains(&(l.end(), l.pid as u32))
        });
        // The original knows of such a rest only when it ends.
        self.only_ours("interrupt inside a softirq", |l| l.is_wait() && facts.waker(l) == Some("BH:hi"));
        self.only_ours("reason not known", |l| l.event == WAIT_UNKNOWN && facts.is_untold(l));
        self.only_ours("reason of a wait", |l| l.is_wait() && l.event != WAIT_CPU && facts.is_untold(l));
    }
}

#[test]
fn spans_of_the_originals_events_are_the_originals_spans() {
    for stem in STEMS {
        let (events, theirs) = (reference(&format!("{stem}.events")), reference(&format!("{stem}.json")));
        let (Some(events), Some(theirs)) = (events, theirs) else { continue };
        let events = read(&mut &events[..]).unwrap();
        assert_eq!(events.meta.quality, [""; 0]);
        let theirs = source::json::read(&mut &theirs[..]).unwrap();
        let facts = Facts::new(&events, &lines(&theirs));
        let (ours, tally) = build(events);
        assert_eq!((check(&ours, &[], &tally), tally.late), (Vec::new(), 0));
        assert_eq!(theirs.meta.quality, [""; 0]);
        let all = theirs.spans.len();
        let mut unequal = Unequal::new(lines(&theirs), lines(&ours));
        println!("{stem}: {:6} of {all} spans are equal", all - unequal.theirs.len());
        unequal.explain(&facts);
        let Unequal { theirs, ours, differences } = unequal;
        let left = theirs.iter().map(|l| format!("< {l:?}")).chain(ours.iter().map(|l| format!("> {l:?}")));
        differences.assert_named(stem, &left.collect::<Vec<_>>());
    }
}
