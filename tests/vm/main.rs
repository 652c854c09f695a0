// SPDX-License-Identifier: BSD-3-Clause
//! VM tier: what must hold of traces recorded by the module in a patched kernel. Run by `cargo xtask test`.

#![cfg_attr(
    not(feature = "night"),
    allow(dead_code, unused_imports, reason = "tests of the night have parts that no other has")
)]

mod guest; // a script in a guest, and its results
mod turns; // which guests run at a time
mod trace; // a trace through every stage
mod blocks; // a raw file's blocks, each by itself
mod audit; // a recording against the kernel's counters over the same time

mod control; // every command of kutrace_control
mod counters; // instructions and cache misses, in codes
mod demo; // the demo's trace
mod exact; // counts of calls and switches
mod full; // memory that is too small
mod lifetime; // insmod, rmmod, go, stop under load
mod faults; // exceptions, 32-bit calls
mod early; // tracing from the boot on
mod ending; // threads that end while they are renamed
mod denied; // calls that a filter or a tracer denies
mod held; // quotas, freezers, stops, memory, disks
mod nmi; // NMIs
mod nonsense; // invalid input
mod flows; // packets of chosen ports
mod proof; // nothing is missing: our counts are the kernel's
mod hooks; // one test for each hook that no other test needs
mod user; // system call 1023
mod marks; // the library in every language
mod programs; // memory that programs record into
mod containers; // programs in containers and under filters
mod tickless; // gaps of seconds
#[cfg(feature = "night")]
mod still; // machines that the host stops
mod conserve; // recorded, lost and overwritten add up to all
mod wrap; // the flight recorder, many laps
mod snapshot; // snapshots of a flight recorder
mod stream; // traces written while they are recorded
mod watch; // recordings of slow moments
#[cfg(feature = "night")]
mod always; // all that runs for months
mod top; // the live screen
mod recover; // traces of kernels that crashed
mod reboot; // traces that outlive a reboot
mod waits; // a hundred ways to wait
mod hotplug; // CPUs that come and go
mod lifecycle; // events that end or spoil a trace
mod truth; // a guest's counter that is known at every moment
mod machines; // several machines in one trace
mod tracepoints; // the kernel's tracepoints and programs' probes, by name
mod guests; // guests of the guest
mod stock; // Debian's kernel as it is
mod tracefs; // recordings without the module
mod harm; // a trace harms no process
#[cfg(feature = "night")]
mod sources; // hooks and tracepoints record the same
