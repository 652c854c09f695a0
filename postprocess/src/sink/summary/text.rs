// SPDX-License-Identifier: BSD-3-Clause
//! The summary as tables for people; at most 100 columns wide.

use std::fmt::Write;

use kutrace_format::capability::Capability;
use kutrace_format::flag;

use super::latency::{Latency, Worst};
use super::share::Share;
use super::wait::Wait;
use super::work::{Program, Sum};
use super::{By, Part, Summary};
use crate::cgroup::short;
use crate::readable::{average, count, percent, seconds, time};
use crate::span::stall;
use crate::time::Time;

/// Number of names reported for what ran during a wait.
const DOERS: usize = 3;

impl Summary {
    /// Returns all tables, with at most `top` lines each.
    pub fn text(&self, top: usize, by: By) -> String {
        let (title, list) = match by {
            By::Program => ("PROGRAM", &self.programs),
            By::Cgroup => ("CONTROL GROUP", &self.cgroups),
        };
        let mut out = String::new();
        self.head(&mut out);
        self.shares(&mut out);
        let all: Time = self.cpus.iter().map(|(_, share)| share.total()).sum();
        if !list.is_empty() {
            programs(&mut out, title, list, all, top);
        }
        let lists = [("SYSTEM CALL", &self.calls), ("INTERRUPT", &self.interrupts), ("FAULT", &self.faults)];
        for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            sums(&mut out, title, list, all, top);
        }
        if !self.waits.is_empty() {
            waits(&mut out, "WAIT, and who waited longest", &self.waits);
        }
        if !self.spans.is_empty() {
            let first = &self.spans[..self.spans.len().min(top)];
            waits(&mut out, "SPAN, and whose was longest", first);
            more(&mut out, self.spans.len(), top);
        }
        let running = match self.running {
            0 => String::new(),
            n => format!("and {} still running when woken", count(n, "thread was", "threads were")),
        };
        latency(&mut out, "WAKEUP LATENCY: from a wakeup to running", &self.woken, &running);
        latency(&mut out, "PREEMPTED: from losing a CPU to running again", &self.preempted, "");
        out
    }

    fn head(&self, out: &mut String) {
        let meta = &self.meta;
        let known = [("host ", &meta.host), ("kernel ", &meta.kernel), ("", &meta.cpu_model)];
        let known: Vec<String> =
            known.iter().filter(|(_, text)| !text.is_empty()).map(|(what, text)| format!("{what}{text}")).collect();
        if !known.is_empty() {
            line(out, format_args!("{}", known.join(", ")));
        }
        let (from, to) = self.extent;
        let (cpus, base) = (self.cpus.len(), meta.tracebase.replace('_', " "));
        let cpus = count(cpus as u64, "CPU", "CPUs");
        line(out, format_args!("{} on {cpus} from {base} UTC + {} s", time(to - from), seconds(from)));
        let events = count(self.events, "event", "events");
        match meta.lost {
            0 if self.tells(0, &[Capability::Losses]) => line(out, format_args!("{events}, none lost")),
            0 => line(out, format_args!("{events}")),
            lost => line(out, format_args!("{events}; {} LOST while recording", count(lost, "event", "events"))),
        }
        if meta.flags & flag::WRAPPED != 0 {
            line(
                out,
                format_args!("recorded in wrap mode: earlier events were overwritten, CPUs begin at different times"),
            );
        }
        for text in &meta.unseen {
            line(out, format_args!("cannot show {text}"));
        }
        for text in &meta.counted {
            line(out, format_args!("{text}"));
        }
        if !meta.quality.is_empty() {
            let things = count(meta.quality.len() as u64, "thing is", "things are");
            line(out, format_args!("{things} damaged or missing"));
        }
    }

    fn shares(&self, out: &mut String) {
        let mut parts: Vec<Part> = vec![("user", |share| share.user), ("kernel", |share| share.kernel)];
        parts.extend(self.parts());
        let titles: String = parts.iter().map(|(title, _)| format!("{title:>9}")).collect();
        line(out, format_args!("\n{:10}{titles}", "CPU"));
        let mut all = Share::default();
        for (cpu, share) in &self.cpus {
            share_line(out, &cpu.to_string(), share, &parts);
            all += *share;
        }
        share_line(out, "all", &all, &parts);
        for (cpu, share) in self.cpus.iter().filter(|(_, share)| share.offline > Time::ZERO) {
            line(out, format_args!("CPU {cpu} was offline for {}, which is not counted", time(share.offline)));
        }
        for (cpu, share) in self.cpus.iter().filter(|(_, share)| share.steals > 0) {
            let (times, part) = (count(share.steals, "time", "times"), percent(share.stolen, share.total()));
            let took = time(share.stolen);
            line(
                out,
                format_args!("CPU {cpu} wanted to run {times} while its host ran something else: {took}, {part}"),
            );
        }
        if let Some(stalls) = stall::sentence(all.stalls, all.stalled) {
            line(out, format_args!("{stalls}"));
        }
    }
}

fn share_line(out: &mut String, name: &str, share: &Share, parts: &[Part]) {
    let columns = parts.iter().map(|(_, part)| percent(part(share), share.total()));
    let columns: String = columns.map(|column| format!("{column:>9}")).collect();
    line(out, format_args!("{name:10}{columns}"));
}

fn programs(out: &mut String, what: &str, programs: &[Program], all: Time, top: usize) {
    let head = ["CPU time", "", "user", "kernel", "threads", "runs", "average", "longest"];
    title(out, &head, what);
    for p in programs.iter().take(top) {
        let total = p.user + p.kernel;
        let (average, longest) = (time(average(p.on_cpu, p.runs)), time(p.longest));
        let row = [time(total), percent(total, all), time(p.user), time(p.kernel)];
        put(out, &[&row[..], &[p.threads.to_string(), p.runs.to_string(), average, longest]].concat(), &short(&p.name));
    }
    more(out, programs.len(), top);
}

fn sums(out: &mut String, what: &str, sums: &[Sum], all: Time, top: usize) {
    title(out, &["CPU time", "", "count", "average", "longest", "slowest"], what);
    for s in sums.iter().take(top) {
        let none = String::from("-");
        let row = match s.is_untimed() {
            true => [none.clone(), none.clone(), s.count.to_string(), none.clone(), none.clone(), none],
            false => {
                let average = time(average(s.total, s.timed()));
                let count = s.count.to_string();
                [time(s.total), percent(s.total, all), count, average, time(s.longest), time(s.slowest)]
            }
        };
        put(out, &row, &s.name);
    }
    more(out, sums.len(), top);
}

fn waits(out: &mut String, what: &str, waits: &[Wait]) {
    title(out, &["total", "count", "average", "longest", "at s"], what);
    for w in waits {
        let row = [time(w.total), w.count.to_string(), time(average(w.total, w.count)), time(w.longest), seconds(w.at)];
        put(out, &row, &format!("{} {}", w.name, w.thread));
    }
}

fn latency(out: &mut String, what: &str, latency: &Latency, note: &str) {
    if latency.count == 0 {
        return;
    }
    title(out, &["count", "median", "90 %", "99 %", "99.9 %", "longest"], what);
    let percentiles = latency.percentiles.map(time);
    put(out, &[&[latency.count.to_string()][..], &percentiles].concat(), note);
    title(out, &["waited", "at s", "CPU"], "THREAD, and what its CPU did meanwhile");
    for Worst { at, dur, thread, cpu, meanwhile } in &latency.worst {
        let mut did: Vec<String> =
            meanwhile.iter().take(DOERS).map(|(name, part)| format!("{name} {}", time(*part))).collect();
        if let Some(more @ 1..) = meanwhile.len().checked_sub(DOERS) {
            did.push(format!("{more} more"));
        }
        let cpu = cpu.map_or("?".to_string(), |cpu| cpu.to_string());
        put(out, &[time(*dur), seconds(*at), cpu], &format!("{thread}: {}", did.join(", ")));
    }
}

fn title(out: &mut String, columns: &[&str], last: &str) {
    out.push('\n');
    put(out, &columns.iter().map(|column| column.to_string()).collect::<Vec<_>>(), last);
}

fn put(out: &mut String, columns: &[String], last: &str) {
    // A blank precedes each column, however long it is.
    let columns: String = columns.iter().map(|column| format!(" {column:>9}")).collect();
    line(out, format_args!("{}", format!("{columns}  {last}").trim_end()));
}

fn more(out: &mut String, lines: usize, top: usize) {
    if lines > top {
        line(out, format_args!("{:>10}  {} more", "...", lines - top));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments) {
    // A string accepts everything.
    let _ = writeln!(out, "{text}");
}
