// SPDX-License-Identifier: BSD-3-Clause
//! `merge`: the traces of several machines in one file, on the clock of the first.
//!
//! The traces are copied unchanged; the relations of their clocks precede them in the file, and are reported on
//! standard error.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure, Context, Result};
use kutrace_cli::{say, Exit, Failure};
use kutrace_tools::Input;
use postprocess::event::names::Names;
use postprocess::machine::file::{self, Machine, MACHINES_MAX};
use postprocess::machine::place::{apart, place, By, Known, Placed};
use postprocess::machine::trace::{known, Machines};
use postprocess::raw::damage::NotATrace;
use postprocess::readable::count;
use postprocess::source::{self, Stage};

use crate::output::Output;

/// Merges these files into one.
pub fn merge(files: &[PathBuf], output: &Output) -> Result<Exit> {
    ensure!(files.len() <= MACHINES_MAX, "{} files: at most {MACHINES_MAX} can be merged", files.len());
    output.check()?;
    let traces = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    let mut machines =
        traces.iter().zip(files).map(|(trace, file)| describe(trace, file)).collect::<Result<Vec<_>>>()?;
    name_apart(&mut machines, files);
    let placed = place(&machines);
    let lines: Vec<String> = placed.iter().zip(&machines).map(|(one, known)| one.text(known, &machines[0])).collect();
    let described = machines.iter().zip(&placed).zip(&lines).zip(&traces);
    let parts: Vec<(Machine, &[u8])> = described
        .map(|(((known, placed), line), trace)| {
            let machine = Machine {
                name: known.name.clone(),
                clock: line.clone(),
                shift: placed.shift.clone(),
                inside: placed.inside.clone(),
                ..Machine::default()
            };
            (machine, trace.as_slice())
        })
        .collect();
    output.write(|out| Ok(file::write(&parts, out)?))?;
    for ((line, placed), known) in lines.iter().zip(&placed).zip(&machines).skip(1) {
        match placed.by {
            By::Host => say(format_args!("{output}: {line}")),
            _ => say(format_args!("{output}: {line} ({} there, {} back)", placed.packets.0, placed.packets.1)),
        }
        tell_contradictions(output, placed, known);
    }
    tell_nested(output, &parts)?;
    let alone: Vec<&str> = apart(&machines, &placed).into_iter().map(|one| machines[one].name.as_str()).collect();
    if !alone.is_empty() {
        let names = alone.join(", ");
        say(format_args!("{output}: {names}: no packets shared with the others, and not recorded at the same time"));
    }
    let early: u64 = placed.iter().map(|one| one.early).sum();
    let mistaken: u64 = placed.iter().map(|one| one.mistaken).sum();
    if early == 0 {
        say(format_args!(
            "{output}: {}; no packet arrives before it was sent",
            count(files.len() as u64, "machine", "machines")
        ));
        return Ok(if alone.is_empty() { Exit::Done } else { Exit::Lost });
    }
    let packets = count(early, "packet arrives before it was sent", "packets arrive before they were sent");
    say(format_args!("{output}: {packets}"));
    // A packet mistaken for another proves nothing about the clocks.
    Ok(if early <= mistaken { Exit::Done } else { Exit::Lost })
}

/// Reports for every guest the number of its events in the time that its host gave it.
fn tell_nested(output: &Output, parts: &[(Machine, &[u8])]) -> Result<()> {
    if parts.iter().all(|(machine, _)| machine.inside.is_none()) {
        return Ok(());
    }
    let opened = parts.iter().map(|(machine, bytes)| source::trace(bytes).map(|trace| (machine.clone(), trace)));
    let opened = opened.collect::<Result<Vec<_>, NotATrace>>().map_err(|error| anyhow!("{output}: {error}"))?;
    let all = Machines::new(opened, Vec::new());
    let mut names = Names::default();
    let mut decoder = all.decoding(&mut names);
    while decoder.next(&mut names).is_some() {}
    for (machine, sentence) in decoder.nested() {
        say(format_args!("{output}: {machine}: {sentence}"));
    }
    Ok(())
}

fn tell_contradictions(output: &Output, placed: &Placed, known: &Known) {
    if placed.mistaken > 0 {
        let packets = count(placed.mistaken, "packet contradicts", "packets contradict");
        say(format_args!("{output}: {}: {packets} all others: two different packets were taken for one", known.name));
    }
}

/// The bytes of a raw trace of one machine.
fn read(file: &Path) -> Result<Vec<u8>> {
    let mut input = Input::open(Some(file))?.expect(Stage::Raw, "kutrace_control merge", None)?;
    let bytes = input.raw()?;
    if file::is_machines(&bytes) {
        let failure = Failure::new(NotATrace::Machines, "it is merged already: merge its original traces, all at once");
        return Err(failure).with_context(|| file.display().to_string());
    }
    Ok(bytes)
}

fn describe(trace: &[u8], file: &Path) -> Result<Known> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let trace = source::trace(trace).map_err(|error| anyhow!("{}: {error}", file.display()))?;
    Ok(known(&*trace, &name))
}

/// Names machines after their hosts; hosts with the same name after their files, and files with the same name by their
/// place.
fn name_apart(machines: &mut [Known], files: &[PathBuf]) {
    let names = |machines: &[Known]| machines.iter().map(|known| known.name.clone()).collect::<Vec<_>>();
    let is_twice = |names: &[String], name: &str| names.iter().filter(|other| *other == name).count() > 1;
    let hosts = names(machines);
    for (known, file) in machines.iter_mut().zip(files).filter(|(known, _)| is_twice(&hosts, &known.name)) {
        known.name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    let named = names(machines);
    for (n, known) in machines.iter_mut().enumerate().filter(|(_, known)| is_twice(&named, &known.name)) {
        known.name = format!("{}#{}", known.name, n + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postprocess::time::Time;

    #[test]
    fn machines_that_were_traced_at_other_times_than_all_others_are_found() {
        let traced = |base: i64, to: i64| Known { base, traced: (Time::ZERO, Time(to)), ..Known::default() };
        let (second, hour) = (Time::SECOND.0, 3600);
        let machines = [traced(0, 90 * second), traced(60, 10 * second), traced(3 * hour, second)];
        let found = |machines: &[Known]| apart(machines, &place(machines));
        assert_eq!(found(&machines), [2]);
        assert_eq!(found(&machines[1..]), [0, 1]);
        assert_eq!((found(&machines[..2]), found(&machines[..1])), (vec![], vec![]));
    }

    #[test]
    fn machines_have_names_of_their_own() {
        let files = ["x/a.trace", "x/b.trace", "y/b.trace", "c.trace"].map(PathBuf::from);
        let mut machines: Vec<Known> =
            ["web", "db", "db", "db"].map(|name| Known { name: name.to_string(), ..Known::default() }).into();
        name_apart(&mut machines, &files);
        let names: Vec<&str> = machines.iter().map(|known| known.name.as_str()).collect();
        assert_eq!(names, ["web", "b#2", "b#3", "c"]);
    }
}
