// SPDX-License-Identifier: BSD-3-Clause
//! System call 1023, and the page that tells whether it is worthwhile.
//!
//! Invariant: everything here may run in a signal handler, and `errno` is not touched.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::AtomicU32;

use kutrace_format::abi::user::{CALL, INSERT_MANY, WORDS};
use rustix::fs::{open, Mode, OFlags};
use rustix::io::Result;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

/// Where the kernel shows whether it is tracing.
const PAGE: &CStr = c"/sys/kernel/kutrace";
/// What is mapped of it. The kernel makes it a whole page.
const PAGE_BYTES: usize = 4096;

/// Makes system call 1023: its value, or a negative errno.
pub fn call(command: u64, word: u64) -> i64 {
    // SAFETY: the kernel reads memory for INSERT_MANY only, and writes none for any command.
    unsafe { syscall(command, word) }
}

/// Makes system call 1023 with [`INSERT_MANY`]: its value, or a negative errno.
pub fn insert_many(words: &[u64; WORDS]) -> i64 {
    // SAFETY: as above; what is read is borrowed.
    unsafe { syscall(INSERT_MANY, words.as_ptr() as u64) }
}

#[cfg(target_arch = "x86_64")]
unsafe fn syscall(command: u64, word: u64) -> i64 {
    let answer;
    // SAFETY: the caller knows what the command does; beyond that the kernel changes rax, rcx and r11.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") u64::from(CALL) => answer,
            in("rdi") command,
            in("rsi") word,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, preserves_flags, readonly),
        )
    };
    answer
}

/// Other processors have no recorder.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn syscall(_command: u64, _word: u64) -> i64 {
    -i64::from(rustix::io::Errno::NOSYS.raw_os_error())
}

/// Maps the page whose first word is 0 while nothing is traced. It stays until the program ends.
pub fn map_page() -> Result<&'static AtomicU32> {
    let file = open(PAGE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
    let page = unsafe { mmap(ptr::null_mut(), PAGE_BYTES, ProtFlags::READ, MapFlags::SHARED, &file, 0) }?;
    // SAFETY: a mapping is aligned and readable; the kernel, which writes it, is another thread of control.
    Ok(unsafe { &*page.cast::<AtomicU32>() })
}

/// Unmaps a page that nobody has seen.
pub fn unmap_page(page: &'static AtomicU32) {
    // SAFETY: a page of `map_page`, which its caller dropped.
    let unmapped = unsafe { munmap(ptr::from_ref(page).cast_mut().cast(), PAGE_BYTES) };
    debug_assert!(unmapped.is_ok());
}
