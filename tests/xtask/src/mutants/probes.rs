// SPDX-License-Identifier: BSD-3-Clause
//! The table of the probes on a stock kernel's tracepoints, and a copy of the module's sources in which one of their
//! expressions is another. The module is built from that, in seconds.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::table::{self, Entry, Kind};

/// One entry for each expression of the files below kernel-module/source.
pub fn table() -> Result<Vec<Entry>> {
    table::read(Kind::Probe)
}

/// Changes a copy of kernel-module to the mutant of this number.
pub fn plant(copy: &Path, number: usize) -> Result<()> {
    let table = table()?;
    let entry =
        table.iter().find(|entry| entry.number == number).with_context(|| format!("probes.txt: no {number}"))?;
    let path = copy.join(entry.place()?.0);
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    fs::write(&path, planted(&text, entry)?).with_context(|| format!("{}", path.display()))
}

fn planted(text: &str, entry: &Entry) -> Result<String> {
    entry.planted(text, |_, to| to.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::table::Claims;
    use crate::place;

    fn read(path: &str) -> String {
        fs::read_to_string(place::checkout().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn every_expression_of_the_table_is_there_once_and_every_test_of_it() {
        for entry in table().unwrap() {
            let text = read(&format!("kernel-module/{}", entry.place().unwrap().0));
            assert_ne!(planted(&text, &entry).unwrap(), text, "{}", entry.what);
            let Claims::Tests(tests) = &entry.claims else { continue };
            for test in tests {
                let (module, name) = test.split_once("::").unwrap();
                assert!(read(&format!("tests/vm/{module}.rs")).contains(&format!("#[test]\nfn {name}()")), "{test}");
            }
        }
    }

    #[test]
    fn every_probe_is_in_the_table() {
        let table = table().unwrap();
        let has = |row: &str| table.iter().any(|entry| entry.what.contains(row));
        let mut probes = 0;
        for file in ["call", "fault", "idle", "interrupt", "task"] {
            let text = read(&format!("kernel-module/source/tracepoints/{file}.c"));
            let rows = text.lines().map(str::trim).filter(|line| line.starts_with("{ \"") || line.starts_with("BOTH("));
            for row in rows {
                probes += 1;
                assert!(has(row.trim_end_matches(',')), "tests/mutants/probes.txt: {row}");
            }
        }
        assert!(probes > 25, "{probes}");
    }
}
