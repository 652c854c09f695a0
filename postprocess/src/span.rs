// SPDX-License-Identifier: BSD-3-Clause
//! Spans: what each CPU did, from when to when; and the JSON that carries them to the page.
//!
//! [`mod@build`] is the state machine: each [`cpu`] has a [`stack`] of what its [`thread`] is inside of; [`nest`] handles
//! calls and returns, [`begin`] what began before the recording, [`switch`] threads, [`point`] point events, [`wake`] arcs
//! and waits, with the reasons of [`wait`], by the numbers of the [`machine`], and the latencies of [`idle`], [`rpc`] queues and messages. [`mod@check`] says what must hold of the result.
//!
//! From spans to spans: [`trim`] keeps a part, [`coarsen`] merges what is short, [`profile`] adds up where time went; both
//! average the codes of [`ipc`]. [`held`] coarsens what is too much for memory or page. [`sample`] calls program counters
//! by their functions. [`mod@order`] is the order of all, [`runs`] that of more than memory holds.

pub mod build;
pub mod cpu;
pub mod stack;
pub mod thread;
pub mod begin;
pub mod nest;
pub mod switch;
pub mod point;
pub mod wake;
pub mod rpc;
pub mod wait;
pub mod machine;
pub mod idle;
pub mod check;
pub mod trim;
pub mod coarsen;
pub mod profile;
pub mod ipc;
pub mod sample;
pub mod order;
pub mod held;
pub mod runs;
pub mod json;
pub mod source;

use serde::{Deserialize, Serialize};

use crate::event::number::{class, is_execution, Class, IDLE_EXIT, LOST, USER, USER_FIRST};

pub use build::{build, build_from};
pub use check::check;

/// A trace as spans: what `eventtospan` makes and `spantohtml` draws.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spans {
    /// About the whole trace.
    pub meta: Meta,
    /// Every distinct name, indexed by [`Span::name`].
    pub names: Vec<String>,
    /// Ordered by start, then by longest duration first, then by CPU.
    pub spans: Vec<Span>,
}

/// One line of the picture: a span of time, an arc between two CPUs, or a point event.
///
/// Numbers are those of the original's JSON version 3; see docs/format.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Start, units of 10 ns after [`Meta::tracebase`].
    pub start: i64,
    /// Duration, units of 10 ns.
    pub dur: i64,
    /// CPU, or -1 for what happens on none (waits, locks). An arc starts here.
    pub cpu: i32,
    /// Thread, or -1 for none.
    pub pid: i32,
    /// RPC identity, 0 for none.
    pub rpc: i32,
    /// Event number; negative for arcs and annotations.
    pub event: i32,
    /// First argument; of an arc, the CPU where it ends.
    pub arg: i64,
    /// Return value, the low 16 bits; of an arc, the thread where it ends.
    pub ret: i64,
    /// IPC or LLC code, 0 to 15.
    pub ipc: u8,
    /// Index into [`Spans::names`].
    pub name: u32,
}

/// What the JSON says before its events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Title of the page.
    pub title: String,
    /// The minute that times count from, `YYYY-MM-DD_hh:mm:00`, UTC.
    pub tracebase: String,
    /// Model of the CPUs traced, empty if not known.
    pub cpu_model: String,
    /// Host traced, empty if not known.
    pub host: String,
    /// Kernel traced, empty if not known.
    pub kernel: String,
    /// The original's flag byte: 0x80 IPC, 0x40 wrapped, 0x20 LLC, low bits the version.
    pub flags: u32,
    /// Link rate for packet durations, Mb/s.
    pub mbit_sec: u32,
    /// Tells traces apart in saved views.
    pub randomid: u32,
    /// Events the recorder counted as lost.
    pub lost: u64,
    /// What was damaged, cut or repaired, a sentence each; shown as a banner.
    pub quality: Vec<String>,
    /// Views that the original's viewer saved.
    pub saved_views: Vec<SavedView>,
    /// Notes and views that were added to a page of ours, as its element `ku-added` has them; null for none.
    #[serde(default)]
    pub added: serde_json::Value,
}

/// A view that the original's viewer saved: its name, as HTML, and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedView(pub String, pub serde_json::Map<String, serde_json::Value>);

/// What the span builder counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls, returns and switches that were missing and have been supplied.
    pub repairs: u64,
    /// The first of those.
    pub first: Option<Repair>,
    /// Events before the end of what was known of their CPU; held until then.
    pub late: u64,
    /// Events of no known number, or of no possible CPU.
    pub unknown: u64,
    /// Stretches of a CPU's time of which nothing is known.
    pub gaps: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Wakeups that led to a run.
    pub runs: u64,
    /// Wakeups of a thread that was woken and had not run.
    pub repeated: u64,
    /// Wakeups that had not led to a run at the end.
    pub pending: u64,
    /// Units of 10 ns in user code, over all CPUs.
    pub user: i64,
    /// Units in the kernel.
    pub system: i64,
    /// Units idle, or leaving idle.
    pub idle: i64,
    /// Units of which nothing is known.
    pub lost: i64,
}

/// A call, return or switch that was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// When an event showed it, units of 10 ns after [`Meta::tracebase`].
    pub ts: i64,
    /// CPU.
    pub cpu: i32,
    /// Its event number.
    pub event: u32,
    /// What it is a call of or return from, or the thread switched to; among [`Spans::names`].
    pub name: u32,
}

impl Repair {
    /// Where it was missing, and what.
    pub fn text(&self, names: &[String]) -> String {
        let Repair { ts, cpu, event, name } = *self;
        let name = names.get(name as usize).map_or("", String::as_str);
        let slash = if matches!(class(event), Class::Return(_)) { "/" } else { "" };
        let sign = if ts < 0 { "-" } else { "" };
        let (seconds, rest) = (ts.unsigned_abs() / 100_000_000, ts.unsigned_abs() % 100_000_000);
        format!("CPU {cpu}, {sign}{seconds}.{rest:08} s: {slash}{name} ({event:x})")
    }
}

impl Tally {
    /// Adds up the time of all execution spans.
    fn count(&mut self, spans: &[Span]) {
        for span in spans.iter().filter(|s| is_execution(s.event)) {
            let sum = match span.event as u32 {
                LOST => &mut self.lost,
                USER | IDLE_EXIT => &mut self.idle,
                USER_FIRST.. => &mut self.user,
                _ => &mut self.system,
            };
            *sum = sum.saturating_add(span.dur);
        }
    }
}
