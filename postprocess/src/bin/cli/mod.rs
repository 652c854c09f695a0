// SPDX-License-Identifier: BSD-3-Clause
//! What the tools share: where input comes from, how a run ends, and what its exit status says.

#[allow(dead_code, reason = "not every tool reads spans")]
pub mod spans;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, Parser};
use postprocess::manual;

/// How a run that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was there.
    Whole,
    /// Data was lost or damaged before or while it was read.
    Damaged,
}

/// Where the input comes from.
pub struct Input {
    /// What to call it in a message.
    pub name: String,
    /// Its bytes.
    pub read: Box<dyn Read>,
}

/// Opens a file, or standard input if there is none or it is `-`.
pub fn open(path: Option<&PathBuf>) -> anyhow::Result<Input> {
    match path.filter(|p| p.as_path() != Path::new("-")) {
        None => Ok(Input { name: "stdin".to_string(), read: Box::new(io::stdin().lock()) }),
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|e| anyhow::anyhow!("{name}: {e}"))?;
            Ok(Input { name, read: Box::new(file) })
        }
    }
}

/// The arguments of this process. Its help ends with `examples`; and so does its manual, which `--generate DIR` writes,
/// with the completions, for packages.
pub fn parse<A: Parser>(examples: [&str; 2]) -> A {
    let after = format!("Examples:\n  {}\n  {}", examples[0], examples[1]);
    let command = A::command().name(env!("CARGO_BIN_NAME")).after_help(after).max_term_width(80);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, option, folder] = &arguments[..] {
        if option == "--generate" {
            let generated = generate(command, Path::new(folder));
            let _ = generated.as_ref().inspect_err(|e| say(format_args!("{}: {e}", env!("CARGO_BIN_NAME"))));
            std::process::exit(i32::from(generated.is_err()));
        }
    }
    // One help, without an empty line behind every option: it has to fit a screen.
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let mut matches = command.about(about).long_about(None).get_matches();
    A::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
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
    let _ = writeln!(io::stderr(), "{line}");
}

/// Ends a run of `tool`: one line for an error, nothing for a reader that went away.
pub fn end(tool: &str, result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Whole) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(3),
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            say(format_args!("{tool}: {e:#}"));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
