// SPDX-License-Identifier: BSD-3-Clause
//! Machines: the traces of several as one, on the clock of the first.
//!
//! [`packet`] gathers the packets that each machine sent and received, [`band`] finds the lines from one clock to
//! another for which no packet arrives before it was sent, [`place`] chooses one for each machine, and [`shift`]
//! applies it to times. A guest of another machine is placed [`inside`] of it by its counter, or by the times when it
//! [`halt`]s, as one [`group`] with it, and its CPUs [`nest`] in the threads that run them. [`file`] holds the traces
//! as they are, with those lines; [`trace`] reads them as one, with CPUs and threads [`renumber`]ed so that no two
//! machines have the same.
//!
//! Invariant: nothing here looks into raw counters: a trace of any format has a clock of its own, in units of 10 ns,
//! and these clocks are brought together.

pub mod shift;
pub mod halt;
pub mod inside;
pub mod nest;
pub mod packet;
pub mod band;
pub mod group;
pub mod place;
pub mod renumber;
pub mod file;
pub mod trace;
