// SPDX-License-Identifier: BSD-3-Clause
//! Whether anything is traced.
//!
//! A word in a page that every program may read is 0 while nothing is traced, else the number of the trace. It is mapped
//! when the program begins, as the area is ([`crate::area`]), before a sandbox can be in the way: a recorder without hooks
//! shows one, and has the programs' calls made by its device; else the kernel does. Where there is no such page a word of
//! ours takes its place: one that is always 0 if the kernel has no hooks, until [`attach`] finds a recorder, and one that
//! never is if it has (the original's), so that each call asks it.
//!
//! Invariants: a word that [`WORD`] ever pointed to is readable until the program ends; no thread makes system call 1023
//! under a filter that decides which calls it may make, as many of them kill whoever makes one they do not know.

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use kutrace_format::abi::user::{INSERT_MANY, TEST, VERSION, WORDS};
use rustix::io::Errno;

use crate::{area, sys};

/// What [`UNKNOWN`] and [`ASK`] say: more traces than a kernel records.
const UNSURE: u32 = i32::MAX as u32;
/// The word, before anybody looked for it.
static UNKNOWN: AtomicU32 = AtomicU32::new(UNSURE);
/// The word where only the recorder can tell.
static ASK: AtomicU32 = AtomicU32::new(UNSURE);
/// The word where there is no recorder: a page, which [`attach`] replaces by that of one.
static NEVER: Page = Page([const { AtomicU32::new(0) }; sys::PAGE_BYTES / 4]);

#[repr(C, align(4096))]
struct Page([AtomicU32; sys::PAGE_BYTES / 4]);

extern "C" fn begin() {
    look();
}

/// What the program does before all else.
#[allow(unsafe_code)]
#[used]
#[link_section = ".init_array"]
static BEGIN: extern "C" fn() = begin;

static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::from_ref(&UNKNOWN).cast_mut());

/// Whether anything is traced now. A load and a branch while nothing is.
///
/// A mark asks this itself; it is for what a program would compute for a mark only.
#[inline]
pub fn is_on() -> bool {
    let word = word();
    if sys::is_zero(word) {
        return false;
    }
    match word.load(Ordering::Relaxed) {
        UNSURE => is_on_indeed(),
        trace => trace != 0,
    }
}

/// Looks for the recorder once more, for a program that began before the module was loaded: whether the program can
/// record into memory of its own now. All others have looked before `main`.
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
/// ENOSYS where no recorder is loaded, or a filter decides which system calls the thread may make.
pub fn test() -> io::Result<bool> {
    answer(call(TEST, 0)).map(|on| on != 0)
}

/// Asks the recorder for the version of its system call: 4.
///
/// # Errors
/// ENOSYS where no recorder is loaded, or a filter decides which system calls the thread may make.
pub fn version() -> io::Result<u32> {
    answer(call(VERSION, 0)).map(|version| version as u32)
}

/// Whether the recorder has its page, and so takes calls by its device.
static BY_DEVICE: AtomicBool = AtomicBool::new(false);

/// Makes system call 1023, if this thread may, or what there is in its place: its value, or a negative errno.
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

/// The same with [`INSERT_MANY`].
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

/// What is answered in place of a call that is not made.
pub const REFUSED: i64 = -(Errno::NOSYS.raw_os_error() as i64);

thread_local! {
    /// One more than the trace in which this thread found no filter, or [`FILTERED`].
    static UNFILTERED: Cell<u64> = const { Cell::new(0) };
}

/// [`UNFILTERED`]: it found one, which stays.
const FILTERED: u64 = u64::MAX;

/// Whether this thread may make system call 1023. It looks once in each trace, since a program may put a filter upon itself
/// at any time.
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

/// What the recorder answered, as a result.
pub fn answer(answer: i64) -> io::Result<u64> {
    u64::try_from(answer).map_err(|_| io::Error::from_raw_os_error(-answer as i32))
}

/// The number of the trace that is recorded now, 0 for none. Not 0 where only the recorder can tell.
#[inline]
pub fn trace() -> u32 {
    match seen() {
        UNSURE => look(),
        seen => seen,
    }
}

/// As [`trace`], but not 0 either before anybody called that: what no [`crate::area::Stream`] is of.
#[inline(always)]
pub fn seen() -> u32 {
    word().load(Ordering::Relaxed)
}

/// The word: 0 while nothing is traced for sure, which each place asks first.
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

/// The word, once it is known; it stays where it is.
pub fn known() -> Option<&'static AtomicU32> {
    look();
    Some(word()).filter(|word| !ptr::eq(*word, &UNKNOWN))
}

/// What the word says, after looking for it if it was not known.
#[cold]
fn look() -> u32 {
    if ptr::eq(word(), &UNKNOWN) {
        find();
    }
    seen()
}

/// Where only looking or asking tells.
#[cold]
fn is_on_indeed() -> bool {
    match look() {
        UNSURE => test().unwrap_or(false),
        trace => trace != 0,
    }
}

/// Looks for the word. Several threads, or a signal handler meanwhile, may do the same; the first has its way.
#[cold]
fn find() {
    area::attach();
    let by_device = sys::map_recorder_s_page(None);
    if by_device.is_ok() {
        // Before the word: who sees that sees this.
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
