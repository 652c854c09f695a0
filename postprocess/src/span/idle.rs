// SPDX-License-Identifier: BSD-3-Clause
//! Time that a CPU takes to leave a low-power state.

use crate::time::Time;

/// Time to leave the state that this `mwait` hint asked for: the general table of the original, upper bounds.
pub fn exit_latency(hint: u32) -> Time {
    Time(match hint {
        0 | 254 => 20,
        1 => 100,
        2..=15 => 20,
        16..=31 => 330,
        32..=47 => 1330,
        48..=63 => 1660,
        64..=79 => 3000,
        80..=95 => 6000,
        255 => 1330,
        _ => 25_000,
    })
}
