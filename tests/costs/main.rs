// SPDX-License-Identifier: BSD-3-Clause
//! Costs tier: the instructions of each stage on a fixed trace, counted by callgrind: the same on every machine and under
//! any load. Run by `cargo xtask test`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use kutrace_tests::skip::{note, skip};
use kutrace_tests::tree;

/// The trace: one of ours, recorded while redis ran.
const TRACE: &str = "samples/redis.trace";
/// The budgets, in millions of instructions.
const BUDGETS: &str = "tests/costs/instructions.txt";
/// By how much a stage may be above its budget: what two builds of the same source differ by.
const MORE: f64 = 1.03;
/// From how much less on it is worth a word.
const LESS: f64 = 0.97;

/// A stage, or several in one process.
struct Stage {
    name: &'static str,
    /// The program and its arguments; `RAW` is the trace.
    words: &'static [&'static str],
    /// The stage whose output it reads.
    after: Option<&'static str>,
}

const STAGES: [Stage; 6] = [
    Stage { name: "rawtoevent", words: &["rawtoevent", "RAW"], after: None },
    Stage { name: "eventtospan", words: &["eventtospan"], after: Some("rawtoevent") },
    Stage { name: "spantohtml", words: &["spantohtml"], after: Some("eventtospan") },
    Stage { name: "html", words: &["kutrace_control", "html", "RAW", "-o", "-"], after: None },
    Stage { name: "why", words: &["kutrace_control", "why", "RAW"], after: None },
    Stage { name: "summary", words: &["kutrace_control", "summary", "RAW"], after: None },
];

impl Stage {
    /// The instructions of one run, whose output is left in `folder` for the stages after it.
    fn instructions(&self, folder: &Path) -> u64 {
        let raw = tree::root().join(TRACE);
        let program = tree::root().join("target/tools/release").join(self.words[0]);
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
        valgrind.args(self.words[1..].iter().map(|word| if *word == "RAW" { raw.as_os_str() } else { word.as_ref() }));
        let input = self.after.map_or(Stdio::null(), |stage| File::open(folder.join(stage)).unwrap().into());
        let output = File::create(folder.join(self.name)).unwrap();
        let run = valgrind.current_dir(folder).stdin(input).stdout(output).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{}: {}\n{said}", self.name, run.status);
        let counted = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        counted.unwrap_or_else(|| panic!("{}: no count in:\n{said}", self.name))
    }
}

/// The lines of the budgets that name a stage and a number; what follows them is why it is that much.
fn budgets(text: &str) -> Vec<(&str, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let number = |word: &str| word.parse().ok().filter(|budget| *budget > 0.0);
            let budget = words.next().zip(words.next().and_then(number));
            budget.unwrap_or_else(|| panic!("{BUDGETS}: {line}: not `STAGE MILLIONS [REASON]`"))
        })
        .collect()
}

#[test]
fn no_stage_executes_more_than_its_budget() {
    let compiler = Command::new("rustc").arg("--version").output().unwrap();
    let compiler = String::from_utf8_lossy(&compiler.stdout);
    let known = include_str!("../versions.txt").lines().find_map(|line| line.strip_prefix("rustc ")).unwrap();
    if compiler.split(' ').nth(1) != Some(known) {
        return skip("instructions of the stages", &format!("the budgets are those of rustc {known}"));
    }
    let path = tree::root().join(BUDGETS);
    let text = fs::read_to_string(&path).unwrap();
    let budgets = budgets(&text);
    assert_eq!(budgets.iter().map(|(name, _)| *name).collect::<Vec<_>>(), STAGES.map(|stage| stage.name));
    let folder = tempfile::tempdir().unwrap();
    let mut above = String::new();
    for (stage, (name, budget)) in STAGES.iter().zip(budgets) {
        let millions = stage.instructions(folder.path()) as f64 / 1e6;
        println!("{name}: {millions:.1} M instructions, budget {budget}");
        let part = millions / budget;
        if part > MORE {
            writeln!(above, "{name}: {millions:.1} M instructions, {:.1} % above the budget", (part - 1.0) * 100.0)
                .unwrap();
        } else if part < LESS {
            note(&format!("{name}: {millions:.1} M instructions, {:.1} % below its budget", (1.0 - part) * 100.0));
        }
    }
    assert!(above.is_empty(), "{above}{BUDGETS} has the budgets; a raised one needs its reason in its line");
}
