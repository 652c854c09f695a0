// SPDX-License-Identifier: GPL-2.0
//! Instructions and cache misses, by each CPU's own counters.
//!
//! perf owns the counters: it knows the registers of each processor, sets them with care, shares them with its other
//! users and restores them. This file only reads them, by one instruction that every context may use.
//!
//! Invariant: counters are opened and closed while no hook runs.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kernel::prelude::*;

use crate::abi::command::{IPC, LLC};
use crate::abi::counter::{byte, ipc_code, llc_code};
use crate::{arch, ffi};

/// `PERF_COUNT_HW_INSTRUCTIONS` of include/uapi/linux/perf_event.h.
const INSTRUCTIONS: u64 = 1;
/// `PERF_COUNT_HW_CACHE_MISSES`.
const CACHE_MISSES: u64 = 3;

/// The counters of one CPU, and when they were last read.
pub struct Counters {
    tsc: AtomicU64,
    instructions: Counter,
    misses: Counter,
}

impl Counters {
    /// Counters that are off.
    pub const fn new() -> Counters {
        Counters { tsc: AtomicU64::new(0), instructions: Counter::new(), misses: Counter::new() }
    }

    /// Opens the counters that `flags` request, if any, of an online CPU: EOPNOTSUPP if the machine has none, ENOSPC if
    /// others use them all.
    pub fn open(&mut self, cpu: u32, flags: u32) -> Result {
        if flags & IPC != 0 {
            self.instructions.open(cpu, INSTRUCTIONS)?;
        }
        if flags & LLC != 0 {
            self.misses.open(cpu, CACHE_MISSES)?;
        }
        Ok(())
    }

    /// Closes the open counters.
    pub fn close(&mut self) {
        self.instructions.close();
        self.misses.close();
        *self = Counters::new();
    }

    /// Returns the counter byte for the time since the CPU's last sample; 0 for the first.
    ///
    /// An interrupt may sample between any two steps. The values it leaves were counted before any value that is read
    /// after it, so that no difference is negative: at worst, an interval is counted twice. Every hook samples: one
    /// function for all of them is 20 KB less code.
    #[inline(never)]
    pub fn sample(&self) -> u8 {
        let before = self.tsc.load(Relaxed);
        let now = arch::tsc();
        self.tsc.store(now, Relaxed);
        let (instructions, misses) = (self.instructions.advance(), self.misses.advance());
        match before {
            0 => 0,
            _ => byte(ipc_code(instructions, now.saturating_sub(before)), llc_code(misses)),
        }
    }
}

/// One counter of one CPU.
struct Counter {
    perf: ffi::PerfCounter,
    last: AtomicU64,
}

impl Counter {
    const fn new() -> Counter {
        let perf = ffi::PerfCounter { event: ptr::null_mut(), index: ptr::null() };
        Counter { perf, last: AtomicU64::new(0) }
    }

    fn open(&mut self, cpu: u32, config: u64) -> Result {
        // SAFETY: `perf` is closed and can be written, and `close` closes it; a command may sleep and does not hold the
        // CPUs.
        kernel::error::to_result(unsafe { ffi::kutrace_shim_counter_open(cpu, config, &mut self.perf) })
    }

    fn close(&mut self) {
        // SAFETY: `perf` is open or null, and no hook runs that reads it; a command may sleep.
        unsafe { ffi::kutrace_shim_counter_close(&mut self.perf) }
    }

    /// Returns the count since the last call; 0 for a counter that is off.
    fn advance(&self) -> u64 {
        if self.perf.index.is_null() {
            return 0;
        }
        let last = self.last.load(Relaxed);
        // SAFETY: the index is in perf's event, to which the open counter has a reference until `close`, when no hook
        // runs. perf may change it at any time.
        let index = unsafe { ptr::read_volatile(self.perf.index) };
        // SAFETY: perf gave the index of a counter that the processor has, or the 0 of an event that never ran.
        let now = unsafe { arch::pmc(index) };
        self.last.store(now, Relaxed);
        now.saturating_sub(last)
    }
}
