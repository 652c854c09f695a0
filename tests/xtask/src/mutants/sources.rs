// SPDX-License-Identifier: BSD-3-Clause
//! The tables of the probes on a stock kernel's tracepoints and of the module's other sources, and a copy of these in
//! which one expression is another. The module is built from that, in seconds.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::table::{self, Entry, Kind};

/// The mutant of this number: an expression of a file below kernel-module.
pub fn find(kind: Kind, number: usize) -> Result<Entry> {
    let found = table::read(kind)?.into_iter().find(|entry| entry.number == number);
    found.with_context(|| format!("{}: no {number}", kind.file()))
}

/// Changes a copy of kernel-module to the mutant.
pub fn plant(copy: &Path, entry: &Entry) -> Result<()> {
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
        for entry in [Kind::Probe, Kind::Module].into_iter().flat_map(|kind| table::read(kind).unwrap()) {
            let text = read(&format!("kernel-module/{}", entry.place().unwrap().0));
            assert_ne!(planted(&text, &entry).unwrap(), text, "{}", entry.what);
            let Claims::Tests(tests) = &entry.claims else { continue };
            for test in tests {
                let (module, name) = test.rsplit_once("::").unwrap();
                let text = read(&format!("tests/vm/{}.rs", module.replace("::", "/")));
                assert!(text.contains(&format!("#[test]\nfn {name}()")), "{test}");
                assert!(
                    !text.contains(&format!("#[cfg(feature = \"night\")]\n#[test]\nfn {name}()")),
                    "{test}: not in the gate"
                );
            }
        }
    }

    #[test]
    fn every_probe_is_in_the_table() {
        let table = table::read(Kind::Probe).unwrap();
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
