// SPDX-License-Identifier: BSD-3-Clause
//! Tools as a shell sees them: files and pipes, exit statuses, one line on stderr.

mod stages;
mod frames;
mod companions;
mod converters;
mod samples;
mod failures;
mod words;
mod help;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kutrace_tests::TraceBuilder;

const RAWTOEVENT: &str = env!("CARGO_BIN_EXE_rawtoevent");
const EVENTTOSPAN: &str = env!("CARGO_BIN_EXE_eventtospan");
const SPANTOHTML: &str = env!("CARGO_BIN_EXE_spantohtml");
const CHECKTRACE: &str = env!("CARGO_BIN_EXE_checktrace");
const KUOD: &str = env!("CARGO_BIN_EXE_kuod");
const SPANTOTRIM: &str = env!("CARGO_BIN_EXE_spantotrim");
const SPANTOSPAN: &str = env!("CARGO_BIN_EXE_spantospan");
const SPANTOPROF: &str = env!("CARGO_BIN_EXE_spantoprof");
const SPANTOWHY: &str = env!("CARGO_BIN_EXE_spantowhy");
const SPANTOPERFETTO: &str = env!("CARGO_BIN_EXE_spantoperfetto");
const SPANTOOTLP: &str = env!("CARGO_BIN_EXE_spantootlp");
const FTRACETOSPAN: &str = env!("CARGO_BIN_EXE_ftracetospan");
const PERFTOSPAN: &str = env!("CARGO_BIN_EXE_perftospan");
const PERFETTOTOSPAN: &str = env!("CARGO_BIN_EXE_perfettotospan");
const HTMLTOSPAN: &str = env!("CARGO_BIN_EXE_htmltospan");
const SAMPTONAME_K: &str = env!("CARGO_BIN_EXE_samptoname_k");
const SAMPTONAME_U: &str = env!("CARGO_BIN_EXE_samptoname_u");

/// Tools from spans to spans, with their required arguments.
const FILTERS: [(&str, &[&str]); 3] = [(SPANTOTRIM, &["0"]), (SPANTOSPAN, &["10"]), (SPANTOPROF, &[])];

/// Tools that read one file, with the arguments before its name.
const ONE_FILE: [(&str, &[&str]); 14] = [
    (RAWTOEVENT, &[]),
    (EVENTTOSPAN, &[]),
    (FTRACETOSPAN, &[]),
    (PERFTOSPAN, &[]),
    (PERFETTOTOSPAN, &[]),
    (CHECKTRACE, &[]),
    (KUOD, &[]),
    (SPANTOTRIM, &["0", "--input"]),
    (SPANTOSPAN, &["10"]),
    (SPANTOPROF, &[]),
    (SPANTOWHY, &[]),
    (SPANTOPERFETTO, &[]),
    (SPANTOOTLP, &[]),
    (HTMLTOSPAN, &[]),
];

/// Runs a tool with `input` on its standard input.
fn run(tool: &str, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(tool)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn temporary(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Returns the JSON of a trace.
fn json(trace: &TraceBuilder) -> Vec<u8> {
    run(EVENTTOSPAN, &[], &run(RAWTOEVENT, &[], &trace.bytes()).stdout).stdout
}
