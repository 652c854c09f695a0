// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Places in the ranges of events that have the same meaning on every x86-64 Linux: after `TRAP`, after `IRQ`, after
//! `SOFTIRQ`. From `asm/trapnr.h`, `asm/irq_vectors.h` and `linux/interrupt.h`.

use core::ops::RangeInclusive;

/// Exceptions, after `TRAP`.
pub mod trap {
    /// An interrupt that cannot be masked.
    pub const NMI: u32 = 2;
    /// A page fault.
    pub const PAGE_FAULT: u32 = 14;
    /// A machine check.
    pub const MACHINE_CHECK: u32 = 18;
}

/// Vectors of interrupts, after `IRQ`.
pub mod vector {
    use super::RangeInclusive;

    /// The vectors that devices may have.
    pub const DEVICES: RangeInclusive<u32> = 0x20..=0xea;
    /// The timer of the CPU's own interrupt controller.
    pub const LOCAL_TIMER: u32 = 0xec;
    /// The timer of a CPU that Hyper-V lends.
    pub const HYPERV_TIMER: u32 = 0xed;
    /// Work deferred from a context that could not do it.
    pub const IRQ_WORK: u32 = 0xf6;
    /// A call that one CPU asks another to make.
    pub const CALL_FUNCTION_SINGLE: u32 = 0xfb;
    /// A call that a CPU asks several to make.
    pub const CALL_FUNCTION: u32 = 0xfc;
    /// A CPU makes another look for something to run.
    pub const RESCHEDULE: u32 = 0xfd;
}

/// Softirqs, after `SOFTIRQ`.
pub mod softirq {
    /// Their lines of /proc/softirqs, by number.
    pub const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    /// Timers of the wheel.
    pub const TIMER: u32 = 1;
    /// Packets have left.
    pub const NET_TX: u32 = 2;
    /// Packets have arrived.
    pub const NET_RX: u32 = 3;
    /// Block devices are done with requests.
    pub const BLOCK: u32 = 4;
    /// Block devices are polled.
    pub const IRQ_POLL: u32 = 5;
    /// The load is balanced.
    pub const SCHED: u32 = 7;
    /// Timers of high resolution.
    pub const HRTIMER: u32 = 8;
    /// Callbacks after a grace period.
    pub const RCU: u32 = 9;
}
