// SPDX-License-Identifier: BSD-3-Clause
//! `sql`: a query on raw traces and tables, for `kutrace_sql` to answer: a program of its own, since its engine is
//! larger than everything else here and takes longer to build.
//!
//! Invariant: the tables of raw traces are in a temporary folder that is gone in the end, also after Ctrl-C.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use kutrace_cli::signal::{Interrupted, SignalGuard};
use kutrace_cli::{Exit, Failure, Status};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use crate::arguments::Sql;

/// The program with the engine.
const ENGINE: &str = "kutrace_sql";

/// Answers a query; the status is the engine's, or tells that events of a raw trace were lost.
///
/// # Errors
/// If there is no engine, or a signal asks for the end.
pub fn sql(asked: &Sql) -> Result<Status> {
    let path = env::var_os("PATH").unwrap_or_default();
    let engine = engine(&env::current_exe().context("kutrace_control")?, &path)?;
    let guard = SignalGuard::new()?;
    let made = tempfile::Builder::new().prefix("kutrace-sql-").tempdir().context("a folder for tables")?;
    let has_rows = |file: &&PathBuf| file.is_dir() || file.extension().is_some_and(|end| end == "parquet");
    let (tables, traces): (Vec<&PathBuf>, Vec<&PathBuf>) = asked.files.iter().partition(has_rows);
    let mut whole = Exit::Done.into();
    for trace in &traces {
        let mut export = Command::new(env::current_exe().context("kutrace_control")?);
        export.args(["export", "--quiet", "--parquet"]).arg(made.path()).arg("--").arg(trace);
        match run(export, &guard).context("export")? {
            status if status == Exit::Done.into() => {}
            status if status == Exit::Lost.into() => whole = status,
            status => return Ok(status),
        }
    }
    let mut query = Command::new(&engine);
    query.args(asked.json.then_some("--json")).args(asked.csv.then_some("--csv")).arg("--").args(tables);
    query.args((!traces.is_empty()).then_some(made.path())).arg(&asked.query);
    let status = run(query, &guard).with_context(|| engine.display().to_string())?;
    Ok(if status == Exit::Done.into() { whole } else { status })
}

/// Where the engine is: beside this program, or else on the path.
fn engine(own: &Path, path: &OsStr) -> Result<PathBuf> {
    let beside = own.parent().map(Path::to_owned);
    let found = beside.into_iter().chain(env::split_paths(path)).map(|folder| folder.join(ENGINE));
    found.into_iter().find(|file| file.is_file()).ok_or_else(|| {
        let hint = "in the sources of KUtrace: cargo install --locked --path postprocess/sql";
        Failure::new(format_args!("{ENGINE}: neither beside kutrace_control nor in PATH"), hint).into()
    })
}

/// The status of a command in the end, which a signal brings about.
fn run(mut command: Command, guard: &SignalGuard) -> Result<Status> {
    let mut child = command.spawn()?;
    let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let mut fds = [PollFd::new(&handle, PollFlags::IN), PollFd::new(guard, PollFlags::IN)];
    loop {
        match poll(&mut fds, None) {
            Ok(_) => break,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error).context("waiting"),
        }
    }
    if guard.take() {
        // It may have gone by itself, at the same Ctrl-C.
        let _ = pidfd_send_signal(&handle, Signal::TERM);
        child.wait()?;
        return Err(Interrupted.into());
    }
    let code = child.wait()?.code();
    Ok(code.map_or(Exit::Failed.into(), |code| Status(code as u8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_beside_the_program_comes_before_that_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let [beside, on_path] = ["beside", "path"].map(|name| folder.path().join(name));
        let own = beside.join("kutrace_control");
        let found = || engine(&own, on_path.as_os_str()).map_err(|error| error.to_string());
        assert_eq!(found(), Err("kutrace_sql: neither beside kutrace_control nor in PATH".to_string()));
        for place in [&on_path, &beside] {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join(ENGINE), "").unwrap();
            assert_eq!(found(), Ok(place.join(ENGINE)));
        }
    }
}
