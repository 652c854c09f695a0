// SPDX-License-Identifier: BSD-3-Clause
//! Decides which conditions hold: finds what took too long in points ordered by time.
//!
//! Invariants: memory is bounded, whatever threads do; if events of a CPU are missing, nothing is concluded from
//! earlier ones.

use foldhash::HashMap;
use kutrace_format::abi::command::Vector;
use kutrace_format::abi::event::{
    self, line, Rpc, EXIT, IRQ, IRQ_LAST, IRQ_RETURN, MARK_A, MARK_C, NAME_VECTOR, OPEN_RETURN, RESOURCE, RPC_REQUEST,
    RPC_RESPONSE, RUNNABLE, SMALL_RETURN, SMALL_RETURN_LAST, SOFTIRQ, SOFTIRQ_LAST, SOFTIRQ_RETURN, SWITCH, SYSCALL,
    SYSCALL32, SYSCALL32_LAST, SYSCALL_RETURN,
};
use kutrace_format::abi::word;
use kutrace_format::base40;
use kutrace_format::file::NameKind;
use postprocess::tables;

use super::condition::{label, Condition, Thing, What};
use crate::skim::{Named, Point, GAP, RUNS};
use crate::spans::{Happened, Thread, What as Happening};

/// Label of the mark by which a program requests a snapshot.
pub const KEEP: &str = "keep";
/// Maximum number of entries in each map; a full map is cleared.
const ROOM: usize = 1 << 17;

/// A condition that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// Index of the condition in the list.
    pub condition: usize,
    /// Duration in counts; 0 if it has no meaning.
    pub took: u64,
    /// Counter at the end.
    pub at: u64,
    /// CPU at the end, if there is one.
    pub cpu: Option<u32>,
    /// The thread, if it belongs to one.
    pub pid: Option<u32>,
    /// Reason given by a program.
    pub reason: Option<String>,
}

/// State of all CPUs and threads.
#[derive(Debug)]
pub struct Judge {
    conditions: Vec<Condition>,
    /// Limit of each condition in counts.
    limits: Vec<u64>,
    /// Labels of each condition about marks, if marks by system call can have them.
    labels: Vec<Option<(u32, u32)>>,
    /// By CPU: the running thread, the start of its run, and whether the run was reported.
    running: HashMap<u32, (u32, u64, bool)>,
    /// By thread: when it left its CPU.
    left: HashMap<u32, u64>,
    /// By thread: when it was woken since it left.
    woken: HashMap<u32, u64>,
    /// By thread: its current call, if that is watched, and its start.
    called: HashMap<u32, (u16, u64)>,
    /// By thread and label: when the mark was passed.
    marked: HashMap<(u32, u32), u64>,
    /// By thread and condition: when the first mark was passed, for marks without a system call.
    passed: HashMap<(Thread, usize), u64>,
    /// Names of the programs of threads with triggers from such marks or spans.
    programs: HashMap<u32, [u8; 16]>,
    /// By thread and RPC.
    requested: HashMap<(u32, u32), u64>,
    /// By CPU and number.
    softirqs: HashMap<(u32, u16), u64>,
    /// By CPU and vector.
    irqs: HashMap<(u32, u16), u64>,
    methods: HashMap<u32, String>,
    resources: HashMap<u32, String>,
    /// By thread: the resource that it named last.
    used: HashMap<u32, u32>,
    /// By CPU and vector.
    devices: HashMap<(u32, u32), String>,
    keep: u32,
    found: Vec<Trigger>,
}

/// Inserts into a map, which is cleared if it is full.
fn put<K: std::hash::Hash + Eq, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() >= ROOM {
        map.clear();
    }
    map.insert(key, value);
}

impl Judge {
    /// Judges by these conditions; `counts_per_ms` is the number of counts in a millisecond.
    pub fn new(conditions: &[Condition], counts_per_ms: f64, vectors: &[Vector]) -> Judge {
        let limit = |condition: &Condition| match condition.what {
            What::Longer(_, ns) => (ns as f64 * counts_per_ms / 1e6) as u64,
            _ => u64::MAX,
        };
        let labels = |condition: &Condition| match &condition.what {
            What::Longer(Thing::Mark(from, to), _) => label(from).zip(label(to)),
            _ => None,
        };
        let mut judge = Judge {
            limits: conditions.iter().map(limit).collect(),
            labels: conditions.iter().map(labels).collect(),
            conditions: conditions.to_vec(),
            running: HashMap::default(),
            left: HashMap::default(),
            woken: HashMap::default(),
            called: HashMap::default(),
            marked: HashMap::default(),
            passed: HashMap::default(),
            programs: HashMap::default(),
            requested: HashMap::default(),
            softirqs: HashMap::default(),
            irqs: HashMap::default(),
            methods: HashMap::default(),
            resources: HashMap::default(),
            used: HashMap::default(),
            devices: HashMap::default(),
            keep: base40::value(KEEP.bytes().filter_map(base40::digit)),
            found: Vec::new(),
        };
        for vector in vectors {
            let text = vector.name.split(|byte| *byte == 0).next().unwrap_or_default();
            judge.device(vector.which, String::from_utf8_lossy(text).into_owned());
        }
        judge
    }

    /// Takes names that were assigned since the last call.
    pub fn names(&mut self, names: Vec<Named>) {
        for Named { kind, number, text } in names {
            match kind {
                line::METHOD_NAME => put(&mut self.methods, number, text),
                line::RESOURCE_NAME => put(&mut self.resources, number, text),
                NAME_VECTOR => self.device(number, text),
                _ => {}
            }
        }
    }

    /// Takes a record from a program's own memory; a count is 2 to the power of `shift` counts of the TSC.
    pub fn happened(&mut self, happened: &Happened, shift: u32) {
        let Happened { thread, at, .. } = *happened;
        let (at, pid, before) = (at >> shift, Some(thread.1), self.found.len());
        match happened.what {
            Happening::Mark(name) => {
                for condition in 0..self.conditions.len() {
                    let What::Longer(Thing::Mark(from, to), _) = &self.conditions[condition].what else { continue };
                    let (is_from, is_to) = (from.as_bytes() == name, to.as_bytes() == name);
                    let since = if is_to { self.passed.remove(&(thread, condition)) } else { None };
                    if let Some(since) = since {
                        self.longer(condition, since, at, None, pid);
                    }
                    if is_from {
                        put(&mut self.passed, (thread, condition), at);
                    }
                }
            }
            Happening::Span(name, since) => {
                for condition in 0..self.conditions.len() {
                    let What::Longer(Thing::Span(wanted), _) = &self.conditions[condition].what else { continue };
                    if wanted.as_bytes() == name {
                        self.longer(condition, since >> shift, at, None, pid);
                    }
                }
            }
            Happening::Missed => self.passed.retain(|((program, _), _), _| *program != thread.0),
        }
        if self.found.len() > before {
            put(&mut self.programs, thread.1, happened.comm);
        }
    }

    /// Name of a thread's program, if records in its own memory triggered a condition.
    pub fn program(&self, pid: u32) -> Option<[u8; 16]> {
        self.programs.get(&pid).copied()
    }

    fn device(&mut self, which: u32, text: String) {
        let which = event::Vector(which);
        if let Some(cpu) = which.cpu() {
            put(&mut self.devices, (cpu, which.vector()), text);
        }
    }

    /// Triggers of the points up to the counter `end`.
    pub fn judge(&mut self, points: &[Point], end: u64, name: impl Fn(u32) -> Option<[u8; 16]>) -> Vec<Trigger> {
        for point in points {
            self.point(point, &name);
        }
        // A thread that still runs may have run too long already.
        let running: Vec<_> = self.running.iter().map(|(cpu, run)| (*cpu, *run)).collect();
        for (cpu, (pid, since, told)) in running {
            if !told && self.ran(cpu, pid, since, end, &name) {
                self.running.insert(cpu, (pid, since, true));
            }
        }
        std::mem::take(&mut self.found)
    }

    fn point(&mut self, point: &Point, name: &impl Fn(u32) -> Option<[u8; 16]>) {
        let Point { at, cpu, event, argument } = *point;
        let pid = self.running.get(&cpu).map(|(pid, ..)| *pid);
        match event {
            GAP => self.forget(cpu),
            RUNS => {
                if pid != Some(argument) {
                    self.running.insert(cpu, (argument, at, true));
                }
            }
            SWITCH => self.switch(cpu, at, pid, argument, name),
            EXIT => {
                if let Some(pid) = pid {
                    self.called.remove(&pid);
                    self.used.remove(&pid);
                }
            }
            RUNNABLE => put(&mut self.woken, argument, at),
            RPC_REQUEST | RPC_RESPONSE => self.rpc(point, pid),
            MARK_A..=MARK_C => self.mark(point, pid),
            RESOURCE => {
                if let Some(pid) = pid {
                    put(&mut self.used, pid, argument);
                }
            }
            SOFTIRQ..=SOFTIRQ_LAST => put(&mut self.softirqs, (cpu, event - SOFTIRQ), at),
            _ if (SOFTIRQ_RETURN..=SOFTIRQ_RETURN + (SOFTIRQ_LAST - SOFTIRQ)).contains(&event) => {
                let number = event - SOFTIRQ_RETURN;
                if let Some(since) = self.softirqs.remove(&(cpu, number)) {
                    let is_it = |thing: &Thing| match thing {
                        Thing::Softirq(which) => which.is_none_or(|which| u16::from(which) == number),
                        _ => false,
                    };
                    self.took(is_it, since, point, pid);
                }
            }
            IRQ..=IRQ_LAST => put(&mut self.irqs, (cpu, event - IRQ), at),
            _ if (IRQ_RETURN..=IRQ_RETURN + (IRQ_LAST - IRQ)).contains(&event) => {
                let vector = event - IRQ_RETURN;
                if let Some(since) = self.irqs.remove(&(cpu, vector)) {
                    let name = self.irq_name(cpu, vector.into());
                    let is_it = |thing: &Thing| match (thing, &name) {
                        (Thing::Irq(wanted), Some(name)) => {
                            name == wanted || name.split(',').any(|part| part.trim() == wanted)
                        }
                        _ => false,
                    };
                    self.took(is_it, since, point, pid);
                }
            }
            _ => self.call(point, pid),
        }
    }

    /// Handles a switch of a CPU to another thread.
    fn switch(&mut self, cpu: u32, at: u64, from: Option<u32>, to: u32, name: &impl Fn(u32) -> Option<[u8; 16]>) {
        if let Some((pid, since, told)) = self.running.insert(cpu, (to, at, false)) {
            if !told {
                self.ran(cpu, pid, since, at, name);
            }
        }
        if !self.conditions.iter().any(|condition| matches!(condition.what, What::Longer(Thing::WaitCpu, _))) {
            return;
        }
        if let Some(from) = from.filter(|from| *from != 0) {
            put(&mut self.left, from, at);
        }
        // A thread woken while it was still running could run since it left; a thread that was not woken at all has
        // only waited for a CPU.
        let (left, woken) = (self.left.remove(&to), self.woken.remove(&to));
        let since = match (left, woken) {
            (Some(left), Some(woken)) => Some(left.max(woken)),
            (left, woken) => left.or(woken),
        };
        if let Some(since) = since.filter(|_| to != 0) {
            let point = Point { at, cpu, event: SWITCH, argument: to };
            self.took(|thing| *thing == Thing::WaitCpu, since, &point, Some(to));
        }
    }

    /// Returns whether a thread's run is too long.
    fn ran(&mut self, cpu: u32, pid: u32, since: u64, at: u64, name: &impl Fn(u32) -> Option<[u8; 16]>) -> bool {
        if pid == 0 || !self.conditions.iter().any(|condition| matches!(condition.what, What::Longer(Thing::Run(_), _)))
        {
            return false;
        }
        let name = name(pid).unwrap_or_default();
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let before = self.found.len();
        let point = Point { at, cpu, event: SWITCH, argument: pid };
        self.took(|thing| matches!(thing, Thing::Run(program) if program.as_bytes() == name), since, &point, Some(pid));
        self.found.len() > before
    }

    fn rpc(&mut self, point: &Point, pid: Option<u32>) {
        let (Some(pid), id) = (pid, Rpc(point.argument).id()) else { return };
        if id == 0 {
            return;
        }
        if point.event == RPC_REQUEST {
            put(&mut self.requested, (pid, id), point.at);
        } else if let Some(since) = self.requested.remove(&(pid, id)) {
            let method = self.methods.get(&id).cloned();
            let is_it =
                |thing: &Thing| matches!((thing, &method), (Thing::Rpc(wanted), Some(method)) if wanted == method);
            self.took(is_it, since, point, Some(pid));
        }
    }

    fn mark(&mut self, point: &Point, pid: Option<u32>) {
        let Some(pid) = pid else { return };
        let label = point.argument;
        if point.event == MARK_C && label == self.keep {
            let asks = |condition: &Condition| condition.what == What::Keep;
            if let Some(condition) = self.conditions.iter().position(asks) {
                let reason = self.used.get(&pid).and_then(|number| self.resources.get(number)).cloned();
                let (at, cpu) = (point.at, Some(point.cpu));
                self.found.push(Trigger { condition, took: 0, at, cpu, pid: Some(pid), reason });
            }
            return;
        }
        for condition in 0..self.conditions.len() {
            let Some((from, to)) = self.labels[condition] else { continue };
            if label == to {
                if let Some(since) = self.marked.remove(&(pid, from)) {
                    self.longer(condition, since, point.at, Some(point.cpu), Some(pid));
                }
            }
            if label == from {
                put(&mut self.marked, (pid, from), point.at);
            }
        }
    }

    /// Handles a call or its return.
    fn call(&mut self, point: &Point, pid: Option<u32>) {
        let Some(pid) = pid else { return };
        let event = point.event;
        let is_call = (SYSCALL..SYSCALL_RETURN).contains(&event) || (SYSCALL32..=SYSCALL32_LAST).contains(&event);
        if is_call {
            match word::Call::decode(point.argument).folded {
                Some((duration, _)) => {
                    let end = Point { at: point.at + u64::from(duration), ..*point };
                    self.took(
                        |thing| matches!(thing, Thing::Call(calls) if calls.contains(&event)),
                        point.at,
                        &end,
                        Some(pid),
                    );
                    self.called.remove(&pid);
                }
                None => put(&mut self.called, pid, (event, point.at)),
            }
            return;
        }
        let is_return =
            event == OPEN_RETURN || (SMALL_RETURN..=SMALL_RETURN_LAST).contains(&event) || event >= SYSCALL_RETURN;
        if let Some((call, since)) = self.called.remove(&pid).filter(|_| is_return) {
            let is_its =
                !(SYSCALL_RETURN..OPEN_RETURN).contains(&event) || event - SYSCALL_RETURN == call.wrapping_sub(SYSCALL);
            if is_its {
                self.took(
                    |thing| matches!(thing, Thing::Call(calls) if calls.contains(&call)),
                    since,
                    point,
                    Some(pid),
                );
            }
        }
    }

    fn irq_name(&self, cpu: u32, vector: u32) -> Option<String> {
        let device = self.devices.get(&(cpu, vector)).filter(|name| !name.is_empty()).cloned();
        device.or_else(|| tables::of(NameKind::Irq).find(|(n, _)| *n == vector).map(|(_, name)| name.to_string()))
    }

    /// Handles an interval from `since` to the point, for the conditions about it.
    fn took(&mut self, is_it: impl Fn(&Thing) -> bool, since: u64, point: &Point, pid: Option<u32>) {
        for condition in 0..self.conditions.len() {
            if matches!(&self.conditions[condition].what, What::Longer(thing, _) if is_it(thing)) {
                self.longer(condition, since, point.at, Some(point.cpu), pid);
            }
        }
    }

    fn longer(&mut self, condition: usize, since: u64, at: u64, cpu: Option<u32>, pid: Option<u32>) {
        let took = at.saturating_sub(since);
        if took > self.limits[condition] {
            self.found.push(Trigger { condition, took, at, cpu, pid: pid.filter(|pid| *pid != 0), reason: None });
        }
    }

    /// Handles missing events of a CPU: anything that began before may have ended.
    fn forget(&mut self, cpu: u32) {
        self.running.remove(&cpu);
        self.softirqs.retain(|(of, _), _| *of != cpu);
        self.irqs.retain(|(of, _), _| *of != cpu);
        for map in [&mut self.left, &mut self.woken] {
            map.clear();
        }
        self.called.clear();
        self.marked.clear();
        self.requested.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A condition, and points as (time, CPU, event, argument); a count is a nanosecond. Returns the triggers: end,
    /// duration, thread.
    fn judged(condition: &str, points: &[(u64, u32, u16, u32)]) -> Vec<(u64, u64, Option<u32>)> {
        let mut judge = Judge::new(&[condition.parse().unwrap()], 1e6, &[]);
        let named = [(7, "get"), (8, "put")];
        let kinds = [line::METHOD_NAME, line::RESOURCE_NAME];
        let named =
            kinds.into_iter().flat_map(|kind| named.map(|(number, text)| Named { kind, number, text: text.into() }));
        judge.names(named.collect());
        let point = |&(at, cpu, event, argument)| Point { at, cpu, event, argument };
        let points: Vec<_> = points.iter().map(point).collect();
        let end = points.last().unwrap().at;
        let name = |pid| (pid == 9).then_some(*b"nine\0\0\0\0\0\0\0\0\0\0\0\0");
        judge.judge(&points, end, name).into_iter().map(|found| (found.at, found.took, found.pid)).collect()
    }

    #[test]
    fn a_call_counts_from_its_entry_to_its_return_on_whatever_cpu() {
        let read = SYSCALL;
        let points = [
            (0, 0, RUNS, 5),
            (0, 1, RUNS, 0),
            (10, 0, read, word::Call::open(1)),
            (20, 0, SWITCH, 0),
            (900, 1, SWITCH, 5),
            (1_500, 1, SMALL_RETURN + 128, 0),
            (1_600, 1, read, word::Call::open(1)),
            (1_700, 1, SYSCALL_RETURN, 1000),
            (1_800, 1, read, word::Call::fold(word::Call::open(1), 120, 0).unwrap()),
            (1_900, 1, SMALL_RETURN + 128, 0),
        ];
        assert_eq!(judged("call:read > 1us", &points), [(1_500, 1_490, Some(5))]);
        assert_eq!(judged("call:write > 1us", &points), []);
        let short = judged("call:read > 110ns", &points);
        assert_eq!(short, [(1_500, 1_490, Some(5)), (1_920, 120, Some(5))]);
    }

    #[test]
    fn a_thread_waits_for_a_cpu_from_when_it_could_run() {
        let points = [
            (0, 0, RUNS, 5),
            (100, 0, SWITCH, 6), // 5 loses its CPU, and is not woken
            (1_000, 0, RUNNABLE, 9),
            (2_000, 0, SWITCH, 9), // 6 sleeps
            (2_500, 0, RUNNABLE, 6),
            (3_000, 0, SWITCH, 5),
            (3_100, 0, SWITCH, 6),
        ];
        let found = judged("wait_cpu > 550ns", &points);
        assert_eq!(found, [(2_000, 1_000, Some(9)), (3_000, 2_900, Some(5)), (3_100, 600, Some(6))]);
    }

    #[test]
    fn a_run_counts_while_it_lasts_and_once() {
        let points = [(0, 0, RUNS, 5), (100, 0, SWITCH, 9), (5_000, 1, RUNS, 0)];
        assert_eq!(judged("run:nine > 3us", &points), [(5_000, 4_900, Some(9))]);
        assert_eq!(judged("run:nine > 5us", &points), []);
        assert_eq!(judged("run:other > 3us", &points), []);
    }

    #[test]
    fn interrupts_softirqs_marks_and_rpcs_are_timed() {
        let label = |text: &str| base40::value(text.bytes().filter_map(base40::digit));
        let points = [
            (0, 0, RUNS, 5),
            (100, 0, IRQ + 236, 0),
            (150, 0, IRQ + 33, 0),
            (900, 0, IRQ_RETURN + 33, 0),
            (1_100, 0, IRQ_RETURN + 236, 0),
            (1_100, 0, SOFTIRQ + 3, 0),
            (3_100, 0, SOFTIRQ_RETURN + 3, 0),
            (4_000, 0, RPC_REQUEST, 7),
            (4_000, 0, MARK_A, label("q")),
            (8_000, 0, RPC_RESPONSE, 7),
            (9_000, 0, MARK_A, label("/q")),
        ];
        assert_eq!(judged("irq:local_timer > 500ns", &points), [(1_100, 1_000, Some(5))]);
        assert_eq!(judged("softirq > 1us", &points), [(3_100, 2_000, Some(5))]);
        assert_eq!(judged("softirq:timer > 1us", &points), []);
        assert_eq!(judged("rpc:get > 3us", &points), [(8_000, 4_000, Some(5))]);
        assert_eq!(judged("rpc:put > 3us", &points), []);
        assert_eq!(judged("mark:q../q > 3us", &points), [(9_000, 5_000, Some(5))]);
    }

    #[test]
    fn spans_and_marks_of_programs_are_timed() {
        let conditions =
            ["span:find it > 1us", "mark:a longer name..done > 1us"].map(|text| text.parse::<Condition>().unwrap());
        let mut judge = Judge::new(&conditions, 1e6, &[]);
        let mut happens = |program: u32, thread: u32, at: u64, what: Happening| {
            let comm = *b"web\0\0\0\0\0\0\0\0\0\0\0\0\0";
            judge.happened(&Happened { thread: (program, thread), comm, at: at << 4, what }, 4);
        };
        happens(1, 5, 3_000, Happening::Span(b"find it", 1_500 << 4));
        happens(1, 5, 3_100, Happening::Span(b"find it", 2_500 << 4));
        happens(1, 5, 3_200, Happening::Span(b"other", 0));
        happens(1, 5, 4_000, Happening::Mark(b"a longer name"));
        happens(1, 6, 4_100, Happening::Mark(b"done"));
        happens(2, 7, 4_200, Happening::Mark(b"a longer name"));
        happens(2, 0, 0, Happening::Missed);
        happens(1, 5, 6_000, Happening::Mark(b"done"));
        happens(2, 7, 9_000, Happening::Mark(b"done"));
        let found = judge.judge(&[], 9_000, |_| None);
        let told: Vec<_> = found.iter().map(|found| (found.condition, found.at, found.took, found.pid)).collect();
        assert_eq!(told, [(0, 3_000, 1_500, Some(5)), (1, 6_000, 2_000, Some(5))]);
        assert!(judge.program(5).is_some_and(|comm| comm.starts_with(b"web\0")) && judge.program(7).is_none());
    }

    #[test]
    fn a_program_asks_with_its_reason() {
        let keep = base40::value(KEEP.bytes().filter_map(base40::digit));
        let mut judge = Judge::new(&["keep".parse().unwrap()], 1e6, &[]);
        judge.names(vec![Named { kind: line::RESOURCE_NAME, number: 77, text: "slow".into() }]);
        let point = |at, event, argument| Point { at, cpu: 2, event, argument };
        let points = [point(0, RUNS, 5), point(1, RESOURCE, 77), point(2, MARK_C, keep), point(3, MARK_A, keep)];
        let found = judge.judge(&points, 9, |_| None);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].at, found[0].pid, found[0].reason.as_deref()), (2, Some(5), Some("slow")));
    }

    #[test]
    fn nothing_is_concluded_across_a_gap() {
        let points =
            [(0, 0, RUNS, 5), (10, 0, SYSCALL, 0), (20, 0, GAP, 0), (30, 0, RUNS, 5), (9_000, 0, SMALL_RETURN, 0)];
        assert_eq!(judged("call:read > 1us", &points), []);
    }
}
