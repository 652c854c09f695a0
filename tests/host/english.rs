// SPDX-License-Identifier: BSD-3-Clause
//! The repository's own prose keeps to the words of `english.txt` and has no common misspelling.
//!
//! Misspellings are those of `typos-dict`, a list of what people really mistype: unlike a dictionary, it does not have
//! to know the names of a kernel, and needs neither files of the system nor a network.

use std::fs;

use kutrace_tests::{prose, tree};
use regex::{Regex, RegexSet};
use unicase::UniCase;

/// Files that are not ours to write, or not prose: recorded and generated data, fixed interfaces.
const PASSED_OVER: [&str; 11] = [
    "package-lock.json",
    "patches/v6.12",
    "patches/v7.x",
    "tests/golden",
    "tests/fuzz/found",
    "tests/fuzz/corpus",
    "tests/fuzz/artifacts",
    "postprocess/src/tables",
    "kutrace-control/kutrace/original",
    "tests/host/english.rs",
    "tests/host/english.txt",
];

/// `english.txt`: allowed phrases, and refused ones with their replacements.
struct Guide {
    allowed: Vec<Regex>,
    refused: Vec<Refused>,
    /// A word that may be misspelled.
    word: Regex,
    /// All that is refused, at once: which of it a text has at all.
    any: RegexSet,
}

/// A phrase, its replacement, and the texts in which it is refused.
struct Refused {
    pattern: Regex,
    instead: String,
    scope: Scope,
}

/// Texts in which a phrase is refused.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    Everywhere,
    /// README.md and docs/*.md.
    Documents,
    /// Comments and strings of Rust, C, Python and shell.
    Code,
    /// The first words of a doc comment in Rust.
    Openings,
}

impl Scope {
    /// The scope of a line of `english.txt`, and the rest of the line.
    fn parse(line: &str) -> (Scope, &str) {
        [("docs ", Scope::Documents), ("code ", Scope::Code), ("first ", Scope::Openings)]
            .into_iter()
            .find_map(|(word, scope)| Some((scope, line.strip_prefix(word)?)))
            .unwrap_or((Scope::Everywhere, line))
    }

    /// Returns whether a file of this name has texts of this scope.
    fn has(self, name: &str) -> bool {
        match self {
            Scope::Everywhere => true,
            Scope::Documents => name == "README.md" || name.starts_with("docs/") && name.ends_with(".md"),
            Scope::Code => [".rs", ".c", ".cc", ".h", ".py", ".sh"].iter().any(|ending| name.ends_with(ending)),
            Scope::Openings => name.ends_with(".rs"),
        }
    }
}

impl Guide {
    fn parse(text: &str) -> Guide {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut guide =
            Guide { allowed: Vec::new(), refused: Vec::new(), word: phrase(r"[A-Za-z]{4,}"), any: RegexSet::empty() };
        for line in lines {
            match line.split_once(" => ") {
                Some((pattern, instead)) => {
                    let (scope, pattern) = Scope::parse(pattern);
                    let (pattern, instead) = (phrase(pattern), instead.trim().to_owned());
                    guide.refused.push(Refused { pattern, instead, scope });
                }
                None => guide
                    .allowed
                    .push(phrase(line.strip_prefix("allow ").expect("`PATTERN => INSTEAD` or `allow PATTERN`"))),
            }
        }
        guide.any = RegexSet::new(guide.refused.iter().map(|refused| refused.pattern.as_str())).expect("as each alone");
        guide
    }

    /// A line for each thing in a file that is to be written another way, in the order of their places.
    fn findings(&self, name: &str, text: &str) -> Vec<String> {
        let Some(prose) = prose::of(name, text) else { return Vec::new() };
        let prose = self.allowed.iter().fold(prose, |prose, allowed| {
            allowed
                .replace_all(&prose, |found: &regex::Captures| found[0].replace(|c: char| c != '\n', "#"))
                .into_owned()
        });
        let misspelled = self.word.find_iter(&prose).filter_map(|word| {
            let known = typos_dict::WORD.find(&UniCase::new(word.as_str()))?;
            Some((word.start(), word.as_str(), known.join("\" or \"")))
        });
        let openings = openings(text, &prose);
        let asked = self.any.matches(&prose).into_iter().map(|n| &self.refused[n]);
        let refused = asked.filter(|refused| refused.scope.has(name)).flat_map(|refused| {
            let Refused { pattern, instead, scope } = refused;
            let found = pattern
                .find_iter(&prose)
                .filter(|found| *scope != Scope::Openings || openings.contains(&found.start()));
            found.map(|found| (found.start(), found.as_str(), instead.clone()))
        });
        let mut found: Vec<_> = misspelled.chain(refused).collect();
        found.sort();
        found
            .into_iter()
            .map(|(at, found, instead)| {
                let line = 1 + prose[..at].matches('\n').count();
                let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("{name}:{line}: \"{found}\": write \"{instead}\"")
            })
            .collect()
    }
}

/// Places in `prose` at which doc comments of `text` begin.
fn openings(text: &str, prose: &str) -> Vec<usize> {
    let (mut at, mut inside, mut found) = (0, None, Vec::new());
    for (line, shown) in text.lines().zip(prose.lines()) {
        let mark = ["///", "//!"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        if mark.is_some() && mark != inside {
            found.push(at + shown.len() - shown.trim_start().len());
        }
        (at, inside) = (at + shown.len() + 1, mark);
    }
    found
}

/// Finds a phrase of whole words, in any case, with any space between them.
fn phrase(pattern: &str) -> Regex {
    Regex::new(&format!(r"(?i)\b{{start-half}}(?:{})\b{{end-half}}", pattern.replace(' ', r"\s+"))).expect(pattern)
}

fn guide() -> Guide {
    Guide::parse(include_str!("english.txt"))
}

#[test]
fn the_repository_is_written_in_plain_english() {
    let (guide, files) = (guide(), tree::files(tree::root(), &PASSED_OVER));
    assert!(files.iter().any(|file| file.ends_with("README.md")));
    let found: Vec<_> = files
        .iter()
        .flat_map(|file| {
            let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
            guide.findings(file.strip_prefix(tree::root()).unwrap().to_str().unwrap(), &text)
        })
        .collect();
    assert!(
        found.is_empty(),
        "\n{}\n{} to write another way, see tests/host/english.txt",
        found.join("\n"),
        found.len()
    );
}

#[test]
fn a_refused_phrase_and_a_misspelling_are_named_with_their_line() {
    let text = "# Title\n\nRuns till the\nend, and recieves all.\n\n```\ntill\n```\nThe option `till`.\n";
    assert_eq!(
        guide().findings("a.md", text),
        [r#"a.md:3: "till": write "until""#, r#"a.md:4: "recieves": write "receives""#]
    );
}

#[test]
fn some_phrases_are_refused_in_documents_or_code_alone() {
    let text = "Who was there is told.\n";
    assert_eq!(guide().findings("docs/a.md", text), [r#"docs/a.md:1: "is told": write "is reported, is listed""#]);
    assert!(guide().findings("samples/a.md", text).is_empty());
    let text = "Nobody reads.\n";
    assert_eq!(guide().findings("a.py", &format!("# {text}")).len(), 1);
    assert!(guide().findings("samples/a.md", text).is_empty());
}

#[test]
fn some_phrases_are_refused_as_the_first_words_of_a_doc_comment_alone() {
    let text =
        "//! Whether é.\n\n/// A value, and\n/// whether it is set.\nconst A: u8 = 0; // whether\n    /// How many.\n";
    assert_eq!(
        guide().findings("a.rs", text),
        [
            r#"a.rs:1: "Whether": write "a noun phrase, True if, Returns whether""#,
            r#"a.rs:6: "How": write "a noun phrase, True if, Returns whether""#,
        ]
    );
}

#[test]
fn a_phrase_is_found_in_comments_and_strings_of_code_across_lines_but_not_in_its_names() {
    let text = "/// Reads so\n/// many bytes.\nfn till<'a>(teh: &'a str) -> char {\n    say(\"a file \\\n         till now\", r#\"till\"#, '\"');\n    till /* till */\n}\n";
    assert_eq!(
        guide().findings("a.rs", text),
        [
            r#"a.rs:1: "so many": write "this many, N""#,
            r#"a.rs:5: "till": write "until""#,
            r#"a.rs:5: "till": write "until""#,
            r#"a.rs:6: "till": write "until""#,
        ]
    );
}
