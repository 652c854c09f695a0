// SPDX-License-Identifier: BSD-3-Clause
//! The command line.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use kutrace_format::abi::command::{IPC, LLC, WRAP};

use crate::check::{self, Grade};
use crate::device::Device;
use crate::mark::Mark;
use crate::quantity::{blocks, duration};
use crate::record::{record, Plan};
use crate::report::{self, Exit, Status};
use crate::session::{Mode, Session};
use crate::show;
use crate::target::{Existing, Target};
use crate::words::{self, Giver};

const AFTER: &str = "\
Without a command, words are read from standard input, as the original does.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but events lost, 130 Ctrl-C

Examples:
  kutrace_control record -o t.trace -- make -j4; kutrace_control html t.trace
  kutrace_control gowrap; sleep 60; kutrace_control snapshot t.trace";

/// Without `--help` and `--version`, so that it fits a screen.
const TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

Commands:
{subcommands}{after-help}";

const AFTER_RECORD: &str = "\
The exit status is that of COMMAND. Nothing stays in the recorder.

Examples:
  kutrace_control record -d 500ms -b 256M -o t.trace
  kutrace_control record --wrap -o t.trace -- ./server --port 80";

/// Record what every CPU does, and show it
#[derive(Debug, Parser)]
#[command(name = "kutrace_control", version, after_help = AFTER, max_term_width = 80)]
#[command(disable_help_subcommand = true, help_template = TEMPLATE)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Write manual pages and completions below this folder, for packages
    #[arg(long, value_name = "DIR", hide = true)]
    generate: Option<PathBuf>,
    /// The original's `-force`: empty the recorder first, whatever it does.
    #[arg(skip)]
    force: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(Record),
    /// Record till the memory is full; also gowrap, goipc, goipcllcwrap
    #[command(alias = "1")]
    Go,
    #[command(hide = true)]
    Gowrap,
    #[command(hide = true)]
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
    /// Stop, and write the trace; again, to write it once more
    #[command(alias = "0")]
    Stop(Output),
    /// In wrap mode: write the trace so far, and go on
    Snapshot(Output),
    /// Show the state of the recorder
    Status,
    /// Empty the recorder
    Reset {
        /// Also while it traces
        #[arg(short, long)]
        force: bool,
    },
    /// Put a mark into the running trace
    Mark {
        /// Up to six of a-z 0-9 - . /, or a number
        #[arg(value_parser = Mark::parse)]
        text: Mark,
    },
    /// Show where the time of a trace went, in the terminal
    Summary {
        /// A raw trace; `-` is standard input
        file: PathBuf,
        /// Lines of each list
        #[arg(short, long, value_name = "N", default_value_t = 10)]
        top: usize,
    },
    /// Make the page of a trace
    Html(Page),
    /// Check whether this machine can record, and say what to do
    Check,
    /// Print the completions of a shell
    Completions {
        /// Which
        shell: Shell,
    },
    #[command(hide = true)]
    Wait {
        #[arg(value_parser = duration)]
        time: Duration,
    },
    #[command(hide = true)]
    Quit,
}

/// Record while a command runs, or until Ctrl-C, and write the trace
#[derive(Debug, Args)]
#[command(after_help = AFTER_RECORD)]
struct Record {
    /// Stop after this time: 2, 500ms, 1m; COMMAND runs on
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Memory for the trace: 64M, 2G [default: the module's]
    #[arg(short, long, value_name = "SIZE", value_parser = blocks)]
    buffer: Option<u32>,
    /// Count instructions per cycle
    #[arg(long)]
    ipc: bool,
    /// Count misses of the last-level cache
    #[arg(long)]
    llc: bool,
    /// Keep the newest when the memory is full, not the oldest
    #[arg(long)]
    wrap: bool,
    /// Where to; `-` is standard output [default: ku_DATE_TIME_host_pid.trace]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE if it is there
    #[arg(short, long)]
    force: bool,
    /// What to run and record
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Page {
    /// A raw trace; `-` is standard input
    file: PathBuf,
    /// Where to; `-` is standard output [default: FILE with the ending html]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Title of the page [default: the name of FILE]
    #[arg(long)]
    title: Option<String>,
    /// Replace OUT if it is there
    #[arg(short, long)]
    force: bool,
}

#[derive(Debug, Args)]
struct Output {
    /// Replace FILE if it is there
    #[arg(short, long)]
    force: bool,
    /// Where to; `-` is standard output [default: ku_DATE_TIME_host_pid.trace]
    file: Option<PathBuf>,
}

impl Arguments {
    /// Those of this process. `-force`, the original's, is not taken for single letters.
    pub fn of_process() -> Arguments {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        match arguments.get(1).is_some_and(|argument| argument == "-force") {
            true => Arguments { command: None, generate: None, force: true },
            false => Arguments::parse_from(arguments),
        }
    }
}

/// Does what is asked.
pub fn run(arguments: Arguments) -> Result<Status> {
    if let Some(folder) = arguments.generate {
        return show::manual(Arguments::command(), &folder).map(Status::from);
    }
    let mut session = Session::<Device>::new();
    match arguments.command {
        Some(command) => one(&mut session, command),
        None => {
            let giver = if io::stdin().is_terminal() { Giver::Person } else { Giver::Script };
            let first = if arguments.force { &b"-force\n"[..] } else { b"" };
            words::run(&mut session, first.chain(io::stdin().lock()), giver).map(Status::from)
        }
    }
}

fn one(session: &mut Session<Device>, command: Command) -> Result<Status> {
    let done = |()| Exit::Done;
    let exit = match command {
        Command::Record(options) => return record(session, &options.plan()),
        Command::Go => session.go(Mode(0)).map(done)?,
        Command::Gowrap => session.go(Mode(WRAP)).map(done)?,
        Command::Goipc => session.go(Mode(IPC)).map(done)?,
        Command::Gollc => session.go(Mode(LLC)).map(done)?,
        Command::Goipcllc => session.go(Mode(IPC | LLC)).map(done)?,
        Command::Goipcwrap => session.go(Mode(IPC | WRAP)).map(done)?,
        Command::Gollcwrap => session.go(Mode(LLC | WRAP)).map(done)?,
        Command::Goipcllcwrap => session.go(Mode(IPC | LLC | WRAP)).map(done)?,
        Command::Stop(output) => session.stop(&output.target())?,
        Command::Snapshot(output) => session.snapshot(&output.target())?,
        Command::Status => report::print(&session.status()?).map(done)?,
        Command::Reset { force: true } => session.force_reset().map(done)?,
        Command::Reset { force: false } => session.reset().map(done)?,
        Command::Mark { text } => text.insert().map(done)?,
        Command::Summary { file, top } => show::summary(&file, top)?,
        Command::Html(page) => show::page(&page.file, page.title.clone(), &page.target())?,
        Command::Check => fitness()?,
        Command::Completions { shell } => report::print(&completions(shell)).map(done)?,
        Command::Wait { time } => {
            thread::sleep(time);
            Exit::Done
        }
        Command::Quit => session.off().map(done)?,
    };
    Ok(exit.into())
}

impl Record {
    fn plan(self) -> Plan {
        let flags = [(self.ipc, IPC), (self.llc, LLC), (self.wrap, WRAP)];
        Plan {
            mode: Mode(flags.iter().filter(|(asked, _)| *asked).map(|(_, flag)| flag).sum()),
            blocks: self.buffer.unwrap_or_default(),
            duration: self.duration,
            target: Target::new(self.output, existing(self.force)),
            command: self.command,
        }
    }
}

impl Output {
    fn target(self) -> Target {
        Target::new(self.file, existing(self.force))
    }
}

impl Page {
    /// Beside the trace unless told otherwise.
    fn target(&self) -> Target {
        let beside = || if self.file == Path::new("-") { self.file.clone() } else { self.file.with_extension("html") };
        Target::new(Some(self.output.clone().unwrap_or_else(beside)), existing(self.force))
    }
}

fn existing(force: bool) -> Existing {
    match force {
        true => Existing::Replace,
        false => Existing::Keep,
    }
}

/// What keeps this machine from recording, if anything does.
fn fitness() -> Result<Exit> {
    let lines = check::lines::<Device>();
    report::print(&check::table(&lines))?;
    Ok(match lines.iter().any(|line| line.grade == Grade::Wrong) {
        true => Exit::Failed,
        false => Exit::Done,
    })
}

fn completions(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kutrace_control", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The help of a command at a terminal of the usual width, checked to fit its height.
    fn help(words: &[&str]) -> String {
        let words = [&["kutrace_control"], words, &["--help"]].concat();
        let help = Arguments::command().term_width(80).try_get_matches_from(words).unwrap_err().to_string();
        assert!(help.lines().count() <= 24, "{} lines:\n{help}", help.lines().count());
        assert!(help.lines().all(|line| line.len() <= 80), "{help}");
        help
    }

    #[test]
    fn every_help_fits_a_screen_and_the_main_ones_end_with_two_examples() {
        for help in [help(&[]), help(&["record"])] {
            let examples = help.trim_end().lines().rev().take_while(|line| *line != "Examples:");
            assert_eq!(examples.count(), 2, "{help}");
        }
        Arguments::command().get_subcommands().for_each(|sub| drop(help(&[sub.get_name()])));
    }

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
