// SPDX-License-Identifier: GPL-2.0
//! Two CPUs that record at a time, against one.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use rustix::thread::{sched_setaffinity, CpuSet};

use crate::{median, ticks, trace, CALLS, PLAIN, ROUNDS};

/// Additional time of a mark while another CPU also marks: the median of rounds.
pub fn over_one() -> f64 {
    let (turn, done, over) = (&AtomicU32::new(0), &AtomicU32::new(0), &AtomicBool::new(false));
    let marks = || ticks(|| (PLAIN[1].together)(CALLS));
    trace(true);
    thread::scope(|scope| {
        scope.spawn(move || {
            stay_on(1);
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                if turn.load(Ordering::Acquire) != last {
                    last += 1;
                    // It begins before the other and ends after it.
                    done.store(last, Ordering::Release);
                    (PLAIN[1].together)(2 * CALLS);
                }
            }
        });
        stay_on(0);
        let ratios = (1..=ROUNDS as u32).map(|n| {
            let alone = marks();
            turn.store(n, Ordering::Release);
            while done.load(Ordering::Acquire) != n {}
            let both = marks();
            (0..2 * CALLS).for_each(|_| std::hint::spin_loop());
            both / alone
        });
        let ratio = median(ratios.collect());
        over.store(true, Ordering::Relaxed);
        ratio
    })
}

/// Binds the calling thread to a CPU, if there is such a one.
fn stay_on(cpu: usize) {
    let mut one = CpuSet::new();
    one.set(cpu);
    let _ = sched_setaffinity(None, &one);
}
