// SPDX-License-Identifier: BSD-3-Clause
//! The original's traces against what its own tools made of them.
//!
//! Every difference has a name, which is an entry of docs/compat.md, and is counted by it; one without a name fails.

mod text;
mod spans;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use kutrace_tests::skip::skip;

const STEMS: [&str; 2] = ["hw2019", "pipes"];

/// The bytes of a reference file: of `pipes` from tests/golden/original; of `hw2019`, which is not this project's, from
/// the folder that `KUTRACE_UPSTREAM` names; skips with a message if that is not set.
pub fn reference(name: &str) -> Option<Vec<u8>> {
    if name.starts_with("pipes.") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/original").join(format!("{name}.gz"));
        let mut bytes = Vec::new();
        GzDecoder::new(File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
        return Some(bytes);
    }
    let Some(folder) = std::env::var_os("KUTRACE_UPSTREAM") else {
        skip(name, "KUTRACE_UPSTREAM names no folder");
        return None;
    };
    let path = Path::new(&folder).join(name);
    let bytes = std::fs::read(&path).ok().or_else(|| unpacked(&Path::new(&folder).join(format!("{name}.xz"))));
    Some(bytes.unwrap_or_else(|| panic!("KUTRACE_UPSTREAM: {}: cannot be read", path.display())))
}

fn unpacked(path: &Path) -> Option<Vec<u8>> {
    let output = Command::new("xz").arg("-dc").arg(path).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// Number of lines that differ for each reason.
#[derive(Default)]
struct Differences(BTreeMap<&'static str, usize>);

impl Differences {
    fn count(&mut self, entry: &'static str, lines: usize) {
        if lines > 0 {
            *self.0.entry(entry).or_default() += lines;
        }
    }

    /// Prints the counts, and checks that the differences are those that docs/compat.md names, and that no line is
    /// `unexplained`.
    fn assert_named(&self, stem: &str, unexplained: &[String]) {
        let compat = include_str!("../../docs/compat.md");
        for (entry, lines) in &self.0 {
            println!("{stem}: {lines:6} lines differ: {entry}");
            assert!(compat.contains(&format!("\n| {entry} |")), "docs/compat.md does not name: {entry}");
        }
        let shown = unexplained.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(unexplained.is_empty(), "{stem}: {} lines differ for no known reason:\n{shown}", unexplained.len());
    }
}
