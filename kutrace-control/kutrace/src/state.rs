// SPDX-License-Identifier: BSD-3-Clause
//! State of tracing: on or off.
//!
//! A word in a page that every program may read is 0 while nothing is traced, otherwise the number of the trace. The
//! page is mapped when the program begins, like the area ([`crate::area`]), before a sandbox can prevent that. A
//! recorder without hooks provides the page, and its device takes the programs' calls; otherwise the kernel provides
//! it. Without a page, a word of ours takes its place. If the kernel has no hooks, the word is always 0 until
//! [`attach`] finds a recorder; if it has hooks (the original's), the word is never 0, so that each call asks the
//! kernel.
//!
//! Invariants: a word that [`WORD`] ever pointed to is readable until the program ends; no thread makes system call
//! 1023 under a filter of system calls, because many filters kill a thread that makes an unknown one.

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use kutrace_format::abi::user::{INSERT_MANY, TEST, VERSION, WORDS};
use rustix::io::Errno;

use crate::{area, sys};

/// Value of [`UNKNOWN`] and [`ASK`]: higher than the number of traces that a kernel records.
const UNSURE: u32 = i32::MAX as u32;
/// The word before the first search for a page.
static UNKNOWN: AtomicU32 = AtomicU32::new(UNSURE);
/// The word if only the recorder knows the state.
static ASK: AtomicU32 = AtomicU32::new(UNSURE);
/// The word if there is no recorder: a page, which [`attach`] replaces by a recorder's page.
static NEVER: Page = Page([const { AtomicU32::new(0) }; sys::PAGE_BYTES / 4]);

#[repr(C, align(4096))]
struct Page([AtomicU32; sys::PAGE_BYTES / 4]);

extern "C" fn begin() {
    look();
}

/// Runs before `main` and before all other code of the program.
#[allow(unsafe_code)]
#[used]
#[link_section = ".init_array"]
static BEGIN: extern "C" fn() = begin;

static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::from_ref(&UNKNOWN).cast_mut());

/// Returns whether anything is traced now. Costs a load and a branch while nothing is.
///
/// Marks check this themselves; use it to skip computing values that only a mark needs.
#[inline]
pub fn is_on() -> bool {
    let word = word();
    if sys::is_zero(word) {
        return false;
    }
    match word.load(Ordering::Relaxed) {
        UNSURE => is_on_uncached(),
        trace => trace != 0,
    }
}

/// Looks for the recorder once more, for a program that began before the module was loaded. Returns true if the program
/// can now record into its own memory. All other programs have looked before `main`.
///
/// It opens and maps /dev/kutrace_programs, which a sandbox may forbid.
pub fn attach() -> bool {
    let never = &NEVER.0[0];
    if look() == 0 && ptr::eq(word(), never) && sys::map_recorder_s_page(Some(never)).is_ok() {
        BY_DEVICE.store(true, Ordering::Relaxed);
    }
    area::attach()
}

/// Asks the recorder whether it is tracing, by a system call.
///
/// # Errors
/// ENOSYS if no recorder is loaded, or a filter restricts the thread's system calls.
pub fn test() -> io::Result<bool> {
    answer(call(TEST, 0)).map(|on| on != 0)
}

/// Asks the recorder for the version of its system call: 4.
///
/// # Errors
/// ENOSYS if no recorder is loaded, or a filter restricts the thread's system calls.
pub fn version() -> io::Result<u32> {
    answer(call(VERSION, 0)).map(|version| version as u32)
}

/// True if the recorder provides the page, and therefore takes calls by its device.
static BY_DEVICE: AtomicBool = AtomicBool::new(false);

/// Makes system call 1023 if this thread may, or the equivalent call of the device. Returns its value, or a negative
/// errno.
pub fn call(command: u64, word: u64) -> i64 {
    look();
    if BY_DEVICE.load(Ordering::Relaxed) {
        let mut words = [0; WORDS];
        words[0] = word;
        sys::call_device(command, &words)
    } else if may_call() {
        sys::call(command, word)
    } else {
        REFUSED
    }
}

/// Like [`call`], with [`INSERT_MANY`].
pub fn insert_many(words: &[u64; WORDS]) -> i64 {
    look();
    if BY_DEVICE.load(Ordering::Relaxed) {
        sys::call_device(INSERT_MANY, words)
    } else if may_call() {
        sys::insert_many(words)
    } else {
        REFUSED
    }
}

/// Result of a call that is not made.
pub const REFUSED: i64 = -(Errno::NOSYS.raw_os_error() as i64);

thread_local! {
    /// One more than the number of the trace in which this thread found no filter, or [`FILTERED`].
    static UNFILTERED: Cell<u64> = const { Cell::new(0) };
}

/// [`UNFILTERED`] of a thread that has found a filter, which stays.
const FILTERED: u64 = u64::MAX;

/// Returns whether this thread may make system call 1023. Checks once in each trace, since a program may install a
/// filter at any time.
fn may_call() -> bool {
    let now = u64::from(seen()) + 1;
    match UNFILTERED.get() {
        FILTERED => false,
        known if known == now => true,
        _ => {
            let filtered = sys::is_filtered();
            UNFILTERED.set(if filtered { FILTERED } else { now });
            !filtered
        }
    }
}

/// Converts the recorder's answer to a result.
pub fn answer(answer: i64) -> io::Result<u64> {
    u64::try_from(answer).map_err(|_| io::Error::from_raw_os_error(-answer as i32))
}

/// Number of the trace being recorded, 0 for none. Not 0 if only the recorder knows.
#[inline]
pub fn trace() -> u32 {
    match seen() {
        UNSURE => look(),
        seen => seen,
    }
}

/// Like [`trace`], but also not 0 before the first call of that: a number that no [`crate::area::Stream`] has.
#[inline(always)]
pub fn seen() -> u32 {
    word().load(Ordering::Relaxed)
}

/// The word, which each place checks first: 0 while certainly nothing is traced.
#[inline(always)]
pub fn word() -> &'static AtomicU32 {
    deref(WORD.load(Ordering::Acquire))
}

#[allow(unsafe_code)]
#[inline(always)]
fn deref(word: *mut AtomicU32) -> &'static AtomicU32 {
    // SAFETY: by the invariant.
    unsafe { &*word }
}

/// The word, once it is known; its address does not change.
pub fn known() -> Option<&'static AtomicU32> {
    look();
    Some(word()).filter(|word| !ptr::eq(*word, &UNKNOWN))
}

/// Value of the word, after looking for it if it was not known.
#[cold]
fn look() -> u32 {
    if ptr::eq(word(), &UNKNOWN) {
        find();
    }
    seen()
}

/// [`is_on`] if that takes a search or the recorder.
#[cold]
fn is_on_uncached() -> bool {
    match look() {
        UNSURE => test().unwrap_or(false),
        trace => trace != 0,
    }
}

/// Looks for the word. Several threads, or a signal handler in between, may do the same; the first wins.
#[cold]
fn find() {
    area::attach();
    let by_device = sys::map_recorder_s_page(None);
    if by_device.is_ok() {
        // Before the word: a thread that sees the word sees this value.
        BY_DEVICE.store(true, Ordering::Relaxed);
    }
    let (found, page) = match by_device.or_else(|_| sys::map_page()) {
        Ok(page) => (page, Some(page)),
        Err(_) if sys::is_filtered() || sys::call(TEST, 0) == REFUSED => (&NEVER.0[0], None),
        Err(_) => (&ASK, None),
    };
    let (unknown, found) = (ptr::from_ref(&UNKNOWN).cast_mut(), ptr::from_ref(found).cast_mut());
    let late = WORD.compare_exchange(unknown, found, Ordering::AcqRel, Ordering::Acquire).is_err();
    if let Some(page) = page.filter(|_| late) {
        sys::unmap_page(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_hooks_is_asked_once() {
        assert_eq!(is_on(), test().unwrap_or(false));
        let hooks = sys::map_page().is_ok() || test().is_ok();
        assert_eq!(ptr::eq(word(), &NEVER.0[0]), !hooks);
    }
}
