// SPDX-License-Identifier: BSD-3-Clause
//! System call 1023, or the recorder's replacement for it, and the page that shows whether a call is worthwhile.
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

/// The kernel's page that shows whether it is tracing.
const PAGE: &CStr = c"/sys/kernel/kutrace";
/// Number of bytes mapped. The kernel provides a whole page.
pub const PAGE_BYTES: usize = 4096;

/// A text that lives as long as the program: address and bytes, with the same layout as in C.
#[derive(Debug)]
#[repr(C)]
pub struct Text {
    at: *const u8,
    bytes: usize,
}

// SAFETY: it is only read.
unsafe impl Sync for Text {}
// SAFETY: see above.
unsafe impl Send for Text {}

impl Text {
    /// A text from Rust.
    pub const fn new(text: &'static str) -> Text {
        Text { at: text.as_ptr(), bytes: text.len() }
    }

    /// The bytes of the text.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: they come from `new`, or from a program in C, which kutrace.h obliges to keep them.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

/// Makes system call 1023. Returns its value, or a negative errno. Does not check whether a filter forbids the call.
pub fn call(command: u64, word: u64) -> i64 {
    // SAFETY: the kernel reads memory for INSERT_MANY only, and writes none for any command.
    unsafe { syscall(command, word) }
}

/// Makes system call 1023 with [`INSERT_MANY`]. Returns its value, or a negative errno. Does not check for a filter
/// either.
pub fn insert_many(words: &[u64; WORDS]) -> i64 {
    // SAFETY: see above; the memory that is read is borrowed.
    unsafe { syscall(INSERT_MANY, words.as_ptr() as u64) }
}

/// Makes the request of system call 1023 through the recorder's device. Returns its value, or a negative errno.
pub fn call_device(command: u64, words: &[u64; WORDS]) -> i64 {
    let mut call = Call { command, words: *words, ..Call::default() };
    let answered = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).and_then(|device| {
        // SAFETY: the request number means that the kernel reads and writes a `Call`, for which every bit pattern is
        // valid.
        let command = unsafe { Updater::<{ IOCTL_CALL }, Call>::new(&mut call) };
        // SAFETY: the command points only to its own memory.
        unsafe { ioctl(&device, command) }
    });
    answered.map_or_else(|errno| -i64::from(errno.raw_os_error()), |()| call.answer)
}

/// The kernel's report about the calling thread.
const STATUS: &CStr = c"/proc/thread-self/status";
/// Text in the report if a filter restricts the thread's system calls.
const FILTERED: &[u8] = b"\nSeccomp:\t2";

/// Returns whether a filter restricts the calling thread's system calls. Reads a file, since a filter may not allow
/// `prctl`; if the file cannot be read, a filter may be the reason, so the thread is assumed to have one.
pub fn is_filtered() -> bool {
    let Ok(status) = open(STATUS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { return true };
    let (mut text, mut found) = ([0; 512], 0);
    while let Ok(bytes @ 1..) = read(&status, &mut text) {
        for byte in &text[..bytes] {
            // No prefix of the text except its first byte occurs again within it.
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

/// Maps the page whose first word is 0 while nothing is traced. It stays mapped until the program ends.
pub fn map_page() -> Result<&'static AtomicU32> {
    let file = open(PAGE, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
    let page = unsafe { mmap(ptr::null_mut(), PAGE_BYTES, ProtFlags::READ, MapFlags::SHARED, &file, 0) }?;
    // SAFETY: a mapping is aligned and readable; the kernel, which writes it, is another thread of control.
    Ok(unsafe { &*page.cast::<AtomicU32>() })
}

/// Unmaps a page that has no other reference.
pub fn unmap_page(page: &'static AtomicU32) {
    // SAFETY: a page of `map_page`, which its caller dropped.
    let unmapped = unsafe { munmap(ptr::from_ref(page).cast_mut().cast(), PAGE_BYTES) };
    debug_assert!(unmapped.is_ok());
}

/// Maps the page of a recorder whose kernel has none, over a page that is always 0, if there is one.
pub fn map_recorder_s_page(over: Option<&'static AtomicU32>) -> Result<&'static AtomicU32> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let at = over.map_or(ptr::null_mut(), |page| page.as_ptr().cast());
    let flags = if over.is_some() { MapFlags::SHARED | MapFlags::FIXED } else { MapFlags::SHARED };
    // SAFETY: the kernel chooses the place, or it is a page in which only the word that is mapped there is used.
    let page = unsafe { mmap(at, PAGE_BYTES, ProtFlags::READ, flags, &device, AREA_BYTES) }?;
    // SAFETY: see `map_page`.
    Ok(unsafe { &*page.cast::<AtomicU32>() })
}

/// Maps the area of this process, [`AREA_BYTES`] long.
pub fn map_area() -> Result<*mut c_void> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
    unsafe { mmap(ptr::null_mut(), AREA_BYTES as usize, access, MapFlags::SHARED, &device, 0) }
}

/// The word at the start of a unit of the area: reading it requests the unit.
pub fn ask(word: &AtomicU64) -> u64 {
    word.load(Ordering::Acquire)
}

extern "C" {
    fn pthread_key_create(key: *mut u32, end: Option<unsafe extern "C" fn(*mut c_void)>) -> i32;
    fn pthread_key_delete(key: u32) -> i32;
    fn pthread_setspecific(key: u32, value: *const c_void) -> i32;
}

/// Number of keys for which C libraries allocate no memory, so that [`remember`] may be called in signal handlers.
const KEYS: u32 = 32;
/// The key whose destructor runs at the end of a thread; [`KEYS`] for none.
static KEY: AtomicU32 = AtomicU32::new(KEYS);

/// Registers `end` to be called at the end of each thread that has called [`remember`], with the remembered pointer,
/// until the library is unloaded.
pub fn at_thread_end(end: unsafe extern "C" fn(*mut c_void)) {
    let mut key = KEYS;
    // SAFETY: the key is written, and the function exists until the key is deleted.
    let made = unsafe { pthread_key_create(&raw mut key, Some(end)) } == 0;
    if made && key < KEYS {
        KEY.store(key, Ordering::Relaxed);
    } else if made {
        // SAFETY: the key was made above, and is not in use.
        unsafe { pthread_key_delete(key) };
    }
}

/// Sets the pointer that the end of this thread is called with.
pub fn remember(what: *const c_void) {
    let key = KEY.load(Ordering::Relaxed);
    if key < KEYS {
        // SAFETY: the pointer is not dereferenced there.
        unsafe { pthread_setspecific(key, what) };
    }
}

/// Runs when the library is unloaded while threads of the program stay.
extern "C" fn forget() {
    let key = KEY.swap(KEYS, Ordering::Relaxed);
    if key < KEYS {
        // SAFETY: the key was made by `at_thread_end`, and is no longer used.
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
    // SAFETY: the mapping is ours and has no other reference.
    let wiped = unsafe { madvise(at, bytes, Advice::LinuxWipeOnFork) };
    wiped.inspect_err(|_| unmap(at, bytes)).map(|()| at)
}

/// Unmaps memory that has no other reference.
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

/// Stores `new` if the cell has `old`, in one instruction: atomic for signal handlers of this thread, not for other
/// threads.
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

/// Returns whether a word is 0, in one instruction and a jump: for a load the compiler would emit one more instruction.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn is_zero(word: &AtomicU32) -> bool {
    // SAFETY: the word is only read.
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

/// Returns whether a word is 0.
#[cfg(not(target_arch = "x86_64"))]
pub fn is_zero(word: &AtomicU32) -> bool {
    word.load(std::sync::atomic::Ordering::Relaxed) == 0
}

/// The same for processors that do not need the instruction.
#[cfg(not(target_arch = "x86_64"))]
pub fn exchange(cell: &AtomicU64, old: u64, new: u64) -> bool {
    use std::sync::atomic::Ordering::Relaxed;
    cell.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
}
