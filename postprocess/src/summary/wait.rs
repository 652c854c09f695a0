// SPDX-License-Identifier: BSD-3-Clause
//! What threads waited for; and how long those that could run waited for a CPU, and who had it meanwhile.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{end, name, Threads};
use crate::event::number::{is_execution, level, Level, IDLE_EXIT, LOST, USER, WAIT_A, WAIT_Z};
use crate::span::{Span, Spans};

/// All waits for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The reason, as on the page: `wait_disk`.
    pub name: String,
    /// How often.
    pub count: u64,
    /// For how long altogether.
    pub total: i64,
    /// The longest.
    pub longest: i64,
    /// When that began.
    pub at: i64,
    /// Who waited so long.
    pub thread: String,
}

/// The waits of threads for a CPU: woken, new, or driven from theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The wait that so many of a thousand do not exceed, by [`PERMILLE`]; the last is the longest.
    pub percentiles: [i64; PERMILLE.len()],
    /// The longest, with who ran meanwhile.
    pub worst: Vec<Worst>,
}

/// What [`Latency::percentiles`] are.
pub const PERMILLE: [u64; 5] = [500, 900, 990, 999, 1000];

/// A long wait for a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worst {
    /// When it began.
    pub at: i64,
    /// How long it was.
    pub dur: i64,
    /// Who waited.
    pub thread: String,
    /// The CPU it got in the end; -1 if that is not in the trace.
    pub cpu: i32,
    /// What that CPU did meanwhile, most time first: threads, interrupts, `-idle-`.
    pub meanwhile: Vec<(String, i64)>,
}

/// The number of wait_cpu: `c`, the third letter.
const WAIT_CPU: i32 = WAIT_A as i32 + 2;

/// Waits by reason, longest altogether first.
pub fn waits(spans: &Spans, threads: &Threads) -> Vec<Wait> {
    let mut reasons: HashMap<i32, (Wait, i32)> = HashMap::new();
    for span in spans.spans.iter().filter(|s| (WAIT_A as i32..=WAIT_Z as i32).contains(&s.event)) {
        let (wait, who) = reasons.entry(span.event).or_default();
        wait.count += 1;
        wait.total += span.dur;
        if span.dur > wait.longest || wait.count == 1 {
            *who = span.pid;
            (wait.longest, wait.at, wait.name) = (span.dur, span.start, name(spans, span).to_string());
        }
    }
    let mut waits: Vec<Wait> =
        reasons.into_values().map(|(wait, who)| Wait { thread: threads.name(who), ..wait }).collect();
    waits.sort_by(|a, b| (Reverse(a.total), &a.name).cmp(&(Reverse(b.total), &b.name)));
    waits
}

/// How long threads waited for a CPU; `worst` of the waits in full.
pub fn latency(spans: &Spans, threads: &Threads, worst: usize) -> Latency {
    let mut waits: Vec<&Span> = spans.spans.iter().filter(|s| s.event == WAIT_CPU).collect();
    waits.sort_by_key(|s| (s.dur, Reverse(s.start)));
    let Some(last) = waits.len().checked_sub(1) else { return Latency::default() };
    let rank = |permille: u64| (waits.len() as u64 * permille).div_ceil(1000).saturating_sub(1) as usize;
    let runs = Runs::of(&spans.spans, waits.iter().rev().take(worst));
    let told = waits.iter().rev().take(worst).map(|wait| {
        let cpu = runs.cpu_after(wait);
        let meanwhile = cpu.map(|cpu| runs.meanwhile(cpu, wait, spans, threads)).unwrap_or_default();
        Worst { at: wait.start, dur: wait.dur, thread: threads.name(wait.pid), cpu: cpu.unwrap_or(-1), meanwhile }
    });
    Latency {
        count: waits.len() as u64,
        percentiles: PERMILLE.map(|permille| waits[rank(permille).min(last)].dur),
        worst: told.collect(),
    }
}

/// Execution of each CPU, ordered by start, and where the threads of interest ran.
struct Runs<'a> {
    cpus: HashMap<i32, Vec<&'a Span>>,
    threads: HashMap<i32, Vec<&'a Span>>,
}

impl<'a> Runs<'a> {
    fn of<'b>(spans: &'a [Span], waits: impl Iterator<Item = &'b &'b Span>) -> Runs<'a> {
        let mut runs = Runs { cpus: HashMap::new(), threads: HashMap::new() };
        waits.for_each(|wait| drop(runs.threads.insert(wait.pid, Vec::new())));
        for span in spans.iter().filter(|s| s.cpu >= 0 && s.dur > 0 && is_execution(s.event)) {
            runs.cpus.entry(span.cpu).or_default().push(span);
            if let Some(thread) = runs.threads.get_mut(&span.pid) {
                thread.push(span);
            }
        }
        runs
    }

    /// The CPU a thread had behind a wait.
    fn cpu_after(&self, wait: &Span) -> Option<i32> {
        let ran = self.threads.get(&wait.pid)?;
        let next = ran.partition_point(|s| end(s) <= end(wait));
        ran.get(next).map(|s| s.cpu)
    }

    /// What a CPU did during a wait.
    fn meanwhile(&self, cpu: i32, wait: &Span, spans: &Spans, threads: &Threads) -> Vec<(String, i64)> {
        let executed = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        let first = executed.partition_point(|s| end(s) <= wait.start);
        let mut sums: HashMap<String, i64> = HashMap::new();
        for span in executed[first..].iter().take_while(|s| s.start < end(wait)) {
            let part = end(span).min(end(wait)) - span.start.max(wait.start);
            *sums.entry(doer(span, spans, threads)).or_default() += part;
        }
        let mut sums: Vec<(String, i64)> = sums.into_iter().collect();
        sums.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        sums
    }
}

/// Who a CPU's time is to be put down to: an interrupt, idle, or a thread, whatever that does.
fn doer(span: &Span, spans: &Spans, threads: &Threads) -> String {
    match span.event as u32 {
        USER | IDLE_EXIT => "-idle-".to_string(),
        LOST => "-lost-".to_string(),
        event if matches!(level(event), Level::Irq | Level::Softirq) => name(spans, span).to_string(),
        _ if span.pid <= 0 => "-idle-".to_string(),
        _ => threads.name(span.pid),
    }
}
