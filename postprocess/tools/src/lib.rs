// SPDX-License-Identifier: BSD-3-Clause
//! Code shared by the tools, and with `kutrace_control`: input and output, [`spans`] read and written, samples named by
//! [functions], requests that are [asked](ask) for, spans that are [built](build), what [draws](draw) for others, and
//! the report on incomplete data at the end of a run.

#![forbid(unsafe_code)]

pub mod ask;
pub mod build;
pub mod draw;
pub mod folder;
pub mod functions;
pub mod spans;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use kutrace_cli::progress::Watch;
use kutrace_cli::{arguments, message, say, standard, Draft, Exit, Failure};
use postprocess::progress;
use postprocess::readable::count;
use postprocess::source::{self, Batches, Source, Stage};
use postprocess::span::limit::Keep;
use postprocess::span::{Meta, Spans};

/// Runs `tool` with its arguments, and shows its progress on a terminal; returns the status of the process. Its help
/// and its manual end with `examples`.
pub fn run<A: Parser>(tool: &'static str, examples: [&str; 2], run: impl FnOnce(A) -> Result<Exit>) -> ExitCode {
    kutrace_cli::run(tool, || {
        let after = format!("Examples:\n  {}\n  {}", examples[0], examples[1]);
        let arguments = arguments::parse(A::command().name(tool).after_help(after).max_term_width(80));
        let watch = Watch::at_terminal(progress::percent);
        let ended = run(arguments);
        drop(watch);
        ended
    })
}

/// Ends the process for arguments that contradict each other.
pub fn usage<A: Parser>(fact: impl Display) -> ! {
    arguments::usage(A::command(), fact)
}

/// Source of the input.
pub struct Input {
    /// Name of the input in messages.
    pub name: String,
    source: Source<Box<dyn Read>>,
    /// Size in bytes, as far as known.
    size: u64,
}

/// Opens a file, or standard input if there is none or it is `-`; it must be of the stage that is `wanted`.
///
/// # Errors
/// If it cannot be read, or is of another stage: then with a hint about what to do with it.
pub fn open(path: Option<&PathBuf>, wanted: Stage) -> Result<Input> {
    let input = Input::open(path.map(PathBuf::as_path))?;
    let command = command_line(path);
    input.expect(wanted, &command, None)
}

/// Returns the command line of this tool without the file that it reads.
fn command_line(path: Option<&PathBuf>) -> String {
    let mut line = message::tool().to_string();
    let mut arguments = std::env::args_os().skip(1).peekable();
    while let Some(argument) = arguments.next() {
        let names = |argument: &OsString| path.is_some_and(|path| path.as_os_str() == argument);
        let is_option = argument == "-i" || argument == "--input";
        if is_option && arguments.peek().is_some_and(names) {
            arguments.next();
        } else if !names(&argument) {
            line = format!("{line} {}", quoted(&argument.to_string_lossy()));
        }
    }
    line
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl Input {
    /// Opens a file, or standard input if there is none or it is `-`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: Option<&Path>) -> Result<Input> {
        let (name, size, read): (String, u64, Box<dyn Read>) = match path.filter(|path| *path != Path::new("-")) {
            None => {
                standard::input()?;
                if io::stdin().is_terminal() {
                    say("reading standard input; Ctrl-D ends it");
                }
                (standard::INPUT.to_string(), 0, Box::new(io::stdin().lock()))
            }
            Some(path) => {
                let name = path.display().to_string();
                let file = File::open(path).with_context(|| name.clone())?;
                let size = file.metadata().map_or(0, |m| m.len());
                (name, size, Box::new(file))
            }
        };
        Input::of(name, size, read)
    }

    /// Reads from `read`, as from a file of that name and size.
    ///
    /// # Errors
    /// As [`Input::open`].
    pub fn of(name: String, size: u64, read: Box<dyn Read>) -> Result<Input> {
        let source = source::open(read).with_context(|| name.clone())?;
        Ok(Input { name, source, size })
    }

    /// Returns how to make a page of the input, if it is not a raw trace.
    pub fn way_to_page(&self) -> Option<String> {
        self.source.way_to_page(&self.file())
    }

    /// Returns the name quoted for a shell; `FILE` if it has none.
    fn file(&self) -> String {
        if self.name == standard::INPUT {
            "FILE".to_string()
        } else {
            quoted(&self.name)
        }
    }

    /// Returns the input if it is of the stage that `command` wants; otherwise the hint, unless one is given, explains
    /// how to get there.
    ///
    /// # Errors
    /// If it is of another stage.
    pub fn expect(self, wanted: Stage, command: &str, hint: Option<String>) -> Result<Input> {
        match self.source.expect(wanted, command, &self.file()) {
            Ok(()) => Ok(self),
            Err(wrong) => Err(match hint.or(wrong.hint.clone()) {
                Some(hint) => Failure::new(wrong, hint).into(),
                None => anyhow::Error::from(wrong),
            })
            .context(self.name),
        }
    }

    /// Reads all bytes of a raw trace.
    ///
    /// # Errors
    /// If they cannot be read, here and below.
    pub fn raw(&mut self) -> Result<Vec<u8>> {
        let _told = (self.name == standard::INPUT && self.source.is_stream()).then(|| later(PATIENCE, STREAM));
        self.source.raw(self.size).with_context(|| self.name.clone())
    }

    /// Reads all bytes of a page.
    ///
    /// # Errors
    /// As [`Input::raw`].
    pub fn page(&mut self) -> Result<Vec<u8>> {
        self.source.count(self.size);
        self.source.page().with_context(|| self.name.clone())
    }

    /// Reads the events.
    ///
    /// # Errors
    /// As [`Input::raw`].
    pub fn events(mut self) -> Result<Batches<impl BufRead>> {
        self.source.count(self.size);
        self.source.events().context(self.name)
    }

    /// Reads all spans and passes them to `keep`.
    ///
    /// # Errors
    /// As [`Input::raw`].
    pub fn spans(mut self, keep: impl Keep) -> Result<Spans> {
        self.source.count(self.size);
        self.source.spans(keep).context(self.name)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer)
    }
}

/// A stream on standard input that has not ended after this time is considered endless.
const PATIENCE: Duration = Duration::from_secs(1);
/// Message in that case.
const STREAM: &str =
    "stdin: a growing stream, which is first read to its end; to see events as they happen: rawtoevent --live";

/// Reports a fact after a time, unless the returned value has been dropped by then.
fn later(time: Duration, fact: &'static str) -> Sender<()> {
    let (dropped, ended) = mpsc::channel();
    thread::spawn(move || {
        if ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            say(fact);
        }
    });
    dropped
}

/// Number of sentences about damage that are shown before the rest is only counted.
const SHOWN: usize = 20;

/// Reports what is damaged or missing in data from `place`.
pub fn say_damage(place: &str, sentences: &[impl Display]) {
    for sentence in sentences.iter().take(SHOWN) {
        say(format_args!("{place}: {sentence}"));
    }
    if let Some(more @ 1..) = sentences.len().checked_sub(SHOWN) {
        say(format_args!("{place}: and {more} more"));
    }
}

/// Reports that events were lost before `place` was written, if any were.
pub fn say_lost(place: &str, lost: u64) {
    if lost > 0 {
        say(format_args!("{place}: {} lost while recording", count(lost, "event was", "events were")));
    }
}

/// Reports what is missing from spans read from `place`; returns the exit of a run that did not fail.
pub fn outcome(place: &str, meta: &Meta) -> Exit {
    say_damage(place, &meta.quality);
    say_lost(place, meta.lost);
    match meta.lost == 0 && meta.quality.is_empty() {
        true => Exit::Done,
        false => Exit::Lost,
    }
}

/// Another way to name the input, as others do.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Named {
    /// The same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    pub input: Option<PathBuf>,
}

impl Named {
    /// Returns the file that was named, one way or the other.
    pub fn or<'a>(&'a self, file: &'a Option<PathBuf>) -> Option<&'a PathBuf> {
        self.input.as_ref().or(file.as_ref())
    }
}

/// Options of every tool that writes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// Write to this new file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print only problems
    #[arg(short, long)]
    pub quiet: bool,
}

/// State of the reader of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It has read everything, or the output is a file.
    Stayed,
    /// It closed the output before the end.
    Gone,
}

/// Destination of output. A file becomes visible only when it is complete.
pub enum Output {
    /// Standard output.
    Stdout(BufWriter<io::StdoutLock<'static>>),
    /// A file, and the name that it gets when complete.
    File(BufWriter<Draft>, PathBuf),
    /// A reader that has gone.
    Gone,
}

impl Common {
    /// Opens the output.
    pub fn open(&self) -> Result<Output> {
        let Some(path) = self.output.as_ref().filter(|p| p.as_path() != Path::new("-")) else {
            standard::output()?;
            return Ok(Output::Stdout(BufWriter::with_capacity(1 << 16, io::stdout().lock())));
        };
        let name = || path.display().to_string();
        if path.symlink_metadata().is_ok() {
            return Err(Failure::new(format_args!("{}: already exists", name()), "name another file").into());
        }
        let draft = Draft::new(path).with_context(name)?;
        Ok(Output::File(BufWriter::with_capacity(1 << 16, draft), path.clone()))
    }

    /// Prints a line about the run on standard error, unless the tool is quiet.
    pub fn tell(&self, line: impl Display) {
        if !self.quiet {
            say(line);
        }
    }
}

impl Output {
    /// Returns the name of the output in messages.
    pub fn name(&self) -> String {
        match self {
            Output::File(_, path) => path.display().to_string(),
            _ => standard::OUTPUT.to_string(),
        }
    }

    /// Completes the output; a file gets its name now.
    pub fn finish(mut self) -> io::Result<Reader> {
        self.flush()?;
        match self {
            Output::Gone => return Ok(Reader::Gone),
            Output::Stdout(_) => {}
            Output::File(out, _) => out.into_inner().map_err(io::IntoInnerError::into_error)?.publish()?,
        }
        Ok(Reader::Stayed)
    }

    /// Treats a reader that goes away as a normal end, so that reports about the input are still printed.
    fn unless_gone<T>(&mut self, result: io::Result<T>, then: T) -> io::Result<T> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                // Otherwise the content of the buffer would be written again.
                if let Output::Stdout(out) = std::mem::replace(self, Output::Gone) {
                    drop(out.into_parts());
                }
                Ok(then)
            }
            result => result,
        }
    }

    /// True if the reader has gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Output::Gone)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Output::Stdout(out) => out.write(bytes),
            Output::File(out, _) => out.write(bytes),
            Output::Gone => Ok(bytes.len()),
        };
        self.unless_gone(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match self {
            Output::Stdout(out) => out.flush(),
            Output::File(out, _) => out.flush(),
            Output::Gone => Ok(()),
        };
        self.unless_gone(flushed, ())
    }
}
