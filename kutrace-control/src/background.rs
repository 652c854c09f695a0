// SPDX-License-Identifier: BSD-3-Clause
//! `go --stream`: a `record --stream` in the background, which runs until `stop` ends it.
//!
//! Invariant: `go` returns when recording has begun, or fails as `record` does.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use kutrace_cli::{say, Exit, Failure, Status};
use kutrace_format::abi::command::{Info, STATE_TRACING, STREAM};
use rustix::process::{kill_process, setsid, Pid, Signal};

use crate::device::Recorder;
use crate::session::Session;

/// The option of `record` for this.
pub const OPTION: &str = "--background";
/// Interval between checks of the other process.
const PERIOD: Duration = Duration::from_millis(20);

/// Starts `record` with these arguments, and waits until it records.
///
/// # Errors
/// If it cannot be started, or another recording runs.
pub fn begin<R: Recorder>(session: &mut Session<R>, arguments: &[OsString]) -> Result<Status> {
    session.refuse_while_tracing()?;
    let mut command = Command::new(env::current_exe().context("kutrace_control")?);
    command.args(["record", "--stream", OPTION]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("kutrace_control")?;
    loop {
        if let Some(status) = child.try_wait().context("kutrace_control")? {
            // Its messages are passed on; once it records, they have no reader.
            let mut said = Vec::new();
            child.stderr.take().map(|mut pipe| pipe.read_to_end(&mut said)).transpose()?;
            io::stderr().write_all(&said)?;
            return Ok(Status(status.code().unwrap_or(1).clamp(1, 255) as u8));
        }
        let info = session.recorder()?.info()?;
        if info.holder == child.id() && is_stream(&info) {
            say(format_args!("process {} writes the trace; end it with: kutrace_control stop", child.id()));
            return Ok(Exit::Done.into());
        }
        thread::sleep(PERIOD);
    }
}

/// Detaches this process from the terminal, so that it continues when the terminal is gone.
///
/// # Errors
/// If the process leads a process group already.
pub fn detach() -> Result<()> {
    setsid().context("setsid")?;
    Ok(())
}

/// Returns whether there is a recording in the background.
///
/// # Errors
/// If there is no recorder.
pub fn is_running<R: Recorder>(session: &mut Session<R>) -> Result<bool> {
    let info = session.recorder()?.info()?;
    Ok(is_stream(&info) && is_ours(info.holder))
}

/// Ends the recording, and waits until its file is complete.
///
/// # Errors
/// If it cannot be ended.
pub fn end<R: Recorder>(session: &mut Session<R>) -> Result<()> {
    let Info { holder, .. } = session.recorder()?.info()?;
    let writer = Pid::from_raw(holder as i32).context("the recording has ended by itself")?;
    kill_process(writer, Signal::INT).with_context(|| format!("process {holder}"))?;
    while is_ours(holder) {
        thread::sleep(PERIOD);
    }
    say(format_args!("process {holder} has completed its file"));
    Ok(())
}

/// Error: a recording in the background already has its file.
pub fn has_its_file() -> Failure {
    Failure::new(
        "the trace is written to a file while it is recorded",
        "end it with no file name: kutrace_control stop",
    )
}

fn is_stream(info: &Info) -> bool {
    info.state == STATE_TRACING && info.flags & STREAM != 0
}

/// Returns whether a process was started by [`begin`].
fn is_ours(process: u32) -> bool {
    let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == OPTION.as_bytes())
}
