// SPDX-License-Identifier: BSD-3-Clause
//! `record`: starts, runs a command or waits, stops and writes; a signal also ends it.
//!
//! Invariants: this process holds the recorder from the start until the file is complete, so a killed process leaves no
//! trace running; afterwards the recorder is empty and as large as before.

pub mod options;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kutrace_cli::signal::SignalGuard;
use kutrace_cli::{say, Exit, Failure, Status};
use kutrace_format::abi::block::BYTES;
use kutrace_format::abi::command::WRAP;
use kutrace_format::abi::programs::Quota;
use postprocess::readable::count;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::background;
use crate::device::Recorder;
use crate::output::Output;
use crate::session::{Mode, Session};
use crate::stream::{Ring, PERIOD};
use crate::tracefs::Instance;

/// Settings of a recording, and its output.
#[derive(Debug)]
pub struct Plan {
    /// Mode of the recorder.
    pub mode: Mode,
    /// True if the trace is written while it is recorded.
    pub stream: bool,
    /// True for a recording in the background.
    pub background: bool,
    /// For a stream: size of a file in bytes before the next begins, and number of files to keep.
    pub rotate: Option<(u64, usize)>,
    /// Blocks of memory; 0 for the number set when the module was loaded.
    pub blocks: u32,
    /// Memory for the programs' marks; `None` for the default.
    pub marks: Option<Quota>,
    /// Maximum duration; if `None`, until the command ends or a signal arrives.
    pub duration: Option<Duration>,
    /// The output.
    pub output: Output,
    /// Command to run during the recording; none if empty.
    pub command: Vec<OsString>,
}

impl Plan {
    /// The ring of the stream, if it is to have many files.
    fn ring(&self) -> Option<Ring> {
        let ((size, keep), Output::File { path, existing }) = (self.rotate?, &self.output) else { return None };
        Some(Ring::new(path.clone(), *existing, size, keep))
    }
}

/// Executes a plan. The status is that of the command, if it failed or if nothing else is to be reported.
pub fn record<R: Recorder>(session: &mut Session<R>, plan: &Plan) -> Result<Status> {
    plan.output.check()?;
    if plan.rotate.is_some() && plan.output == Output::Stdout {
        return Err(Failure::new("--rotate: standard output cannot be a ring of files", "name a file: -o FILE").into());
    }
    if plan.background {
        background::detach()?;
    }
    let guard = SignalGuard::new()?;
    session.allow(plan.marks)?;
    let mut stream = match plan.stream {
        true => {
            let mut ring = plan.ring();
            let output = ring.as_mut().map_or_else(|| plan.output.clone(), Ring::next_file);
            output.check()?;
            Some(session.go_stream(plan.mode, plan.blocks, output, ring)?)
        }
        false => session.go_held(plan.mode, plan.blocks).map(|()| None)?,
    };
    let mut run = match Run::begin(&plan.command) {
        Ok(run) => run,
        Err(error) => return session.force_reset().and(Err(error)),
    };
    if !plan.background && plan.command.is_empty() && plan.duration.is_none() {
        say("recording; Ctrl-C ends it");
    }
    let until = plan.duration.map(|duration| Instant::now() + duration);
    let why = match &mut stream {
        Some(stream) => run.wait_and_write(&guard, until, || session.turn_stream(stream)),
        None => run.wait(&guard, until),
    };
    let written = why.and_then(|why| match stream {
        Some(stream) => Ok((why, session.stop_stream(stream, &plan.output)?)),
        None => Ok((why, session.stop_held(&plan.output)?)),
    });
    let (why, written) = match written {
        Ok(written) => written,
        // The file of a stream can be read as a trace.
        Err(error) if plan.stream => {
            return session.force_reset().and(Err(error)).with_context(|| plan.output.to_string())
        }
        Err(error) => return session.leave().and(Err(error)),
    };
    session.reset()?;
    run.status(why, written, &guard)
}

/// Executes a plan without the module, by tracefs: all events, or the newest that fit into the memory if the plan's mode
/// wraps.
pub fn record_by_tracefs(plan: &Plan) -> Result<Status> {
    plan.output.check()?;
    let folder = match &plan.output {
        Output::File { path, .. } => path.parent().filter(|folder| !folder.as_os_str().is_empty()),
        Output::Stdout => None,
    };
    let guard = SignalGuard::new()?;
    let (memory, wrap) = (u64::from(plan.blocks) * BYTES as u64, plan.mode.0 & WRAP != 0);
    let mut instance = Instance::new(memory, wrap, folder.unwrap_or(Path::new(".")))?;
    instance.start()?;
    let mut run = Run::begin(&plan.command)?;
    if plan.command.is_empty() && plan.duration.is_none() {
        say("recording; Ctrl-C ends it");
    }
    let until = plan.duration.map(|duration| Instant::now() + duration);
    let why = match wrap {
        true => run.wait(&guard, until),
        false => run.wait_and_write(&guard, until, || instance.drain()),
    }?;
    instance.stop()?;
    plan.output.write(|out| instance.write(out))?;
    let lost = instance.lost()?;
    drop(instance);
    let events = count(lost, "event", "events");
    say(format_args!("{}: by tracefs, {events} lost; the module costs a tenth of it and sees more", plan.output));
    run.status(why, if lost > 0 { Exit::Lost } else { Exit::Done }, &guard)
}

/// Reason for the end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The command has ended.
    Ended,
    /// The time is over.
    Time,
    /// A signal arrived.
    Asked,
}

/// The running command, if any.
struct Run(Option<(Child, OwnedFd)>);

impl Run {
    fn begin(words: &[OsString]) -> Result<Run> {
        let Some((program, arguments)) = words.split_first() else { return Ok(Run(None)) };
        let begin = || -> io::Result<_> {
            let child = Command::new(program).args(arguments).spawn()?;
            let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
            Ok((child, handle))
        };
        Ok(Run(Some(begin().with_context(|| program.to_string_lossy().into_owned())?)))
    }

    /// Waits for the first of: the end of the command, a signal, `until`.
    fn wait(&self, guard: &SignalGuard, until: Option<Instant>) -> Result<Why> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.map(Timespec::try_from).transpose()?;
            let mut fds = vec![PollFd::new(guard, PollFlags::IN)];
            fds.extend(self.0.iter().map(|(_, handle)| PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN)));
            match poll(&mut fds, left.as_ref()) {
                Ok(0) => return Ok(Why::Time),
                Ok(_) if !fds[0].revents().is_empty() => {
                    guard.take();
                    return Ok(Why::Asked);
                }
                Ok(_) => return Ok(Why::Ended),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error).context("waiting"),
            }
        }
    }

    /// Like [`Run::wait`], and calls `write` periodically.
    fn wait_and_write(
        &self,
        guard: &SignalGuard,
        until: Option<Instant>,
        mut write: impl FnMut() -> Result<()>,
    ) -> Result<Why> {
        loop {
            let next = Instant::now() + PERIOD;
            match self.wait(guard, Some(until.map_or(next, |until| until.min(next))))? {
                Why::Time if until.is_none_or(|until| Instant::now() < until) => write()?,
                why => return Ok(why),
            }
        }
    }

    /// The status of a recording that is written: the command's, if that failed.
    fn status(&mut self, why: Why, written: Exit, guard: &SignalGuard) -> Result<Status> {
        Ok(match (self.end(why, guard)?, why) {
            (Some(status), _) if status != Status(0) => status,
            (_, Why::Asked) => Exit::Interrupted.into(),
            _ => written.into(),
        })
    }

    /// The command's status, after it has ended; an interrupted command is signalled and not waited for.
    fn end(&mut self, why: Why, guard: &SignalGuard) -> Result<Option<Status>> {
        let why = match (why, &self.0) {
            (Why::Time, Some(_)) => self.wait(guard, None)?,
            _ => why,
        };
        let Some((child, handle)) = &mut self.0 else { return Ok(None) };
        if why == Why::Asked {
            // It may have ended on its own, by the same Ctrl-C.
            let _ = pidfd_send_signal(&*handle, Signal::TERM);
            return Ok(None);
        }
        let status = child.wait().context("the command")?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Ok(Some(Status(code as u8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::output::IfExists;
    use crate::session::tests::session;

    fn plan(path: &Path, command: &[&str]) -> Plan {
        Plan {
            mode: Mode(0),
            stream: false,
            rotate: None,
            background: false,
            blocks: 7,
            marks: None,
            duration: None,
            output: Output::new(Some(path.to_owned()), IfExists::Keep),
            command: command.iter().map(OsString::from).collect(),
        }
    }

    #[test]
    fn a_command_is_run_between_start_and_stop_and_its_status_passed_on() {
        let directory = tempfile::tempdir().unwrap();
        for (name, code, status) in [("0", "true", 0), ("7", "exit 7", 7), ("9", "kill -9 $$", 137)] {
            let path = directory.path().join(name);
            let mut session = session(0);
            assert_eq!(record(&mut session, &plan(&path, &["sh", "-c", code])).unwrap(), Status(status));
            assert!(path.exists());
            assert_eq!(*session.recorder().unwrap().log.borrow(), ["acquire", "reset to 7", "start", "stop", "reset"]);
        }
    }

    #[test]
    fn what_programs_may_have_is_said_before_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let marks = Some(Quota { process: 1 << 20, all: 64 << 20 });
        let mut session = session(0);
        record(&mut session, &Plan { marks, ..plan(&directory.path().join("t"), &["true"]) }).unwrap();
        assert_eq!(
            *session.recorder().unwrap().log.borrow(),
            ["allow", "acquire", "reset to 7", "start", "stop", "reset"]
        );
    }

    #[test]
    fn losses_show_unless_the_command_has_something_to_say() {
        let directory = tempfile::tempdir().unwrap();
        let run = |name: &str, code| record(&mut session(5), &plan(&directory.path().join(name), &["sh", "-c", code]));
        assert_eq!(run("a", "true").unwrap(), Exit::Lost.into());
        assert_eq!(run("b", "exit 1").unwrap(), Status(1));
    }

    #[test]
    fn a_time_ends_the_recording_and_not_the_command() {
        let directory = tempfile::tempdir().unwrap();
        let (path, late) = (directory.path().join("t"), directory.path().join("late"));
        let (file, late_file) = (path.display(), late.display());
        // The command outlives the recording, however long that takes to be written; without a timed end of the
        // recording it gives up.
        let code =
            format!("for i in $(seq 600); do test -e {file} && touch {late_file} && break; sleep 0.1; done; exit 5");
        let plan = Plan { duration: Some(Duration::from_millis(20)), ..plan(&path, &["sh", "-c", &code]) };
        assert_eq!(record(&mut session(0), &plan).unwrap(), Status(5));
        assert!(late.exists(), "the file was there while the command ran on");
    }

    #[test]
    fn a_command_that_cannot_be_run_leaves_neither_file_nor_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        let mut session = session(0);
        let error = record(&mut session, &plan(&path, &["/no/such/program"])).unwrap_err();
        assert!(format!("{error:#}").starts_with("/no/such/program: No such file"), "{error:#}");
        assert!(!path.exists());
        let log = session.recorder().unwrap().log.borrow().clone();
        assert_eq!(log, ["acquire", "reset to 7", "start", "stop", "reset"]);
    }

    #[test]
    fn a_stream_has_its_name_from_the_start_and_its_end_last() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        let mut session = session(0);
        let code = format!("test -s {}", path.display());
        let plan = Plan { stream: true, ..plan(&path, &["sh", "-c", &code]) };
        assert_eq!(record(&mut session, &plan).unwrap(), Status(0));
        assert_eq!(*session.recorder().unwrap().log.borrow(), ["acquire", "reset to 7", "start", "stop", "reset"]);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(postprocess::raw::file::size(&bytes), Some(bytes.len()));
        let layout = postprocess::raw::file::split(&bytes).unwrap();
        assert_eq!((layout.blocks.len(), layout.header.blocks, layout.cut), (2, 2, false));
        assert_eq!(layout.header.stop.tsc, 2);
    }

    #[test]
    fn a_stream_that_cannot_be_written_leaves_no_trace_running() {
        let mut session = session(0);
        let plan = Plan {
            stream: true,
            output: Output::new(Some("/no/such/folder/t".into()), IfExists::Keep),
            ..plan(Path::new(""), &["true"])
        };
        let error = record(&mut session, &plan).unwrap_err();
        assert!(format!("{error:#}").starts_with("/no/such/folder/t: No such file"), "{error:#}");
        assert_eq!(*session.recorder().unwrap().log.borrow(), ["acquire", "reset to 7"]);
    }

    #[test]
    fn nothing_is_started_where_the_file_is_in_the_way() {
        let directory = tempfile::tempdir().unwrap();
        let mut session = session(0);
        assert!(record(&mut session, &plan(directory.path(), &["true"])).is_err());
        assert!(session.recorder().unwrap().log.borrow().is_empty());
    }
}
