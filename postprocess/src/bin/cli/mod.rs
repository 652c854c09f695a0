// SPDX-License-Identifier: BSD-3-Clause
//! What the tools share: where input comes from, where output goes, how a run ends, and what its exit status says.

#[allow(dead_code, reason = "not every tool reads spans")]
pub mod spans;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, Parser};
use postprocess::input::{self, Wrong};
use postprocess::kind::Kind;
use postprocess::manual;
use postprocess::progress::{Watch, CLEAR};
use postprocess::standard;
use tempfile::NamedTempFile;

/// How a run that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was there.
    Whole,
    /// Data was lost or damaged before or while it was read.
    Damaged,
}

/// The name of the tool that runs.
const TOOL: &str = env!("CARGO_BIN_NAME");

/// Where the input comes from.
pub struct Input {
    /// What to call it in a message.
    pub name: String,
    read: input::Input<Box<dyn Read>>,
    /// Bytes, as far as that is known.
    size: u64,
}

/// Opens a file, or standard input if there is none or it is `-`; it must be of the kind that is `wanted`.
pub fn open(path: Option<&PathBuf>, wanted: Kind) -> anyhow::Result<Input> {
    let (name, size, read): (String, u64, Box<dyn Read>) = match path.filter(|p| p.as_path() != Path::new("-")) {
        None => {
            standard::input().context("stdin")?;
            if io::stdin().is_terminal() {
                say(format_args!("{TOOL}: reading standard input; Ctrl-D ends it"));
            }
            ("stdin".to_string(), 0, Box::new(io::stdin().lock()))
        }
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).with_context(|| name.clone())?;
            let size = file.metadata().map_or(0, |m| m.len());
            (name, size, Box::new(file))
        }
    };
    let read = input::Input::new(read).with_context(|| name.clone())?;
    let file = if name == "stdin" { "FILE" } else { &name };
    read.expect(wanted, &command_line(path), &quoted(file)).with_context(|| name.clone())?;
    Ok(Input { name, read, size })
}

/// This tool with its arguments, but without the file that it reads.
fn command_line(path: Option<&PathBuf>) -> String {
    let mut line = TOOL.to_string();
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

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl Input {
    /// All bytes of a raw trace.
    #[allow(dead_code, reason = "not every tool reads one")]
    pub fn raw(&mut self) -> anyhow::Result<Vec<u8>> {
        self.read.raw(self.size).with_context(|| self.name.clone())
    }

    /// All bytes of a page.
    #[allow(dead_code, reason = "not every tool reads one")]
    pub fn page(&mut self) -> anyhow::Result<Vec<u8>> {
        self.read.count(self.size);
        self.read.page().with_context(|| self.name.clone())
    }

    /// A reader of text, or frames.
    #[allow(dead_code, reason = "not every tool reads such")]
    pub fn buffered(mut self) -> BufReader<input::Input<Box<dyn Read>>> {
        self.read.count(self.size);
        BufReader::with_capacity(1 << 16, self.read)
    }
}

/// Another way to name the input, as others do.
#[allow(dead_code, reason = "some tools name it otherwise")]
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Named {
    /// The same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    pub input: Option<PathBuf>,
}

#[allow(dead_code, reason = "some tools name it otherwise")]
impl Named {
    /// The file that was named, one way or the other.
    pub fn or<'a>(&'a self, file: &'a Option<PathBuf>) -> Option<&'a PathBuf> {
        self.input.as_ref().or(file.as_ref())
    }
}

/// What every tool that writes has.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Common {
    /// Write to this new file, not to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Say nothing but what is wrong
    #[arg(short, long)]
    pub quiet: bool,
}

/// Whoever reads the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It has read all, or there is a file of it.
    Stayed,
    /// It went away before the end.
    Gone,
}

/// Where output goes. A file is not there for anybody else until all is written.
pub enum Output {
    Stdout(BufWriter<io::StdoutLock<'static>>),
    File(BufWriter<NamedTempFile>, PathBuf),
    /// To a reader that has gone.
    Gone,
}

impl Common {
    /// Opens the output.
    pub fn open(&self) -> anyhow::Result<Output> {
        let Some(path) = self.output.as_ref().filter(|p| p.as_path() != Path::new("-")) else {
            standard::output().context("stdout")?;
            return Ok(Output::Stdout(BufWriter::with_capacity(1 << 16, io::stdout().lock())));
        };
        let name = || path.display().to_string();
        if path.symlink_metadata().is_ok() {
            return Err(Hint("name another file".to_string())).with_context(|| format!("{}: is there already", name()));
        }
        let folder = path.parent().filter(|f| *f != Path::new("")).unwrap_or(Path::new("."));
        // The name that the file has by now is of no use to anybody.
        let file = fs::metadata(folder).and_then(|_| {
            let file = tempfile::Builder::new().prefix(".ku_").permissions(mode()).tempfile_in(folder);
            file.map_err(|e| e.kind().into())
        });
        let file = file.with_context(name)?;
        Ok(Output::File(BufWriter::with_capacity(1 << 16, file), path.clone()))
    }

    /// One line on standard error about how it went, unless nobody wants to know.
    #[allow(dead_code, reason = "not every tool has something to tell")]
    pub fn tell(&self, line: impl Display) {
        if !self.quiet {
            say(format_args!("{TOOL}: {line}"));
        }
    }
}

/// What the umask leaves of this is what a file may.
fn mode() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

impl Output {
    /// What to call it in a message.
    pub fn name(&self) -> String {
        match self {
            Output::File(_, path) => path.display().to_string(),
            _ => "stdout".to_string(),
        }
    }

    /// Everything is written: now a file gets its name.
    pub fn finish(mut self) -> io::Result<Reader> {
        self.flush()?;
        match self {
            Output::Gone => return Ok(Reader::Gone),
            Output::Stdout(_) => {}
            Output::File(out, path) => {
                let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.persist_noclobber(path)?;
            }
        }
        Ok(Reader::Stayed)
    }

    /// A reader that goes away wants no more, which is no fault: what there is to say of the input is said all the same.
    fn unless_gone<T>(&mut self, result: io::Result<T>, then: T) -> io::Result<T> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                // What is still in the buffer would be tried again.
                if let Output::Stdout(out) = std::mem::replace(self, Output::Gone) {
                    drop(out.into_parts());
                }
                Ok(then)
            }
            result => result,
        }
    }

    /// Whether nobody reads any more.
    #[allow(dead_code, reason = "not every tool can stop early")]
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

/// The arguments of this process. Its help ends with `examples`; and so does its manual, which `--generate DIR` writes,
/// with the completions, for packages.
pub fn parse<A: Parser>(examples: [&str; 2]) -> A {
    let command = command::<A>(examples);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, option, folder] = &arguments[..] {
        if option == "--generate" {
            let generated = generate(command, Path::new(folder));
            let _ = generated.as_ref().inspect_err(|e| say(format_args!("{TOOL}: {e}")));
            std::process::exit(i32::from(generated.is_err()));
        }
    }
    // One help, without an empty line behind every option: it has to fit a screen.
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let matches = command.about(about).long_about(None).try_get_matches();
    matches.and_then(|mut matches| A::from_arg_matches_mut(&mut matches)).unwrap_or_else(|asked| {
        let status = standard::answer(&asked).unwrap_or_else(|e| {
            say(format_args!("{TOOL}: stdout: {e}"));
            1
        });
        std::process::exit(status)
    })
}

fn command<A: Parser>(examples: [&str; 2]) -> Command {
    let after = format!("Examples:\n  {}\n  {}", examples[0], examples[1]);
    A::command().name(TOOL).after_help(after).max_term_width(80)
}

/// Ends the process for arguments that do not go together.
#[allow(dead_code, reason = "not every tool has such")]
pub fn usage<A: Parser>(fact: impl Display) -> ! {
    A::command().name(TOOL).error(clap::error::ErrorKind::ValueValidation, fact).exit()
}

fn generate(command: Command, folder: &Path) -> io::Result<()> {
    for (path, bytes) in manual::files(command) {
        let path = folder.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// One line on standard error. Where that is closed there is nobody to tell.
pub fn say(line: impl Display) {
    let clear = if io::stderr().is_terminal() { CLEAR } else { "" };
    let _ = writeln!(io::stderr(), "{clear}{line}");
}

/// What to do about an error.
#[derive(Debug)]
pub struct Hint(pub String);

impl Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Hint {}

/// Runs a tool: its progress is shown to a terminal, an error in one line, and a hint where there is one.
pub fn run(tool: &'static str, run: impl FnOnce() -> anyhow::Result<Outcome>) -> ExitCode {
    let watch = Watch::at_terminal(tool);
    let result = run();
    drop(watch);
    let error = match result {
        Ok(Outcome::Whole) => return ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => return ExitCode::from(3),
        Err(error) => error,
    };
    let facts: Vec<String> = error.chain().filter(|e| !e.is::<Hint>()).map(ToString::to_string).collect();
    say(format_args!("{tool}: {}", facts.join(": ")));
    let wrong = error.downcast_ref::<Wrong>().and_then(|wrong| wrong.hint.clone());
    if let Some(hint) = error.downcast_ref::<Hint>().map(|hint| hint.0.clone()).or(wrong) {
        say(format_args!("hint: {hint}"));
    }
    ExitCode::FAILURE
}
