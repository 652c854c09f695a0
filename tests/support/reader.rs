// SPDX-License-Identifier: BSD-3-Clause
//! A second reader of raw files, `format.py`, written from docs/format.md alone: its reading is compared with that of
//! ours.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use postprocess::event::names::Names;
use postprocess::event::write::Writer;
use postprocess::raw;

/// PyPy reads a large trace three times as fast. Debian's Python, if there is no other, starts in 20 ms: of the others
/// in `PATH`, a wrapper takes 80, and the tests start it often.
const PYTHONS: [&str; 2] = ["/usr/bin/pypy3", "/usr/bin/python3"];

/// The event lines of a raw file, as `rawtoevent` prints them.
pub fn lines(bytes: &[u8]) -> Vec<u8> {
    let raw = raw::parse(bytes).expect("a raw file");
    let mut names = Names::default();
    let mut decoder = raw.decoder(&mut names);
    let mut text = Vec::new();
    let mut out = Writer::new(&mut text);
    out.head(5, raw.flags(), raw.clock.base, &raw.block_lines()).expect("memory");
    out.unseen(raw.header.unseen).expect("memory");
    while let Some(event) = decoder.next(&mut names) {
        out.event(&event, &names).expect("memory");
    }
    out.finish(&raw.finish(&decoder)).expect("memory");
    text
}

/// Lets the second reader read `trace` and compare with `lines`; returns its report of a difference, if there is one.
pub fn compare(trace: &Path, lines: &[u8]) -> Result<(), String> {
    python("format.py", &[trace, Path::new("/dev/stdin")], lines)
}

/// Runs a program of this folder with `input`; returns its output, if its status is not 0.
pub fn python(program: &str, arguments: &[&Path], input: &[u8]) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("support").join(program);
    // It takes only time that is free otherwise: measurements in a guest at the same time are not distorted.
    let interpreter = PYTHONS.into_iter().find(|path| Path::new(path).exists()).unwrap_or(PYTHONS[1]);
    let mut command = Command::new("nice");
    command
        .args(["-n", "19", interpreter])
        .arg(path)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("{interpreter}: {e}"))?;
    // A program that ends before it has read everything reports the reason.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input));
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let said = [output.stdout, output.stderr].concat();
    match (output.status.success(), written) {
        (true, Ok(())) => Ok(()),
        (_, written) => Err(format!("{program}: {written:?}: {}", String::from_utf8_lossy(&said))),
    }
}
