// SPDX-License-Identifier: BSD-3-Clause
//! The messages of Perfetto's schema that are read, with the numbers that `perfetto_trace.proto` gives their fields.
//! Other messages are skipped.

use prost::{Message, Oneof};

use crate::perfetto::{ClockSnapshot, CpuValue, SystemInfo};

/// One packet of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
    /// Packets, compressed with zlib.
    #[prost(bytes = "vec", optional, tag = "50")]
    pub compressed_packets: Option<Vec<u8>>,
}

/// Events of one CPU, each still as bytes.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub event: Vec<Vec<u8>>,
    /// True if events are missing before these.
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSched>,
    /// 0 for the boot clock.
    #[prost(int32, optional, tag = "5")]
    pub ftrace_clock: Option<i32>,
}

/// Switches and wakeups of one CPU, field by field. All times but the first are differences to the one before.
#[derive(Clone, PartialEq, Message)]
pub struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(string, repeated, tag = "5")]
    pub intern_table: Vec<String>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub waking_comm_index: Vec<u32>,
}

/// The time of an event.
#[derive(Clone, PartialEq, Message)]
pub struct Stamp {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
}

/// An event of the kernel.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    /// The thread that runs.
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(
        oneof = "Happened",
        tags = "3, 4, 11, 17, 20, 24, 25, 36, 37, 114, 235, 236, 237, 327, 329, 330, 559, 560"
    )]
    pub happened: Option<Happened>,
}

/// Kind of the event.
#[derive(Clone, PartialEq, Oneof)]
pub enum Happened {
    #[prost(message, tag = "3")]
    Print(Print),
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "11")]
    CpuFrequency(CpuValue),
    #[prost(message, tag = "17")]
    SchedWakeup(Woken),
    #[prost(message, tag = "20")]
    SchedWaking(Woken),
    #[prost(message, tag = "24")]
    SoftirqEntry(Number),
    #[prost(message, tag = "25")]
    SoftirqExit(Number),
    #[prost(message, tag = "36")]
    IrqHandlerEntry(IrqHandler),
    #[prost(message, tag = "37")]
    IrqHandlerExit(IrqHandler),
    #[prost(message, tag = "114")]
    SchedWakeupNew(Woken),
    #[prost(message, tag = "235")]
    TaskNewtask(TaskNewtask),
    #[prost(message, tag = "236")]
    TaskRename(TaskRename),
    #[prost(message, tag = "237")]
    SchedProcessExec(Exec),
    #[prost(message, tag = "327")]
    Generic(Generic),
    #[prost(message, tag = "329")]
    SysEnter(SysEnter),
    #[prost(message, tag = "330")]
    SysExit(SysExit),
    #[prost(message, tag = "559")]
    LocalTimerEntry(Number),
    #[prost(message, tag = "560")]
    LocalTimerExit(Number),
}

/// A text that a program wrote.
#[derive(Clone, PartialEq, Message)]
pub struct Print {
    #[prost(string, optional, tag = "2")]
    pub buf: Option<String>,
}

/// A CPU switches threads.
#[derive(Clone, PartialEq, Message)]
pub struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    /// The kernel's bits.
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
}

/// A thread is woken.
#[derive(Clone, PartialEq, Message)]
pub struct Woken {
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
}

/// The number of a softirq or of a vector.
#[derive(Clone, PartialEq, Message)]
pub struct Number {
    #[prost(uint32, optional, tag = "1")]
    pub number: Option<u32>,
}

/// The interrupt of a device, with its name where it begins.
#[derive(Clone, PartialEq, Message)]
pub struct IrqHandler {
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A thread is made.
#[derive(Clone, PartialEq, Message)]
pub struct TaskNewtask {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub comm: Option<String>,
}

/// A thread gets another name.
#[derive(Clone, PartialEq, Message)]
pub struct TaskRename {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, optional, tag = "3")]
    pub newcomm: Option<String>,
}

/// A program is loaded.
#[derive(Clone, PartialEq, Message)]
pub struct Exec {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub old_pid: Option<i32>,
}

/// An event for which the schema has no message.
#[derive(Clone, PartialEq, Message)]
pub struct Generic {
    #[prost(string, optional, tag = "1")]
    pub event_name: Option<String>,
    #[prost(message, repeated, tag = "2")]
    pub field: Vec<Field>,
}

/// A field of a generic event.
#[derive(Clone, PartialEq, Message)]
pub struct Field {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub str_value: Option<String>,
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    #[prost(uint64, optional, tag = "5")]
    pub uint_value: Option<u64>,
}

/// A system call.
#[derive(Clone, PartialEq, Message)]
pub struct SysEnter {
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub args: Vec<u64>,
}

/// The return of a system call.
#[derive(Clone, PartialEq, Message)]
pub struct SysExit {
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub ret: Option<i64>,
}

/// The threads that exist.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

/// A thread.
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}
