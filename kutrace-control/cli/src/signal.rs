// SPDX-License-Identifier: BSD-3-Clause
//! Ctrl-C, hangup and termination signals: they kill the program as usual, except while a file or a recording must be
//! completed first.
//!
//! SIGHUP stays ignored if the program was started by `nohup`.

#![allow(unsafe_code)]

use std::fmt;
use std::io::Read;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::{flag, low_level::pipe};

struct Signals {
    /// True while there is no guard: a signal has its default action.
    deadly: Arc<AtomicBool>,
    /// Number of guards.
    holds: AtomicUsize,
    /// Readable: one byte for each signal that was held back.
    noted: UnixStream,
    /// True once a signal was held back.
    requested: Arc<AtomicBool>,
}

/// Holds signals back while it lives; its owner checks for them.
pub struct SignalGuard {
    signals: &'static Signals,
}

/// Error: a signal requests the end.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl SignalGuard {
    /// From here on a signal is only noted.
    pub fn new() -> Result<SignalGuard> {
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
        Ok(SignalGuard { signals })
    }

    /// Forgets the signals noted so far. Returns whether there were any.
    pub fn take(&self) -> bool {
        (&self.signals.noted).read(&mut [0; 64]).is_ok_and(|signals| signals > 0)
    }

    /// Returns whether a signal has ever requested the end, forgotten or not: once one step was ended, the following
    /// steps are unwanted too.
    pub fn is_requested(&self) -> bool {
        self.signals.requested.load(Ordering::SeqCst)
    }

    /// Fails with [`Interrupted`] if a signal was noted.
    pub fn check(&self) -> Result<()> {
        match self.take() {
            true => Err(Interrupted.into()),
            false => Ok(()),
        }
    }
}

impl AsFd for SignalGuard {
    /// Readable while a signal is noted.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.noted.as_fd()
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        if self.signals.holds.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.signals.deadly.store(true, Ordering::SeqCst);
        }
    }
}

fn install() -> std::io::Result<Signals> {
    let (noted, write) = UnixStream::pair()?;
    noted.set_nonblocking(true)?;
    let (deadly, requested) = (Arc::new(AtomicBool::new(true)), Arc::default());
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if signal == SIGHUP && ignores(signal) {
            continue;
        }
        flag::register_conditional_default(signal, Arc::clone(&deadly))?;
        flag::register(signal, Arc::clone(&requested))?;
        pipe::register(signal, write.try_clone()?)?;
    }
    Ok(Signals { deadly, holds: AtomicUsize::new(0), noted, requested })
}

/// From here on SIGUSR1 is only noted: true once it has arrived.
///
/// # Errors
/// If the handler cannot be installed.
pub fn user() -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    flag::register(SIGUSR1, Arc::clone(&asked)).context("SIGUSR1")?;
    Ok(asked)
}

/// Returns whether this process ignores a signal, as SIGHUP after a start by `nohup`.
fn ignores(signal: libc::c_int) -> bool {
    // SAFETY: zero is valid for each of its fields.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: nothing is changed if no action is given, and the present one is written to our own.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
