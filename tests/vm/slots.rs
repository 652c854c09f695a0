// SPDX-License-Identifier: BSD-3-Clause
//! Turns of guests on the host's CPUs, also between the processes of tests: a guest whose CPUs run in turn takes one of
//! two slots, any other takes both. What a test does with what its guest has left goes on beside the next one's.
//!
//! A slot is a file that is locked. Who wants slots holds the queue until all of them are there, so whoever waits for
//! two is not overtaken by others that need one, and nobody who has a slot waits for another.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How many guests run at a time.
const ALL: usize = 2;
/// Between two looks at the slots.
const PAUSE: Duration = Duration::from_millis(20);

/// Slots that are taken until this is dropped.
pub struct Slots(#[expect(dead_code, reason = "locked while they are open")] Vec<File>);

/// Waits for a slot.
pub fn one() -> Slots {
    take(1)
}

/// Waits for all slots, so that no other test has a guest.
pub fn all() -> Slots {
    take(ALL)
}

fn take(count: usize) -> Slots {
    let queue = open("queue");
    queue.lock().expect("the queue for slots");
    let mut taken = Vec::new();
    loop {
        for slot in 0..ALL {
            let file = open(&format!("slot-{slot}"));
            match file.try_lock() {
                Ok(()) => taken.push(file),
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => panic!("slot-{slot}: {error}"),
            }
            if taken.len() == count {
                return Slots(taken);
            }
        }
        thread::sleep(PAUSE);
    }
}

fn open(name: &str) -> File {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slots");
    fs::create_dir_all(&folder).expect("the folder of slots");
    File::create(folder.join(name)).expect("a slot")
}
