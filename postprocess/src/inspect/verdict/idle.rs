// SPDX-License-Identifier: BSD-3-Clause
//! Idle: how long each CPU was idle by the spans, and what its host took, beside how long by the kernel's count.
//!
//! Invariant: no verdict follows. A kernel that goes by its ticks to count this may be off by any time.

use kutrace_format::x86::trap;

use crate::event::number::TRAP;
use crate::event::point::Point;
use crate::event::Meta;
use crate::raw::idle::IdleTime;
use crate::span::what::Activity;
use crate::span::Span;
use crate::time::Time;

/// An NMI is idle to the kernel if it comes then.
const NMI: u32 = TRAP + trap::NMI;

/// Adds up while spans go by.
#[derive(Debug)]
pub struct Comparison {
    /// Of each what the kernel counted, and what the trace has of idle and of stolen time.
    cpus: Vec<(IdleTime, Time, Time)>,
}

impl Comparison {
    /// With what the kernel counted.
    pub fn new(counted: Vec<IdleTime>) -> Comparison {
        Comparison { cpus: counted.into_iter().map(|idle| (idle, Time::ZERO, Time::ZERO)).collect() }
    }

    /// Takes a span.
    pub fn span(&mut self, span: &Span) {
        let is_stolen = span.point() == Some(Point::Steal);
        if self.cpus.is_empty() || !is_stolen && !is_idle(span) {
            return;
        }
        if let Some((idle, traced, stolen)) = self.cpus.iter_mut().find(|(idle, ..)| span.cpu == Some(idle.cpu)) {
            let (from, to) = idle.window;
            let within = (Time(span.start.0 + span.dur.0).min(to) - span.start.max(from)).max(Time::ZERO);
            match is_stolen {
                true => *stolen += within,
                false => *traced += within,
            }
        }
    }

    /// What it comes to, a sentence for all CPUs and one for each on which the two differ.
    pub fn finish(&self, meta: &Meta) -> Vec<String> {
        if self.cpus.is_empty() {
            return Vec::new();
        }
        let covers = |idle: &IdleTime| {
            let of = meta.intervals.iter().find(|interval| interval.cpu == idle.cpu);
            of.is_some_and(|of| of.from <= idle.window.0 && of.to >= idle.window.1)
        };
        let whole: Vec<_> = self.cpus.iter().filter(|(idle, ..)| meta.is_whole() && covers(idle)).collect();
        if whole.is_empty() {
            return vec!["idle time: not compared, since the trace lacks events".to_string()];
        }
        let sum = |part: fn(&(IdleTime, Time, Time)) -> Time| Time(whole.iter().map(|cpu| part(cpu).0).sum());
        let out = self.cpus.len() - whole.len();
        let without = if out > 0 { format!("; without {out} CPUs, whose trace lacks events") } else { String::new() };
        let text = text((sum(|cpu| cpu.0.counted.0), sum(|cpu| cpu.0.counted.1)), sum(|cpu| cpu.1));
        let mut found = vec![format!("idle time: {text}{without}")];
        let (counted, told) = (sum(|cpu| cpu.0.stolen), sum(|cpu| cpu.2));
        if counted.max(told) > Time::ZERO {
            let (counted, told) = (counted.seconds(), told.seconds());
            found.push(format!(
                "time that the host took: the kernel counted {counted:.2} s, the trace has {told:.2} s{without}"
            ));
        }
        found.extend(whole.iter().filter(|(idle, traced, _)| !idle.allows(*traced)).map(|(idle, traced, _)| {
            let (from, to) = idle.window;
            let (from, to) = (from.seconds(), to.seconds());
            let text = self::text(idle.counted, *traced);
            format!(
                "idle time on cpu {}: {text}, from {from:.6} s to {to:.6} s: more apart than two ticks",
                idle.cpu.number()
            )
        }));
        found
    }
}

fn text((least, most): (Time, Time), traced: Time) -> String {
    let (least, most, traced) = (least.seconds(), most.seconds(), traced.seconds());
    format!("the kernel counted {least:.2} to {most:.2} s, the trace has {traced:.2} s")
}

/// Whether it is the idle thread at nothing, or a stall of it: that was doing what it did before.
fn is_idle(span: &Span) -> bool {
    let Some(activity) = span.activity().filter(|_| span.pid.is_some_and(|pid| pid.number() == 0)) else {
        return false;
    };
    let did = if activity == Activity::Stalled { span.arg as u32 } else { activity.number() };
    [Activity::Idle.number(), Activity::IdleExit.number(), NMI].contains(&did)
}
