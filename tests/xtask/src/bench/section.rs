// SPDX-License-Identifier: BSD-3-Clause
//! Results of a part of `cargo xtask bench`, as a section of a document: tables, and the values over their budget.
//!
//! In the document it is between `<!-- bench NAME -->` and `<!-- bench ends -->`, below the date, the machine and the
//! commit; it is never edited by hand.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::place;
use crate::progress::output;

/// The documents that have sections.
const DOCUMENTS: [&str; 2] = ["docs/overhead.md", "docs/marks.md"];
const END: &str = "<!-- bench ends -->";

/// Tables, and what in them is over its budget, a line each.
pub struct Section {
    pub name: &'static str,
    pub tables: String,
    pub over: Vec<String>,
}

/// Bound of a number.
#[derive(Clone, Copy)]
pub enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// There is none.
    Any,
}

/// A number and its limit.
pub struct Budget {
    pub what: String,
    pub limit: Limit,
    pub measured: f64,
    /// Unit, with a blank before it if it has one.
    pub unit: &'static str,
}

impl Budget {
    /// Message if the limit is not kept.
    pub fn over(&self) -> Option<String> {
        let Budget { what, limit, measured, unit } = self;
        let is_held = match limit {
            Limit::AtMost(most) => measured <= most,
            Limit::AtLeast(least) => measured >= least,
            Limit::Any => true,
        };
        (!is_held).then(|| format!("over budget: {what}: {measured:.2}{unit}, {}", limit.text()))
    }
}

impl Limit {
    fn text(self) -> String {
        match self {
            Limit::AtMost(most) => format!("at most {most}"),
            Limit::AtLeast(least) => format!("at least {least}"),
            Limit::Any => String::new(),
        }
    }
}

/// The lines of all that are over.
pub fn over(budgets: &[Budget]) -> Vec<String> {
    budgets.iter().filter_map(Budget::over).collect()
}

/// A table of them.
pub fn table(head: &str, budgets: &[Budget]) -> String {
    let mut table = format!("| {head} | | budget |\n|---|---|---|\n");
    for Budget { what, limit, measured, unit } in budgets {
        let limit = limit.text();
        writeln!(table, "| {what} | {measured:.2}{unit} |{}{limit} |", if limit.is_empty() { "" } else { " " })
            .expect("a text takes all");
    }
    table
}

impl Section {
    /// One whose only table is this.
    pub fn of(name: &'static str, head: &str, budgets: &[Budget]) -> Section {
        Section { name, tables: table(head, budgets), over: over(budgets) }
    }

    /// Body of the section, as it is printed and appears in the document.
    pub fn text(&self, head: &str) -> String {
        format!("{head}\n\n{}", self.tables)
    }

    /// Puts it in the place of the one that the document has.
    pub fn write(&self, head: &str) -> Result<()> {
        let begin = format!("<!-- bench {} -->\n", self.name);
        let mut found = None;
        for path in DOCUMENTS.map(|document| place::checkout().join(document)) {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            if text.contains(&begin) {
                found = Some((path, text));
            }
        }
        let Some((path, text)) = found else { bail!("bench: no document has {}", begin.trim_end()) };
        let text = replaced(&text, &begin, &self.text(head)).with_context(|| at(&path, &begin))?;
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

fn at(path: &Path, begin: &str) -> String {
    format!("bench: {}: {} has no end", path.display(), begin.trim_end())
}

/// A document with another section after `begin`.
fn replaced(document: &str, begin: &str, section: &str) -> Option<String> {
    let (before, rest) = document.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n{}\n\n{END}{after}", section.trim_end()))
}

/// Date, machine and commit: of all sections, before the first is written, which changes the checkout.
pub fn head() -> Result<String> {
    let date = output(Command::new("date").args(["--utc", "+%F"]))?;
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--abbrev=8", "--dirty", "--exclude=*"]).current_dir(place::checkout());
    // A tarball has none.
    let commit = git.output().ok().filter(|git| git.status.success());
    let commit = commit.map_or("no commit".into(), |git| String::from_utf8_lossy(&git.stdout).trim().to_owned());
    Ok(format!("{}, {}, {commit}.", date.trim_end(), machine()?))
}

fn machine() -> Result<String> {
    let cpuinfo = PathBuf::from("/proc/cpuinfo");
    let cpuinfo = fs::read_to_string(&cpuinfo).with_context(|| cpuinfo.display().to_string())?;
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).unwrap_or_default().1;
    let cores = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    Ok(format!("{model}, {cores} cores"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_held_up_to_its_limit() {
        let over = |limit, measured| Budget { what: "x".to_owned(), limit, measured, unit: " s" }.over();
        assert_eq!(over(Limit::AtMost(1.5), 1.5), None);
        assert_eq!(over(Limit::AtMost(1.5), 1.6).as_deref(), Some("over budget: x: 1.60 s, at most 1.5"));
        assert_eq!(over(Limit::AtLeast(2.0), 2.0), None);
        assert_eq!(over(Limit::AtLeast(2.0), 1.0).as_deref(), Some("over budget: x: 1.00 s, at least 2"));
        assert_eq!(over(Limit::Any, 1e9), None);
        // NaN is over any limit.
        assert!(over(Limit::AtMost(1.0), f64::NAN).is_some() && over(Limit::AtLeast(1.0), f64::NAN).is_some());
    }

    #[test]
    fn a_section_takes_the_place_of_the_one_before_and_nothing_else_changes() {
        let document = "a\n<!-- bench x -->\nold\n<!-- bench ends -->\nb\n<!-- bench y -->\n<!-- bench ends -->\n";
        let changed = replaced(document, "<!-- bench x -->\n", "new\n").unwrap();
        assert_eq!(
            changed,
            "a\n<!-- bench x -->\n\nnew\n\n<!-- bench ends -->\nb\n<!-- bench y -->\n<!-- bench ends -->\n"
        );
        assert_eq!(replaced(&changed, "<!-- bench x -->\n", "new\n").unwrap(), changed);
        assert_eq!(replaced("a\n<!-- bench x -->\n", "<!-- bench x -->\n", "new"), None);
    }

    #[test]
    fn every_document_with_sections_has_each_once_and_closed() {
        for document in DOCUMENTS {
            let text = fs::read_to_string(place::checkout().join(document)).unwrap();
            let begins: Vec<&str> =
                text.lines().filter(|line| line.starts_with("<!-- bench ") && *line != END).collect();
            assert!(!begins.is_empty(), "{document}");
            for begin in &begins {
                assert_eq!(begins.iter().filter(|other| *other == begin).count(), 1, "{document}: {begin}");
                let section = text.split_once(begin).unwrap().1.split_once(END).expect(begin).0;
                assert!(!section.contains("<!-- bench "), "{document}: {begin} has no end");
            }
        }
    }
}
