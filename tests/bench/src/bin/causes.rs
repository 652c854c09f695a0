// SPDX-License-Identifier: BSD-3-Clause
//! How often `why` is right, of what is planted in tests/causes/cases.txt.
//!
//! `causes script CASES GUEST SEED [NAME...]` prints what records the cases of a guest, after tests/causes/prepare.sh;
//! `causes judge CASES DIR [NAME...]` reads the traces in DIR, and prints a table.

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{bail, Context, Result};
use kutrace_tests::causes::{cases, Case, Found, AMONG};
use postprocess::direct::spans_of_raw;
use postprocess::span::limit::SpanLimit;
use postprocess::why::{explain, Question, Timeline, Why};

/// How often a control is recorded: a false alarm is to be seen among twenty.
const CONTROLS: u64 = 2;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, file, place, rest @ ..] = args.as_slice() else { bail!("causes script|judge CASES ...") };
    let mut cases = cases(&fs::read_to_string(file).with_context(|| file.clone())?);
    let (seed, names) = match (what.as_str(), rest) {
        ("script", [seed, names @ ..]) => (Some(seed.parse::<u64>().with_context(|| seed.clone())?), names),
        ("judge", names) => (None, names),
        _ => bail!("causes: {what}: not script or judge"),
    };
    if let Some(unknown) = names.iter().find(|name| !cases.iter().any(|case| case.name.starts_with(name.as_str()))) {
        bail!("{file}: no case begins with {unknown}");
    }
    cases.retain(|case| names.is_empty() || names.iter().any(|name| case.name.starts_with(name)));
    let text = match seed {
        Some(seed) => script(&cases, place, seed),
        None => table(&cases, Path::new(place))?,
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// The recordings of a case: seeds and files.
fn recordings(case: &Case) -> impl Iterator<Item = (u64, String)> + '_ {
    let times = if case.answers.is_empty() { CONTROLS } else { 1 };
    (0..times).map(|n| (n, if n == 0 { case.name.clone() } else { format!("{}.{}", case.name, n + 1) }))
}

fn script(cases: &[Case], guest: &str, seed: u64) -> String {
    let mut script = String::new();
    for case in cases.iter().filter(|case| case.guest == guest) {
        recordings(case).for_each(|(n, file)| script += &case.script(seed + n, &file));
    }
    script
}

/// What the table counts.
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

fn table(cases: &[Case], dir: &Path) -> Result<String> {
    let mut tally = Tally::default();
    let mut text = "| case | place | explained | first cause |\n|---|---|---|---|\n".to_string();
    for case in cases {
        for (_, file) in recordings(case) {
            let path = dir.join(format!("{file}.raw"));
            let Ok(bytes) = fs::read(&path) else {
                writeln!(text, "| {file} | not recorded | | |")?;
                continue;
            };
            let (spans, _) = spans_of_raw(&bytes, SpanLimit::new(usize::MAX)).context(file.clone())?;
            let question = Question { ask: case.ask.clone(), ..Question::default() };
            match explain(&Timeline::new(&spans), &question) {
                Ok(why) => tally.row(&mut text, case, &file, &why)?,
                Err(fact) => {
                    tally.planted += usize::from(!case.answers.is_empty());
                    writeln!(text, "| {file} | - | | {fact} |")?;
                }
            }
        }
    }
    let Tally { planted, first, among, explained, controls, alarms, still } = tally;
    let share = explained * 100.0 / planted.max(1) as f64;
    writeln!(text, "\n| planted | {planted} |\n|---|---|")?;
    writeln!(text, "| named first | {first} |\n| among the first {AMONG} | {among} |")?;
    writeln!(text, "| share of the excess explained | {share:.0} % |")?;
    writeln!(text, "| controls | {controls} |\n| in which the machine stood still | {still} |")?;
    writeln!(text, "| false alarms | {alarms} |")?;
    Ok(text)
}

impl Tally {
    fn row(&mut self, text: &mut String, case: &Case, file: &str, why: &Why) -> Result<()> {
        let found = case.found(why);
        let causes = why.compared.as_ref().map_or(&[][..], |compared| &compared.causes);
        let explained = 1.0 - why.compared.as_ref().map_or(0.0, |compared| compared.unexplained);
        if case.answers.is_empty() {
            self.controls += 1;
            self.still += usize::from(found == Found::Still);
            self.alarms += usize::from(found == Found::Not);
        } else {
            self.planted += 1;
            self.first += usize::from(found == Found::At(1));
            self.among += usize::from(matches!(found, Found::At(place) if place <= AMONG));
            self.explained += explained;
        }
        let place = match found {
            Found::At(place) => place.to_string(),
            Found::Not => "no".to_string(),
            Found::Still => "still".to_string(),
        };
        let first = causes.first().map_or("nothing stands out".to_string(), |first| {
            format!("{:.0} % {} ({})", first.share * 100.0, first.cause, first.culprit)
        });
        Ok(writeln!(text, "| {file} | {place} | {:.0} % | {first} |", explained * 100.0)?)
    }
}
