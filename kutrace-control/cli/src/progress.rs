// SPDX-License-Identifier: BSD-3-Clause
//! Progress of a long task, in the last line of a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::message::{clear, tool, CLEAR, PROGRESS};

/// Shorter tasks show no progress.
const FIRST: Duration = Duration::from_secs(2);
/// Interval between updates.
const NEXT: Duration = Duration::from_millis(250);
/// Shows the progress in the last line of a terminal until it is dropped.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    watching: Option<JoinHandle<()>>,
}

impl Watch {
    /// Shows the result of `percent`, if standard error is a terminal.
    pub fn at_terminal(percent: impl Fn() -> Option<u64> + Send + 'static) -> Option<Watch> {
        io::stderr().is_terminal().then(|| Watch::begin(percent, io::stderr(), FIRST))
    }

    fn begin(
        percent: impl Fn() -> Option<u64> + Send + 'static,
        mut out: impl Write + Send + 'static,
        first: Duration,
    ) -> Watch {
        let (stop, stopped) = channel();
        let watching = thread::spawn(move || {
            let mut wait = first;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = NEXT;
                if let Some(percent) = percent() {
                    // Progress that cannot be shown is not an error.
                    PROGRESS.store(true, Relaxed);
                    let _ = write!(out, "{CLEAR}{}: {percent} %", tool()).and_then(|()| out.flush());
                }
            }
            let _ = write!(out, "{}", clear()).and_then(|()| out.flush());
        });
        Watch { stop: Some(stop), watching: Some(watching) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        // The thread returns nothing.
        let _ = self.watching.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;
    use std::sync::Mutex;

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

    /// Held by tests that print, since they share one last line.
    pub(crate) static LINE: Mutex<()> = Mutex::new(());

    #[test]
    fn what_is_shown_is_taken_away_at_the_end() {
        let _line = LINE.lock();
        let (screen, seen): (_, Receiver<Vec<u8>>) = channel();
        let watch = Watch::begin(|| Some(37), Screen(screen), Duration::ZERO);
        let mut text = Vec::new();
        while !text.ends_with(b"kutrace: 37 %") {
            text.extend(seen.recv().unwrap());
        }
        drop(watch);
        text.extend(seen.iter().flatten());
        assert!(text.ends_with(CLEAR.as_bytes()));
    }
}
