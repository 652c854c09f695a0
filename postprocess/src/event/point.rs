// SPDX-License-Identifier: BSD-3-Clause
//! What happens at a point in time, or is drawn beside what CPUs do.

use super::number;

/// Makes [`Point`] and its numbers.
macro_rules! points {
    ($($(#[$doc:meta])* $point:ident $number:ident;)*) => {
        /// What happens at a point in time. Of some, spans have the time around them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Point {
            $($(#[$doc])* $point,)*
            /// Of a number that means nothing here, or does not any more.
            Other(i32),
        }

        impl Point {
            /// What has this number.
            pub const fn of(number: i32) -> Point {
                match number as u32 {
                    $(number::$number => Point::$point,)*
                    _ => Point::Other(number),
                }
            }

            /// Its number.
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
    /// With the response.
    RpcResponse RPC_RESPONSE;
    /// It continues with an RPC.
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
    /// The frequency since the one before.
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
    /// A second one.
    RowLabelLast ROW_LABEL_LAST;
    /// A lock was not free.
    LockTry LOCK_TRY;
    /// It was got.
    LockAcquired LOCK_ACQUIRED;
    /// It is given up.
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
    /// The program sends one.
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
    /// A wait for such a store ends.
    MonitorExit MONITOR_EXIT;
    /// The thread ends.
    Exit EXIT;
    /// A CPU's share of a control group may not run.
    Throttle THROTTLE;
    /// It may run again.
    Unthrottle UNTHROTTLE;
    /// The thread says why it is about to wait.
    Wait WAIT;
    /// The CPU goes offline.
    Offline OFFLINE;
    /// The CPU comes online.
    Online ONLINE;
    /// The thread of a virtual CPU enters its guest; in spans that is work.
    GuestEnter GUEST_ENTER;
    /// And leaves it.
    GuestExit GUEST_EXIT;
    /// A virtual CPU that was halted is not any more.
    GuestWake GUEST_WAKE;
    /// The host does not run this CPU from here on; in spans it stood still.
    Stolen STOLEN;
    /// And runs it again.
    StolenReturn STOLEN_RETURN;
    /// The host ran something else while the CPU had something to do; in spans, when, as far as that is known.
    Steal STEAL;
    /// Work on the way out to the program begins; in spans that is work.
    ExitWork EXIT_WORK;
    /// And ends.
    ExitWorkReturn EXIT_WORK_RETURN;
    /// A program that records into memory of its own is at a moment that has a name.
    ProgramMark PROGRAM_MARK;
    /// A part of it begins; in spans, the part.
    ProgramBegin PROGRAM_BEGIN;
    /// The innermost part of that name ends.
    ProgramEnd PROGRAM_END;
    /// It has a value.
    ProgramValue PROGRAM_VALUE;
    /// A part of it that any thread may end begins; in spans, the part.
    ProgramAsyncBegin PROGRAM_ASYNC_BEGIN;
    /// And ends.
    ProgramAsyncEnd PROGRAM_ASYNC_END;
    /// A tracepoint that was chosen.
    TracepointMark TRACEPOINT_MARK;
    /// A tick interrupted a program.
    PcUser PC_USER;
    /// A tick interrupted the kernel.
    PcKernel PC_KERNEL;
}

impl Point {
    /// Whether it is a mark of a program.
    pub const fn is_mark(self) -> bool {
        matches!(self, Point::MarkA | Point::MarkB | Point::MarkC | Point::MarkD)
    }

    /// Whether it is a mark with a text.
    pub const fn is_text_mark(self) -> bool {
        matches!(self, Point::MarkA | Point::MarkB | Point::MarkC)
    }

    /// Whether it is the label of a row.
    pub const fn is_label(self) -> bool {
        matches!(self, Point::RowLabel | Point::RowLabelLast)
    }

    /// Whether it is a sample of a program counter.
    pub const fn is_sample(self) -> bool {
        matches!(self, Point::PcUser | Point::PcKernel)
    }

    /// Whether a thread turns to an RPC, or to none.
    pub const fn is_rpc(self) -> bool {
        matches!(self, Point::RpcRequest | Point::RpcResponse | Point::RpcMiddle)
    }

    /// Whether it is a packet, or a message of a program.
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
