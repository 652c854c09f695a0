// SPDX-License-Identifier: BSD-3-Clause
//! Events of LTTng-UST, timed as marks are, by tests/bench/lttng.c. The session keeps the newest events in its buffers,
//! so that no process writes them to a file in that time.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::progress::{self, output, tied};
use crate::{packages, place};

/// Name of each way in the program and in the table.
pub const WAYS: [(&str, &str); 3] = [
    ("lttng_mark", "an event of LTTng-UST"),
    ("lttng_value", "the same with a number"),
    ("lttng_off", "the same without a recording"),
];
/// The session.
const SESSION: &str = "kutrace-bench";
/// Recorded events.
const EVENTS: &str = "kutrace_bench:mark,kutrace_bench:value";

/// Output of the program.
///
/// # Errors
/// If LTTng cannot be installed, or does not record.
pub fn measure(dir: &Path) -> Result<String> {
    packages::ensure_rivals()?;
    let program = build(dir)?;
    let daemon = Daemon::start(dir)?;
    let session = Session::start(dir)?;
    let said = output(tied("env").arg(&program))?;
    drop(session);
    drop(daemon);
    Ok(said)
}

fn build(dir: &Path) -> Result<PathBuf> {
    let (folder, program) = (place::checkout().join("tests/bench"), dir.join("lttng"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Werror", "-I"]).arg(&folder).arg("-o").arg(&program).arg(folder.join("lttng.c"));
    gcc.args(["-llttng-ust", "-ldl"]);
    progress::run("bench: compiling for LTTng", &mut gcc, &dir.join("gcc.log"))?;
    Ok(program)
}

/// The daemon of sessions, if it is ours: where one runs already, that is used and left running.
struct Daemon(Option<PathBuf>);

impl Daemon {
    fn start(dir: &Path) -> Result<Daemon> {
        let id = dir.join("sessiond.pid");
        let mut daemon = Command::new("lttng-sessiond");
        daemon.args(["--daemonize", "--no-kernel", "--pidfile"]).arg(&id);
        let started = daemon.output().context("bench: lttng-sessiond cannot be started")?.status.success();
        Ok(Daemon(started.then_some(id)))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(id) = self.0.as_ref().and_then(|file| std::fs::read_to_string(file).ok()) {
            let _ = Command::new("kill").arg(id.trim()).status();
        }
    }
}

/// A session that records.
struct Session;

impl Session {
    fn start(dir: &Path) -> Result<Session> {
        let lttng = |words: &[&str]| output(tied("lttng").arg("--no-sessiond").args(words));
        let traces = dir.join("lttng.traces").display().to_string();
        lttng(&["create", SESSION, "--snapshot", "--output", &traces])?;
        let session = Session;
        let size = ["--subbuf-size", "256K", "--num-subbuf", "4", "--overwrite", "all"];
        lttng(&[&["enable-channel", "-u", "-s", SESSION][..], &size].concat())?;
        lttng(&["enable-event", "-u", "-s", SESSION, "-c", "all", EVENTS])?;
        lttng(&["start", SESSION])?;
        Ok(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = Command::new("lttng").args(["--no-sessiond", "destroy", SESSION]).output();
    }
}
