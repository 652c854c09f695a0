// SPDX-License-Identifier: BSD-3-Clause
//! Turns of guests on the host's CPUs, also between the processes of tests: guests whose CPUs run in turn have theirs
//! together, any other alone. A test's work on the results of its guest continues next to the next one's.
//!
//! A turn is a lock on a file. A process that wants one holds the queue until it gets it, so a process that wants to be
//! alone is not overtaken by others, and no process that has a turn waits for another.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// A turn, until this is dropped.
pub struct Turn(#[expect(dead_code, reason = "locked while it is open")] File);

/// Waits for a turn with others.
pub fn shared() -> Turn {
    take(File::lock_shared)
}

/// Waits for a turn in which no other test has a guest. If `cargo xtask test` runs others at the same time, it ends the
/// test, which is run again after all that can share the host, so that no CPU is idle for one that waits.
pub fn alone() -> Turn {
    if env::var_os("KUTRACE_BESIDE").is_some() {
        println!("\nalone: a guest wants all CPUs of the host");
        panic!("later");
    }
    take(File::lock)
}

fn take(lock: fn(&File) -> io::Result<()>) -> Turn {
    let [queue, turn] = ["queue", "turn"].map(open);
    queue.lock().expect("the queue for turns");
    lock(&turn).expect("a turn");
    Turn(turn)
}

fn open(name: &str) -> File {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("turns");
    fs::create_dir_all(&folder).expect("the folder of turns");
    File::create(folder.join(name)).expect("a turn's file")
}
