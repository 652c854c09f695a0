// SPDX-License-Identifier: BSD-3-Clause
//! rawtoctf, with babeltrace2 reading its output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kutrace_tests::{busy, ctf, TraceBuilder};

/// Converts a raw file to a folder of this name.
fn convert(raw: &Path, name: &str) -> (PathBuf, Output) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_rawtoctf")).arg(raw).arg(&dir).output().unwrap();
    (dir, output)
}

/// Converts a whole trace and compares the result as babeltrace2 reads it; prints a note if that is not installed.
/// Returns the number of entries.
fn round(raw: &Path, name: &str) -> Option<usize> {
    let (dir, output) = convert(raw, name);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let Ok(read) = Command::new("babeltrace2").args(["--clock-seconds", "--no-delta"]).arg(dir).output() else {
        eprintln!("skipped: babeltrace2 is not installed");
        return None;
    };
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(String::from_utf8_lossy(&read.stderr), "");
    Some(ctf::compare(&std::fs::read(raw).unwrap(), &String::from_utf8(read.stdout).unwrap()))
}

fn temporary(name: &str, trace: &TraceBuilder) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, trace.bytes()).unwrap();
    path
}

#[test]
fn babeltrace2_reads_the_sample_as_we_do() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/pipeline.trace");
    assert!(round(&sample, "ctf_sample").is_none_or(|entries| entries > 5_000));
}

#[test]
fn babeltrace2_reads_many_blocks_as_we_do() {
    let path = temporary("ctf_busy.raw", &busy(3, 50_000, 5));
    assert!(round(&path, "ctf_busy").is_none_or(|entries| entries > 50_000));
}

#[test]
fn babeltrace2_keeps_the_time_across_long_gaps_and_reads_every_form_of_a_call() {
    let mut trace = TraceBuilder::new(1, 1 << 40);
    let cpu = trace.cpu(0);
    cpu.running(7, "a \"quoted\" name", None);
    let mut at = 10;
    for gap in [1 << 10, 1 << 19, 1 << 20, 5 << 20, 1 << 33, 1 << 38] {
        cpu.call(at, 1, 0xfedc).small_return(at + 20, -11);
        cpu.folded(at + 30, 110, 0xabcd, 0, -127).folded(at + 40, 110, 0xfffe, 30_000, 127);
        at += 100_000 + gap;
    }
    let path = temporary("ctf_gaps.raw", &trace);
    assert!(round(&path, "ctf_gaps").is_none_or(|entries| entries == 24));
}

#[test]
fn a_folder_that_is_there_is_left_alone() {
    let path = temporary("ctf_twice.raw", &busy(1, 100, 1));
    let (dir, first) = convert(&path, "ctf_twice");
    assert_eq!(first.status.code(), Some(0));
    let second = Command::new(env!("CARGO_BIN_EXE_rawtoctf")).arg(&path).arg(&dir).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!((second.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("rawtoctf: ") && said.contains("ctf_twice: File exists"), "{said}");
}
