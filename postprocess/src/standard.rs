// SPDX-License-Identifier: BSD-3-Clause
//! Standard input and output that whoever started the program had closed.
//!
//! The runtime opens `/dev/null` in their places before `main`: what is written there is lost in silence, and what is
//! read there is empty. So [`look`] runs before the runtime does, and all others ask what it saw.

#![allow(unsafe_code)]

use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// By bit: the descriptors 0 and 1 that were closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// The C library calls what this section lists before `main`.
#[used]
#[link_section = ".init_array"]
static BEFORE_MAIN: extern "C" fn() = look;

extern "C" fn look() {
    for descriptor in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: this asks about a number, whatever is behind it, and touches no memory.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Relaxed);
        }
    }
}

/// Whether there is a standard input.
///
/// # Errors
/// If there was none when the program started.
pub fn input() -> io::Result<()> {
    open(libc::STDIN_FILENO)
}

/// Whether there is a standard output.
///
/// # Errors
/// If there was none when the program started.
pub fn output() -> io::Result<()> {
    open(libc::STDOUT_FILENO)
}

fn open(descriptor: i32) -> io::Result<()> {
    match CLOSED.load(Relaxed) & 1 << descriptor {
        0 => Ok(()),
        _ => Err(io::Error::other("it is closed")),
    }
}

/// Prints the help or version that a command line asked for, or what is wrong with it; answers the exit status.
///
/// # Errors
/// If a help cannot be printed; a reader that has gone is no error.
pub fn answer(asked: &clap::Error) -> io::Result<i32> {
    if asked.use_stderr() {
        let _ = asked.print();
        return Ok(asked.exit_code());
    }
    output()?;
    match asked.print().and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e),
        _ => Ok(asked.exit_code()),
    }
}
