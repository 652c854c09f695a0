// SPDX-License-Identifier: BSD-3-Clause
//! Events at a point in time, or drawn next to CPU time.

use super::number;

/// Makes [`Point`] and its numbers.
macro_rules! points {
    ($($(#[$doc:meta])* $point:ident $number:ident;)*) => {
        /// An event at a point in time. For some, spans have the time around them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Point {
            $($(#[$doc])* $point,)*
            /// A number that has no meaning here, or no longer has one.
            Other(i32),
        }

        impl Point {
            /// The point with this number.
            pub const fn of(number: i32) -> Point {
                match number as u32 {
                    $(number::$number => Point::$point,)*
                    _ => Point::Other(number),
                }
            }

            /// Event number.
            #[inline]
            pub const fn number(self) -> i32 {
                match self {
                    $(Point::$point => number::$number as i32,)*
                    Point::Other(number) => number,
                }
            }
        }
    };
}

points! {
    /// A thread begins with the request of an RPC.
    RpcRequest RPC_REQUEST;
    /// A thread begins with the response.
    RpcResponse RPC_RESPONSE;
    /// A thread continues with an RPC.
    RpcMiddle RPC_MIDDLE;
    /// A message of an RPC arrived; in spans.
    RpcReceived RPC_RECEIVED;
    /// A message of an RPC left; in spans.
    RpcSent RPC_SENT;
    /// A thread is made runnable.
    Runnable RUNNABLE;
    /// An interrupt is sent to another CPU.
    Ipi IPI;
    /// The idle loop enters a low-power state.
    Mwait MWAIT;
    /// The frequency since the sample before.
    Frequency FREQUENCY;
    /// Mark a.
    MarkA MARK_A;
    /// Mark b.
    MarkB MARK_B;
    /// Mark c.
    MarkC MARK_C;
    /// Mark d, with a number.
    MarkD MARK_D;
    /// The label of a row; in spans.
    RowLabel ROW_LABEL;
    /// A second label of a row; in spans.
    RowLabelLast ROW_LABEL_LAST;
    /// A lock was not free.
    LockTry LOCK_TRY;
    /// The lock was acquired.
    LockAcquired LOCK_ACQUIRED;
    /// The lock is released.
    LockReleased LOCK_RELEASED;
    /// A packet is received.
    RxPacket RX_PACKET;
    /// A packet is sent.
    TxPacket TX_PACKET;
    /// A packet of a flow is received: see [`super::flow`].
    RxFlow RX_FLOW;
    /// A packet of a flow is sent.
    TxFlow TX_FLOW;
    /// The program received a message.
    RxUser RX_USER;
    /// The program sends a message.
    TxUser TX_USER;
    /// The program uses a resource.
    Resource RESOURCE;
    /// An RPC goes into a queue; in spans, from there until it comes out.
    Enqueue ENQUEUE;
    /// An RPC comes out of a queue.
    Dequeue DEQUEUE;
    /// The frequency from here on.
    FrequencySet FREQUENCY_SET;
    /// A store wakes an idle CPU that watches that word.
    MonitorStore MONITOR_STORE;
    /// A wait for a store like this ends.
    MonitorExit MONITOR_EXIT;
    /// The thread ends.
    Exit EXIT;
    /// A CPU's share of a control group may not run.
    Throttle THROTTLE;
    /// A CPU's share of a control group may run again.
    Unthrottle UNTHROTTLE;
    /// The thread reports why it is about to wait.
    Wait WAIT;
    /// The CPU goes offline.
    Offline OFFLINE;
    /// The CPU comes online.
    Online ONLINE;
    /// The thread of a virtual CPU enters its guest; in spans this is work.
    GuestEnter GUEST_ENTER;
    /// The thread leaves its guest.
    GuestExit GUEST_EXIT;
    /// A halted virtual CPU continues.
    GuestWake GUEST_WAKE;
    /// The host does not run this CPU from here on; in spans it stood still.
    Stolen STOLEN;
    /// The host runs the CPU again.
    StolenReturn STOLEN_RETURN;
    /// The host ran something else while the CPU had something to do; in spans, with its time, as far as that is known.
    Steal STEAL;
    /// Work on the way out to the program begins; in spans this is work.
    ExitWork EXIT_WORK;
    /// Work on the way out ends.
    ExitWorkReturn EXIT_WORK_RETURN;
    /// A program that records into memory of its own is at a named moment.
    ProgramMark PROGRAM_MARK;
    /// A part of the program begins; in spans, the part.
    ProgramBegin PROGRAM_BEGIN;
    /// The innermost part of that name ends.
    ProgramEnd PROGRAM_END;
    /// The program reports a value.
    ProgramValue PROGRAM_VALUE;
    /// A part of the program that any thread may end begins; in spans, the part.
    ProgramAsyncBegin PROGRAM_ASYNC_BEGIN;
    /// That part ends.
    ProgramAsyncEnd PROGRAM_ASYNC_END;
    /// A chosen tracepoint.
    TracepointMark TRACEPOINT_MARK;
    /// A tick interrupted a program.
    PcUser PC_USER;
    /// A tick interrupted the kernel.
    PcKernel PC_KERNEL;
}

impl Point {
    /// True if it is a mark of a program.
    pub const fn is_mark(self) -> bool {
        matches!(self, Point::MarkA | Point::MarkB | Point::MarkC | Point::MarkD)
    }

    /// True if it is a mark with a text.
    pub const fn is_text_mark(self) -> bool {
        matches!(self, Point::MarkA | Point::MarkB | Point::MarkC)
    }

    /// True if it is the label of a row.
    pub const fn is_label(self) -> bool {
        matches!(self, Point::RowLabel | Point::RowLabelLast)
    }

    /// True if it is a sample of a program counter.
    pub const fn is_sample(self) -> bool {
        matches!(self, Point::PcUser | Point::PcKernel)
    }

    /// True if a thread turns to an RPC, or to none.
    pub const fn is_rpc(self) -> bool {
        matches!(self, Point::RpcRequest | Point::RpcResponse | Point::RpcMiddle)
    }

    /// True if it is a packet, or a message of a program.
    pub const fn is_packet(self) -> bool {
        matches!(
            self,
            Point::RxPacket | Point::TxPacket | Point::RxFlow | Point::TxFlow | Point::RxUser | Point::TxUser
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::number::{class, Class};
    use kutrace_format::abi::event::Origin;
    use kutrace_format::event::rows;

    #[test]
    fn every_point_of_the_table_is_known_by_name() {
        let points = rows().filter(|row| row.first == row.last && row.origin != Origin::Original);
        let points = points.filter(|row| class(row.first as u32) == Class::Point);
        let unknown: Vec<_> = points.filter(|row| matches!(Point::of(row.first), Point::Other(_))).collect();
        assert!(unknown.is_empty(), "add to points!: {unknown:?}");
    }
}
