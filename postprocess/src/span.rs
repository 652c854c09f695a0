// SPDX-License-Identifier: BSD-3-Clause
//! Spans: the activity of each CPU, with start and end.
//!
//! [`mod@build`] is the state machine: each [`cpu`] has a [`stack`] of what its [`thread`] is inside of; [`nest`]
//! handles calls and returns, [`begin`] those that began before the recording, [`mode`] whether it is the program or
//! the kernel, [`switch`] threads, [`point`] point events, [`wake`] arcs and waits, with the reasons of [`wait`], and
//! [`runnable`] those of threads that could run, [`stall`] CPUs that stood still, [`steal`] those that their host took,
//! [`guest`] those that ran a guest, with the numbers of the [`abi`], and the latencies of [`idle`], [`rpc`] queues and
//! messages; [`cgroup`] infers control groups that were not reported. [`mod@check`] tests the properties of the result.
//!
//! From spans to spans: [`trim`] keeps a part, [`coarsen`] merges short spans, with averages of the codes of [`ipc`].
//! [`limit`] coarsens spans that are too many for memory or page, [`row`] makes a row of numbers of each, [`what`] has
//! their kinds, and [`whole`] finds the call that each is a piece of. [`sample`] names program counters after their
//! functions. [`mod@order`] sorts spans, [`runs`] more of them than memory holds; [`dense`] holds them in half of the
//! memory.

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

use crate::event::fact::OpenFile;
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
    /// Facts about the whole trace.
    pub meta: Meta,
    /// Every distinct name, indexed by [`Span::name`].
    pub names: Vec<String>,
    /// In the order of start, then longest duration first, then CPU.
    pub spans: Vec<Span>,
}

/// One line of the picture: a span of time, an arc between two CPUs, or a point event.
///
/// Its kind is a [`What`]; only text, JSON and frames have it as a number, that of the original's JSON version 3
/// ([`row`], docs/format.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Start, after [`Meta::tracebase`].
    pub start: Time,
    /// Duration.
    pub dur: Time,
    /// CPU; `None` for a span on no CPU, like waits and locks. An arc starts here.
    pub cpu: Option<CpuId>,
    /// Thread, if the span belongs to one.
    pub pid: Option<Pid>,
    /// RPC identity, 0 for none.
    pub rpc: i32,
    /// Kind of the span.
    pub what: What,
    /// First argument. [`NONE`] if unknown, also for a call that began before the recording.
    pub arg: i64,
    /// Return value, the low [`Meta::value_bits`] of it. [`NONE`] for a call that has not returned at the end of the
    /// span, or whose return value is unknown.
    pub ret: i64,
    /// IPC or LLC code, 0 to 15.
    pub ipc: u8,
    /// Name, among [`Spans::names`].
    pub name: NameId,
}

/// Tools hold millions of spans.
const _: () = assert!(size_of::<Span>() <= 64);

/// No value: for an unknown argument, or a call that has not returned.
pub const NONE: i64 = i64::MIN;

/// A value as stored in frames and pages: 0 for [`NONE`], and a small number for a small value.
#[inline]
pub const fn packed(value: i64) -> i64 {
    match value {
        NONE => 0,
        0.. => value.wrapping_add(1),
        _ => value,
    }
}

/// The value stored by [`packed`].
#[inline]
pub const fn unpacked(stored: i64) -> i64 {
    match stored {
        0 => NONE,
        1.. => stored - 1,
        NONE => i64::MAX,
        _ => stored,
    }
}

/// Facts that the JSON has before its events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Title of the page.
    pub title: String,
    /// The minute that times count from, `YYYY-MM-DD_hh:mm:00`, UTC.
    pub tracebase: String,
    /// Model of the traced CPUs, empty if unknown.
    pub cpu_model: String,
    /// Traced host, empty if unknown.
    pub host: String,
    /// Traced kernel, empty if unknown.
    pub kernel: String,
    /// The original's flag byte: 0x80 IPC, 0x40 wrapped, 0x20 LLC, low bits the version.
    pub flags: u32,
    /// Link rate for packet durations, Mb/s.
    pub mbit_sec: u32,
    /// Bits of return values: 32, signed; otherwise the original's 16, unsigned.
    #[serde(default)]
    pub value_bits: u8,
    /// Names of the errors that calls return on the traced machine, by their positive numbers; empty if unknown.
    #[serde(default)]
    pub errors: BTreeMap<u32, String>,
    /// The process of each thread that is not the first of its own, by pid: the process's first thread. If two threads
    /// had a pid one after the other, the last report applies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<u32, u32>,
    /// The path of the control group of each process, by its first thread, and of each thread that is in another one;
    /// as far as it is known, and as last reported. See [`crate::cgroup`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<u32, String>,
    /// The files that processes had open when the recording began and when it ended, by process. None if calls that
    /// close files are missing in the spans.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<u32, BTreeMap<OpenFile, String>>,
    /// Distinguishes traces in saved views.
    pub randomid: u32,
    /// Number of events that the recorder counted as lost.
    pub lost: u64,
    /// Damage, cuts and repairs, a sentence each; shown as a banner.
    pub quality: Vec<String>,
    /// Capabilities that the trace lacks because its source lacks them: the texts of [`Capability::unseen`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// The kernel's own counts for the same time, and the trace's, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<String>,
    /// The machines, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
    /// The kernel's id of its run, from /proc/sys/kernel/random/boot_id; only for a single machine, empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// CLOCK_MONOTONIC at the base, ns; only for a single machine, if the source reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic: Option<i64>,
    /// The program that recorded it, empty for KUtrace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recorder: String,
    /// Number of times that each activity of the kernel began in the whole trace, that each wait occurred, and that a
    /// thread was woken, by name: from all events, even if spans are missing here. Empty if unknown.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Views that the original's viewer saved.
    pub saved_views: Vec<SavedView>,
    /// Notes and views that were added to a page of ours, as in its element `ku-added`; null for none.
    #[serde(default)]
    pub added: serde_json::Value,
}

impl Meta {
    /// True if the source can show this.
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

/// Counts of the span builder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of missing calls, returns and switches that were supplied.
    pub repairs: u64,
    /// The first of these.
    pub first: Option<Repair>,
    /// Events before the end of the known time of their CPU; held until then.
    pub late: u64,
    /// Events with an unknown number, or on an impossible CPU.
    pub unknown: u64,
    /// Unknown stretches of a CPU's time.
    pub gaps: u64,
    /// Number of wakeups.
    pub wakeups: u64,
    /// Wakeups that led to a run.
    pub runs: u64,
    /// Wakeups of a thread that was woken and had not run.
    pub repeated: u64,
    /// Wakeups that had not led to a run at the end, or led to one whose start was not seen.
    pub pending: u64,
    /// Time in user code, over all CPUs.
    pub user: Time,
    /// Time in the kernel.
    pub system: Time,
    /// Time in idle, or leaving idle.
    pub idle: Time,
    /// Unknown time.
    pub lost: Time,
    /// Time offline.
    pub offline: Time,
    /// Time in which CPUs stood still.
    pub stalled: Time,
    /// Number of stalls.
    pub stalls: u64,
    /// Time that the host took from CPUs, as far as the trace shows when; part of the other times.
    pub stolen: Time,
    /// Number of pieces of that time.
    pub steals: u64,
}

/// A call, return or switch that was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Time when an event showed it, after [`Meta::tracebase`].
    pub ts: Time,
    /// CPU.
    pub cpu: CpuId,
    /// The missing event.
    pub what: Said,
    /// Name of the call, or of the thread switched to; among [`Spans::names`].
    pub name: NameId,
}

impl Repair {
    /// Place and kind of the repair.
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
