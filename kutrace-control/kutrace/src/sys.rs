// SPDX-License-Identifier: BSD-3-Clause
//! System call 1023, or what the recorder has in its place, and the page that tells whether it is worthwhile.
//!
//! Invariant: everything here may run in a signal handler, and `errno` is not touched.

#![allow(unsafe_code)]

use std::ffi::{c_void, CStr};
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64};

use kutrace_format::abi::programs::{
    Attach, Call, Grant, Page, DEVICE, IOCTL_ATTACH, IOCTL_CALL, IOCTL_GRANT, IOCTL_PAGE,
};
use kutrace_format::abi::user::{CALL, INSERT_MANY, WORDS};
use rustix::fs::{open, Mode, OFlags};
use rustix::io::{read, Result};
use rustix::ioctl::{ioctl, Getter, Updater};
use rustix::mm::{madvise, mmap, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};
use rustix::process::getpid;
use rustix::thread::gettid;

/// Where the kernel shows whether it is tracing.
const PAGE: &CStr = c"/sys/kernel/kutrace";
/// What is mapped of it. The kernel makes it a whole page.
const PAGE_BYTES: usize = 4096;

/// A text that lives as long as the program: address and bytes, as C has them too.
#[derive(Debug)]
#[repr(C)]
pub struct Text {
    at: *const u8,
    bytes: usize,
}

// SAFETY: it is only read.
unsafe impl Sync for Text {}
// SAFETY: as above.
unsafe impl Send for Text {}

impl Text {
    /// That of Rust.
    pub const fn new(text: &'static str) -> Text {
        Text { at: text.as_ptr(), bytes: text.len() }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `new` had them, or a program in C, of which kutrace.h asks for it.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

/// Makes system call 1023: its value, or a negative errno. It does not ask whether a filter forbids that.
pub fn call(command: u64, word: u64) -> i64 {
    // SAFETY: the kernel reads memory for INSERT_MANY only, and writes none for any command.
    unsafe { syscall(command, word) }
}

/// Makes system call 1023 with [`INSERT_MANY`]: its value, or a negative errno. It does not ask, either.
pub fn insert_many(words: &[u64; WORDS]) -> i64 {
    // SAFETY: as above; what is read is borrowed.
    unsafe { syscall(INSERT_MANY, words.as_ptr() as u64) }
}

/// Asks the recorder by its device what system call 1023 asks: its value, or a negative errno.
pub fn call_device(command: u64, words: &[u64; WORDS]) -> i64 {
    let mut call = Call { command, words: *words, ..Call::default() };
    let answered = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).and_then(|device| {
        // SAFETY: the number says that the kernel reads and writes a `Call`, for which every bit pattern is valid.
        let command = unsafe { Updater::<{ IOCTL_CALL }, Call>::new(&mut call) };
        // SAFETY: the command points to no memory but its own.
        unsafe { ioctl(&device, command) }
    });
    answered.map_or_else(|errno| -i64::from(errno.raw_os_error()), |()| call.answer)
}

/// What the kernel tells of the calling thread.
const STATUS: &CStr = c"/proc/thread-self/status";
/// What stands there before the digit 2 if a filter decides which system calls the thread may make.
const FILTERED: &[u8] = b"\nSeccomp:\t2";

/// Whether a filter decides which system calls the calling thread may make. It is read, as a filter may not allow to ask by
/// `prctl`; where it cannot be read, a filter may be why, so it is taken to have one.
pub fn is_filtered() -> bool {
    let Ok(status) = open(STATUS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { return true };
    let (mut text, mut found) = ([0; 512], 0);
    while let Ok(bytes @ 1..) = read(&status, &mut text) {
        for byte in &text[..bytes] {
            // No beginning of it but the first byte is in the middle of it, too.
            found = if *byte == FILTERED[found] { found + 1 } else { usize::from(*byte == FILTERED[0]) };
            if found == FILTERED.len() {
                return true;
            }
        }
    }
    false
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

/// Maps the page of a recorder whose kernel has none.
pub fn map_recorder_s_page() -> Result<&'static AtomicU32> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: the number says that the kernel writes a `Page`, for which every bit pattern is valid.
    let command = unsafe { Getter::<{ IOCTL_PAGE }, Page>::new() };
    // SAFETY: the command points to no memory but its own; what it maps it maps where nothing is.
    let page = unsafe { ioctl(&device, command) }?;
    // SAFETY: as of `map_page`.
    Ok(unsafe { &*ptr::with_exposed_provenance::<AtomicU32>(page.address as usize) })
}

/// Asks for an area, which children of this process do not get, and then, by the same way, for a first part of it: whether
/// that was granted, too.
pub fn attach(attach: &mut Attach, first: &mut Grant) -> Result<bool> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: the number says that the kernel reads and writes an `Attach`, for which every bit pattern is valid.
    let command = unsafe { Updater::<{ IOCTL_ATTACH }, Attach>::new(attach) };
    // SAFETY: the command points to no memory but its own; the area is mapped where nothing is.
    unsafe { ioctl(&device, command) }?;
    let (at, bytes) = (ptr::with_exposed_provenance_mut(attach.address as usize), attach.bytes as usize);
    // SAFETY: the advice changes nothing in this process.
    unsafe { madvise(at, bytes, Advice::LinuxDontFork) }?;
    first.serial = attach.serial;
    Ok(grant_by(&device, first).is_ok())
}

/// Asks for a part of the area.
pub fn grant(grant: &mut Grant) -> Result<()> {
    grant_by(&open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?, grant)
}

fn grant_by(device: &OwnedFd, grant: &mut Grant) -> Result<()> {
    // SAFETY: the number says that the kernel reads and writes a `Grant`, for which every bit pattern is valid.
    let command = unsafe { Updater::<{ IOCTL_GRANT }, Grant>::new(grant) };
    // SAFETY: the command points to no memory but its own.
    unsafe { ioctl(device, command) }
}

/// Has the pages there before they are written, where the kernel can do that.
pub fn populate(address: usize, bytes: usize) {
    // SAFETY: the advice changes no content.
    let _ = unsafe { madvise(ptr::with_exposed_provenance_mut(address), bytes, Advice::LinuxPopulateWrite) };
}

/// Maps zeroes that are zeroes again in the child of a fork.
pub fn map_wiped(bytes: usize) -> Result<*mut c_void> {
    // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) }?;
    // SAFETY: the mapping is ours and nobody has seen it.
    let wiped = unsafe { madvise(at, bytes, Advice::LinuxWipeOnFork) };
    wiped.inspect_err(|_| unmap(at, bytes)).map(|()| at)
}

/// Unmaps what nobody has seen.
pub fn unmap(at: *mut c_void, bytes: usize) {
    // SAFETY: a mapping of `map_wiped`, which its caller dropped.
    let unmapped = unsafe { munmap(at, bytes) };
    debug_assert!(unmapped.is_ok());
}

/// The calling thread.
pub fn thread() -> u32 {
    gettid().as_raw_nonzero().get() as u32
}

/// The calling process.
pub fn process() -> u32 {
    getpid().as_raw_nonzero().get() as u32
}

#[cfg(test)]
thread_local! {
    /// How often a thread asked whether another is gone.
    pub static ASKED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Whether no thread, of this process or of another, has this id.
pub fn is_gone(tid: u32) -> bool {
    let answer: i64;
    #[cfg(test)]
    ASKED.set(ASKED.get() + 1);
    // SAFETY: signal 0 is sent to nobody, and errors are answered.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") TKILL => answer,
            in("rdi") u64::from(tid),
            in("rsi") 0,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, preserves_flags, readonly),
        )
    };
    #[cfg(not(target_arch = "x86_64"))]
    {
        (answer, _) = (0, tid);
    }
    answer == -i64::from(rustix::io::Errno::SRCH.raw_os_error())
}

/// The number of `tkill`. It sees threads of all processes: who shares the memory need not be of the same.
#[cfg(target_arch = "x86_64")]
const TKILL: i64 = 200;

/// The TSC.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn tsc() -> u64 {
    // SAFETY: every processor of this kind has it; where programs may not read it, the recorder is not used either.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Other processors have no recorder.
#[cfg(not(target_arch = "x86_64"))]
pub fn tsc() -> u64 {
    0
}

/// Stores `new` if `old` is there, in one instruction: whole to signal handlers of this thread, not to other threads.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn exchange(cell: &AtomicU64, old: u64, new: u64) -> bool {
    // SAFETY: the memory is valid and aligned; only this thread and its handlers write it.
    unsafe {
        std::arch::asm!(
            "cmpxchg qword ptr [{cell}], {new}",
            "jne {other}",
            cell = in(reg) cell.as_ptr(),
            new = in(reg) new,
            inlateout("rax") old => _,
            other = label { return false },
            options(nostack),
        )
    };
    true
}

/// Whether a word is 0, in one instruction and a jump: of a load the compiler makes one more.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn is_zero(word: &AtomicU32) -> bool {
    // SAFETY: it is only read.
    unsafe {
        std::arch::asm!(
            "cmp dword ptr [{word}], 0",
            "jne {other}",
            word = in(reg) word.as_ptr(),
            other = label { return false },
            options(nostack, readonly),
        )
    };
    true
}

/// Whether a word is 0.
#[cfg(not(target_arch = "x86_64"))]
pub fn is_zero(word: &AtomicU32) -> bool {
    word.load(std::sync::atomic::Ordering::Relaxed) == 0
}

/// The same where it is not needed.
#[cfg(not(target_arch = "x86_64"))]
pub fn exchange(cell: &AtomicU64, old: u64, new: u64) -> bool {
    use std::sync::atomic::Ordering::Relaxed;
    cell.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
}
