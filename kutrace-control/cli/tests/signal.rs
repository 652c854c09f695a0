// SPDX-License-Identifier: BSD-3-Clause
//! Signals while something must be ended first. A process of its own, since a signal affects the whole process.

use std::fs;

use kutrace_cli::signal::{Interrupted, SignalGuard};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{getpid, kill_process, Signal};

#[test]
fn a_signal_is_noted_once_while_it_is_held_back() {
    let outer = SignalGuard::new().unwrap();
    assert!(!outer.take() && !outer.is_requested());
    // A user who starts this with nohup makes it ignore one of them.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    let signals = [Signal::INT, Signal::TERM, Signal::HUP].into_iter();
    for signal in signals.filter(|signal| ignored >> (signal.as_raw() - 1) & 1 == 0) {
        drop(SignalGuard::new().unwrap());
        kill_process(getpid(), signal).unwrap();
        // Another thread may be the one that is interrupted.
        while poll(&mut [PollFd::new(&outer, PollFlags::IN)], None) == Err(Errno::INTR) {}
        assert!(outer.check().unwrap_err().is::<Interrupted>());
        outer.check().unwrap();
        assert!(outer.is_requested());
    }
}
