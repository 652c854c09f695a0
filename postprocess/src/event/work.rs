// SPDX-License-Identifier: BSD-3-Clause
//! Work of the kernel: for a thread that calls it, or in between, whatever the thread is doing.

use super::number::{self, class, Class, Level, RETURN_BIT};

/// Work of the kernel. Event lines have a number for its beginning, and with [`RETURN_BIT`] for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// A system call of a 64-bit program, by its number.
    Syscall(u16),
    /// A system call of a 32-bit program; in the original's traces, one of a 64-bit program from 512 on.
    Syscall32(u16),
    /// A system call with an unknown number.
    UnknownCall,
    /// Work for a thread outside of any call, before the program continues.
    ExitWork,
    /// A trap, by its vector.
    Trap(u8),
    /// An interrupt, by its vector.
    Irq(u8),
    /// A softirq; its number is the argument.
    Softirq,
    /// A guest that the processor runs, on a virtual CPU.
    Guest,
    /// The scheduler.
    Sched,
    /// The scheduler, by its number in kernels before 6.
    SchedOld,
    /// Only for spans in files of others: the number of a return.
    Other(u16),
}

impl Work {
    /// The work that begins with this number; for a span, any number of work. `None` if no work has it.
    pub(crate) const fn of(number: u32) -> Option<Work> {
        Some(match number {
            number::SOFTIRQ => Work::Softirq,
            number::SCHED => Work::Sched,
            number::SCHED_OLD => Work::SchedOld,
            number::UNKNOWN_CALL => Work::UnknownCall,
            number::WAY_OUT => Work::ExitWork,
            number::GUEST => Work::Guest,
            number::TRAP..=number::TRAP_LAST => Work::Trap((number - number::TRAP) as u8),
            number::IRQ..=number::IRQ_LAST => Work::Irq((number - number::IRQ) as u8),
            number::SYSCALL..=number::SYSCALL_LAST => Work::Syscall((number - number::SYSCALL) as u16),
            number::SYSCALL32..=number::SYSCALL32_LAST => Work::Syscall32((number - number::SYSCALL32) as u16),
            number::TRAP_RETURN..=number::SCHED_RETURN => Work::Other(number as u16),
            _ => return None,
        })
    }

    /// Number of its beginning.
    #[inline]
    pub const fn number(self) -> u32 {
        match self {
            Work::Syscall(nr) => number::SYSCALL + nr as u32,
            Work::Syscall32(nr) => number::SYSCALL32 + nr as u32,
            Work::UnknownCall => number::UNKNOWN_CALL,
            Work::ExitWork => number::WAY_OUT,
            Work::Guest => number::GUEST,
            Work::Trap(vector) => number::TRAP + vector as u32,
            Work::Irq(vector) => number::IRQ + vector as u32,
            Work::Softirq => number::SOFTIRQ,
            Work::Sched => number::SCHED,
            Work::SchedOld => number::SCHED_OLD,
            Work::Other(number) => number as u32,
        }
    }

    /// Number of its return.
    #[inline]
    pub const fn return_number(self) -> u32 {
        self.number() | RETURN_BIT
    }

    /// Nesting level.
    #[inline]
    pub const fn level(self) -> Level {
        match self {
            Work::Syscall(_) | Work::Syscall32(_) | Work::UnknownCall | Work::ExitWork => Level::Syscall,
            Work::Trap(_) | Work::Guest => Level::Trap,
            Work::Irq(_) => Level::Irq,
            Work::Softirq => Level::Softirq,
            Work::Sched | Work::SchedOld => Level::Sched,
            Work::Other(number) => match class(number as u32) {
                Class::Call(level) | Class::Return(level) => level,
                _ => Level::User,
            },
        }
    }

    /// True if it is a system call that a program has made: only these have a value.
    #[inline]
    pub const fn is_call(self) -> bool {
        matches!(self.level(), Level::Syscall) && !matches!(self, Work::ExitWork)
    }
}
