// SPDX-License-Identifier: BSD-3-Clause
//! Wakeups are never blamed on an interruption of the call or softirq that woke, judged by the order of the events.

use std::collections::HashMap;
use std::fs;

use postprocess::event::number::Level;
use postprocess::event::point::Point;
use postprocess::event::what::What as Said;
use postprocess::event::work::Work;
use postprocess::event::Events;
use postprocess::id::{CpuId, Pid};
use postprocess::source;
use postprocess::span::build;
use postprocess::span::what::{Arc, What};
use postprocess::time::Time;
use postprocess::why::waker::Origin;

use crate::causes::recorded;
use crate::why::files;

/// The samples, and those of planted causes, by name.
fn traces() -> Vec<(String, Vec<u8>)> {
    let samples = files("../samples", "trace").into_iter();
    let samples = samples.map(|path| (path.display().to_string(), fs::read(&path).unwrap()));
    samples.chain(recorded().iter().map(|(case, bytes)| (case.name.clone(), bytes.clone()))).collect()
}

/// For each wakeup in a softirq or a call, by moment, CPU and thread: the start of that on its CPU.
fn woken_in(events: &Events) -> HashMap<(Time, CpuId, Pid), (Work, Time)> {
    let mut inside: HashMap<CpuId, Vec<(Work, Time)>> = HashMap::new();
    let mut woken = HashMap::new();
    for event in &events.events {
        let inside = inside.entry(event.cpu).or_default();
        match event.what {
            Said::Call(work) if event.dur == Time::ZERO => inside.push((work, event.ts)),
            Said::Return(work) => {
                let begun = inside.iter().rposition(|(open, _)| open.level() == work.level());
                inside.truncate(begun.unwrap_or(0));
            }
            // Another thread is inside of something else.
            Said::Switch | Said::Lost => inside.clear(),
            Said::Point(Point::Runnable) => {
                let innermost = inside.last().filter(|(work, _)| work.level() != Level::Irq);
                woken.extend(innermost.map(|&within| ((event.ts, event.cpu, Pid::new(event.arg)), within)));
            }
            _ => {}
        }
    }
    woken
}

#[test]
fn no_wakeup_is_blamed_on_what_only_cut_in() {
    let (mut wakeups, mut cut_in) = (0, 0);
    for (name, bytes) in traces() {
        let events = source::decode(&bytes).unwrap();
        let woken_in = woken_in(&events);
        let (spans, _) = build(events);
        for (n, arc) in spans.spans.iter().enumerate() {
            let (What::Arc(Arc::Wakeup { woken, .. }), Some(cpu)) = (arc.what, arc.cpu) else { continue };
            let Some(&(work, since)) = woken_in.get(&(arc.start, cpu, woken)) else { continue };
            let after = spans.spans[n..].iter().take_while(|span| span.start == arc.start).count();
            let before = || spans.spans[..n + after].iter().rev().filter(|s| s.cpu == Some(cpu) && s.is_execution());
            let is_interrupt = |level| level == Some(Level::Irq);
            cut_in += u64::from(before().skip(1).take_while(|s| s.start > since).any(|s| is_interrupt(s.level())));
            wakeups += 1;
            let Some((by, back)) = Origin::of(&spans.names, arc, before().copied()).place() else { continue };
            assert!(
                !is_interrupt(by.level()) || by.start <= since,
                "{name}: the wakeup at {} in {work:?} since {since} is blamed on {} at {}, {back} back",
                arc.start,
                spans.names[by.name.index()],
                by.start
            );
        }
    }
    eprintln!("{wakeups} wakeups in calls and softirqs, {cut_in} after an interrupt that cut in");
    assert!(wakeups > 1000 && cut_in > 10, "{wakeups} wakeups, {cut_in} after an interrupt that cut in");
}
