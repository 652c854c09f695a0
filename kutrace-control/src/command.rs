// SPDX-License-Identifier: BSD-3-Clause
//! The command line.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use kutrace_format::abi::command::{IPC, LLC, WRAP};

use crate::device::Device;
use crate::report::{self, Exit};
use crate::session::{Mode, Session};
use crate::target::{Existing, Target};
use crate::words::{self, Giver};

const AFTER: &str = "\
Without a command, words are read from standard input; an unknown one lists all.
Needs root, or CAP_PERFMON or CAP_SYS_ADMIN, and the module loaded.
Exit status: 0 done, 1 failed, 2 not understood, 3 done but events were lost.

Examples:
  kutrace_control go; sleep 2; kutrace_control stop t.trace
  printf 'gowrap\\nwait 10\\nstop t.trace\\n' | kutrace_control";

/// Start and stop the KUtrace recorder, and write its trace to a file.
#[derive(Debug, Parser)]
#[command(name = "kutrace_control", version, after_help = AFTER)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Record until the memory is full.
    #[command(alias = "1")]
    Go,
    /// Record, and keep the newest when the memory is full.
    Gowrap,
    /// Go with instructions per cycle; gollc: cache misses, goipcllc: both.
    Goipc,
    #[command(hide = true)]
    Gollc,
    #[command(hide = true)]
    Goipcllc,
    #[command(hide = true, alias = "gowrapipc")]
    Goipcwrap,
    #[command(hide = true)]
    Gollcwrap,
    #[command(hide = true)]
    Goipcllcwrap,
    /// Stop, and write the trace; again, to write it once more.
    #[command(alias = "0")]
    Stop {
        /// Replace FILE if it is there.
        #[arg(short, long)]
        force: bool,
        /// Where to; `-` is standard output [default: ku_YYYYMMDD_HHMMSS_host_pid.trace, local time]
        file: Option<PathBuf>,
    },
    /// In wrap mode: write the trace so far, and go on.
    Snapshot {
        /// Replace FILE if it is there.
        #[arg(short, long)]
        force: bool,
        /// Where to [default: as for stop]
        file: Option<PathBuf>,
    },
    /// Show the state of the recorder.
    Status,
}

/// Does what is asked.
pub fn run(arguments: Arguments) -> Result<Exit> {
    let mut session = Session::<Device>::new();
    match arguments.command {
        Some(Command::Go) => session.go(Mode(0))?,
        Some(Command::Gowrap) => session.go(Mode(WRAP))?,
        Some(Command::Goipc) => session.go(Mode(IPC))?,
        Some(Command::Gollc) => session.go(Mode(LLC))?,
        Some(Command::Goipcllc) => session.go(Mode(IPC | LLC))?,
        Some(Command::Goipcwrap) => session.go(Mode(IPC | WRAP))?,
        Some(Command::Gollcwrap) => session.go(Mode(LLC | WRAP))?,
        Some(Command::Goipcllcwrap) => session.go(Mode(IPC | LLC | WRAP))?,
        Some(Command::Stop { force, file }) => {
            return session.stop(&Target::new(file, existing(force)));
        }
        Some(Command::Snapshot { force, file }) => {
            return session.snapshot(&Target::new(file, existing(force)));
        }
        Some(Command::Status) => report::print(&session.status()?)?,
        None => {
            let giver = if io::stdin().is_terminal() { Giver::Person } else { Giver::Script };
            return words::run(&mut session, io::stdin().lock(), giver);
        }
    }
    Ok(Exit::Done)
}

fn existing(force: bool) -> Existing {
    match force {
        true => Existing::Replace,
        false => Existing::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_help_fits_a_screen_and_ends_with_two_examples() {
        let help = Arguments::command().term_width(80).render_help().to_string();
        assert!(help.lines().count() <= 24, "{help}");
        assert!(help.lines().all(|line| line.len() <= 80), "{help}");
        let examples = help.trim_end().lines().rev().take_while(|line| *line != "Examples:");
        assert_eq!(examples.count(), 2);
    }

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
