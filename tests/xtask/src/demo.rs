// SPDX-License-Identifier: BSD-3-Clause
//! `cargo xtask demo`: traces a real workload in the guest and makes the page of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{bail, Context, Result};

use crate::kernel::Which;
use crate::vm::{self, VmArgs};
use crate::{place, tools};

/// Runs in the guest: its arguments, while they are recorded.
const TRACED: &str = r#"kutrace_control record -o /mnt/share/t.trace -- "$@""#;
/// A tool's status for "done, but the trace has losses or damage": worth a word, no failure.
const LOSSY: i32 = 3;

/// Folder of the artifacts of the last demo.
pub fn artifacts() -> PathBuf {
    place::target().join("demo")
}

/// Traces `command`, or the default workload when it is empty, on a kernel.
pub fn run(kernel: Which, command: &[OsString]) -> Result<()> {
    let dir = place::made(artifacts())?;
    let (raw, page) = (dir.join("t.trace"), dir.join("t.html"));
    for stale in [&raw, &page] {
        if stale.exists() {
            fs::remove_file(stale).with_context(|| format!("demo: {}", stale.display()))?;
        }
    }
    let mut words: Vec<OsString> = ["bash", "-c", TRACED, "demo"].map(OsString::from).to_vec();
    let title = match command {
        [] => {
            words.extend(["bash".into(), place::checkout().join("tests/vm/workload.sh").into()]);
            "shell pipelines, gcc, redis under redis-benchmark".to_string()
        }
        command => {
            words.extend_from_slice(command);
            command.join(" ".as_ref()).to_string_lossy().into_owned()
        }
    };
    let status = vm::run(&VmArgs { share: Some(dir), kernel, ..VmArgs::new(words) })?;
    if status != 0 {
        bail!("demo: the traced command ended with status {status}");
    }
    let counts = render(&raw, &page, &title)?;
    let size = |path: &Path| Ok::<_, anyhow::Error>(fs::metadata(path)?.len());
    let mut out = std::io::stdout().lock();
    writeln!(out, "trace: {} ({} bytes)", raw.display(), size(&raw)?)?;
    writeln!(out, "page:  {} ({} bytes)", page.display(), size(&page)?)?;
    writeln!(out, "{} lines of events, {} lines of spans", counts.events, counts.spans)?;
    Ok(())
}

/// Files between the stages.
struct Counts {
    events: usize,
    spans: usize,
}

/// `rawtoevent < raw | eventtospan | spantohtml > page`, counting lines on the way.
fn render(raw: &Path, page: &Path, title: &str) -> Result<Counts> {
    let input = File::open(raw).with_context(|| format!("demo: {}", raw.display()))?;
    let output = File::create(page).with_context(|| format!("demo: {}", page.display()))?;
    let mut decode = stage("rawtoevent", &[], input.into(), Stdio::piped())?;
    let mut build = stage("eventtospan", &[&format!("--title={title}")], Stdio::piped(), Stdio::piped())?;
    let mut render = stage("spantohtml", &[], Stdio::piped(), output.into())?;
    let events = join(&mut decode, &mut build)?;
    let spans = join(&mut build, &mut render)?;
    for (name, mut child) in [("rawtoevent", decode), ("eventtospan", build), ("spantohtml", render)] {
        judge(name, child.wait()?)?;
    }
    let count = |lines: thread::JoinHandle<std::io::Result<usize>>| lines.join().expect("a copy does not panic");
    Ok(Counts {
        events: count(events).context("demo: rawtoevent | eventtospan")?,
        spans: count(spans).context("demo: eventtospan | spantohtml")?,
    })
}

fn stage(name: &str, arguments: &[&str], input: Stdio, output: Stdio) -> Result<Child> {
    let mut command = Command::new(tools::folder().join("release").join(name));
    command
        .args(arguments)
        .stdin(input)
        .stdout(output)
        .spawn()
        .with_context(|| format!("demo: {name}: cannot be started"))
}

fn judge(name: &str, status: ExitStatus) -> Result<()> {
    match status.code() {
        Some(0) => {}
        Some(LOSSY) => eprintln!("demo: {name}: the trace has losses or damage, see above"),
        _ => bail!("demo: {name}: {status}"),
    }
    Ok(())
}

/// Copies one stage's output to the next one's input in a thread of its own; counts the lines.
fn join(from: &mut Child, to: &mut Child) -> Result<thread::JoinHandle<std::io::Result<usize>>> {
    let mut from = from.stdout.take().context("demo: a stage without output")?;
    let mut to = to.stdin.take().context("demo: a stage without input")?;
    Ok(thread::spawn(move || {
        let (mut lines, mut buffer) = (0, vec![0; 1 << 16]);
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 {
                return Ok(lines);
            }
            lines += buffer[..count].iter().filter(|byte| **byte == b'\n').count();
            to.write_all(&buffer[..count])?;
        }
    }))
}
