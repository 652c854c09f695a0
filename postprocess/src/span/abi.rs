// SPDX-License-Identifier: BSD-3-Clause
//! Meaning of numbers on the traced machine: from the trace's own tables of names, or from those of x86-64 Linux where
//! the trace has none.

use std::sync::LazyLock;

use kutrace_format::file::NameKind;
use kutrace_format::x86::vector::{self, CALL_FUNCTION, CALL_FUNCTION_SINGLE, IRQ_WORK, RESCHEDULE};

use super::call::{Call, Special};
use crate::event::number;
use crate::event::what::What;
use crate::event::work::Work;
use crate::tables;

/// The system calls of 64-bit and 32-bit programs of x86-64, by event number from [`number::SYSCALL`] on.
static X86: LazyLock<Vec<Option<Call>>> = LazyLock::new(|| {
    let mut calls = vec![None; (number::NUMBERS - number::SYSCALL) as usize];
    for kind in [NameKind::Syscall, NameKind::Syscall32] {
        for (n, name) in tables::of(kind) {
            if let Some(call) = call_number(kind as u32, n) {
                calls[(call - number::SYSCALL) as usize] = Some(Call::named(name));
            }
        }
    }
    calls
});

/// Event number of the system call that a name of this kind belongs to, if it belongs to one.
fn call_number(kind: u32, n: u32) -> Option<u32> {
    let (first, last) = match kind {
        kind if kind == NameKind::Syscall as u32 => (number::SYSCALL, number::SYSCALL_LAST),
        kind if kind == NameKind::Syscall32 as u32 => (number::SYSCALL32, number::SYSCALL32_LAST),
        _ => return None,
    };
    first.checked_add(n).filter(|&call| call <= last)
}

/// Number assignments of the traced machine.
#[derive(Clone, Debug)]
pub struct TracedAbi {
    /// System calls that the trace names, by event number from [`number::SYSCALL`] on.
    calls: Vec<Option<Call>>,
    /// True if the system call numbers of x86-64 do not apply to this machine.
    foreign: bool,
    /// True if its trap numbers are those of arm64 and RISC-V.
    generic: bool,
    /// Interrupts of timers.
    timers: Vec<Work>,
    /// Interrupts of disks.
    disks: Vec<Work>,
    /// Interrupts with which one CPU makes another do something.
    remote: Vec<Work>,
    /// The interrupt whose number stands for softirqs.
    softirq: Work,
}

impl Default for TracedAbi {
    fn default() -> TracedAbi {
        TracedAbi {
            calls: vec![None; X86.len()],
            foreign: false,
            generic: false,
            timers: [vector::LOCAL_TIMER, vector::HYPERV_TIMER].map(|vector| Work::Irq(vector as u8)).into(),
            disks: Vec::new(),
            remote: [IRQ_WORK, CALL_FUNCTION_SINGLE, CALL_FUNCTION, RESCHEDULE]
                .map(|vector| Work::Irq(vector as u8))
                .into(),
            softirq: Work::Softirq,
        }
    }
}

impl TracedAbi {
    /// Learns from a name; the number of the futex call identifies the table of system calls.
    pub fn learn(&mut self, kind: u32, n: u32, text: &str) {
        if let Some(call) = call_number(kind, n) {
            self.calls[(call - number::SYSCALL) as usize] = Some(Call::named(text));
        }
        let irq = Work::Irq(n as u8);
        let starts = |with: &[&str]| with.iter().any(|w| text.starts_with(w));
        match (kind, text) {
            (number::SYSCALL_NAME, "futex" | "_umtx_op") => {
                self.foreign = n != 202;
                self.generic = n == 98;
            }
            (number::IRQ_NAME, "BH") => self.softirq = irq,
            (number::IRQ_NAME, _) if starts(&["local_timer", "arch_timer", "riscv-timer", "timer_ipi"]) => {
                self.timers.push(irq);
            }
            (number::IRQ_NAME, _) if starts(&["reschedule_ipi", "call_func", "irq_work_ipi", "wakeup_ipi"]) => {
                self.remote.push(irq);
            }
            (number::IRQ_NAME, _) if starts(&["nvme", "ahci", "ata_", "mmc"]) || text.contains("-req") => {
                self.disks.push(irq);
            }
            _ => {}
        }
    }

    /// The event with this machine's softirq number replaced by that of x86-64.
    #[inline]
    pub fn what(&self, what: What) -> What {
        match what {
            What::Call(work) if work == self.softirq => What::Call(Work::Softirq),
            What::Return(work) if work == self.softirq => What::Return(Work::Softirq),
            what => what,
        }
    }

    /// True if this interrupt is a timer's.
    pub fn is_timer(&self, irq: Work) -> bool {
        self.timers.contains(&irq)
    }

    /// True if this interrupt is a disk's.
    pub fn is_disk(&self, irq: Work) -> bool {
        self.disks.contains(&irq)
    }

    /// True if the CPU that sent this interrupt asked for the work done in it.
    pub fn is_remote(&self, irq: Work) -> bool {
        self.remote.contains(&irq)
    }

    /// True if this trap is a page fault.
    pub fn is_page_fault(&self, trap: Work) -> bool {
        match trap {
            Work::Trap(vector) if self.generic => (4..16).contains(&vector),
            trap => trap == Work::Trap(14),
        }
    }

    /// True if this call never returns: exit, exit_group.
    pub fn is_exit(&self, call: Work) -> bool {
        self.call(call).special == Some(Special::End)
    }

    /// True if this call returns the id of a new thread: clone, fork, vfork, clone3.
    pub fn is_birth(&self, call: Work) -> bool {
        self.call(call).special == Some(Special::Fork)
    }

    /// Description of a system call.
    pub fn call(&self, call: Work) -> Call {
        let at = call.number().wrapping_sub(number::SYSCALL) as usize;
        let told = self.calls.get(at).copied().flatten();
        let default = || if self.foreign { None } else { X86.get(at).copied().flatten() };
        told.or_else(default).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::CallKind;
    use super::*;

    fn works(abi: &TracedAbi, calls: &[Work]) -> Vec<CallKind> {
        calls.iter().map(|&call| abi.call(call).work).collect()
    }

    const READ: Work = Work::Syscall(0);
    const FUTEX: Work = Work::Syscall(202);
    const FUTEX32: Work = Work::Syscall32(240);

    #[test]
    fn a_trace_without_names_is_of_x86_64() {
        let abi = TracedAbi::default();
        assert_eq!(works(&abi, &[READ, FUTEX, FUTEX32]), [CallKind::Bytes, CallKind::Lock, CallKind::Lock]);
        assert_eq!(
            works(&abi, &[Work::Irq(0), Work::UnknownCall, Work::Syscall32(510), Work::Sched]),
            [CallKind::Other; 4]
        );
    }

    #[test]
    fn names_tell_whose_calls_they_are() {
        let mut abi = TracedAbi::default();
        // As on arm64, in the order of their numbers.
        for (n, name) in [(63, "read"), (93, "exit"), (98, "futex"), (115, "clock_nanosleep")] {
            abi.learn(number::SYSCALL_NAME, n, name);
        }
        assert_eq!(works(&abi, &[READ, FUTEX, FUTEX32]), [CallKind::Other; 3]);
        let told = [63, 98, 115].map(Work::Syscall);
        assert_eq!(works(&abi, &told), [CallKind::Bytes, CallKind::Lock, CallKind::Sleep]);
        assert!(abi.is_exit(Work::Syscall(93)) && abi.is_page_fault(Work::Trap(4)));
    }
}
