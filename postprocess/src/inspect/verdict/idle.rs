// SPDX-License-Identifier: BSD-3-Clause
//! Idle: compares the idle and stolen time of each CPU in the spans with the kernel's count.
//!
//! Invariant: the result does not affect the verdict. A kernel that counts idle time by its ticks may be off by any
//! amount.

use kutrace_format::x86::trap;

use crate::event::number::TRAP;
use crate::event::point::Point;
use crate::event::Meta;
use crate::raw::idle::IdleTime;
use crate::span::what::Activity;
use crate::span::Span;
use crate::time::Time;

/// An NMI during idle counts as idle time in the kernel.
const NMI: u32 = TRAP + trap::NMI;

/// Adds up spans as they come.
#[derive(Debug)]
pub struct Comparison {
    /// For each CPU the kernel's count, and the idle and the stolen time in the trace.
    cpus: Vec<(IdleTime, Time, Time)>,
}

impl Comparison {
    /// Starts with the kernel's counts.
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

    /// Returns the result: a sentence for all CPUs and one for each CPU on which the two differ.
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
                "idle time on cpu {}: {text}, from {from:.6} s to {to:.6} s: they differ by more than two ticks",
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

/// True for the idle thread without any work, or for a stall of it: a stalled CPU was doing what it did before.
fn is_idle(span: &Span) -> bool {
    let Some(activity) = span.activity().filter(|_| span.pid.is_some_and(|pid| pid.number() == 0)) else {
        return false;
    };
    let did = if activity == Activity::Stalled { span.arg as u32 } else { activity.number() };
    [Activity::Idle.number(), Activity::IdleExit.number(), NMI].contains(&did)
}
