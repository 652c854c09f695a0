// SPDX-License-Identifier: BSD-3-Clause
//! Starting and stopping a trace from within the program, by `kutrace_control`, which is looked for on PATH.
//!
//! Needs what `kutrace_control` needs: root, or CAP_PERFMON or CAP_SYS_ADMIN. What goes wrong it says on standard
//! error. The status is the one it ends with: 0 done, 1 failed, 2 not understood, 3 done but events were lost.
//!
//! Not for signal handlers: a process is started and waited for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::Command;

use rustix::fs::{memfd_create, MemfdFlags};

const PROGRAM: &str = "kutrace_control";
/// The status of a process that a signal ended.
const KILLED: i32 = 1;

/// Starts a trace. `mode` is `go` or any of its variants in `kutrace_control`: `goipc`, `gowrap`, ...
///
/// # Errors
/// If `kutrace_control` cannot be started.
pub fn go(mode: impl AsRef<OsStr>) -> io::Result<i32> {
    run(&[mode.as_ref()], b"")
}

/// Stops the trace, and writes it to a file that is not there yet; without a name, to one named by date and host.
///
/// # Errors
/// If `kutrace_control` cannot be started.
pub fn stop(file: Option<&Path>) -> io::Result<i32> {
    let arguments = [OsStr::new("stop"), "--".as_ref(), file.unwrap_or(Path::new("")).as_os_str()];
    run(if file.is_some() { &arguments } else { &arguments[..1] }, b"")
}

/// Has `kutrace_control` carry out words, one a line.
///
/// # Errors
/// If `kutrace_control` cannot be started.
pub fn control(words: impl AsRef<[u8]>) -> io::Result<i32> {
    run(&[], words.as_ref())
}

fn run(arguments: &[&OsStr], words: &[u8]) -> io::Result<i32> {
    // No pipe: it could end before it has read all, and the program by a signal then.
    let mut input = File::from(memfd_create(c"words", MemfdFlags::CLOEXEC)?);
    input.write_all(words)?;
    input.rewind()?;
    let status = Command::new(PROGRAM).args(arguments).stdin(input).status()?;
    Ok(status.code().unwrap_or(KILLED))
}
