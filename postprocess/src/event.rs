// SPDX-License-Identifier: BSD-3-Clause
//! Events: what happened, when, on which CPU, in units of 10 ns; and the text or frames that carry them between stages.
//!
//! What an event says is a [`what::What`]: of [`work`] that begins or ends, of a [`mod@point`] in time, or a [`fact`]. Only
//! text and frames have it as a number, the original's (see [`number`]), whatever the raw format it comes from. Events
//! are ordered by time over all CPUs; what is said about the whole trace is in [`Meta`].

pub mod number;
pub mod work;
pub mod point;
pub mod flow;
pub mod stolen;
pub mod fact;
pub mod what;
pub mod names;
pub mod date;
pub mod digits;
pub mod write;
pub mod read;
pub mod batch;

use crate::id::{CpuId, Pid};
use crate::time::Time;
use kutrace_format::capability::Unseen;
use names::NameId;
use serde::{Deserialize, Serialize};
use what::What;

/// CPU numbers are below this, whatever a damaged file says.
pub const CPUS_MAX: u32 = 8192;

/// One transition, point event or fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// When, after the minute in [`Meta::base`]; negative for a fact known from the start.
    pub ts: Time,
    /// How long: of a call that carries its return, at least 1; of a point event 1; else 0.
    pub dur: Time,
    /// What it says.
    pub what: What,
    /// CPU.
    pub cpu: CpuId,
    /// Thread running there.
    pub pid: Pid,
    /// RPC identity, 0 for none.
    pub rpc: u32,
    /// First argument; of a fact, the number of what it is about.
    pub arg: u32,
    /// Return value: its low 32 bits, of the original's formats the low 16, without a sign.
    pub ret: i32,
    /// IPC or LLC codes: low four bits of the time before, high four of a folded call.
    pub ipc: u8,
    /// Its name, among the [`names::Names`] that travel with the events.
    pub name: NameId,
}

impl Event {
    /// Its number, as files have it.
    #[inline]
    pub fn event(&self) -> u32 {
        self.what.number()
    }

    /// Of a [`point::Point::ProgramValue`], the value: its low half is the argument, its high half is returned.
    #[inline]
    pub fn value(&self) -> i64 {
        i64::from(self.ret) << 32 | i64::from(self.arg)
    }
}

/// Events, names and what is known about the trace.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// About the whole trace.
    pub meta: Meta,
    /// What [`Event::name`] counts.
    pub names: names::Names,
    /// Ordered by time; events of the same time are in the order they were read.
    pub events: Vec<Event>,
}

/// What is known about the whole trace, gathered from all stages before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The raw format the events come from: 5, or 3 for the original's text.
    pub format: u32,
    /// The minute that times count from, `YYYY-MM-DD_hh:mm:00`, UTC; empty if not known.
    pub base: String,
    /// The original's flag byte: 0x80 IPC, 0x40 wrapped, 0x20 LLC, low bits the version.
    pub flags: u32,
    /// Events the recorder counted as lost.
    pub lost: u64,
    /// What was damaged, cut or repaired, a sentence each.
    pub quality: Vec<String>,
    /// From when to when each CPU was traced, each once; a CPU that is not listed, from its first event to the last of
    /// all.
    pub intervals: Vec<Interval>,
    /// What the source says that it cannot tell, the bits of an [`Unseen`]; see [`Meta::unseen`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
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
}

/// One of several machines. Its CPUs are those from its first to the next one's first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// Its first CPU.
    pub first_cpu: u32,
    /// How its clock runs, for people.
    pub clock: String,
    /// By how much its times may be wrong against the first machine's, if anything bounds that.
    pub within: Option<Time>,
    /// What its source cannot tell, the bits of an [`Unseen`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Whose guest it is, if that one is among the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
}

/// Whose guest a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// The place of its host among the machines.
    pub host: u32,
    /// By CPU of the guest, from its first: the host's thread that runs it, 0 if that is not known.
    pub threads: Vec<u32>,
}

impl Meta {
    /// What the source of the events cannot tell: what its format never does, and what it says itself.
    pub fn unseen(&self) -> Unseen {
        Unseen::of_format(self.format).and(Unseen(self.unseen))
    }

    /// Whether nothing was lost or damaged.
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && self.quality.is_empty()
    }
}

fn is_zero(bits: &u64) -> bool {
    *bits == 0
}

/// The time for which a CPU was traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// The CPU.
    pub cpu: CpuId,
    /// First moment.
    pub from: Time,
    /// Last moment.
    pub to: Time,
}

/// A block of the raw file that was used; a comment line in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLine {
    /// Its start.
    pub ts: Time,
    /// Its CPU.
    pub cpu: CpuId,
    /// Its place in the file, from 0.
    pub index: usize,
}
