// SPDX-License-Identifier: BSD-3-Clause
//! Events: what happened, when, on which CPU, in units of 10 ns; and the text or frames that carry them between stages.
//!
//! The kind of an event is a [`what::What`]: [`work`] that begins or ends, a [`mod@point`] in time, or a [`fact`]. Only
//! text and frames have it as a number, the original's (see [`number`]), for every raw format. Events are in time order
//! over all CPUs; [`Meta`] has the facts about the whole trace.

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

/// Upper limit of CPU numbers, exclusive, also for a damaged file.
pub const CPUS_MAX: u32 = 8192;

/// One transition, point event or fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Time after the minute in [`Meta::base`]; negative for a fact known from the start.
    pub ts: Time,
    /// Duration: at least 1 for a call that carries its return, 1 for a point event, otherwise 0.
    pub dur: Time,
    /// Kind of the event.
    pub what: What,
    /// CPU.
    pub cpu: CpuId,
    /// Thread running on the CPU.
    pub pid: Pid,
    /// RPC identity, 0 for none.
    pub rpc: u32,
    /// First argument; for a fact, the number of its subject.
    pub arg: u32,
    /// Return value: its low 32 bits; in the original's formats the low 16, unsigned.
    pub ret: i32,
    /// IPC or LLC codes: the low four bits for the time before, the high four for a folded call.
    pub ipc: u8,
    /// Name, among the [`names::Names`] that travel with the events.
    pub name: NameId,
}

impl Event {
    /// Event number, as in files.
    #[inline]
    pub fn event(&self) -> u32 {
        self.what.number()
    }

    /// Value of a [`point::Point::ProgramValue`]: its low half is the argument, its high half the return value.
    #[inline]
    pub fn value(&self) -> i64 {
        i64::from(self.ret) << 32 | i64::from(self.arg)
    }
}

/// Events, names and the facts about the trace.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Facts about the whole trace.
    pub meta: Meta,
    /// The names that [`Event::name`] indexes.
    pub names: names::Names,
    /// In time order; events of the same time are in the order they were read.
    pub events: Vec<Event>,
}

/// Facts about the whole trace, gathered from all stages so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The raw format the events come from: 5, or 3 for the original's text.
    pub format: u32,
    /// The minute that times count from, `YYYY-MM-DD_hh:mm:00`, UTC; empty if unknown.
    pub base: String,
    /// The original's flag byte: 0x80 IPC, 0x40 wrapped, 0x20 LLC, low bits the version.
    pub flags: u32,
    /// Number of events that the recorder counted as lost.
    pub lost: u64,
    /// Damage, cuts and repairs, a sentence each.
    pub quality: Vec<String>,
    /// Start and end of each CPU's trace, each CPU once; a CPU that is not listed was traced from its first event to
    /// the last of all.
    pub intervals: Vec<Interval>,
    /// Capabilities that the source reports it lacks, the bits of an [`Unseen`]; see [`Meta::unseen`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
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
}

/// One of several machines. Its CPUs are those from its first to the next one's first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the machine.
    pub name: String,
    /// Its first CPU.
    pub first_cpu: u32,
    /// Description of its clock, for people.
    pub clock: String,
    /// Maximum error of its times against the first machine's, if anything bounds it.
    pub within: Option<Time>,
    /// Capabilities that its source lacks, the bits of an [`Unseen`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// Its host, if that is among the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
}

/// Host of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Index of the host among the machines.
    pub host: u32,
    /// The host's thread that runs each CPU of the guest, from its first CPU on; 0 if unknown.
    pub threads: Vec<u32>,
}

impl Meta {
    /// Capabilities that the source of the events lacks: those that its format never has, and those that it reports
    /// itself.
    pub fn unseen(&self) -> Unseen {
        Unseen::of_format(self.format).and(Unseen(self.unseen))
    }

    /// True if nothing was lost or damaged.
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
    /// Index in the file, from 0.
    pub index: usize,
}
