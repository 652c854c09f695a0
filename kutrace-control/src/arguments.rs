// SPDX-License-Identifier: BSD-3-Clause
//! Commands, options and help of the command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use kutrace_format::abi::command::{Ports, IPC, LLC, WRAP};
use kutrace_format::abi::programs::Quota;
use kutrace_tools::ask::{listed_by_why, Asked, Between, Requests};
use postprocess::sink::summary::By;

use crate::at::TimeOfDay;
use crate::mark::Mark;
use crate::output::{IfExists, Output};
use crate::ports;
use crate::quantity::{duration, quota};
use crate::record::options::{Record, AFTER_RECORD};
use crate::session::Mode;
use crate::top::options::{Top, AFTER_TOP};
use crate::tracepoint::Wanted;
use crate::watch::options::{Watch, AFTER_WATCH};

/// The text after the list of commands.
macro_rules! after {
    () => {
        "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but events lost, 130 Ctrl-C
Examples:
  kutrace_control record -o t.trace -- make -j4; kutrace_control html t.trace
  kutrace_control gowrap; sleep 60; kutrace_control snapshot t.trace"
    };
}

/// The text after the list of commands, as a constant.
const AFTER: &str = after!();

/// Has no `--help`, `--version` or empty line before the end, so that it fits on a screen.
const TEMPLATE: &str =
    concat!("{about}\n{usage-heading} {usage}; without one, commands are read from stdin\n{subcommands}\n", after!());

const AFTER_GO: &str = "\
Examples:
  kutrace_control go; sleep 5; kutrace_control stop t.trace
  kutrace_control go --stream -o t.trace; sleep 60; kutrace_control stop";

const AFTER_STOP: &str = "\
Examples:
  kutrace_control stop t.trace
  kutrace_control stop - | rawtoevent | grep -w futex";

const AFTER_SNAPSHOT: &str = "\
Examples:
  kutrace_control gowrap; sleep 60; kutrace_control snapshot t.trace
  while sleep 60; do kutrace_control snapshot --force t.trace; done";

const AFTER_STATUS: &str = "\
Examples:
  kutrace_control status
  watch kutrace_control status";

const AFTER_RESET: &str = "\
Examples:
  kutrace_control reset
  kutrace_control reset --force; kutrace_control gowrap";

const AFTER_MARK: &str = "\
Examples:
  kutrace_control mark start; sleep 1; kutrace_control mark /start
  kutrace_control mark 4711";

const AFTER_SUMMARY: &str = "\
Examples:
  kutrace_control summary --by cgroup t.trace
  kutrace_control stop - | kutrace_control summary --top 3 -";

const AFTER_WHY: &str = "\
Examples:
  kutrace_control why t.trace --client redis-benchmark
  kutrace_control why t.trace --call fsync --slow 5";

const AFTER_DIFF: &str = "\
Status: 0 no difference, 1 difference, 2 no answer, 3 as 0 but events lost
Examples:
  kutrace_control diff old.trace new.trace --client wrk --fail-above 5%
  kutrace_control diff old.trace new.trace --call fsync";

const AFTER_HTML: &str = "\
Examples:
  kutrace_control html --serve nginx t.trace
  ssh box 'kutrace_control stop -' | kutrace_control html - -o t.html";

/// Clap's own usage does not fit on one line.
const USAGE_EXPORT: &str = "kutrace_control export --perfetto OUT|--parquet DIR [FILE]";

const AFTER_EXPORT: &str = "\
Examples:
  kutrace_control export --perfetto t.pftrace t.trace
  kutrace_control stop - | kutrace_control export --parquet tables -";

const AFTER_MERGE: &str = "\
Examples:
  kutrace_control merge client.trace server.trace -o both.trace
  kutrace_control merge web.trace app.trace db.trace -o all.trace";

const AFTER_RECOVER: &str = "\
Examples:
  kutrace_control recover /var/crash/vmcore -o crash.trace
  kutrace_control recover --boot -o before.trace";

const AFTER_CHECK: &str = "\
Examples:
  kutrace_control check
  kutrace_control check && kutrace_control record -d 10 -o t.trace";

const AFTER_COMPLETIONS: &str = "\
Examples:
  kutrace_control completions fish | source
  kutrace_control completions bash > /etc/bash_completion.d/kutrace_control";

const AFTER_WAIT: &str = "\
Examples:
  kutrace_control wait 500ms
  printf 'go\\nwait 2\\nstop t.trace\\n' | kutrace_control";

const AFTER_QUIT: &str = "\
Examples:
  kutrace_control quit
  printf 'go\\nwait 2\\nquit\\n' | kutrace_control; kutrace_control stop t.trace";

/// Record what every CPU does, and show it
#[derive(Debug, Parser)]
#[command(name = "kutrace_control", version, after_help = AFTER, max_term_width = 80)]
#[command(disable_help_subcommand = true, help_template = TEMPLATE)]
pub struct Arguments {
    /// Command to run; none if commands are read from standard input.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The original's `-force`: empty the recorder first, whatever it does.
    #[arg(skip)]
    pub force: bool,
}

/// One command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record while a command runs, or until Ctrl-C, and write the trace
    #[command(after_help = AFTER_RECORD)]
    Record(Record),
    /// One of the starts.
    #[command(flatten)]
    Go(Go),
    /// Stop, and write the trace; repeat to write it again
    #[command(alias = "0", after_help = AFTER_STOP)]
    Stop {
        /// Replace FILE if it exists
        #[arg(short, long)]
        force: bool,
        /// Omit the names of functions
        #[arg(long)]
        no_symbols: bool,
        /// Output file; `-` for standard output [default: ku_DATE_TIME_host_pid.trace]
        file: Option<PathBuf>,
    },
    /// Write the trace so far, and keep recording (wrap mode)
    #[command(after_help = AFTER_SNAPSHOT)]
    Snapshot {
        /// Replace FILE if it exists
        #[arg(short, long)]
        force: bool,
        /// Omit the names of functions
        #[arg(long)]
        no_symbols: bool,
        /// Output file [default: ku_DATE_TIME_host_pid.trace]
        file: Option<PathBuf>,
    },
    /// Keep the moments at which something takes too long (wrap mode)
    #[command(after_help = AFTER_WATCH)]
    Watch(Watch),
    /// Show where the time goes, once a second
    #[command(after_help = AFTER_TOP)]
    Top(Top),
    /// Show the state of the recorder
    #[command(after_help = AFTER_STATUS)]
    Status,
    /// Clear the recorder
    #[command(after_help = AFTER_RESET)]
    Reset {
        /// Clear it even while it records
        #[arg(short, long)]
        force: bool,
    },
    /// Put a mark into the running trace
    #[command(after_help = AFTER_MARK)]
    Mark {
        /// Up to six of a-z 0-9 - . /, or a number
        #[arg(value_parser = Mark::parse)]
        text: Mark,
    },
    /// Show where the time of a trace went, in the terminal
    #[command(after_help = AFTER_SUMMARY)]
    Summary {
        /// Input.
        #[command(flatten)]
        trace: TraceFile,
        /// Lines per list
        #[arg(short, long, value_name = "N", default_value_t = 10)]
        top: usize,
        /// Add up threads by program or cgroup
        #[arg(long, default_value = "program")]
        by: By,
        /// Print JSON, as described in docs/summary.schema.json
        #[arg(long)]
        json: bool,
    },
    /// Explain where requests spent their time, and why some are slow
    #[command(after_help = AFTER_WHY)]
    Why(Why),
    /// Show whether requests are slower in a second trace, and why
    #[command(after_help = AFTER_DIFF)]
    Diff(Diff),
    /// Make an HTML page from a trace
    #[command(after_help = AFTER_HTML, mut_args(listed_by_why))]
    Html(Page),
    /// Write a trace for Perfetto, or as Parquet tables
    #[command(after_help = AFTER_EXPORT, override_usage = USAGE_EXPORT)]
    Export(Export),
    /// Join the traces of several machines, on the clock of the first
    #[command(after_help = AFTER_MERGE)]
    Merge(Merge),
    /// Extract the trace of a crashed kernel from its memory
    #[command(after_help = AFTER_RECOVER)]
    Recover(Recover),
    /// Check whether this machine can record, and suggest fixes
    #[command(after_help = AFTER_CHECK)]
    Check,
    /// Print completions for a shell
    #[command(after_help = AFTER_COMPLETIONS)]
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Sleep
    #[command(hide = true, after_help = AFTER_WAIT)]
    Wait {
        /// Duration: 2, 500ms, 1m
        #[arg(value_parser = duration)]
        time: Duration,
    },
    /// Stop without writing the trace
    #[command(hide = true, after_help = AFTER_QUIT)]
    Quit,
}

/// The starts, each with its mode in its name.
#[derive(Clone, Debug, Subcommand)]
pub enum Go {
    /// Record until the buffer is full; also gowrap, goipc, goipcllcwrap
    #[command(alias = "1", after_help = AFTER_GO)]
    Go {
        /// Options of the start
        #[command(flatten)]
        start: Start,
        /// Record in the background to a file, until `stop`
        #[arg(long)]
        stream: bool,
        /// Options of record: -o FILE --rotate 1G --keep 10
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, requires = "stream", value_name = "RECORD_OPTIONS")]
        options: Vec<OsString>,
    },
    /// Record, replacing the oldest events when the buffer is full
    #[command(hide = true, after_help = AFTER_GO)]
    Gowrap(Start),
    /// Record, and count instructions per cycle (experimental)
    #[command(hide = true, after_help = AFTER_GO)]
    Goipc(Start),
    /// Record, and count misses of the last-level cache (experimental)
    #[command(hide = true, after_help = AFTER_GO)]
    Gollc(Start),
    /// Record, and count both (experimental)
    #[command(hide = true, after_help = AFTER_GO)]
    Goipcllc(Start),
    /// Like goipc, wrapping
    #[command(hide = true, alias = "gowrapipc", after_help = AFTER_GO)]
    Goipcwrap(Start),
    /// Like gollc, wrapping
    #[command(hide = true, after_help = AFTER_GO)]
    Gollcwrap(Start),
    /// Like goipcllc, wrapping
    #[command(hide = true, after_help = AFTER_GO)]
    Goipcllcwrap(Start),
}

/// Options of the starts.
#[derive(Args, Clone, Debug)]
pub struct Start {
    /// Wait until this time of the day: 16:30:00, or 15:30:00Z in UTC
    #[arg(long, value_name = "TIME", value_parser = TimeOfDay::parse)]
    pub at: Option<TimeOfDay>,
    /// Record TCP and UDP packets too: all, or ports 80,6379
    #[arg(long, value_name = "PORTS", value_parser = ports::parse)]
    pub packets: Option<Ports>,
    /// Additional events to record.
    #[command(flatten)]
    pub wanted: Wanted,
    /// Memory for marks: of each program, of all [default: 4M,64M]
    #[arg(long, hide = true, value_name = "EACH,ALL", value_parser = quota)]
    pub marks_memory: Option<Quota>,
}

/// Input, named as in the tools that turn one kind of file into another.
#[derive(Debug, Args)]
pub struct TraceFile {
    /// A raw trace, or -i FILE; standard input to its end if absent or `-`
    file: Option<PathBuf>,
    /// The same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", hide = true)]
    input: Option<PathBuf>,
}

impl TraceFile {
    /// Its name, `-` for standard input.
    pub fn file(&self) -> &Path {
        self.input.as_ref().or(self.file.as_ref()).map_or(Path::new("-"), PathBuf::as_path)
    }
}

/// Options of `html`.
#[derive(Debug, Args)]
pub struct Page {
    /// Input.
    #[command(flatten)]
    pub trace: TraceFile,
    /// Output file; `-` for standard output [default: FILE with the ending html]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Title of the page [default: the name of FILE]
    #[arg(long)]
    pub title: Option<String>,
    /// Kind of request that the page shows.
    #[command(flatten)]
    pub requests: Requests,
    /// Omit the names of functions
    #[arg(long)]
    pub no_symbols: bool,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Input.
    #[command(flatten)]
    pub trace: TraceFile,
    #[command(flatten)]
    targets: Targets,
    /// Print only problems
    #[arg(short, long)]
    pub quiet: bool,
}

/// Destination of an export.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Targets {
    /// New file for Perfetto; `-` for standard output
    #[arg(long, value_name = "OUT")]
    perfetto: Option<PathBuf>,
    /// Folder of Parquet tables, to which the trace is added
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
}

/// Destination of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A new file for Perfetto, or standard output.
    Perfetto(Option<PathBuf>),
    /// A folder of tables.
    Tables(PathBuf),
}

impl Export {
    /// The destination.
    pub fn target(&self) -> Target {
        let Targets { perfetto, parquet } = &self.targets;
        match parquet {
            Some(folder) => Target::Tables(folder.clone()),
            None => Target::Perfetto(perfetto.clone()),
        }
    }
}

impl Arguments {
    /// Arguments of this process. The original's `-force` is not parsed as single letters.
    pub fn of_process() -> Arguments {
        match std::env::args_os().nth(1).is_some_and(|argument| argument == "-force") {
            true => Arguments { command: None, force: true },
            false => kutrace_cli::arguments::parse(Arguments::command()),
        }
    }
}

impl Go {
    /// The mode to record in and the options of the start.
    pub fn plan(&self) -> (Mode, &Start) {
        let (flags, start) = match self {
            Go::Go { start, .. } => (0, start),
            Go::Gowrap(start) => (WRAP, start),
            Go::Goipc(start) => (IPC, start),
            Go::Gollc(start) => (LLC, start),
            Go::Goipcllc(start) => (IPC | LLC, start),
            Go::Goipcwrap(start) => (IPC | WRAP, start),
            Go::Gollcwrap(start) => (LLC | WRAP, start),
            Go::Goipcllcwrap(start) => (IPC | LLC | WRAP, start),
        };
        (Mode(flags), start)
    }
}

impl Page {
    /// Output of the page: next to the trace by default.
    pub fn output(&self) -> Output {
        let file = self.trace.file();
        let beside = || if file == Path::new("-") { file.to_owned() } else { file.with_extension("html") };
        Output::new(Some(self.output.clone().unwrap_or_else(beside)), IfExists::of(self.force))
    }
}

/// Options of `merge`.
#[derive(Args, Debug)]
pub struct Merge {
    /// Raw traces, one per machine; the clock of the first is used for all
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Output file; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
}

impl Merge {
    /// Output of the file.
    pub fn output(&self) -> Output {
        Output::new(Some(self.output.clone()), IfExists::of(self.force))
    }
}

/// Options of `recover`.
#[derive(Args, Debug)]
pub struct Recover {
    /// A memory image: /proc/vmcore, or made by makedumpfile or QEMU's dump-guest-memory
    #[arg(value_name = "VMCORE", required_unless_present = "boot")]
    image: Option<PathBuf>,
    /// Use the trace that the previous kernel left in memory preserved across the reboot
    #[arg(long, conflicts_with = "image")]
    boot: bool,
    /// Output file; `-` for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT if it exists
    #[arg(short, long)]
    force: bool,
}

impl Recover {
    /// The image; `None` to recover what an earlier kernel left.
    pub fn image(&self) -> Option<&Path> {
        self.image.as_deref().filter(|_| !self.boot)
    }

    /// Output of the trace.
    pub fn output(&self) -> Output {
        Output::new(Some(self.output.clone()), IfExists::of(self.force))
    }
}

/// Options of `why`.
#[derive(Args, Debug)]
pub struct Why {
    /// Input.
    #[command(flatten)]
    pub trace: TraceFile,
    /// Requested explanation.
    #[command(flatten)]
    pub asked: Asked,
}

/// Options of `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// A raw trace
    pub before: PathBuf,
    /// A second raw trace to compare with; either may be `-`
    pub after: PathBuf,
    /// Requested explanation.
    #[command(flatten)]
    pub between: Between,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Help of a command on a terminal that is 80 columns wide.
    fn help(words: &[&str]) -> String {
        let words = [&["kutrace_control"], words, &["--help"]].concat();
        Arguments::command().term_width(80).try_get_matches_from(words).unwrap_err().to_string()
    }

    /// Calls of this program in a line of shell. Text in double quotes is one word.
    fn calls(line: &str) -> Vec<Vec<String>> {
        let mut calls = vec![vec![String::new()]];
        let mut quoted = false;
        for c in line.chars() {
            let words = calls.last_mut().unwrap();
            match c {
                '"' => quoted = !quoted,
                ';' | '|' | '>' | '&' | '\'' if !quoted => calls.push(vec![String::new()]),
                ' ' if !quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        let from_ours = |words: Vec<String>| {
            let mut words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let at = words.iter().position(|word| word == "kutrace_control")?;
            Some(words.split_off(at))
        };
        calls.into_iter().filter_map(from_ours).collect()
    }

    #[test]
    fn every_help_fits_a_screen_and_ends_with_two_examples_that_are_understood() {
        let command = Arguments::command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(names.len(), 27, "{names:?}");
        for words in [&[][..]].into_iter().chain(names.chunks(1)) {
            // The list of commands fits on a text console of 25 lines, all other help in a window of 24.
            let room = if words.is_empty() { 25 } else { 24 };
            let help = help(words);
            let lines: Vec<&str> = help.lines().collect();
            assert!(lines.len() <= room && lines.iter().all(|line| line.len() <= 80), "{} lines:\n{help}", lines.len());
            assert!(!lines[0].starts_with("Usage:"), "{help}");
            let [.., heading, first, last] = lines[..] else { panic!("{help}") };
            assert_eq!(heading, "Examples:", "{help}");
            for call in calls(first).into_iter().chain(calls(last)) {
                assert!(Arguments::try_parse_from(&call).is_ok(), "{call:?}");
            }
            let asked = format!("kutrace_control {}", words.concat());
            assert!(first.contains(asked.trim_end()) || words[0].starts_with("go"), "{help}");
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
