// SPDX-License-Identifier: BSD-3-Clause
//! The arguments of this process, and the cases that end it instead: help, version, wrong usage, and `--generate DIR`,
//! which writes manual pages and completions for packages.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{Command, FromArgMatches};

use crate::{exit, manual, message, standard, Exit};

/// Parses the arguments that `command` defines, or ends the process.
pub fn parse<A: FromArgMatches>(command: Command) -> A {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, option, folder] = &arguments[..] {
        if option == "--generate" {
            end(generate(command, Path::new(folder)).map(|()| Exit::Done as i32));
        }
    }
    // One help text, without an empty line after every option: it has to fit on a screen.
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let matches = command.about(about).long_about(None).try_get_matches_from(arguments);
    let parsed = matches.and_then(|mut matches| A::from_arg_matches_mut(&mut matches));
    parsed.unwrap_or_else(|asked| end(print(&asked)))
}

/// Ends the process because arguments contradict each other.
pub fn usage(command: Command, fact: impl Display) -> ! {
    command.name(message::tool()).error(ErrorKind::ValueValidation, fact).exit()
}

fn end(status: Result<i32>) -> ! {
    process::exit(status.unwrap_or_else(|error| exit::fail(&error) as i32))
}

/// Prints the requested help or version, or the error in the arguments; returns the exit status.
fn print(asked: &clap::Error) -> Result<i32> {
    if asked.use_stderr() {
        let _ = asked.print();
    } else {
        standard::output()?;
        standard::unless_gone(asked.print().and_then(|()| io::stdout().flush())).context(standard::OUTPUT)?;
    }
    Ok(asked.exit_code())
}

fn generate(command: Command, folder: &Path) -> Result<()> {
    for (path, bytes) in manual::files(command) {
        let path = folder.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, bytes));
        written.with_context(|| path.display().to_string())?;
    }
    Ok(())
}
