// SPDX-License-Identifier: BSD-3-Clause
//! A script: the commands of the original program, one line each on standard input.
//!
//! It ends at the first command that fails; at a terminal it continues with the next line. A running trace continues
//! after the end of input.

use std::ffi::OsStr;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use kutrace_cli::{exit, say, standard, Exit};
use kutrace_format::abi::command::{IPC, LLC, WRAP};

use crate::device::Recorder;
use crate::mark::Mark;
use crate::output::{IfExists, Output};
use crate::quantity::duration;
use crate::session::{Mode, Session};

/// A command, from one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Empty the recorder and start it.
    Go(Mode),
    /// Start the recorder without emptying it.
    On,
    /// Stop the recorder.
    Off,
    /// Stop the recorder, write the trace, and exit.
    Stop(Option<PathBuf>),
    /// Stop the recorder and write the trace, without exit.
    Dump(Option<PathBuf>),
    /// Write the trace so far, and continue.
    Snapshot(Option<PathBuf>),
    /// Empty the recorder.
    Reset,
    /// Empty the recorder even while it traces.
    ForceReset,
    /// Put a mark into the trace.
    Mark(Mark),
    /// Show the state of the recorder.
    Status,
    /// Fail if the recorder cannot be used.
    Test,
    /// Sleep.
    Wait(Duration),
    /// Stop the recorder and exit.
    Quit,
    /// A step that the original needs and this program does by itself: `init`, `flush`.
    Implied,
    /// An empty line.
    Empty,
    /// Anything else.
    Unknown(String),
}

/// Source of the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandSource {
    /// A terminal: prompt, and continue after an error.
    Terminal,
    /// A script.
    Script,
}

const WORDS: &str =
    "commands: go[ipc][llc][wrap], stop [NAME], snapshot [NAME], mark TEXT, wait TIME, stat, on, off, reset, dump [NAME], test, quit";

/// Maximum number of bytes in a line: a word and the name of a file.
const LONGEST: u64 = 1 << 13;

/// Executes the commands of `input` to its end.
pub fn run<R: Recorder>(session: &mut Session<R>, mut input: impl BufRead, source: CommandSource) -> Result<Exit> {
    let mut worst = Exit::Done;
    let mut line = Vec::new();
    loop {
        if source == CommandSource::Terminal {
            let _ = write!(io::stderr(), "control> ");
        }
        line.clear();
        if input.by_ref().take(LONGEST).read_until(b'\n', &mut line).context(standard::INPUT)? == 0 {
            return Ok(worst);
        }
        ensure!((line.len() as u64) < LONGEST, "{}: a line of {LONGEST} bytes is not a command", standard::INPUT);
        match step(session, parse(&line), source) {
            Ok(Step::Next(exit)) => worst = worst.max(exit),
            Ok(Step::End(exit)) => return Ok(worst.max(exit)),
            Err(error) if source == CommandSource::Terminal => worst = worst.max(exit::fail(&error)),
            Err(error) => return Err(error),
        }
    }
}

/// Parses one line.
pub fn parse(line: &[u8]) -> Command {
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let rest = rest.trim_ascii_start();
    match (word, rest) {
        (b"", _) => Command::Empty,
        (b"stop", name) => Command::Stop(file_name(name)),
        (b"dump", name) => Command::Dump(file_name(name)),
        (b"snapshot", name) => Command::Snapshot(file_name(name)),
        (b"wait", time) => text(time).and_then(|time| duration(time).ok()).map_or_else(|| unknown(line), Command::Wait),
        (b"mark", label) => {
            text(label).and_then(|label| Mark::parse(label).ok()).map_or_else(|| unknown(line), Command::Mark)
        }
        (word, b"") => bare(word).unwrap_or_else(|| unknown(line)),
        _ => unknown(line),
    }
}

/// Next step after a command.
enum Step {
    Next(Exit),
    End(Exit),
}

fn step<R: Recorder>(session: &mut Session<R>, word: Command, source: CommandSource) -> Result<Step> {
    match word {
        Command::Go(mode) => session.go(mode)?,
        Command::On => session.on()?,
        Command::Off => session.off()?,
        Command::Reset => session.reset()?,
        Command::ForceReset => session.force_reset()?,
        Command::Mark(mark) => mark.insert()?,
        Command::Stop(name) => return session.stop(&Output::new(name, IfExists::Keep)).map(Step::End),
        Command::Dump(name) => return session.stop(&Output::new(name, IfExists::Keep)).map(Step::Next),
        Command::Snapshot(name) => return session.snapshot(&Output::new(name, IfExists::Keep)).map(Step::Next),
        Command::Quit => {
            session.off()?;
            return Ok(Step::End(Exit::Done));
        }
        Command::Status => standard::print(&session.status()?)?,
        Command::Empty if source == CommandSource::Terminal => standard::print(&session.status()?)?,
        Command::Empty | Command::Implied => (),
        Command::Test => drop(session.recorder()?),
        Command::Wait(time) => thread::sleep(time),
        Command::Unknown(line) => {
            say(format_args!("unknown command '{}'; {WORDS}", line.escape_debug()));
            return Ok(Step::Next(Exit::Usage));
        }
    }
    Ok(Step::Next(Exit::Done))
}

fn bare(word: &[u8]) -> Option<Command> {
    Some(match word {
        b"1" => Command::Go(Mode(0)),
        b"0" => Command::Stop(None),
        b"-force" => Command::ForceReset,
        b"on" => Command::On,
        b"off" => Command::Off,
        b"reset" => Command::Reset,
        b"stat" | b"status" => Command::Status,
        b"test" => Command::Test,
        b"quit" | b"exit" => Command::Quit,
        b"init" | b"flush" => Command::Implied,
        word => Command::Go(mode(word)?),
    })
}

/// The mode of `go`, followed by any of `ipc`, `llc` and `wrap`, each at most once.
fn mode(word: &[u8]) -> Option<Mode> {
    let mut rest = word.strip_prefix(b"go")?;
    let mut flags = 0;
    while !rest.is_empty() {
        let parts = [(&b"ipc"[..], IPC), (b"llc", LLC), (b"wrap", WRAP)];
        let (flag, behind) = parts.iter().find_map(|(part, flag)| Some((flag, rest.strip_prefix(*part)?)))?;
        if flags & flag != 0 {
            return None;
        }
        flags |= flag;
        rest = behind;
    }
    Some(Mode(flags))
}

fn unknown(line: &[u8]) -> Command {
    Command::Unknown(String::from_utf8_lossy(line).into_owned())
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Like the original, adds `.trace` to a name without an extension.
fn file_name(name: &[u8]) -> Option<PathBuf> {
    let mut path = PathBuf::from(OsStr::from_bytes(name));
    if path.extension().is_none() && name != b"-" {
        path.set_extension("trace");
    }
    (!name.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::session;

    #[test]
    fn words_are_understood_with_blanks_around_them() {
        let path = |name: &str| Some(PathBuf::from(name));
        for (line, word) in [
            ("go\n", Command::Go(Mode(0))),
            ("  gowrap \r\n", Command::Go(Mode(WRAP))),
            ("goipc\n", Command::Go(Mode(IPC))),
            ("gowrapipc\n", Command::Go(Mode(IPC | WRAP))),
            ("goipcllcwrap\n", Command::Go(Mode(IPC | LLC | WRAP))),
            ("goipcipc\n", Command::Unknown("goipcipc".to_owned())),
            ("goipcs\n", Command::Unknown("goipcs".to_owned())),
            ("stop", Command::Stop(None)),
            ("stop one\n", Command::Stop(path("one.trace"))),
            ("stop  a b.raw\n", Command::Stop(path("a b.raw"))),
            ("stop -\n", Command::Stop(path("-"))),
            ("dump x.trace\n", Command::Dump(path("x.trace"))),
            ("snapshot now\n", Command::Snapshot(path("now.trace"))),
            ("wait 2\n", Command::Wait(Duration::from_secs(2))),
            ("wait 0.25\n", Command::Wait(Duration::from_millis(250))),
            ("stat\n", Command::Status),
            ("wait 500ms\n", Command::Wait(Duration::from_millis(500))),
            ("mark abc\n", Command::Mark(Mark::parse("abc").unwrap())),
            ("mark sevenis\n", Command::Unknown("mark sevenis".to_owned())),
            ("1\n", Command::Go(Mode(0))),
            ("0\n", Command::Stop(None)),
            ("-force\n", Command::ForceReset),
            ("exit\n", Command::Quit),
            ("init\n", Command::Implied),
            ("\n", Command::Empty),
            ("wait\n", Command::Unknown("wait".to_owned())),
            ("wait -1\n", Command::Unknown("wait -1".to_owned())),
            ("stopit\n", Command::Unknown("stopit".to_owned())),
            ("go now\n", Command::Unknown("go now".to_owned())),
        ] {
            assert_eq!(parse(line.as_bytes()), word, "{line:?}");
        }
    }

    #[test]
    fn a_script_of_the_original_records_and_ends_at_stop() {
        let directory = tempfile::tempdir().unwrap();
        let script = format!("reset\ninit\non\nflush\nstop {}/t\ngo\n", directory.path().display());
        let mut session = session(0);
        assert_eq!(run(&mut session, script.as_bytes(), CommandSource::Script).unwrap(), Exit::Done);
        assert_eq!(*session.recorder().unwrap().log.borrow(), ["reset", "start", "acquire", "stop", "release"]);
        assert!(directory.path().join("t.trace").exists());
    }

    #[test]
    fn the_end_of_input_leaves_the_trace_running() {
        let mut session = session(0);
        assert_eq!(run(&mut session, &b"go"[..], CommandSource::Script).unwrap(), Exit::Done);
        assert_eq!(*session.recorder().unwrap().log.borrow(), ["reset", "start"]);
    }

    #[test]
    fn an_unknown_word_is_passed_over_and_remembered() {
        let mut session = session(0);
        assert_eq!(run(&mut session, &b"og\ngo\n"[..], CommandSource::Script).unwrap(), Exit::Usage);
        assert_eq!(session.recorder().unwrap().log.borrow().len(), 2);
    }

    #[test]
    fn a_script_ends_at_the_first_word_that_fails() {
        let mut session = session(0);
        let error = run(&mut session, &b"dump\ngo\n"[..], CommandSource::Script).unwrap_err();
        assert_eq!(error.to_string(), "nothing has been recorded");
        assert_eq!(*session.recorder().unwrap().log.borrow(), ["acquire", "release"]);
    }

    #[test]
    fn a_person_is_asked_again() {
        let mut session = session(0);
        assert_eq!(run(&mut session, &b"dump\ngo\n"[..], CommandSource::Terminal).unwrap(), Exit::Failed);
        assert_eq!(*session.recorder().unwrap().log.borrow(), ["acquire", "release", "reset", "start"]);
    }

    #[test]
    fn a_forced_reset_ends_the_trace_and_the_script_goes_on() {
        let mut session = session(0);
        assert_eq!(run(&mut session, &b"go\n-force\ngo\n"[..], CommandSource::Script).unwrap(), Exit::Done);
        assert_eq!(*session.recorder().unwrap().log.borrow(), ["reset", "start", "stop", "reset", "reset", "start"]);
    }
}
