// SPDX-License-Identifier: BSD-3-Clause
//! Turns of guests on the host's CPUs, also between the processes of tests. There are seats, three for two CPUs, as a guest
//! waits for much of its time: one whose CPUs run in turn takes one, one whose CPUs run at once as many as the host has
//! CPUs, and a test of several guests all. What a test does with what its guest has left goes on beside the next one's.
//!
//! A seat is a lock on a file. Who wants some holds the queue until they are there, so whoever wants many is not
//! overtaken by others, and nobody who has a turn waits for another.

use std::fs::{self, File};
use std::num::NonZero;
use std::path::Path;
use std::thread::{self, available_parallelism};
use std::time::Duration;

/// Between two looks for a free seat.
const LOOK: Duration = Duration::from_millis(20);

/// A turn, until this is dropped.
pub struct Turn(#[expect(dead_code, reason = "locked while they are open")] Vec<File>);

/// Waits for a turn of a guest whose CPUs run one at a time.
pub fn one() -> Turn {
    take(1)
}

/// Waits for a turn of a guest that wants all CPUs of the host.
pub fn at_once() -> Turn {
    take(cpus())
}

/// Waits for a turn in which no other test has a guest.
pub fn alone() -> Turn {
    take(seats())
}

fn cpus() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

fn seats() -> usize {
    (cpus() * 3 / 2).max(2)
}

fn take(count: usize) -> Turn {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("turns");
    fs::create_dir_all(&folder).expect("the folder of turns");
    let open = |name: &str| File::create(folder.join(name)).expect("a turn's file");
    let queue = open("queue");
    queue.lock().expect("the queue for turns");
    let mut free: Vec<File> = (0..seats()).map(|n| open(&format!("seat-{n}"))).collect();
    let mut taken = Vec::new();
    loop {
        for seat in std::mem::take(&mut free) {
            let is_taken = taken.len() < count && seat.try_lock().is_ok();
            if is_taken { &mut taken } else { &mut free }.push(seat);
        }
        if taken.len() == count {
            return Turn(taken);
        }
        thread::sleep(LOOK);
    }
}
