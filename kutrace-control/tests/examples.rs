// SPDX-License-Identifier: BSD-3-Clause
//! Examples in the documentation that name a sample print the output shown there; `UPDATE_GOLDEN=1` writes the current
//! output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The prompt before a command in an example, and the fence around the example.
const PROMPT: &str = "$ kutrace_control ";
const FENCE: &str = "```";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Output of a command, run in the folder that contains the samples.
fn printed(words: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kutrace_control"));
    let output = command.args(words.split_whitespace()).current_dir(root()).stdin(Stdio::null()).output().unwrap();
    // 1: `diff` has found a difference.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The page with the current output of its examples, and the number of examples.
fn renewed(page: &str) -> (String, usize) {
    let (mut renewed, mut examples) = (String::new(), 0);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        renewed += &format!("{line}\n");
        let Some(words) = line.strip_prefix(PROMPT).filter(|words| words.contains("samples/")) else { continue };
        lines.by_ref().find(|line| *line == FENCE).expect("an example ends");
        renewed += &format!("{}{FENCE}\n", printed(words));
        examples += 1;
    }
    (renewed, examples)
}

#[test]
fn examples_print_what_they_show() {
    let mut examples = 0;
    for name in ["docs/why.md", "docs/look.md"] {
        let path = root().join(name);
        let page = fs::read_to_string(&path).unwrap();
        let (renewed, found) = renewed(&page);
        examples += found;
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &renewed).unwrap();
            continue;
        }
        let mut lines = (1..).zip(page.lines().zip(renewed.lines()));
        if let Some((n, (shown, printed))) = lines.find(|(_, (shown, printed))| shown != printed) {
            panic!("{name}, line {n}:\n  shown   {shown}\n  printed {printed}\nUPDATE_GOLDEN=1 accepts");
        }
        assert_eq!(page.lines().count(), renewed.lines().count(), "{name} has another length; UPDATE_GOLDEN=1 accepts");
    }
    assert!(examples > 7, "{examples}");
}
