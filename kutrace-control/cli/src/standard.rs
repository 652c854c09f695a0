// SPDX-License-Identifier: BSD-3-Clause
//! Standard input and output: records whether they were closed when the program started, and handles readers that have
//! gone.
//!
//! The runtime opens `/dev/null` in their places before `main`: output there is lost silently, and input from there is
//! empty. Therefore [`look`] runs before the runtime, and all other functions use its result.

#![allow(unsafe_code)]

use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use anyhow::{bail, Context, Result};

/// Name of standard input in messages.
pub const INPUT: &str = "stdin";
/// Name of standard output in messages.
pub const OUTPUT: &str = "stdout";

/// By bit: the descriptors 0 and 1 that were closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// The C library calls the functions in this section before `main`.
#[used]
#[link_section = ".init_array"]
static BEFORE_MAIN: extern "C" fn() = look;

extern "C" fn look() {
    for descriptor in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: this queries a number, whether or not it is a descriptor, and touches no memory.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Relaxed);
        }
    }
}

/// Checks that there is a standard input.
///
/// # Errors
/// If there was none when the program started.
pub fn input() -> Result<()> {
    open(libc::STDIN_FILENO).context(INPUT)
}

/// Checks that there is a standard output.
///
/// # Errors
/// If there was none when the program started.
pub fn output() -> Result<()> {
    open(libc::STDOUT_FILENO).context(OUTPUT)
}

fn open(descriptor: i32) -> Result<()> {
    if CLOSED.load(Relaxed) & 1 << descriptor != 0 {
        bail!("closed");
    }
    Ok(())
}

/// Prints text on standard output.
///
/// # Errors
/// If it cannot be written; a reader that has gone is not an error.
pub fn print(text: &str) -> Result<()> {
    output()?;
    let mut out = io::stdout().lock();
    unless_gone(out.write_all(text.as_bytes()).and_then(|()| out.flush())).context(OUTPUT)
}

/// Ignores the error of a reader that has gone, which wants no more output.
///
/// # Errors
/// Every other error.
pub fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Returns whether this error means that the reader of the output has gone.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
