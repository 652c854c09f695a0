// SPDX-License-Identifier: BSD-3-Clause
//! Turns of guests on the host's CPUs, also between the processes of tests: guests whose CPUs run in turn have theirs
//! together, any other alone. What a test does with what its guest has left goes on beside the next one's.
//!
//! A turn is a lock on a file. Who wants one holds the queue until it is there, so whoever wants to be alone is not
//! overtaken by others, and nobody who has a turn waits for another.

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

/// Waits for a turn in which no other test has a guest. Where `cargo xtask test` runs others beside this one, it ends the
/// test, which is run again after all that can share the host, so that no CPU stands idle for one that waits.
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
