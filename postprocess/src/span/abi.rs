// SPDX-License-Identifier: BSD-3-Clause
//! What numbers mean on the machine that was traced: told by the trace's own tables of names, those of x86-64 Linux
//! where it has none.

use std::sync::LazyLock;

use kutrace_format::file::NameKind;

use super::call::{Call, Special};
use crate::event::number;
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

/// The event number of the system call that a name of this kind is about, if it is about one.
fn call_number(kind: u32, n: u32) -> Option<u32> {
    let (first, last) = match kind {
        kind if kind == NameKind::Syscall as u32 => (number::SYSCALL, number::SYSCALL_LAST),
        kind if kind == NameKind::Syscall32 as u32 => (number::SYSCALL32, number::SYSCALL32_LAST),
        _ => return None,
    };
    first.checked_add(n).filter(|&call| call <= last)
}

/// The numbers of the traced machine.
#[derive(Clone, Debug)]
pub struct TracedAbi {
    /// What the trace's names tell of its system calls, by event number from [`number::SYSCALL`] on.
    calls: Vec<Option<Call>>,
    /// That the calls of x86-64 are not this machine's.
    foreign: bool,
    /// That its traps are those of arm64 and RISC-V.
    generic: bool,
    /// Interrupts of timers.
    timers: Vec<u32>,
    /// Interrupts of disks.
    disks: Vec<u32>,
    /// Interrupts by which one CPU makes another do something.
    remote: Vec<u32>,
    /// The event number of softirqs.
    softirq: u32,
}

impl Default for TracedAbi {
    fn default() -> TracedAbi {
        TracedAbi {
            calls: vec![None; X86.len()],
            foreign: false,
            generic: false,
            timers: vec![number::IRQ + 0xec],
            disks: Vec::new(),
            remote: [0xf6, 0xfb, 0xfc, 0xfd].map(|vector| number::IRQ + vector).into(),
            softirq: number::SOFTIRQ,
        }
    }
}

impl TracedAbi {
    /// Learns from a name; the number of the call that locks are made of tells whose calls they are.
    pub fn learn(&mut self, kind: u32, n: u32, text: &str) {
        if let Some(call) = call_number(kind, n) {
            self.calls[(call - number::SYSCALL) as usize] = Some(Call::named(text));
        }
        let irq = number::IRQ + (n & 0xff);
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

    /// The number of an event where softirqs have the one they have on x86-64.
    pub fn number(&self, event: u32) -> u32 {
        match event & !number::RETURN_BIT == self.softirq {
            true => number::SOFTIRQ | event & number::RETURN_BIT,
            false => event,
        }
    }

    /// Whether this interrupt is a timer's.
    pub fn is_timer(&self, irq: u32) -> bool {
        self.timers.contains(&irq)
    }

    /// Whether this interrupt is a disk's.
    pub fn is_disk(&self, irq: u32) -> bool {
        self.disks.contains(&irq)
    }

    /// Whether what is done in this interrupt was asked for by the CPU that sent it.
    pub fn is_remote(&self, irq: u32) -> bool {
        self.remote.contains(&irq)
    }

    /// Whether this trap is a page fault.
    pub fn is_page_fault(&self, trap: u32) -> bool {
        match self.generic {
            true => (number::TRAP + 4..number::TRAP + 16).contains(&trap),
            false => trap == number::TRAP + 14,
        }
    }

    /// Whether this call never returns: exit, exit_group.
    pub fn is_exit(&self, call: u32) -> bool {
        self.call(call).special == Some(Special::End)
    }

    /// Whether this call returns the id of a new thread: clone, fork, vfork, clone3.
    pub fn is_birth(&self, call: u32) -> bool {
        self.call(call).special == Some(Special::Fork)
    }

    /// What is known of a system call, by its event number.
    pub fn call(&self, call: u32) -> Call {
        let at = call.wrapping_sub(number::SYSCALL) as usize;
        let told = self.calls.get(at).copied().flatten();
        let default = || if self.foreign { None } else { X86.get(at).copied().flatten() };
        told.or_else(default).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::CallKind;
    use super::*;

    fn works(abi: &TracedAbi, calls: &[u32]) -> Vec<CallKind> {
        calls.iter().map(|&call| abi.call(call).work).collect()
    }

    const READ: u32 = number::SYSCALL;
    const FUTEX: u32 = number::SYSCALL + 202;
    const FUTEX32: u32 = number::SYSCALL32 + 240;

    #[test]
    fn a_trace_without_names_is_of_x86_64() {
        let abi = TracedAbi::default();
        assert_eq!(works(&abi, &[READ, FUTEX, FUTEX32]), [CallKind::Bytes, CallKind::Lock, CallKind::Lock]);
        assert_eq!(works(&abi, &[0, number::SYSCALL + 510, number::SYSCALL32_LAST, u32::MAX]), [CallKind::Other; 4]);
    }

    #[test]
    fn names_tell_whose_calls_they_are() {
        let mut abi = TracedAbi::default();
        // As on arm64, in the order of their numbers.
        for (n, name) in [(63, "read"), (93, "exit"), (98, "futex"), (115, "clock_nanosleep")] {
            abi.learn(number::SYSCALL_NAME, n, name);
        }
        assert_eq!(works(&abi, &[READ, FUTEX, FUTEX32]), [CallKind::Other; 3]);
        let told = [63, 98, 115].map(|n| number::SYSCALL + n);
        assert_eq!(works(&abi, &told), [CallKind::Bytes, CallKind::Lock, CallKind::Sleep]);
        assert!(abi.is_exit(number::SYSCALL + 93) && abi.is_page_fault(number::TRAP + 4));
    }
}
