// SPDX-License-Identifier: BSD-3-Clause
//! Signals while something must be ended first. A process of its own, since a signal is for all of a process.

use kutrace_control::interrupt::{Hold, Interrupted};
use rustix::process::{getpid, kill_process, Signal};

#[test]
fn a_signal_is_noted_once_while_it_is_held_back() {
    let outer = Hold::new().unwrap();
    assert!(!outer.take());
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        drop(Hold::new().unwrap());
        kill_process(getpid(), signal).unwrap();
        assert!(outer.check().unwrap_err().is::<Interrupted>());
        outer.check().unwrap();
    }
}
