// SPDX-License-Identifier: BSD-3-Clause
//! What a row is called, and the table it is in.

use postprocess::event::number::{self, Level};
use postprocess::span::what::{Activity, Arc, What};

use crate::schema::Table;

/// The table of what a span is, and the word in the column `kind`.
pub const fn of(what: What) -> (Table, &'static str) {
    match what {
        What::Run(activity) => (Table::Spans, activity_kind(activity)),
        What::Wait(_) => (Table::Waits, "wait"),
        What::Arc(Arc::Wakeup) => (Table::Arcs, "wakeup"),
        What::Arc(Arc::Ipi) => (Table::Arcs, "ipi"),
        What::Arc(Arc::Callout) => (Table::Points, "callout"),
        What::Lock => (Table::Points, "lock"),
        What::Point(event) => (Table::Points, point_kind(event as u32)),
    }
}

const fn activity_kind(activity: Activity) -> &'static str {
    match activity {
        Activity::User | Activity::Call(Level::User) => "user",
        Activity::Thread => "kernel_thread",
        Activity::Call(Level::Syscall) => "syscall",
        Activity::Call(Level::Trap) => "fault",
        Activity::Call(Level::Irq) => "irq",
        Activity::Call(Level::Softirq) => "softirq",
        Activity::Call(Level::Sched) => "sched",
        Activity::Kernel => "kernel",
        Activity::Idle => "idle",
        Activity::IdleExit => "idle_exit",
        Activity::Lost => "lost",
        Activity::Offline => "offline",
        Activity::Stalled => "stalled",
    }
}

const fn point_kind(event: u32) -> &'static str {
    match event {
        number::RPC_REQUEST..=number::RPC_SENT => "rpc",
        number::RUNNABLE => "runnable",
        number::IPI => "send_ipi",
        number::MWAIT => "low_power",
        number::FREQUENCY => "frequency",
        number::MARK_A..=number::MARK_D => "mark",
        number::ROW_LABEL..=number::ROW_LABEL_LAST => "label",
        number::RX_PACKET..=number::TX_USER => "packet",
        number::EXIT => "exit",
        number::PC_USER..=number::PC_KERNEL => "sample",
        _ => "point",
    }
}
