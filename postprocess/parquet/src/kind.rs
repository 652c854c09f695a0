// SPDX-License-Identifier: BSD-3-Clause
//! Word for each kind of row, and the table of the row.

use postprocess::event::number::Level;
use postprocess::event::point::Point;
use postprocess::event::work::Work;
use postprocess::span::what::{Activity, Arc, What};

use crate::schema::Table;

/// Returns the table of a span, and its word in the column `kind`.
pub const fn of(what: What) -> (Table, &'static str) {
    match what {
        What::Run(activity) => (Table::Spans, activity_kind(activity)),
        What::Wait(_) => (Table::Waits, "wait"),
        What::Arc(Arc::Wakeup { .. }) => (Table::Arcs, "wakeup"),
        What::Arc(Arc::Ipi { .. }) => (Table::Arcs, "ipi"),
        What::Arc(Arc::Callout) => (Table::Points, "callout"),
        What::Lock(_) => (Table::Points, "lock"),
        What::Point(point) => (Table::Points, point_kind(point)),
    }
}

const fn activity_kind(activity: Activity) -> &'static str {
    match activity {
        Activity::User(_) => "user",
        Activity::Thread(_) => "kernel_thread",
        Activity::Call(Work::Guest) => "guest",
        Activity::Call(work) => match work.level() {
            Level::User => "user",
            Level::Syscall => "syscall",
            Level::Trap => "fault",
            Level::Irq => "irq",
            Level::Softirq => "softirq",
            Level::Sched => "sched",
        },
        Activity::Idle => "idle",
        Activity::IdleExit => "idle_exit",
        Activity::Lost => "lost",
        Activity::Offline => "offline",
        Activity::Stalled => "stalled",
    }
}

const fn point_kind(point: Point) -> &'static str {
    match point {
        Point::RpcReceived | Point::RpcSent => "rpc",
        _ if point.is_rpc() => "rpc",
        Point::Runnable => "runnable",
        Point::Ipi => "send_ipi",
        Point::Mwait => "low_power",
        Point::Frequency => "frequency",
        Point::Steal => "stolen",
        _ if point.is_mark() => "mark",
        Point::ProgramMark | Point::ProgramValue | Point::TracepointMark => "mark",
        Point::ProgramBegin | Point::ProgramAsyncBegin => "part",
        _ if point.is_label() => "label",
        _ if point.is_packet() => "packet",
        Point::Exit => "exit",
        _ if point.is_sample() => "sample",
        _ => "point",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postprocess::event::number::{
        MARK_A, MARK_D, PROGRAM_ASYNC_BEGIN, PROGRAM_BEGIN, PROGRAM_MARK, PROGRAM_VALUE, STEAL, TRACEPOINT_MARK,
    };

    #[test]
    fn what_programs_and_tracepoints_say_are_marks_as_on_the_page() {
        let of = |number: u32| of(What::Point(Point::of(number as i32))).1;
        for mark in [MARK_A, MARK_D, PROGRAM_MARK, PROGRAM_VALUE, TRACEPOINT_MARK] {
            assert_eq!(of(mark), "mark", "{mark:#x}");
        }
        assert_eq!([PROGRAM_BEGIN, PROGRAM_ASYNC_BEGIN].map(of), ["part"; 2]);
        assert_eq!(of(STEAL), "stolen");
    }
}
