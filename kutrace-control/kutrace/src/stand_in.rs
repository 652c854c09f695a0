// SPDX-License-Identifier: BSD-3-Clause
//! A replacement for a kernel's recorder, in place of [`real`]'s: the program's own memory, whose oldest units are
//! given up as by the module in wrap mode, and the page that shows whether anything is traced. It is for timing the
//! library.

#![allow(unsafe_code)]

// The stand-in replaces some of it, and only then can another crate call the rest.
#[allow(dead_code, clippy::not_unsafe_ptr_arg_deref)]
#[path = "sys.rs"]
mod real;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kutrace_format::abi::programs::{AREA_BYTES, RUNS_AT, RUN_BYTES, SERIAL_AT};
use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use rustix::io::Result;
use rustix::mm::{madvise, mmap, Advice, MapFlags, ProtFlags};

pub use real::*;

/// The word of the page: the number of the trace, 0 for none.
pub static TRACE: AtomicU32 = AtomicU32::new(0);
/// Address of the area.
static AREA: AtomicU64 = AtomicU64::new(0);

/// Maximum size of a process' runs, the module's default.
const QUOTA: u64 = 4 << 20;

/// The page, without the kernel's.
pub fn map_page() -> Result<&'static AtomicU32> {
    Ok(&TRACE)
}

/// Gives the process its area, attached.
pub fn map_area() -> Result<*mut c_void> {
    let file = memfd_create("kutrace", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, AREA_BYTES)?;
    let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
    let at = unsafe { mmap(ptr::null_mut(), AREA_BYTES as usize, access, shared, &file, 0) }?;
    AREA.store(at.expose_provenance() as u64, Ordering::Relaxed);
    Ok(at)
}

/// Grants a unit; for a run, the run before it by the size of the quota is given up.
pub fn ask(word: &AtomicU64) -> u64 {
    let (area, runs) = (AREA.load(Ordering::Relaxed), AREA_BYTES - u64::from(RUNS_AT));
    let offset = word.as_ptr().expose_provenance() as u64 - area;
    if offset == u64::from(SERIAL_AT) {
        word.store(1, Ordering::Relaxed);
    } else if let Some(run) = offset.checked_sub(RUNS_AT.into()) {
        let oldest = area + u64::from(RUNS_AT) + (run + runs - QUOTA) % runs;
        let at = ptr::with_exposed_provenance_mut(oldest as usize);
        // SAFETY: no thread writes there any more.
        let given_up = unsafe { madvise(at, RUN_BYTES as usize, Advice::LinuxRemove) };
        debug_assert!(given_up.is_ok());
        let at = ptr::with_exposed_provenance_mut((area + offset) as usize);
        // SAFETY: the advice changes no content.
        let _ = unsafe { madvise(at, RUN_BYTES as usize, Advice::LinuxPopulateWrite) };
    }
    word.load(Ordering::Acquire)
}
