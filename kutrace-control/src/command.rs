// SPDX-License-Identifier: BSD-3-Clause
//! Implementation of each command.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::thread;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;
use kutrace_cli::{standard, Exit, Status};
use kutrace_format::abi::programs::Quota;

use crate::arguments::{Arguments, Command, Go, Start};
use crate::at::TimeOfDay;
use crate::background;
use crate::check::{self, Grade};
use crate::device::Device;
use crate::merge::merge;
use crate::output::{IfExists, Output};
use crate::ports;
use crate::record::{record, record_by_tracefs};
use crate::recover::{recover, recover_boot};
use crate::script::{self, CommandSource};
use crate::session::Session;
use crate::show;
use crate::top::top;
use crate::watch::watch;

/// Executes the command.
pub fn run(arguments: Arguments) -> Result<Status> {
    let mut session = Session::<Device>::new();
    match arguments.command {
        Some(command) => one(&mut session, command),
        None => {
            standard::input()?;
            let source = if io::stdin().is_terminal() { CommandSource::Terminal } else { CommandSource::Script };
            let first = if arguments.force { &b"-force\n"[..] } else { b"" };
            script::run(&mut session, first.chain(io::stdin().lock()), source).map(Status::from)
        }
    }
}

fn one(session: &mut Session<Device>, command: Command) -> Result<Status> {
    let done = |()| Exit::Done;
    let exit = match command {
        Command::Record(options) if options.is_by_tracefs()? => return record_by_tracefs(&options.plan()),
        Command::Record(options) => {
            let session = session.without_symbols(options.no_symbols).with_packets(options.packets);
            let session = session.with_tracepoints(options.wanted.clone());
            return record(session, &options.plan());
        }
        Command::Go(go) => {
            let (mode, Start { at, packets, wanted, marks_memory }) = go.plan();
            at.as_ref().map_or(Ok(()), TimeOfDay::wait)?;
            match go {
                Go::Go { stream: true, ref options, .. } => {
                    let packets = packets.map(|ports| format!("--packets={}", ports::text(&ports)));
                    let marks = marks_memory.map(|Quota { process, all }| format!("--marks-memory={process},{all}"));
                    let asked = packets.into_iter().chain(marks).map(OsString::from).chain(wanted.arguments());
                    return background::begin(session, &asked.chain(options.iter().cloned()).collect::<Vec<_>>());
                }
                _ => {
                    session.allow(*marks_memory)?;
                    session.with_packets(*packets).with_tracepoints(wanted.clone()).go(mode).map(done)?
                }
            }
        }
        Command::Stop { file, .. } if background::is_running(session)? => match file {
            Some(_) => return Err(background::has_its_file().into()),
            None => background::end(session).map(done)?,
        },
        Command::Stop { force, no_symbols, file } => {
            session.without_symbols(no_symbols).stop(&Output::new(file, IfExists::of(force)))?
        }
        Command::Snapshot { force, no_symbols, file } => {
            session.without_symbols(no_symbols).snapshot(&Output::new(file, IfExists::of(force)))?
        }
        Command::Watch(options) => {
            return watch(session.without_symbols(options.no_symbols), &options.plan());
        }
        Command::Top(options) => top(session, options.plan())?,
        Command::Status => standard::print(&session.status()?).map(done)?,
        Command::Reset { force: true } => session.force_reset().map(done)?,
        Command::Reset { force: false } => session.reset().map(done)?,
        Command::Mark { text } => text.insert().map(done)?,
        Command::Summary { trace, top, json: true, .. } => show::summary(trace.file(), |told| Ok(told.json(top)?))?,
        Command::Summary { trace, top, by, json: false } => {
            show::summary(trace.file(), |told| show::text(told, top, by))?
        }
        Command::Why(why) => show::why(&why)?,
        Command::Diff(diff) => show::diff(&diff),
        Command::Html(page) => show::page(&page)?,
        Command::Export(export) => show::export(&export)?,
        Command::Merge(asked) => merge(&asked.files, &asked.output())?,
        Command::Recover(asked) => match asked.image() {
            Some(image) => recover(image, &asked.output())?,
            None => recover_boot(session.recorder()?, &asked.output())?,
        },
        Command::Check => fitness()?,
        Command::Completions { shell } => standard::print(&completions(shell)).map(done)?,
        Command::Wait { time } => {
            thread::sleep(time);
            Exit::Done
        }
        Command::Quit => session.off().map(done)?,
    };
    Ok(exit.into())
}

/// Prints whether this machine can record, and the obstacles.
fn fitness() -> Result<Exit> {
    let lines = check::lines::<Device>();
    standard::print(&check::table(&lines))?;
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
