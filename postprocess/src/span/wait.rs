// SPDX-License-Identifier: BSD-3-Clause
//! Why a thread waited: read from what the context that woke it was doing, by event number.

use super::stack::Frame;
use crate::event::number::{self, Level, SYSCALL, SYSCALL32};

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

/// Why the thread that `waker` woke was waiting. Numbers are those of x86-64.
pub fn reason(waker: Frame) -> Reason {
    match (waker.level(), waker.event) {
        (Level::Softirq, _) => match waker.arg {
            0 | 6 => Reason::Task,
            1 | 8 | 9 => Reason::Time,
            2 | 3 => Reason::Net,
            4 | 5 => Reason::Disk,
            7 => Reason::Sched,
            _ => Reason::Unknown,
        },
        (Level::Irq, LOCAL_TIMER) => Reason::Time,
        (Level::Trap, PAGE_FAULT) => Reason::Memory,
        (Level::Syscall, call @ SYSCALL32..) => of_call_32(call - SYSCALL32),
        (Level::Syscall, call) => of_call(call.wrapping_sub(SYSCALL)),
        _ => Reason::Unknown,
    }
}

/// Whether a wakeup in this interrupt was asked for by the CPU that sent it.
pub fn is_remote(waker: Frame) -> bool {
    matches!(waker.event, 0x5f6 | 0x5fb | 0x5fc | 0x5fd)
}

const LOCAL_TIMER: u32 = number::IRQ + 0xec;
const PAGE_FAULT: u32 = number::TRAP + 14;

fn of_call(nr: u32) -> Reason {
    match nr {
        // futex, futex_wake, futex_requeue
        202 | 454 | 456 => Reason::Lock,
        // mmap, mprotect, munmap, madvise
        9 | 10 | 11 | 28 => Reason::Memory,
        // fsync, fdatasync, syncfs
        74 | 75 | 306 => Reason::Disk,
        // read, write, open, close, readv, writev, sendto, recvfrom, sendmsg, recvmsg, openat, tee, splice, vmsplice
        0..=3 | 19 | 20 | 44..=47 | 257 | 275 | 276 | 278 => Reason::Pipe,
        _ => Reason::Unknown,
    }
}

/// The same calls by their 32-bit numbers.
fn of_call_32(nr: u32) -> Reason {
    match nr {
        240 | 422 | 454 | 456 => Reason::Lock,
        90 | 91 | 125 | 192 | 219 => Reason::Memory,
        118 | 148 | 344 => Reason::Disk,
        3..=6 | 145 | 146 | 295 | 313 | 315 | 316 | 369..=372 => Reason::Pipe,
        _ => Reason::Unknown,
    }
}
