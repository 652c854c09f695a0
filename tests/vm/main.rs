// SPDX-License-Identifier: BSD-3-Clause
//! VM tier: what must hold of traces recorded by the module in a patched kernel. Run by `cargo xtask test`.

#![cfg_attr(
    not(feature = "night"),
    allow(dead_code, unused_imports, reason = "tests of the night have parts that no other has")
)]

mod guest;
mod turns;
mod trace;
mod blocks;
mod audit;

mod control;
mod counters;
mod demo;
mod exact;
mod full;
mod lifetime;
mod faults;
mod early;
mod ending;
mod denied;
mod held;
mod nmi;
mod nonsense;
mod flows;
mod proof;
mod hooks;
mod user;
mod marks;
mod programs;
mod containers;
mod tickless;
mod conserve;
mod wrap;
mod snapshot;
mod stream;
mod watch;
#[cfg(feature = "night")]
mod always;
mod top;
mod recover;
mod reboot;
mod waits;
mod hotplug;
mod lifecycle;
mod truth;
mod machines;
mod tracepoints;
mod guests;
mod stock;
mod harm;
#[cfg(feature = "night")]
mod sources;
