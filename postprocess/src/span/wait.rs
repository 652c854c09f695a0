// SPDX-License-Identifier: BSD-3-Clause
//! Why a thread waited: read from what the context that woke it was doing, and where that does not tell, from what it
//! blocked in; both by event number.

use super::machine::{Machine, Work};
use super::stack::Frame;
use crate::event::number::{self, Level};

/// What a thread waited for; the value is the letter of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// A CPU: woken, not running yet.
    Cpu = b'c',
    /// A disk.
    Disk = b'd',
    /// Another task.
    Task = b'k',
    /// A lock.
    Lock = b'l',
    /// Memory.
    Memory = b'm',
    /// The network.
    Net = b'n',
    /// A pipe, file or socket another thread uses.
    Pipe = b'p',
    /// The scheduler's own balancing.
    Sched = b's',
    /// Time to pass.
    Time = b't',
    /// Not known.
    Unknown = b'z',
}

impl Reason {
    /// The event number of the wait.
    pub fn event(self) -> i32 {
        number::WAIT_A as i32 + i32::from(self as u8 - b'a')
    }

    /// The name of the wait.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Cpu => "wait_cpu",
            Reason::Disk => "wait_disk",
            Reason::Task => "wait_task",
            Reason::Lock => "wait_lock",
            Reason::Memory => "wait_mem",
            Reason::Net => "wait_net",
            Reason::Pipe => "wait_pipe",
            Reason::Sched => "wait_sche",
            Reason::Time => "wait_time",
            Reason::Unknown => "wait_unk",
        }
    }
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A thread, in a system call or a fault.
    Thread,
    /// A thread of the kernel: no other wakes anyone outside of a call.
    Worker,
    /// An interrupt or softirq.
    Device,
}

/// Why the thread was waiting that is woken in this context, if the context tells.
pub fn of_waker(machine: &Machine, waker: Frame) -> Reason {
    match (waker.level(), waker.event) {
        (Level::Softirq, _) => match waker.arg {
            0 | 6 => Reason::Task,
            1 | 8 | 9 => Reason::Time,
            2 | 3 => Reason::Net,
            4 | 5 => Reason::Disk,
            7 => Reason::Sched,
            _ => Reason::Unknown,
        },
        (Level::Irq, irq) if machine.is_timer(irq) => Reason::Time,
        (Level::Trap, trap) if machine.is_page_fault(trap) => Reason::Memory,
        (Level::Syscall, call) => match machine.work(call) {
            Work::Lock => Reason::Lock,
            Work::Bytes | Work::Socket => Reason::Pipe,
            Work::Task => Reason::Task,
            Work::Memory => Reason::Memory,
            Work::Sync => Reason::Disk,
            Work::Poll | Work::Sleep | Work::Files | Work::Other => Reason::Unknown,
        },
        _ => Reason::Unknown,
    }
}

/// Why a thread was waiting in what it blocked in, where its waker's context does not tell. A thread of the kernel
/// blocks in nothing that is known: it waits for another to give it work.
pub fn of_sleeper(machine: &Machine, sleeper: Option<Frame>, waker: Waker) -> Reason {
    let Some(sleeper) = sleeper else {
        return if waker == Waker::Device { Reason::Unknown } else { Reason::Task };
    };
    let work = match sleeper.level() {
        Level::Trap if machine.is_page_fault(sleeper.event) => Work::Memory,
        Level::Syscall => machine.work(sleeper.event),
        _ => return Reason::Unknown,
    };
    match (work, waker) {
        (Work::Lock, _) => Reason::Lock,
        (Work::Sleep, _) => Reason::Time,
        (Work::Task, _) => Reason::Task,
        (Work::Sync, _) => Reason::Disk,
        (Work::Socket | Work::Bytes | Work::Poll, Waker::Thread) => Reason::Pipe,
        (Work::Socket, _) => Reason::Net,
        // The rest of a terminal's or a pipe's work is done by a worker.
        (Work::Bytes | Work::Poll, Waker::Worker) => Reason::Pipe,
        (Work::Bytes, Waker::Device) => Reason::Disk,
        // Another thread had the files, or the address space.
        (Work::Files, Waker::Thread) => Reason::Lock,
        (Work::Memory, Waker::Thread) => Reason::Memory,
        (Work::Files | Work::Memory, _) => Reason::Disk,
        (Work::Other, Waker::Worker) => Reason::Task,
        (Work::Poll | Work::Other, _) => Reason::Unknown,
    }
}
