// SPDX-License-Identifier: BSD-3-Clause
//! Spans: what each CPU did, from when to when.
//!
//! [`mod@build`] is the state machine: each [`cpu`] has a [`stack`] of what its [`thread`] is inside of; [`nest`]
//! handles calls and returns, [`begin`] what began before the recording, [`mode`] whether it is the program or the
//! kernel, [`switch`] threads, [`point`] point events, [`wake`] arcs and waits, with the reasons of [`wait`], and of
//! who could run [`runnable`], CPUs that stood still [`stall`], that their host took [`steal`], or ran a [`guest`], by the numbers of the [`abi`], and the latencies
//! of [`idle`], [`rpc`] queues and messages; of [`cgroup`]s that nobody told, what follows. [`mod@check`] says what must hold of the result.
//!
//! From spans to spans: [`trim`] keeps a part, [`coarsen`] merges what is short, by averages of the codes of [`ipc`].
//! [`limit`] coarsens what is too much for memory or page, [`row`] makes a row of numbers of each, and
//! [`what`] says what each is, [`whole`] of which call it is a piece. [`sample`] calls program counters by their functions.
//! [`mod@order`] is the order of all, [`runs`] that of more than memory holds; [`dense`] holds them in half of the memory.

pub mod build;
pub mod cpu;
pub mod stack;
pub mod thread;
pub mod begin;
pub mod mode;
pub mod nest;
pub mod switch;
pub mod overlay;
pub mod point;
pub mod wake;
pub mod rpc;
pub mod flow;
pub mod wait;
pub mod runnable;
pub mod stall;
pub mod steal;
pub mod guest;
pub mod call;
pub mod cgroup;
pub mod abi;
pub mod idle;
pub mod check;
pub mod trim;
pub mod coarsen;
pub mod ipc;
pub mod sample;
pub mod order;
pub mod dense;
pub mod limit;
pub mod row;
pub mod what;
pub mod whole;
pub mod runs;

use std::collections::BTreeMap;

use kutrace_format::capability::Capability;
use serde::{Deserialize, Serialize};

use crate::event::names::NameId;
use crate::event::point::Point;
use crate::event::what::What as Said;
use crate::event::Machine;
use crate::id::{CpuId, Pid};
use crate::time::Time;
use what::{Share, What};

pub use build::build;
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
/// What it is says [`What`]; only text, JSON and frames have it as a number, that of the original's JSON version 3
/// ([`row`], docs/format.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Start, after [`Meta::tracebase`].
    pub start: Time,
    /// Duration.
    pub dur: Time,
    /// CPU, unless it happens on none, as waits and locks do. An arc starts here.
    pub cpu: Option<CpuId>,
    /// Thread, if it is one's.
    pub pid: Option<Pid>,
    /// RPC identity, 0 for none.
    pub rpc: i32,
    /// What it is.
    pub what: What,
    /// First argument. [`NONE`] if it is not known, and of what began before it was recorded.
    pub arg: i64,
    /// Return value, [`Meta::value_bits`] of it. [`NONE`] of a call that has not returned at the end of the span, or of
    /// which it is not known what it returned.
    pub ret: i64,
    /// IPC or LLC code, 0 to 15.
    pub ipc: u8,
    /// Its name, among [`Spans::names`].
    pub name: NameId,
}

/// Tools hold millions of them.
const _: () = assert!(size_of::<Span>() <= 64);

/// No value: of an argument that is not known, of a call that has not returned.
pub const NONE: i64 = i64::MIN;

/// A value as frames and pages store it: 0 for [`NONE`], and small if it is small.
#[inline]
pub const fn packed(value: i64) -> i64 {
    match value {
        NONE => 0,
        0.. => value.wrapping_add(1),
        _ => value,
    }
}

/// The value that is [`packed`] so.
#[inline]
pub const fn unpacked(stored: i64) -> i64 {
    match stored {
        0 => NONE,
        1.. => stored - 1,
        NONE => i64::MAX,
        _ => stored,
    }
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
    /// Bits of return values: 32, with their sign; else the original's 16, without.
    #[serde(default)]
    pub value_bits: u8,
    /// Names of the errors that calls return on the machine traced, by their positive numbers; empty if not known.
    #[serde(default)]
    pub errors: BTreeMap<u32, String>,
    /// The process of each thread that is not the first of its own, by pid: that first thread. Of a pid that two threads
    /// had one after the other, what was said last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<u32, u32>,
    /// The path of the control group of each process, by its first thread, and of each thread that is in another; as
    /// far as it is known, and what was said last. See [`crate::cgroup`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<u32, String>,
    /// Tells traces apart in saved views.
    pub randomid: u32,
    /// Events the recorder counted as lost.
    pub lost: u64,
    /// What was damaged, cut or repaired, a sentence each; shown as a banner.
    pub quality: Vec<String>,
    /// What the trace cannot show, since its source cannot tell: the texts of
    /// [`Capability::unseen`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// What the kernel counted meanwhile, and what the trace has of it, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<String>,
    /// The machines, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
    /// The kernel's id of this run of it, as /proc/sys/kernel/random/boot_id has it; of one machine, empty if not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// What CLOCK_MONOTONIC showed at the base, ns; of one machine, if the source says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic: Option<i64>,
    /// The program that recorded it, empty for KUtrace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recorder: String,
    /// How often each thing of the kernel began in the whole trace, each wait was waited, and a thread was woken, by
    /// name: of all events, whatever spans there still are. Empty if not known.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Views that the original's viewer saved.
    pub saved_views: Vec<SavedView>,
    /// Notes and views that were added to a page of ours, as its element `ku-added` has them; null for none.
    #[serde(default)]
    pub added: serde_json::Value,
}

impl Meta {
    /// Whether the source could tell this.
    pub fn sees(&self, capability: Capability) -> bool {
        !self.unseen.iter().any(|text| text == capability.unseen())
    }

    /// The process of a thread; its own number if nothing else is known.
    pub fn process_of(&self, pid: Pid) -> Pid {
        self.processes.get(&pid.number()).map_or(pid, |process| Pid::new(*process))
    }

    /// The path of the control group that a thread is in, if it is known.
    pub fn cgroup_of(&self, pid: Pid) -> Option<&str> {
        let told = |pid: Pid| self.cgroups.get(&pid.number());
        told(pid).or_else(|| told(self.process_of(pid))).map(String::as_str)
    }
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
    /// Wakeups that had not led to a run at the end, or to one of which the start was not seen.
    pub pending: u64,
    /// Time in user code, over all CPUs.
    pub user: Time,
    /// In the kernel.
    pub system: Time,
    /// Idle, or leaving idle.
    pub idle: Time,
    /// Of which nothing is known.
    pub lost: Time,
    /// Offline.
    pub offline: Time,
    /// In which CPUs stood still.
    pub stalled: Time,
    /// How often they did.
    pub stalls: u64,
    /// What the host took from them, as far as the trace tells when; part of the others.
    pub stolen: Time,
    /// In how many pieces.
    pub steals: u64,
}

/// A call, return or switch that was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// When an event showed it, after [`Meta::tracebase`].
    pub ts: Time,
    /// CPU.
    pub cpu: CpuId,
    /// What was missing.
    pub what: Said,
    /// What it is a call of or return from, or the thread switched to; among [`Spans::names`].
    pub name: NameId,
}

impl Repair {
    /// Where it was missing, and what.
    pub fn text(&self, names: &[String]) -> String {
        let Repair { ts, cpu, what, name } = *self;
        let name = names.get(name.index()).map_or("", String::as_str);
        let slash = if matches!(what, Said::Return(_)) { "/" } else { "" };
        let sign = if ts < Time::ZERO { "-" } else { "" };
        let (seconds, rest) = (ts.0.unsigned_abs() / 100_000_000, ts.0.unsigned_abs() % 100_000_000);
        format!("CPU {cpu}, {sign}{seconds}.{rest:08} s: {slash}{name} ({:x})", what.number())
    }
}

impl Tally {
    /// Adds up the time of all execution spans.
    fn count(&mut self, spans: &[Span]) {
        for stolen in spans.iter().filter(|span| span.what == What::Point(Point::Steal)) {
            self.steals += 1;
            self.stolen = self.stolen.saturating_add(stolen.dur);
        }
        for (span, activity) in spans.iter().filter_map(|span| Some((span, span.activity()?))) {
            let sum = match activity.share() {
                Share::User => &mut self.user,
                Share::Kernel => &mut self.system,
                Share::Idle => &mut self.idle,
                Share::Lost => &mut self.lost,
                Share::Offline => &mut self.offline,
                Share::Stalled => {
                    self.stalls += 1;
                    &mut self.stalled
                }
            };
            *sum = sum.saturating_add(span.dur);
        }
    }
}
