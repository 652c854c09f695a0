// SPDX-License-Identifier: BSD-3-Clause
//! Ctrl-C, a lost terminal, a request to end: deadly as usual, except while a file or a recording must be ended first.
//!
//! A terminal is not missed by who started this program with `nohup`.

use std::fmt;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

use crate::sys;

struct Signals {
    /// Nobody holds them back: a signal does what it does by default.
    deadly: Arc<AtomicBool>,
    /// How many hold them back.
    holds: AtomicUsize,
    /// Has a byte for each signal that was held back.
    noted: UnixStream,
}

/// Holds signals back while it lives; its owner asks for them.
pub struct Hold {
    signals: &'static Signals,
}

/// The end that a signal asks for.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl Hold {
    /// From here on a signal is only noted.
    pub fn new() -> Result<Hold> {
        static SIGNALS: OnceLock<Signals> = OnceLock::new();
        let signals = match SIGNALS.get() {
            Some(signals) => signals,
            None => {
                let signals = install().context("signals")?;
                SIGNALS.get_or_init(|| signals)
            }
        };
        signals.holds.fetch_add(1, Ordering::SeqCst);
        signals.deadly.store(false, Ordering::SeqCst);
        Ok(Hold { signals })
    }

    /// Forgets the signals noted so far; whether there were any.
    pub fn take(&self) -> bool {
        (&self.signals.noted).read(&mut [0; 64]).is_ok_and(|signals| signals > 0)
    }

    /// Fails with [`Interrupted`] if a signal was noted.
    pub fn check(&self) -> Result<()> {
        match self.take() {
            true => Err(Interrupted.into()),
            false => Ok(()),
        }
    }
}

impl AsFd for Hold {
    /// Can be read while a signal is noted.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.noted.as_fd()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.signals.holds.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.signals.deadly.store(true, Ordering::SeqCst);
        }
    }
}

fn install() -> std::io::Result<Signals> {
    let (noted, write) = UnixStream::pair()?;
    noted.set_nonblocking(true)?;
    let deadly = Arc::new(AtomicBool::new(true));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if signal == SIGHUP && sys::ignores(signal) {
            continue;
        }
        flag::register_conditional_default(signal, Arc::clone(&deadly))?;
        pipe::register(signal, write.try_clone()?)?;
    }
    Ok(Signals { deadly, holds: AtomicUsize::new(0), noted })
}
