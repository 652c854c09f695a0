// SPDX-License-Identifier: BSD-3-Clause
//! Summary: what a terminal can tell of a trace before a browser opens it.
//!
//! [`share`] says how each CPU's time divides, [`work`] what took it, [`wait`] what threads waited for and who ran while
//! they waited for a CPU, [`text`] puts it into tables. Times are units of 10 ns.

pub mod share;
pub mod work;
pub mod wait;
pub mod text;

use std::collections::HashMap;

use crate::event::number::{is_execution, IDLE_EXIT, USER_FIRST};
use crate::span::{Meta, Span, Spans};
use share::Share;
use wait::{Latency, Wait};
use work::{Program, Sum, Work};

/// What is said of a trace. Lists are ordered, what took most time first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// About the whole trace.
    pub meta: Meta,
    /// First and last moment.
    pub extent: (i64, i64),
    /// How each CPU's time divides, ordered by CPU.
    pub cpus: Vec<(i32, Share)>,
    /// Programs: all threads of one name.
    pub programs: Vec<Program>,
    /// System calls, and the scheduler.
    pub calls: Vec<Sum>,
    /// Interrupts and what they left for later.
    pub interrupts: Vec<Sum>,
    /// Faults.
    pub faults: Vec<Sum>,
    /// Waits by reason.
    pub waits: Vec<Wait>,
    /// How long threads that could run waited for a CPU.
    pub latency: Latency,
}

/// Adds up `spans`, of which the worst `worst` waits for a CPU are told in full.
pub fn summarize(spans: &Spans, worst: usize) -> Summary {
    let executed = || spans.spans.iter().filter(|s| is_execution(s.event));
    let threads = Threads::of(spans);
    let Work { programs, calls, interrupts, faults } = work::add_up(spans, &threads);
    Summary {
        meta: spans.meta.clone(),
        extent: (executed().map(|s| s.start).min().unwrap_or_default(), executed().map(end).max().unwrap_or_default()),
        cpus: share::shares(&spans.spans),
        programs,
        calls,
        interrupts,
        faults,
        waits: wait::waits(spans, &threads),
        latency: wait::latency(spans, &threads, worst),
    }
}

/// The names of threads, with their numbers: `bash.7`. Of several that a thread had, the last.
#[derive(Debug, Default)]
pub struct Threads<'a> {
    names: HashMap<i32, &'a str>,
}

impl<'a> Threads<'a> {
    fn of(spans: &'a Spans) -> Threads<'a> {
        let users = spans.spans.iter().filter(|s| is_user(s.event));
        Threads { names: users.map(|s| (s.pid, name(spans, s))).collect() }
    }

    /// Name and number of a thread.
    pub fn name(&self, pid: i32) -> String {
        self.names.get(&pid).map_or_else(|| format!("pid.{pid}"), |name| name.to_string())
    }

    /// The name without the number; `?` for a thread that has none.
    pub fn program(&self, pid: i32) -> &'a str {
        let program = self.names.get(&pid).and_then(|name| name.rsplit_once('.')).map(|(program, _)| program);
        program.filter(|program| !program.is_empty()).unwrap_or("?")
    }
}

/// Whether an event is user code of a thread.
fn is_user(event: i32) -> bool {
    (USER_FIRST..IDLE_EXIT).contains(&(event as u32))
}

fn name<'a>(spans: &'a Spans, span: &Span) -> &'a str {
    spans.names.get(span.name as usize).map_or("", String::as_str)
}

fn end(span: &Span) -> i64 {
    span.start.saturating_add(span.dur)
}
