// SPDX-License-Identifier: BSD-3-Clause
//! The spans of the original's events against the original's spans, one by one.
//!
//! Equal spans are set aside. Each rule then pairs some of what is left: it says what a span of the original's would be
//! without a difference that docs/compat.md names, and pairs it with the span of ours that is the same but for what the
//! difference leaves open.

use std::collections::{HashMap, HashSet};

use postprocess::event::number::{self, is_execution, IDLE_EXIT, IPI_ARC, RUNNABLE, SCHED_OLD, SOFTIRQ, WAKEUP_ARC};
use postprocess::event::read::read;
use postprocess::event::Event;
use postprocess::span::{build, check, json, Spans};

use super::{reference, Differences, STEMS};

const WAIT_CPU: i32 = number::WAIT_A as i32 + 2;
const RESCHEDULE: i32 = 0x5fd;

/// A span with its name; what a rule leaves open is the same in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Line {
    start: i64,
    dur: i64,
    cpu: i32,
    pid: i32,
    rpc: i32,
    event: i32,
    arg: i64,
    ret: i64,
    ipc: u8,
    name: String,
}

impl Line {
    fn is_execution(&self) -> bool {
        is_execution(self.event)
    }

    fn is_wait(&self) -> bool {
        (number::WAIT_A as i32..0x31a).contains(&self.event)
    }

    fn end(&self) -> i64 {
        self.start + self.dur
    }
}

fn lines(spans: &Spans) -> Vec<Line> {
    let name = |n: u32| spans.names[n as usize].clone();
    let line = |s: &postprocess::span::Span| Line {
        start: s.start,
        dur: s.dur,
        cpu: s.cpu,
        pid: s.pid,
        rpc: s.rpc,
        event: s.event,
        arg: s.arg,
        ret: s.ret,
        ipc: s.ipc,
        name: name(s.name),
    };
    spans.spans.iter().map(line).collect()
}

/// What the events say that a rule needs.
struct Facts {
    /// The scheduler is system call 511, as in kernels before 6.
    old_scheduler: bool,
    /// When which thread got a name, was woken; when which CPU switched.
    named: HashSet<(i64, u32)>,
    woken: HashSet<(i64, u32)>,
    switched: HashSet<(i64, u32)>,
    /// When each CPU was first heard of, and when any was last.
    first: HashMap<u32, i64>,
    last: i64,
}

impl Facts {
    fn new(events: &[Event]) -> Facts {
        let of = |number: u32, key: fn(&Event) -> u32| -> HashSet<(i64, u32)> {
            events.iter().filter(|e| e.event == number).map(|e| (e.ts, key(e))).collect()
        };
        let mut first = HashMap::new();
        for e in events.iter().filter(|e| e.event >= number::SWITCH) {
            first.entry(e.cpu).or_insert(e.ts);
        }
        Facts {
            old_scheduler: events.iter().any(|e| e.event == SCHED_OLD),
            named: of(number::PID_NAME, |e| e.arg),
            woken: of(RUNNABLE, |e| e.arg),
            switched: of(number::SWITCH, |e| e.cpu),
            first,
            last: events.iter().map(|e| e.ts + e.dur).max().unwrap_or_default(),
        }
    }
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

    /// Spans of a CPU that differ in what is said of them.
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
        self.pair("name of a thread", user, user);
        let ended = |l: &Line| user(l).map(|l| Line { start: 0, dur: l.end(), ..l });
        self.pair("name of a thread", ended, |l| ended(l).filter(|_| facts.named.contains(&(l.start, l.pid as u32))));
        self.only_ours("name of a thread", |l| user(l).is_some() && facts.named.contains(&(l.end(), l.pid as u32)));
    }

    /// What the original takes the scheduler for: it cannot be interrupted, and before Linux 6 it is a system call.
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
            l.event == RUNNABLE as i32 && l.name == "runnable" && !facts.woken.contains(&(l.start, l.arg as u32))
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
        let woken_in_it =
            |l: &Line| l.is_wait() && facts.old_scheduler && facts.woken.contains(&(l.end(), l.pid as u32));
        self.only_theirs("scheduler before Linux 6", woken_in_it);
        self.only_ours("reason of a wait", |l| {
            l.is_wait() && l.event != WAIT_CPU && facts.woken.contains(&(l.end(), l.pid as u32))
        });
    }
}

#[test]
fn spans_of_the_originals_events_are_the_originals_spans() {
    for stem in STEMS {
        let (events, theirs) = (reference(&format!("{stem}.events.xz")), reference(&format!("{stem}.json.xz")));
        let (Some(events), Some(theirs)) = (events, theirs) else { continue };
        let events = read(&mut &events[..]).unwrap();
        assert_eq!(events.meta.quality, [""; 0]);
        let facts = Facts::new(&events.events);
        let (ours, tally) = build(events);
        assert_eq!((check(&ours, &[], &tally), tally.late), (Vec::new(), 0));
        let theirs = json::read(&mut &theirs[..]).unwrap();
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
