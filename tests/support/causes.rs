// SPDX-License-Identifier: BSD-3-Clause
//! The cases of tests/causes/cases.txt: the planted cause, its random numbers, and the verdict on the answer of `why`.

use std::collections::BTreeMap;
use std::fmt::Write;

use postprocess::direct::spans_of_raw;
use postprocess::raw;
use postprocess::span::limit::SpanLimit;
use postprocess::why::cause::Kind;
use postprocess::why::check::check;
use postprocess::why::compare::Excess;
use postprocess::why::request::Ask;
use postprocess::why::{explain, Question, Timeline, Why};
use regex::Regex;

use crate::cut::{entries, part, Part};

/// Numbers of parts into which a recording is cut, fewer and fewer, until one of the parts has the verdict of the
/// whole.
const PARTS: [u64; 7] = [12, 8, 6, 4, 3, 2, 1];

/// Causes that are looked at for the one that was planted.
pub const AMONG: usize = 3;

/// A cause that is planted, or a control without one.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, of letters, digits and `-`.
    pub name: String,
    /// The guest that records it.
    pub guest: String,
    /// Kind of request.
    pub ask: Ask,
    /// Possible first causes; empty in a control.
    pub answers: Vec<Answer>,
    /// Scripts for bash: before the recording, during it, afterwards.
    pub runs: [String; 3],
}

/// Requirement on a cause.
#[derive(Clone, Debug)]
pub struct Answer {
    kind: String,
    culprit: Regex,
    cause: Regex,
}

/// Verdict on the answer of `why` for a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The planted cause is at this place, from 1 on; in a control, nothing stands out.
    At(usize),
    /// It is not among those shown, or, in a control, something is.
    Not,
    /// A control in which only the machine itself stood still.
    Still,
}

impl Found {
    /// Higher the further down the cause is.
    pub fn rank(self) -> usize {
        match self {
            Found::At(place) => place,
            Found::Still => usize::MAX - 1,
            Found::Not => usize::MAX,
        }
    }
}

/// Reads the cases of a file.
///
/// # Panics
/// If it cannot be understood.
pub fn cases(text: &str) -> Vec<Case> {
    let blocks = text.split("\n\n").map(|block| block.lines().filter(|line| !line.starts_with('#')).collect());
    let blocks = blocks.filter(|lines: &Vec<&str>| lines.iter().any(|line| !line.is_empty()));
    blocks.map(|lines| case(&lines)).collect()
}

fn case(lines: &[&str]) -> Case {
    let mut words = lines[0].split_whitespace();
    let (name, guest) = (words.next().unwrap(), words.next().expect("a guest after the name of a case"));
    let mut case = Case {
        name: name.to_string(),
        guest: guest.to_string(),
        ask: ask(&words.collect::<Vec<_>>()),
        answers: Vec::new(),
        runs: Default::default(),
    };
    for line in &lines[1..] {
        let at = |prefix: &str| line.strip_prefix(prefix);
        if *line == "= nothing" {
        } else if let Some(answer) = at("= ") {
            case.answers.push(Answer::new(answer));
        } else {
            let (run, line) = match (at("before "), at("after ")) {
                (Some(line), _) => (0, line),
                (_, Some(line)) => (2, line),
                _ => (1, *line),
            };
            writeln!(case.runs[run], "    {line}").unwrap();
        }
    }
    case
}

fn ask(words: &[&str]) -> Ask {
    match words {
        ["--client", program] => Ask::Client((*program).to_string()),
        ["--serve", program] => Ask::Serve((*program).to_string()),
        ["--run", program] => Ask::Run((*program).to_string()),
        ["--call", name] => Ask::Call((*name).to_string()),
        ["--mark", label] => Ask::Mark((*label).to_string()),
        [] => Ask::Best,
        _ => panic!("{words:?}: how is that asked?"),
    }
}

impl Answer {
    fn new(text: &str) -> Answer {
        let [kind, culprit, cause] = text.splitn(3, " | ").map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{text}: not KIND | CULPRIT | CAUSE")
        };
        let pattern = |text: &str| Regex::new(text).expect("a pattern");
        Answer { kind: kind.to_string(), culprit: pattern(&format!("^({culprit})$")), cause: pattern(cause) }
    }

    /// Returns whether it is this cause.
    pub fn is(&self, cause: &Excess) -> bool {
        self.is_of(cause.kind, &cause.culprit, &cause.cause)
    }

    fn is_of(&self, kind: Kind, culprit: &str, cause: &str) -> bool {
        let kind = serde_json::to_value(kind).unwrap_or_default();
        kind == self.kind.as_str() && self.culprit.is_match(culprit) && self.cause.is_match(cause)
    }
}

impl Case {
    /// Place of the planted cause.
    pub fn found(&self, why: &Why) -> Found {
        let causes = why.compared.as_ref().map_or(&[][..], |compared| &compared.causes);
        let place = causes.iter().position(|cause| self.answers.iter().any(|answer| answer.is(cause)));
        match (self.answers.is_empty(), causes) {
            (true, []) => Found::At(1),
            (true, [first, ..]) if first.cause.starts_with("the CPU stood still") => Found::Still,
            (false, _) => place.map_or(Found::Not, |place| Found::At(place + 1)),
            _ => Found::Not,
        }
    }

    /// Returns whether the planted cause takes most of the time of all requests.
    pub fn is_most_of_all(&self, why: &Why) -> bool {
        let most = why.causes.first();
        most.is_some_and(|c| self.answers.iter().any(|answer| answer.is_of(c.kind, &c.culprit, &c.cause)))
    }

    /// The verdict on a recording of it.
    ///
    /// # Errors
    /// A sentence, if the trace has none of its requests, or if their causes do not add up.
    pub fn explained(&self, bytes: &[u8]) -> Result<Why, String> {
        let (spans, _) = spans_of_raw(bytes, SpanLimit::new(usize::MAX)).map_err(|error| error.to_string())?;
        let timeline = Timeline::new(&spans);
        match &check(&timeline, &self.ask)?[..] {
            [] => explain(&timeline, &Question { ask: self.ask.clone(), ..Question::default() }),
            wrong => Err(wrong.join("\n")),
        }
    }

    /// The shortest part of a recording of it in which the planted cause still comes first; none if it does not even in
    /// the whole.
    pub fn shortest(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let raw = raw::parse(bytes).ok()?;
        let entries = entries(&raw);
        let counts = (raw.header.stop.tsc >> raw.header.shift) - (raw.header.start.tsc >> raw.header.shift);
        let parts = PARTS.into_iter().flat_map(|parts| {
            let length = counts / parts;
            (0..2 * parts - 1).map(move |half| (half * length / 2, half * length / 2 + length))
        });
        let mut cuts = parts.map(|(from, to)| part(&raw, &entries, &Part { from, to, ..Part::default() }).bytes());
        cuts.find(|cut| self.explained(cut).is_ok_and(|why| why.compared.is_some() && self.found(&why) == Found::At(1)))
    }

    /// The script that records it in a guest with this many CPUs, as `record` of tests/causes/prepare.sh does; `file` without
    /// its ending.
    pub fn script(&self, cpus: u64, seed: u64, file: &str) -> String {
        let mut script = String::new();
        for (name, value) in parameters(seed, &self.name, cpus) {
            write!(script, "{name}={value} ").unwrap();
        }
        let name = self.name.replace('-', "_");
        writeln!(script, "\nexport SEED").unwrap();
        for (run, lines) in ["before", "case", "after"].iter().zip(&self.runs).filter(|(_, lines)| !lines.is_empty()) {
            writeln!(script, "{run}_{name}() {{\n{lines}}}").unwrap();
        }
        writeln!(script, "record {name} {file}").unwrap();
        script
    }
}

/// The random numbers of a case, by the names that its lines use.
fn parameters(seed: u64, name: &str, cpus: u64) -> BTreeMap<&'static str, u64> {
    let mut state = name.bytes().fold(seed, |state, byte| mixed(state ^ u64::from(byte)));
    let mut number = |from: u64, to: u64| {
        state = mixed(state);
        from + state % (to - from + 1)
    };
    let (a, further) = (number(0, cpus - 1), number(1, 3.min(cpus.max(2) - 1)));
    let b = (a + further) % cpus;
    let c = (0..cpus).find(|cpu| *cpu != a && *cpu != b).unwrap_or(a);
    BTreeMap::from([
        ("A", a),
        ("B", b),
        ("C", c),
        ("MS", number(12, 40)),
        ("GAP", number(60, 120)),
        ("EVERY", number(20, 45)),
        ("PACE", number(1_500, 4_000)),
        ("TIME", number(1_000, 1_400)),
        ("SEED", number(1, 1_000_000)),
    ])
}

/// One number from another, as splitmix64 does it.
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
