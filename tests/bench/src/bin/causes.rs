// SPDX-License-Identifier: BSD-3-Clause
//! Counts how often `why` finds the cause planted by tests/causes/cases.txt, and how often `diff` reports one that was
//! not.
//!
//! `causes script CASES GUEST CPUS SEED [NAME...]` prints the script that records the cases of a guest, after
//! tests/causes/prepare.sh; `causes judge CASES DIR [NAME...]` reads the traces in DIR, and prints a table.
//! `causes script-pairs` and `causes judge-pairs` do so with the controls, each recorded many times and compared two by
//! two.

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{bail, Context, Result};
use kutrace_tests::causes::{cases, Case, Found, AMONG};
use postprocess::direct::spans_of_raw;
use postprocess::span::limit::SpanLimit;
use postprocess::span::Spans;
use postprocess::why::change::Verdict;
use postprocess::why::diff::{self, Before};
use postprocess::why::{explain, Question, Timeline};

/// Number of recordings of a case, each with random numbers of its own.
const TIMES: u64 = 3;
/// Pairs of recordings of each load that are compared.
const PAIRS: u64 = 20;
/// Changes by less do not matter: the default of `diff`.
const ABOVE: f64 = 0.05;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, file, place, rest @ ..] = args.as_slice() else { bail!("causes script|judge CASES ...") };
    let mut cases = cases(&fs::read_to_string(file).with_context(|| file.clone())?);
    let number = |text: &String| text.parse::<u64>().with_context(|| text.clone());
    let (cpus, seed, names) = match (what.as_str(), rest) {
        ("script" | "script-pairs", [cpus, seed, names @ ..]) => (number(cpus)?, number(seed)?, names),
        ("judge" | "judge-pairs", names) => (1, 0, names),
        _ => bail!("causes: {what}: not script, judge, script-pairs or judge-pairs"),
    };
    if let Some(unknown) = names.iter().find(|name| !cases.iter().any(|case| case.name.starts_with(name.as_str()))) {
        bail!("{file}: no case begins with {unknown}");
    }
    cases.retain(|case| names.is_empty() || names.iter().any(|name| case.name.starts_with(name)));
    let text = match what.as_str() {
        "script" => script(&cases, place, cpus, seed),
        "judge" => table(&cases, Path::new(place))?,
        "script-pairs" => script_of_pairs(&cases, place, cpus, seed),
        _ => table_of_pairs(&cases, Path::new(place))?,
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// The recordings of a case: additions to the seed, and files.
fn recordings(case: &Case) -> impl Iterator<Item = (u64, String)> + '_ {
    (0..TIMES).map(|n| (n, if n == 0 { case.name.clone() } else { format!("{}.{}", case.name, n + 1) }))
}

fn script(cases: &[Case], guest: &str, cpus: u64, seed: u64) -> String {
    let mut script = String::new();
    for case in cases.iter().filter(|case| case.guest == guest) {
        recordings(case).for_each(|(n, file)| script += &case.script(cpus, seed + n, &file));
    }
    script
}

/// Loads whose recordings are compared in pairs.
fn loads(cases: &[Case]) -> impl Iterator<Item = &Case> {
    cases.iter().filter(|case| case.answers.is_empty())
}

fn script_of_pairs(cases: &[Case], guest: &str, cpus: u64, seed: u64) -> String {
    let loads = loads(cases).filter(|case| case.guest == guest);
    let scripts = loads.flat_map(|case| (0..2 * PAIRS).map(|n| case.script(cpus, seed, &format!("{}.{n}", case.name))));
    scripts.collect()
}

fn table_of_pairs(cases: &[Case], dir: &Path) -> Result<String> {
    let mut text = "| load | pairs | that differ | by |\n|---|---|---|---|\n".to_string();
    let (mut all, mut differ) = (0, 0);
    for case in loads(cases) {
        let found = (0..PAIRS).filter_map(|pair| changed(case, dir, pair).transpose()).collect::<Result<Vec<_>>>()?;
        let changes: Vec<&str> = found.iter().map(String::as_str).filter(|change| !change.is_empty()).collect();
        (all, differ) = (all + found.len(), differ + changes.len());
        writeln!(text, "| {} | {} | {} | {} |", case.name, found.len(), changes.len(), changes.join("; "))?;
    }
    writeln!(text, "| all | {all} | {differ} | |")?;
    Ok(text)
}

/// Reported difference of the second recording of a pair; empty if there is none, `None` if a recording is missing.
fn changed(case: &Case, dir: &Path, pair: u64) -> Result<Option<String>> {
    let [first, second] = [2 * pair, 2 * pair + 1].map(|n| dir.join(format!("{}.{n}.trace", case.name)));
    let (Some(first), Some(second)) = (spans(&first)?, spans(&second)?) else { return Ok(None) };
    let question = diff::Question { ask: case.ask.clone(), above: ABOVE, top: 1, page: String::new() };
    let before = Before::new(&Timeline::new(&first), question);
    let said = before.and_then(|before| before.diff(&Timeline::new(&second)));
    let said = said.map_err(anyhow::Error::msg).with_context(|| case.name.clone())?;
    let changes = said.percentiles.iter().filter(|change| change.verdict != Verdict::Same);
    let changes = changes.map(|change| format!("{} % {:+.1} %", change.percentile * 100.0, change.change * 100.0));
    Ok(Some(changes.collect::<Vec<_>>().join(", ")))
}

/// Result for a recording, if there is one.
fn spans(path: &Path) -> Result<Option<Spans>> {
    let Ok(bytes) = fs::read(path) else { return Ok(None) };
    let (spans, _) = spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).with_context(|| path.display().to_string())?;
    Ok(Some(spans))
}

/// The counts below the table.
#[derive(Default)]
struct Tally {
    planted: usize,
    first: usize,
    among: usize,
    explained: f64,
    controls: usize,
    alarms: usize,
    still: usize,
}

/// The answer of `why` about a recording: the place of the planted cause, the share that its causes explain, the first of them.
struct Outcome {
    found: Found,
    explained: f64,
    first: String,
}

fn table(cases: &[Case], dir: &Path) -> Result<String> {
    let mut tally = Tally::default();
    let mut text =
        "| case | places | explained | first cause, of the recording in which the planted one comes last |\n"
            .to_string();
    text += "|---|---|---|---|\n";
    for case in cases {
        let outcomes = recordings(case).map(|(_, file)| outcome(case, &dir.join(format!("{file}.trace"))));
        let outcomes = outcomes.collect::<Result<Vec<_>>>()?;
        outcomes.iter().for_each(|outcome| tally.add(case, outcome));
        let places = outcomes.iter().map(Outcome::place).collect::<Vec<_>>().join(" ");
        let Some(worst) = outcomes.iter().rev().max_by_key(|outcome| outcome.found.rank()) else { continue };
        writeln!(text, "| {} | {places} | {:.0} % | {} |", case.name, worst.explained * 100.0, worst.first)?;
    }
    let Tally { planted, first, among, explained, controls, alarms, still } = tally;
    let share = explained * 100.0 / planted.max(1) as f64;
    writeln!(text, "\n| recordings with a planted cause | {planted} |\n|---|---|")?;
    writeln!(text, "| that `why` names first | {first} |\n| among the first {AMONG} | {among} |")?;
    writeln!(text, "| share of the excess explained | {share:.0} % |")?;
    writeln!(text, "| recordings of controls | {controls} |\n| in which the machine stood still | {still} |")?;
    writeln!(text, "| false alarms | {alarms} |")?;
    Ok(text)
}

/// Asks `why` about a recording of a case; one that is missing or has no such requests names nothing.
fn outcome(case: &Case, trace: &Path) -> Result<Outcome> {
    let none = |first: &str| Outcome { found: Found::Not, explained: 0.0, first: first.to_string() };
    let Some(spans) = spans(trace)? else { return Ok(none("not recorded")) };
    let why = match explain(&Timeline::new(&spans), &Question { ask: case.ask.clone(), ..Question::default() }) {
        Ok(why) => why,
        Err(fact) => return Ok(none(&fact)),
    };
    let causes = why.compared.as_ref().map_or(&[][..], |compared| &compared.causes);
    let first = causes.first().map_or("nothing stands out".to_string(), |first| {
        format!("{:.0} % {} ({})", first.share * 100.0, first.cause, first.culprit)
    });
    let explained = 1.0 - why.compared.as_ref().map_or(0.0, |compared| compared.unexplained);
    Ok(Outcome { found: case.found(&why), explained, first })
}

impl Outcome {
    fn place(&self) -> String {
        match self.found {
            Found::At(place) => place.to_string(),
            Found::Not => "no".to_string(),
            Found::Still => "still".to_string(),
        }
    }
}

impl Tally {
    fn add(&mut self, case: &Case, outcome: &Outcome) {
        if case.answers.is_empty() {
            self.controls += 1;
            self.still += usize::from(outcome.found == Found::Still);
            self.alarms += usize::from(outcome.found == Found::Not);
        } else {
            self.planted += 1;
            self.first += usize::from(outcome.found == Found::At(1));
            self.among += usize::from(matches!(outcome.found, Found::At(place) if place <= AMONG));
            self.explained += outcome.explained;
        }
    }
}
