// SPDX-License-Identifier: BSD-3-Clause
//! A recorder without a kernel's, in place of [`real`]'s: a file in memory that is granted part by part, as the module
//! does, and the page that tells whether anything is traced. It is for timing the library.

#![allow(unsafe_code)]

// The stand-in takes the place of some of it, and only then can another crate call the rest.
#[allow(dead_code, clippy::not_unsafe_ptr_arg_deref)]
#[path = "sys.rs"]
mod real;

use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kutrace_format::abi::programs::{Attach, Grant, AREA_BYTES, KIND_NAMES, KIND_REST, PAGE_BYTES};
use rustix::fs::{fallocate, memfd_create, FallocateFlags, MemfdFlags};
use rustix::io::{Errno, Result};
use rustix::mm::{mmap, MapFlags, ProtFlags};

pub use real::*;

/// The word of the page: the number of the trace, 0 for none.
pub static TRACE: AtomicU32 = AtomicU32::new(0);
/// Bytes that were granted.
pub static GRANTED: AtomicU64 = AtomicU64::new(0);

/// What a process may have, as the module has it from the start.
const QUOTA: u64 = 4 << 20;

/// The area of this process. What is granted of it is granted anew once all is, as in wrap mode.
struct Area {
    file: OwnedFd,
    next: u64,
    sequence: u64,
}

static AREA: Mutex<Option<Area>> = Mutex::new(None);
static ADDRESS: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// The page, without the kernel's.
pub fn map_page() -> Result<&'static AtomicU32> {
    Ok(&TRACE)
}

/// Gives the process its area, with a page for names, and the thread a first part.
pub fn attach(attach: &mut Attach, first: &mut Grant) -> Result<bool> {
    let mut area = AREA.lock().unwrap_or_else(PoisonError::into_inner);
    if area.is_none() {
        let file = memfd_create("kutrace", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, AREA_BYTES)?;
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
        let at = unsafe { mmap(ptr::null_mut(), AREA_BYTES as usize, access, shared, &file, 0) }?;
        ADDRESS.store(at.cast(), Ordering::Relaxed);
        let area = area.insert(Area { file, next: 0, sequence: 0 });
        area.give(PAGE_BYTES, KIND_NAMES)?;
    }
    attach.serial = 1;
    attach.address = ADDRESS.load(Ordering::Relaxed).expose_provenance() as u64;
    attach.bytes = AREA_BYTES;
    drop(area);
    Ok(grant(first).is_ok())
}

/// Grants a part: after what was granted before, or the oldest again with new pages.
pub fn grant(grant: &mut Grant) -> Result<()> {
    let mut area = AREA.lock().unwrap_or_else(PoisonError::into_inner);
    let area = area.as_mut().ok_or(Errno::STALE)?;
    if grant.kind == KIND_REST {
        return Err(Errno::STALE);
    }
    (grant.offset, grant.sequence) = area.give(grant.bytes, grant.kind)?;
    Ok(())
}

impl Area {
    /// Where it begins, and its number.
    fn give(&mut self, bytes: u32, kind: u32) -> Result<(u32, u64)> {
        let bytes = u64::from(bytes);
        if self.next + bytes > QUOTA && kind != KIND_NAMES {
            // Past the names and the threads' first parts.
            self.next = 1 << 20;
        }
        let offset = self.next;
        if GRANTED.load(Ordering::Relaxed) > QUOTA {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.file, hole, offset, bytes)?;
        }
        fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, bytes)?;
        self.next += bytes;
        self.sequence += 1;
        GRANTED.fetch_add(bytes, Ordering::Relaxed);
        Ok((offset as u32, self.sequence))
    }
}
