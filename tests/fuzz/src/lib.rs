// SPDX-License-Identifier: BSD-3-Clause
//! Shared by the targets: the inputs to begin with, and the run of one input.

use std::fs;
use std::path::Path;

use kutrace_tests::fuzz::target;

/// Puts the inputs to begin with into the corpus of a target.
pub fn seed(name: &str) {
    let (_, _, seeds) = target(name);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    fs::create_dir_all(&corpus).expect("the corpus can be made");
    for (n, seed) in seeds().iter().enumerate() {
        fs::write(corpus.join(format!("seed{n}")), seed).expect("the corpus can be written");
    }
}

/// Runs one input.
pub fn run(name: &str, input: &[u8]) {
    target(name).1(input);
}
