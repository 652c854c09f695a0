// SPDX-License-Identifier: BSD-3-Clause
//! The unit that watches: its command is valid, and systemd finds no fault in it.

use std::fs;
use std::process::Command;

use kutrace_tests::skip::skip;

/// The units of the package.
const UNITS: [(&str, &str); 2] = [
    ("kutrace.service", include_str!("../../tests/xtask/debian/kutrace.service")),
    ("kutrace-watch.service", include_str!("../../tests/xtask/debian/kutrace-watch.service")),
];
const PROGRAM: &str = "/usr/bin/kutrace_control";

fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn what_the_unit_runs_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let [line] = values(UNITS[1].1, "ExecStart")[..] else { panic!("one command") };
    let kept = folder.path().join("kept");
    let line = line.replace(PROGRAM, env!("CARGO_BIN_EXE_kutrace_control"));
    let line = line.replace("/var/lib/kutrace", kept.to_str().unwrap());
    let ended = Command::new("timeout").args(["20", "sh", "-c", &line]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    // Not 2, wrong usage: there is no recorder here, or none that records.
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("watching for wait_cpu > 50ms, call:fsync > 200ms, keep, signal"), "{said}");
    assert!(kept.is_dir());
    assert_eq!(values(UNITS[1].1, "StateDirectory"), ["kutrace"]);
}

#[test]
fn the_unit_comes_after_the_module_and_systemd_has_nothing_against_it() {
    for key in ["Wants", "After"] {
        assert_eq!(values(UNITS[1].1, key), [UNITS[0].0]);
    }
    // Not every machine has it, nor the programs at the paths of a package.
    let folder = tempfile::tempdir().unwrap();
    for (name, unit) in UNITS {
        let programs = ["/sbin/modprobe", "/sbin/modinfo", "/bin/kill", PROGRAM];
        let unit = programs.iter().fold(unit.to_string(), |unit, program| unit.replace(program, "/bin/true"));
        let lines: Vec<&str> = unit.lines().filter(|line| !line.starts_with("Documentation=")).collect();
        fs::write(folder.path().join(name), lines.join("\n")).unwrap();
    }
    let mut verify = Command::new("systemd-analyze");
    let Ok(verified) = verify.arg("verify").args(UNITS.map(|(name, _)| folder.path().join(name))).output() else {
        return skip("units of systemd", "no systemd-analyze: apt-get install systemd");
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains(".service:"), "{said}");
}
