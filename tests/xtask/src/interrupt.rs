// SPDX-License-Identifier: BSD-3-Clause
//! Ctrl-C, and other requests to stop: deadly as usual, except while something is running that must be ended first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

struct Flags {
    /// A request came while it was being held back.
    requested: Arc<AtomicBool>,
    /// Nobody holds requests back: a signal does what it does by default.
    deadly: Arc<AtomicBool>,
}

/// Holds requests back while it lives; its owner asks for them, and ends what it runs.
pub struct Hold {
    flags: &'static Flags,
}

impl Hold {
    /// From here on a signal is only noted.
    pub fn new() -> Self {
        static FLAGS: OnceLock<Flags> = OnceLock::new();
        let flags = FLAGS.get_or_init(install);
        flags.deadly.store(false, Ordering::SeqCst);
        Self { flags }
    }

    /// Whether the user wants to stop. It stays so: what comes after the thing that was ended is not wanted either.
    pub fn is_requested(&self) -> bool {
        self.flags.requested.load(Ordering::SeqCst)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.flags.deadly.store(true, Ordering::SeqCst);
    }
}

fn install() -> Flags {
    let flags = Flags { requested: Arc::default(), deadly: Arc::default() };
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&flags.deadly)).expect("these signals may be caught");
        flag::register(signal, Arc::clone(&flags.requested)).expect("these signals may be caught");
    }
    flags
}
