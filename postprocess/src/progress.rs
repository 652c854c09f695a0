// SPDX-License-Identifier: BSD-3-Clause
//! Progress: how much of a long work is done. Who works counts, who watches reads; a process has one work at a time.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

static DONE: AtomicU64 = AtomicU64::new(0);
static ALL: AtomicU64 = AtomicU64::new(0);

/// A work of so many parts begins.
pub fn begin(parts: u64) {
    DONE.store(0, Relaxed);
    ALL.store(parts, Relaxed);
}

/// So many more are done.
pub fn advance(parts: u64) {
    DONE.fetch_add(parts, Relaxed);
}

/// How much is done of a hundred, if it is known how much there is.
fn percent() -> Option<u64> {
    let (done, all) = (DONE.load(Relaxed), ALL.load(Relaxed));
    (all > 0).then(|| (u128::from(done) * 100 / u128::from(all)).min(100) as u64)
}

/// Short works are not worth a word.
const FIRST: Duration = Duration::from_secs(2);
/// Time between two looks.
const NEXT: Duration = Duration::from_millis(250);
/// What takes the last line of a terminal away.
pub const CLEAR: &str = "\r\x1b[K";

/// Shows the progress in the last line of a terminal until it is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    watching: Option<JoinHandle<()>>,
}

impl Watch {
    /// Shows the progress of `tool`, if standard error is a terminal.
    pub fn at_terminal(tool: &'static str) -> Option<Watch> {
        io::stderr().is_terminal().then(|| Watch::begin(tool, io::stderr(), FIRST))
    }

    fn begin(tool: &'static str, mut out: impl Write + Send + 'static, first: Duration) -> Watch {
        let (stop, stopped) = channel();
        let watching = thread::spawn(move || {
            let (mut wait, mut shown) = (first, false);
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = NEXT;
                if let Some(percent) = percent() {
                    // Where it cannot be shown, nobody misses it.
                    let _ = write!(out, "{CLEAR}{tool}: {percent} %").and_then(|()| out.flush());
                    shown = true;
                }
            }
            if shown {
                let _ = write!(out, "{CLEAR}").and_then(|()| out.flush());
            }
        });
        Watch { stop: Some(stop), watching: Some(watching) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        // It has nothing to say.
        let _ = self.watching.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;

    struct Screen(Sender<Vec<u8>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_shown_is_taken_away_at_the_end() {
        let (screen, seen): (_, Receiver<Vec<u8>>) = channel();
        begin(200);
        advance(74);
        let watch = Watch::begin("tool", Screen(screen), Duration::ZERO);
        let mut text = Vec::new();
        while !text.ends_with(b"tool: 37 %") {
            text.extend(seen.recv().unwrap());
        }
        drop(watch);
        text.extend(seen.iter().flatten());
        assert!(text.ends_with(CLEAR.as_bytes()));
    }
}
