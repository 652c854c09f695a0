// SPDX-License-Identifier: BSD-3-Clause
//! Watches a machine from boot to outcome: passes CMD's output on, and ends the machine on request of CMD, the guest,
//! the time limit or the user. No path leaves this file with a machine still running.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use kutrace_cli::signal::SignalGuard;

use super::console::{Console, Failure};
use super::initramfs::Errand;
use super::machine::Machine;
use super::Guest;
use crate::progress::minutes;

/// From a machine's start to CMD's start; a loaded host takes a tenth of it, where several CPUs take turns a third, and a
/// distribution's kernel, which looks for all that a machine may have, most of it.
const BOOT: Duration = Duration::from_secs(300);
/// Time for which a dying guest may continue its output: a trace is worth having.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// A guest that waits for the host takes longer than its CPU time, but not as many times as this.
const WALL: u32 = 3;
/// Between two looks at the things that send no event.
const TICK: Duration = Duration::from_millis(20);

/// Runs `guest`'s command; its exit status, if the guest lived through it.
pub fn run(guest: &Guest) -> Result<u8> {
    let mut watch = Watch::start(guest, Errand::Command)?;
    let result = watch.until_end(guest.timeout);
    let result = watch.close(result);
    if let Some(path) = &guest.console {
        fs::write(path, watch.console.all()).with_context(|| format!("vm: console: {}", path.display()))?;
    }
    watch.console.foreign().iter().for_each(|fact| eprintln!("vm: guest: before any code of ours: {fact}"));
    if result.is_err() && !watch.guard.is_requested() {
        watch.console.tail().for_each(|line| eprintln!("console | {line}"));
    }
    result
}

/// Returns whether `guest` boots within `limit`.
pub fn boots(guest: &Guest, limit: Duration) -> Result<bool> {
    let mut watch = Watch::start(guest, Errand::Probe)?;
    let result = watch.until_end(limit);
    if watch.guard.is_requested() {
        bail!("vm: interrupted");
    }
    Ok(watch.close(result).is_ok())
}

/// Events from a machine.
enum Event {
    Console(String),
    Report(String),
    Qemu(String),
}

struct Watch {
    machine: Machine,
    events: Receiver<Event>,
    console: Console,
    qemu: String,
    out: Pump,
    err: Pump,
    /// Last, so that it is dropped after the machine.
    guard: SignalGuard,
}

impl Watch {
    fn start(guest: &Guest, errand: Errand) -> Result<Self> {
        let guard = SignalGuard::new()?;
        let (machine, outputs) = Machine::start(guest, errand)?;
        let (sender, events) = channel();
        lines_of(outputs.console, sender.clone(), Event::Console);
        lines_of(outputs.report, sender.clone(), Event::Report);
        lines_of(outputs.qemu, sender, Event::Qemu);
        let out = Pump::start(outputs.out, std::io::stdout());
        let err = Pump::start(outputs.err, std::io::stderr());
        Ok(Self {
            machine,
            events,
            console: Console::new(guest.second || guest.reboot, guest.is_stock()),
            qemu: String::new(),
            out,
            err,
            guard,
        })
    }

    /// Waits for CMD's status, or for what makes it impossible.
    fn until_end(&mut self, limit: Duration) -> Result<u8> {
        let start = Instant::now();
        let (mut started, mut died) = (false, None);
        loop {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Report(line)) => match Report::parse(&line)? {
                    Report::Ready => started = true,
                    Report::Failed(what) => bail!("vm: guest: {what}"),
                    Report::Exited { status, out, err } => return self.drained(status, out, err, start + limit * WALL),
                },
                Ok(event) => self.note(event),
                // Every reader is at its end: so is the machine.
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if matches!(self.console.failure(), Some(Failure::Fatal(_))) {
                let since = died.get_or_insert_with(Instant::now);
                if since.elapsed() > LAST_WORDS {
                    self.machine.dump()?;
                    return Err(self.ended());
                }
            }
            if self.guard.is_requested() {
                bail!("vm: interrupted");
            }
            if start.elapsed() > limit && self.machine.took() > limit || start.elapsed() > limit * WALL {
                bail!("vm: timed out after {}, {} of CPU time", minutes(start.elapsed()), minutes(self.machine.took()));
            }
            if !started && start.elapsed() > BOOT {
                bail!("vm: guest: no sign of life after {}", minutes(BOOT));
            }
        }
    }

    /// Waits until all of CMD's output has been passed on. The report overtakes output that is still in a pipe.
    fn drained(&mut self, status: u8, out: u64, err: u64, deadline: Instant) -> Result<u8> {
        while self.out.passed() < out || self.err.passed() < err {
            if self.guard.is_requested() {
                bail!("vm: interrupted");
            }
            if Instant::now() > deadline {
                bail!("vm: timed out while output was being passed on");
            }
            if self.machine.has_ended()? {
                return Err(self.ended());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(status)
    }

    /// Ends the machine, takes the rest from its pipes, and lets a failure of the kernel overrule CMD's status.
    fn close(&mut self, result: Result<u8>) -> Result<u8> {
        self.machine.end();
        while let Ok(event) = self.events.recv() {
            self.note(event);
        }
        self.out.join();
        self.err.join();
        match (self.console.failure(), result) {
            (Some(Failure::Fatal(fact)), _) => Err(anyhow!("vm: guest: {fact}")),
            (Some(Failure::Warned(fact)), Ok(status)) => Err(anyhow!("vm: guest: {fact} (CMD's status was {status})")),
            (_, result) => result,
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Console(line) => self.console.push(&line),
            Event::Qemu(line) => self.qemu.push_str(&(line + "\n")),
            Event::Report(_) => {}
        }
    }

    /// Why a machine that has ended, ended.
    fn ended(&self) -> anyhow::Error {
        match (self.console.failure(), self.qemu.trim()) {
            (Some(Failure::Fatal(fact)), _) => anyhow!("vm: guest: {fact}"),
            (_, "") => anyhow!("vm: guest: ended without a status"),
            (_, said) => anyhow!("vm: qemu: {said}"),
        }
    }
}

/// A line from init.sh, where its protocol is described.
enum Report {
    Ready,
    Failed(String),
    Exited { status: u8, out: u64, err: u64 },
}

impl Report {
    fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let exited = |status: &str, out: &str, err: &str| -> Result<Self> {
            Ok(Self::Exited { status: status.parse()?, out: out.parse()?, err: err.parse()? })
        };
        match words[..] {
            ["ready"] => Ok(Self::Ready),
            ["fail", ..] => Ok(Self::Failed(words[1..].join(" "))),
            ["exit", status, out, err] => exited(status, out, err).with_context(|| format!("vm: report: {line}")),
            _ => bail!("vm: report: not understood: {line}"),
        }
    }
}

/// Sends each line of `source`, to its end. Bytes that are not text are shown as well as possible.
fn lines_of(source: impl Read + Send + 'static, sender: Sender<Event>, event: fn(String) -> Event) {
    thread::spawn(move || {
        for line in BufReader::new(source).split(b'\n') {
            // The receiver is gone only when no thread wants to know any more.
            let Ok(line) = line else { break };
            if sender.send(event(String::from_utf8_lossy(&line).into_owned())).is_err() {
                break;
            }
        }
    });
}

/// Passes bytes on as they come, and counts them.
struct Pump {
    passed: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    fn start(mut from: File, mut to: impl Write + Send + 'static) -> Self {
        let passed = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&passed);
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                // A reader of ours that went away (`| head`) is not a reason to hold up CMD.
                let _ = to.write_all(&buffer[..count]).and_then(|()| to.flush());
                counter.fetch_add(count as u64, Ordering::Release);
            }
        });
        Self { passed, thread: Some(thread) }
    }

    fn passed(&self) -> u64 {
        self.passed.load(Ordering::Acquire)
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a pump does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_parsed() {
        assert!(matches!(Report::parse("ready").unwrap(), Report::Ready));
        assert!(matches!(Report::parse("exit 7 12 0").unwrap(), Report::Exited { status: 7, out: 12, err: 0 }));
        assert!(matches!(Report::parse("fail insmod: bad").unwrap(), Report::Failed(what) if what == "insmod: bad"));
        for bad in ["", "exit 7", "exit 256 0 0", "exit x 0 0", "hello"] {
            assert!(Report::parse(bad).is_err(), "{bad}");
        }
    }
}
