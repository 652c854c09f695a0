// SPDX-License-Identifier: GPL-2.0
//! What every CPU does on command, in an interrupt: ends its block, in the same way with counters as without.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::lane::ThisCpu;
use crate::{claim, ffi};

/// Ends every CPU's block for good. The pool is closed.
pub fn close() {
    let mut nothing = ();
    // SAFETY: `close_this` takes any pointer.
    unsafe { ffi::kutrace_shim_on_each_cpu(close_this, (&raw mut nothing).cast()) }
}

/// Ends every CPU's block and begins another; false if one found none.
pub fn rotate() -> bool {
    let mut all = AtomicBool::new(true);
    // SAFETY: `all` is there until every CPU has returned.
    unsafe { ffi::kutrace_shim_on_each_cpu(rotate_this, (&raw mut all).cast()) };
    all.into_inner()
}

unsafe extern "C" fn close_this(_: *mut c_void) {
    // SAFETY: interrupts are off.
    claim::close(unsafe { ThisCpu::<false>::new() });
}

unsafe extern "C" fn rotate_this(all: *mut c_void) {
    // SAFETY: `rotate` passes a pointer to an AtomicBool that outlives the call.
    let all = unsafe { &*all.cast::<AtomicBool>() };
    // SAFETY: interrupts are off.
    if !claim::rotate(unsafe { ThisCpu::<false>::new() }) {
        all.store(false, Ordering::Relaxed);
    }
}
