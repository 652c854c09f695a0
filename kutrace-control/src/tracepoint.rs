// SPDX-License-Identifier: BSD-3-Clause
//! Tracepoints by name, as selected by `--tracepoint` and `--usdt`: their numbers for the recorder, and their
//! descriptions for readers of the trace, which then need no tracefs.
//!
//! Descriptions are left with the trace, since another process may write it, and become names of the file.

pub mod format;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use kutrace_cli::Failure;
use kutrace_format::abi::command::{Tracepoints, RECORDS_MAX};
use kutrace_format::file::NameKind;
use kutrace_format::reading::{Reading, TRACEPOINT};

use crate::device::Recorder;
use crate::names::Names;
use crate::tracefs;
use crate::usdt::{self, Program};

/// A tracepoint: `sched:sched_wakeup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its subsystem.
    pub system: String,
    /// Its name in the subsystem.
    pub name: String,
}

/// Parses a tracepoint `SUBSYS:NAME`.
///
/// # Errors
/// A sentence.
pub fn parse(text: &str) -> Result<Event, String> {
    let is_name =
        |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-.".contains(&c));
    let expected = || format!("invalid tracepoint '{text}': expected SUBSYS:NAME, such as sched:sched_wakeup");
    let (system, name) = text.split_once(':').filter(|(a, b)| is_name(a) && is_name(b)).ok_or_else(expected)?;
    Ok(Event { system: system.into(), name: name.into() })
}

/// Tracepoints to record in addition to the events that are always recorded.
#[derive(Args, Clone, Debug, Default)]
pub struct Wanted {
    /// Record tracepoints too: SUBSYS:NAME,...; --usdt: probes
    #[arg(long = "tracepoint", value_name = "N", value_delimiter = ',', value_parser = parse)]
    pub events: Vec<Event>,
    /// Record probes of a program too: postgres:postgresql:transaction__start
    #[arg(long = "usdt", hide = true, value_name = "PROGRAM:PROVIDER:NAME", value_parser = usdt::parse)]
    pub programs: Vec<Program>,
}

impl Wanted {
    /// Arguments that select the same events in another `kutrace_control`.
    pub fn arguments(&self) -> Vec<OsString> {
        let events = self.events.iter().map(|event| format!("--tracepoint={}", shown(event)));
        events.chain(self.programs.iter().map(|program| format!("--usdt={program}"))).map(OsString::from).collect()
    }
}

/// A selected event: its name in the trace, its number, the fields of its record.
#[derive(Clone, Debug)]
struct Chosen {
    id: u32,
    description: String,
}

impl Wanted {
    /// Looks up the selected events, without changing anything.
    ///
    /// # Errors
    /// If an event does not exist, or cannot be recorded.
    pub fn find(&self) -> Result<Found> {
        if self.events.is_empty() && self.programs.is_empty() {
            return Ok(Found::default());
        }
        let tracefs = tracefs::root()?;
        let events: Result<Vec<_>> = self.events.iter().map(|event| chosen(&tracefs, event, &shown(event))).collect();
        let probes: Result<Vec<_>> = self.programs.iter().map(Program::find).collect();
        let found = Found { tracefs, events: events?, probes: probes?.concat() };
        let count = found.events.len() + found.probes.len();
        if count > RECORDS_MAX {
            let fact = format!("{count} tracepoints are more than the {RECORDS_MAX} that can be chosen");
            let hint = match found.probes.is_empty() {
                true => "choose fewer".to_string(),
                false => format!("choose some of: {}", usdt::list(&found.probes)),
            };
            return Err(Failure::new(fact, hint).into());
        }
        Ok(found)
    }
}

/// The selected events that were found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    tracefs: PathBuf,
    events: Vec<Chosen>,
    probes: Vec<usdt::Probe>,
}

impl Found {
    /// Makes an empty recorder record the events.
    ///
    /// # Errors
    /// If the kernel or the recorder refuses.
    pub fn choose<R: Recorder>(self, recorder: &R) -> Result<()> {
        clear();
        if self.events.is_empty() && self.probes.is_empty() {
            return Ok(());
        }
        let mut all = self.events;
        for probe in &self.probes {
            let event = Event { system: usdt::GROUP.into(), name: probe.place(&self.tracefs)? };
            all.push(chosen(&self.tracefs, &event, &probe.shown())?);
        }
        let mut tracepoints = Tracepoints { count: all.len() as u32, ..Tracepoints::default() };
        let mut left = Vec::new();
        for (n, one) in all.iter().enumerate() {
            tracepoints.id[n] = one.id;
            let text = one.description.as_bytes();
            left.extend_from_slice(&Reading { file: TRACEPOINT, before: n as u64, after: 0, text }.head());
            left.extend_from_slice(text);
        }
        recorder.choose_tracepoints(&tracepoints)?;
        recorder.leave(&left)
    }
}

/// Removes probes of programs that were created for an ended trace.
pub fn clear() {
    // Without tracefs there are no probes.
    if let Ok(tracefs) = tracefs::root() {
        usdt::clear(&tracefs);
    }
}

/// Adds the descriptions that were left with a trace.
pub fn describe(names: &mut Names, left: &[u8]) {
    let mut rest = left;
    while let Some((reading, after)) = Reading::split(rest) {
        if reading.file == TRACEPOINT {
            names.add(NameKind::Tracepoint, reading.before as u32, 0, reading.text);
        }
        rest = after;
    }
}

fn shown(event: &Event) -> String {
    format!("{}:{}", event.system, event.name)
}

fn chosen(tracefs: &Path, event: &Event, shown: &str) -> Result<Chosen> {
    let folder = tracefs.join("events").join(&event.system).join(&event.name);
    let missing = || {
        let hint = format!("see: ls {}/events/{}", tracefs.display(), event.system);
        Failure::new(format!("{shown}: the kernel has no such tracepoint"), hint)
    };
    let text = fs::read_to_string(folder.join("format")).map_err(|_| missing())?;
    let format::Format { id, fields } =
        format::read(&text).with_context(|| folder.join("format").display().to_string())?;
    Ok(Chosen { id, description: [shown, "\n", &fields].concat() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracepoint_has_a_subsystem_and_a_name() {
        let event = Event { system: "sched".into(), name: "sched_wakeup".into() };
        assert_eq!(parse("sched:sched_wakeup"), Ok(event));
        for wrong in ["", "sched", ":x", "sched:", "a:b:c", "../a:b", "a:b c", "a:*"] {
            assert!(parse(wrong).unwrap_err().starts_with("invalid tracepoint '"), "{wrong}");
        }
    }

    #[test]
    fn descriptions_that_were_left_become_names() {
        let text = b"a:b\nx u 0 4";
        let left = [&Reading { file: TRACEPOINT, before: 2, after: 0, text }.head()[..], text].concat();
        let mut names = Names::default();
        describe(&mut names, &left);
        assert_eq!(names.len(), 1);
        assert!(names.payload().ends_with(text));
    }
}
