// SPDX-License-Identifier: BSD-3-Clause
//! System call 1023, or what the recorder has in its place, and the page that tells whether it is worthwhile.
//!
//! Invariant: everything here may run in a signal handler, and `errno` is not touched.

#![allow(unsafe_code)]

use std::ffi::{c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kutrace_format::abi::programs::{Call, AREA_BYTES, DEVICE, IOCTL_CALL};
use kutrace_format::abi::user::{CALL, INSERT_MANY, WORDS};
use rustix::fs::{open, Mode, OFlags};
use rustix::io::{read, Result};
use rustix::ioctl::{ioctl, Updater};
use rustix::mm::{madvise, mmap, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

/// Where the kernel shows whether it is tracing.
const PAGE: &CStr = c"/sys/kernel/kutrace";
/// What is mapped of it. The kernel makes it a whole page.
pub const PAGE_BYTES: usize = 4096;

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

/// Maps the page of a recorder whose kernel has none: in place of a page that is always 0, if there is one.
pub fn map_recorder_s_page(over: Option<&'static AtomicU32>) -> Result<&'static AtomicU32> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let at = over.map_or(ptr::null_mut(), |page| page.as_ptr().cast());
    let flags = if over.is_some() { MapFlags::SHARED | MapFlags::FIXED } else { MapFlags::SHARED };
    // SAFETY: the kernel chooses the place, or it is a page of which nobody uses more than the word that is mapped there.
    let page = unsafe { mmap(at, PAGE_BYTES, ProtFlags::READ, flags, &device, AREA_BYTES) }?;
    // SAFETY: as of `map_page`.
    Ok(unsafe { &*page.cast::<AtomicU32>() })
}

/// Maps the area of this process, [`AREA_BYTES`] long.
pub fn map_area() -> Result<*mut c_void> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
    unsafe { mmap(ptr::null_mut(), AREA_BYTES as usize, access, MapFlags::SHARED, &device, 0) }
}

/// What is at the start of a unit of the area: to read it is to ask for it.
pub fn ask(word: &AtomicU64) -> u64 {
    word.load(Ordering::Acquire)
}

extern "C" {
    fn pthread_key_create(key: *mut u32, end: Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
    fn pthread_key_delete(key: u32) -> i32;
    fn pthread_setspecific(key: u32, value: *const c_void) -> i32;
}

/// For which C libraries need no memory: so [`remember`] may be called in signal handlers.
const KEYS: u32 = 32;
/// By which the end of a thread is noticed; [`KEYS`] for none.
static KEY: AtomicU32 = AtomicU32::new(KEYS);

/// Has `end` called at the end of each thread that has something to [`remember`], with that, until the library is gone.
pub fn at_thread_end(end: unsafe extern "C" fn(*mut c_void)) {
    let mut key = KEYS;
    // SAFETY: the number is written, and the function is there until the key is not.
    let made = unsafe { pthread_key_create(&raw mut key, Some(end)) } == 0;
    if made && key < KEYS {
        KEY.store(key, Ordering::Relaxed);
    } else if made {
        // SAFETY: it was made above, and nobody has used it.
        unsafe { pthread_key_delete(key) };
    }
}

/// What the end of this thread is about.
pub fn remember(what: *const c_void) {
    let key = KEY.load(Ordering::Relaxed);
    if key < KEYS {
        // SAFETY: what is remembered is not touched there.
        unsafe { pthread_setspecific(key, what) };
    }
}

/// The library goes, and threads of the program stay.
extern "C" fn forget() {
    let key = KEY.swap(KEYS, Ordering::Relaxed);
    if key < KEYS {
        // SAFETY: it was made by `at_thread_end`, and nobody uses it any more.
        unsafe { pthread_key_delete(key) };
    }
}

#[used]
#[link_section = ".fini_array"]
static FORGET: extern "C" fn() = forget;

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
    // SAFETY: a mapping of `map_wiped` or `map_area`, which its caller dropped.
    let unmapped = unsafe { munmap(at, bytes) };
    debug_assert!(unmapped.is_ok());
}

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
