// SPDX-License-Identifier: BSD-3-Clause
//! Help, usage, manuals and completions.

use std::path::Path;
use std::process::Command;

use super::*;

#[test]
fn wrong_usage_gives_status_2() {
    for (tool, _) in ONE_FILE {
        assert_eq!(code(&run(tool, &["--nonsense"], b"")), 2);
        assert_eq!(code(&run(tool, &["--help"], b"")), 0);
        assert_eq!(code(&run(tool, &["--version"], b"")), 0);
    }
}

/// All tools of this package.
const TOOLS: [&str; 18] = [
    RAWTOEVENT,
    EVENTTOSPAN,
    SPANTOHTML,
    CHECKTRACE,
    KUOD,
    SPANTOTRIM,
    SPANTOSPAN,
    SPANTOPROF,
    SPANTOWHY,
    HTMLTOSPAN,
    SAMPTONAME_K,
    SAMPTONAME_U,
    env!("CARGO_BIN_EXE_rawtoctf"),
    FTRACETOSPAN,
    PERFETTOTOSPAN,
    PERFTOSPAN,
    SPANTOPERFETTO,
    SPANTOOTLP,
];

#[test]
fn every_help_fits_a_screen_and_ends_with_two_examples() {
    for tool in TOOLS {
        let name = Path::new(tool).file_name().unwrap().to_str().unwrap();
        let output = Command::new(tool).arg("--help").env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), help.lines().count() <= 24), (Some(0), true), "{name}:\n{help}");
        assert!(help.lines().all(|line| line.len() <= 80), "{name}:\n{help}");
        let examples: Vec<&str> = help.trim_end().lines().rev().take_while(|line| *line != "Examples:").collect();
        assert_eq!(examples.len(), 2, "{name}:\n{help}");
        assert!(examples.iter().all(|example| example.contains(name)), "{name}:\n{help}");
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(" to its end"), "{name}:\n{help}");
        let version = run(tool, &["--version"], b"");
        assert!(String::from_utf8(version.stdout).unwrap().starts_with(&format!("{name} ")), "{name}");
    }
}

#[test]
fn a_wrong_option_is_a_usage_error_in_colour_only_at_a_terminal() {
    for tool in TOOLS {
        let wrong = run(tool, &["--no-such-option"], b"");
        assert_eq!((code(&wrong), wrong.stdout.len()), (2, 0), "{tool}");
        assert!(stderr(&wrong).contains("--no-such-option") && !stderr(&wrong).contains('\u{1b}'), "{tool}");
    }
}

#[test]
fn every_tool_writes_its_manual_and_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    for tool in TOOLS {
        let name = Path::new(tool).file_name().unwrap().to_str().unwrap();
        assert_eq!(code(&run(tool, &["--generate", folder.path().to_str().unwrap()], b"")), 0, "{name}");
        let page = std::fs::read_to_string(folder.path().join(format!("man/man1/{name}.1"))).unwrap();
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "\"EXIT STATUS\"", "EXAMPLES", "\"SEE ALSO\""] {
            assert!(sections.contains(&section), "{name}: no {section} in {sections:?}");
        }
        for path in [
            format!("bash-completion/completions/{name}"),
            format!("zsh/site-functions/_{name}"),
            format!("fish/vendor_completions.d/{name}.fish"),
        ] {
            assert!(std::fs::read_to_string(folder.path().join(&path)).unwrap().contains(name), "{path}");
        }
    }
}
