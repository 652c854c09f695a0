// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The meaning of an entry of a block: the event, and its argument words by their types.

use crate::abi::event::{
    shape, Ipi, Shape, TaskState, Throttle, EXIT, FLOW_SENT, IRQ, IRQ_RETURN, OPEN_RETURN, PC_USER, RUNNABLE, SCHED,
    SCHED_RETURN, SMALL_RETURN, SMALL_RETURN_LAST, SOFTIRQ, SOFTIRQ_LAST, SOFTIRQ_RETURN, SOFTIRQ_RETURN_LAST, SWITCH,
    SYSCALL, SYSCALL32, SYSCALL_RETURN, THROTTLE, TRAP, TRAP_RETURN,
};
use crate::abi::packet::FlowPacket;
use crate::abi::word;

/// The meaning of an entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing; it fills the end of a block.
    Nop,
    /// The whole counter.
    FullTime(u64),
    /// The identity of a task, and what it is in.
    Task {
        /// Its id.
        pid: u32,
        /// The id of its process.
        tgid: u32,
        /// The system call it is in, and its control group.
        state: TaskState,
        /// Its name, NUL-padded.
        comm: &'a [u8],
    },
    /// A name.
    Name {
        /// The kind of name, by its number.
        kind: u32,
        /// The number within that kind.
        number: u32,
        /// The text, NUL-padded.
        text: &'a [u8],
    },
    /// The CPU runs this task from here on.
    Switch(u32),
    /// This task can run.
    Runnable(u32),
    /// The running task ends, with this exit code.
    Exit(u32),
    /// An interrupt is sent.
    Ipi(Ipi),
    /// A CPU's share of a control group may not run, or may run again: `ends`.
    Quota {
        /// The group and the CPU.
        throttle: Throttle,
        /// True if it may run again.
        ends: bool,
    },
    /// A task is in a control group.
    Member {
        /// Its id.
        pid: u32,
        /// The id of the group.
        group: u32,
    },
    /// A packet of a flow is sent or received.
    Packet {
        /// True if it is sent.
        sent: bool,
        /// The packet.
        packet: FlowPacket,
    },
    /// A record of a chosen tracepoint.
    Tracepoint {
        /// Its place among those chosen.
        number: u32,
        /// The words of its record after the head of all records, and zeros after them.
        record: &'a [u8],
    },
    /// Something else at a point in time.
    Point {
        /// The event's number.
        number: u16,
        /// Its argument.
        argument: u32,
    },
    /// A tick interrupted a program, or the kernel.
    Sample {
        /// True if it was a program.
        user: bool,
        /// The interrupted address.
        pc: u64,
    },
    /// A system call, which may carry its return.
    Call {
        /// Its number, plus [`TaskState::COMPAT`] for a 32-bit one.
        nr: u16,
        /// Argument, and return if it is folded in.
        call: word::Call,
    },
    /// The return from a system call.
    Return {
        /// Its number; `None` if it is the call that the task is in.
        nr: Option<u16>,
        /// The low 32 bits of its value.
        value: i32,
    },
    /// Work of the kernel begins that needs no argument.
    Begin(Work),
    /// And ends.
    End(Work),
}

/// Work that interrupts a task, or switches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A trap of this vector.
    Trap(u8),
    /// An interrupt of this vector.
    Irq(u8),
    /// A softirq of this number.
    Softirq(u8),
    /// The scheduler.
    Sched,
}

impl<'a> Event<'a> {
    /// Reads an entry with this number and these argument words, little-endian; `None` for a number that no recorder
    /// writes, and if words are missing.
    #[inline(always)]
    pub fn read(number: u16, words: &'a [u8]) -> Option<Event<'a>> {
        let shape = shape(number)?;
        let (words, _) = words.split_at_checked(4 * shape.words())?;
        Some(match shape {
            Shape::Nothing => Event::wordless(number)?,
            Shape::Counter => Event::FullTime(long(words)),
            Shape::Task => {
                let (numbers, comm) = words.split_at(12);
                let state = TaskState(word(&numbers[8..]));
                Event::Task { pid: word(numbers), tgid: word(&numbers[4..]), state, comm }
            }
            Shape::Name => {
                let (numbers, text) = words.split_at(8);
                Event::Name { kind: word(numbers), number: word(&numbers[4..]), text }
            }
            Shape::Thread if number == SWITCH => Event::Switch(word(words)),
            Shape::Thread if number == RUNNABLE => Event::Runnable(word(words)),
            Shape::Number if number == EXIT => Event::Exit(word(words)),
            Shape::Number | Shape::Thread => Event::Point { number, argument: word(words) },
            Shape::Ipi => Event::Ipi(Ipi(word(words))),
            Shape::Quota => Event::Quota { throttle: Throttle(word(words)), ends: number != THROTTLE },
            Shape::Packet => {
                let packet = FlowPacket::read([0, 4, 8, 12].map(|at| word(&words[at..])));
                Event::Packet { sent: number == FLOW_SENT, packet }
            }
            Shape::Record1 | Shape::Record3 | Shape::Record7 | Shape::Record15 | Shape::Record31 => {
                Event::Tracepoint { number: u32::from(number & 15), record: words }
            }
            Shape::Member => Event::Member { pid: word(words), group: word(&words[4..]) },
            Shape::Address => Event::Sample { user: number == PC_USER, pc: long(words) },
            Shape::Call => {
                let nr = if number < SYSCALL32 { number - SYSCALL } else { number - SYSCALL32 + TaskState::COMPAT };
                Event::Call { nr, call: word::Call::decode(word(words)) }
            }
            Shape::Value => {
                let nr = if number == OPEN_RETURN { None } else { Some(number - SYSCALL_RETURN) };
                Event::Return { nr, value: word(words) as i32 }
            }
        })
    }

    /// An entry without words.
    #[inline(always)]
    fn wordless(number: u16) -> Option<Event<'a>> {
        Some(match number {
            SOFTIRQ..=SOFTIRQ_LAST => Event::Begin(Work::Softirq((number - SOFTIRQ) as u8)),
            SOFTIRQ_RETURN..=SOFTIRQ_RETURN_LAST => Event::End(Work::Softirq((number - SOFTIRQ_RETURN) as u8)),
            SMALL_RETURN..=SMALL_RETURN_LAST => {
                Event::Return { nr: None, value: i32::from(number - SMALL_RETURN) + i32::from(i8::MIN) }
            }
            SCHED => Event::Begin(Work::Sched),
            SCHED_RETURN => Event::End(Work::Sched),
            _ => match number & VECTORS {
                TRAP => Event::Begin(Work::Trap(number as u8)),
                IRQ => Event::Begin(Work::Irq(number as u8)),
                TRAP_RETURN => Event::End(Work::Trap(number as u8)),
                IRQ_RETURN => Event::End(Work::Irq(number as u8)),
                _ => Event::Nop,
            },
        })
    }
}

/// The bits of the number of a trap or interrupt that are not its vector.
const VECTORS: u16 = !0xff;

#[inline(always)]
fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[inline(always)]
fn long(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
