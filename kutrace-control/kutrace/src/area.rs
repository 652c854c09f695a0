// SPDX-License-Identifier: BSD-3-Clause
//! The memory that the recorder grants this process, and each thread's way into it.
//!
//! A thread's state is a [`Stream`] in pages that the kernel clears in the child of a fork, as it does not give the
//! child the area. So that nothing is left of another process, another trace, or nothing at all, are one question: is
//! the stream's trace the one that is recorded now?
//!
//! What is read of the area is a number that somebody may have put there: it never leads out of the area.
//!
//! Invariants: a stream belongs to the thread whose id it has; no two threads ever point to the same one, also in the
//! child of a fork, because those that were given out are not given out again before their thread is gone. An area that
//! was mapped stays mapped.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use kutrace_format::abi::programs::{
    Attach, Grant, AREA_BYTES, KIND_NAMES, KIND_REST, KIND_WORDS, LOST_AT, NAMES_AT, NAME_OPEN, NEXT_NAME_AT,
    PAGE_BYTES, TEXT_MAX, VERSION,
};

use rustix::io::Errno;

use crate::stream::{rest, Granted, Lane, Position};
use crate::sys;

/// Bytes of a thread's grants but the first, which is a page.
const GRANT_BYTES: u32 = 64 * 1024;
/// Threads that can record at a time.
const STREAMS: usize = 4096;
/// How many of the streams that were given out a thread without one looks at, for one whose thread is gone.
const LOOKS: u32 = 16;
/// [`Stream::grants`]: there is no more in this trace.
const FULL: u32 = u32::MAX;
/// Bits of the TSC below those that a [`pause`] has: some ms, in which what it waits for may be over.
const PAUSE_SHIFT: u32 = 24;

/// What a thread knows, or for the first in the arena the process.
#[repr(C, align(64))]
pub struct Stream {
    /// First, as it is what is written.
    position: AtomicU64,
    /// The trace that all this is of; 0 for none.
    trace: AtomicU32,
    /// The thread; of the process, a trace in which it was refused an area.
    tid: AtomicU32,
    deadline: AtomicU64,
    /// The number of the grant that the position is in.
    sequence: AtomicU64,
    /// A grant that is kept for later, and its number; of the process, the [`pause`] in which a thread found no stream.
    spare: AtomicU64,
    spare_sequence: AtomicU64,
    /// The attachment.
    serial: AtomicU32,
    /// How many grants it got, 0, 1 for more, [`FULL`], or a [`pause`]; of the process, its id.
    grants: AtomicU32,
    /// Address of the area.
    base: AtomicU64,
}

/// The stream of a thread that has none: of no trace.
static NONE: Stream = Stream::new();

/// All streams, the process' first; null before the first is needed.
static ARENA: AtomicPtr<Stream> = AtomicPtr::new(ptr::null_mut());
/// How many were given out, in this process and those that it comes from.
static GIVEN: AtomicU32 = AtomicU32::new(1);
/// Where the next thread begins to look.
static LOOK: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static STREAM: Cell<*const Stream> = const { Cell::new(&raw const NONE) };
}

/// Why a thread cannot record into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// The recorder gives the process no area: a mark is a system call.
    Area,
    /// More threads of the process live than there are streams: what it records is lost.
    Stream,
}

impl Stream {
    const fn new() -> Stream {
        Stream {
            trace: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            position: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            spare: AtomicU64::new(0),
            spare_sequence: AtomicU64::new(0),
            serial: AtomicU32::new(0),
            grants: AtomicU32::new(0),
            base: AtomicU64::new(0),
        }
    }

    /// The number of the process' attachment, if the stream is of this trace.
    #[inline(always)]
    pub fn serial(&self, trace: u32) -> Option<u32> {
        (self.trace.load(Ordering::Acquire) == trace).then(|| self.serial.load(Ordering::Relaxed))
    }

    /// Begins with a trace, in this thread; a handler that comes between does the same.
    fn begin(&self, process: &Stream, trace: u32) {
        self.position.store(Position::NONE.0, Ordering::Relaxed);
        self.spare.store(0, Ordering::Relaxed);
        self.deadline.store(0, Ordering::Relaxed);
        self.grants.store(0, Ordering::Relaxed);
        self.base.store(process.base.load(Ordering::Relaxed), Ordering::Relaxed);
        self.serial.store(process.serial.load(Ordering::Relaxed), Ordering::Relaxed);
        self.trace.store(trace, Ordering::Release);
    }

    /// The thread's first words go here, unless a handler that came between has got something else.
    fn begin_in(&'static self, granted: Granted) {
        self.grants.store(1, Ordering::Relaxed);
        self.set_deadline(0);
        if self.exchange(Position::NONE, granted.at) {
            self.took(granted.sequence);
        } else {
            self.keep_spare(granted);
        }
    }

    /// The word of the area at this offset.
    #[inline(always)]
    fn word(&self, offset: u32) -> &AtomicU64 {
        let at = self.base.load(Ordering::Relaxed) as usize + offset as usize;
        // SAFETY: the offset is in what was granted of the area at `base`, which is aligned and stays mapped; whoever
        // else uses the word, it is atomic here.
        unsafe { &*ptr::with_exposed_provenance(at) }
    }
}

/// This thread's stream; of no trace, if it has none.
#[inline(always)]
pub fn stream() -> &'static Stream {
    // SAFETY: it points to NONE or into the arena, which stays.
    unsafe { &*STREAM.get() }
}

/// This thread's stream, made ready for a trace. Of a thread for which there is none a lost entry is counted.
///
/// # Errors
/// Why it cannot record.
#[cold]
pub fn prepare(trace: u32) -> Result<&'static Stream, Without> {
    let process = arena().ok_or(Without::Area)?;
    if process.tid.load(Ordering::Relaxed) == trace {
        return Err(Without::Area);
    }
    let mut first = None;
    if process.trace.load(Ordering::Acquire) != trace {
        let Ok(granted) = attach(process, trace) else {
            process.tid.store(trace, Ordering::Relaxed);
            return Err(Without::Area);
        };
        first = granted;
    }
    let mine = own_stream(process, trace, pause(sys::tsc())).inspect_err(|without| {
        if *without == Without::Stream {
            process.lose();
        }
    })?;
    if mine.trace.load(Ordering::Acquire) != trace {
        mine.begin(process, trace);
    }
    if let Some(granted) = first {
        mine.begin_in(granted);
    }
    Ok(mine)
}

/// Asks the recorder for an area, and for a first part of it for this thread, if it gets that. Threads that do so at a time
/// get the same area.
fn attach(process: &Stream, trace: u32) -> Result<Option<Granted>, Errno> {
    let mut attach = Attach { version: VERSION, ..Attach::default() };
    let mut first = Grant { kind: KIND_WORDS, bytes: PAGE_BYTES, ..Grant::default() };
    let has_first = sys::attach(&mut attach, &mut first)?;
    process.base.store(attach.address, Ordering::Relaxed);
    process.serial.store(attach.serial, Ordering::Relaxed);
    process.trace.store(trace, Ordering::Release);
    Ok(has_first.then(|| Granted::from(first)))
}

impl From<Grant> for Granted {
    fn from(grant: Grant) -> Granted {
        Granted { at: Position::new(grant.offset, grant.bytes), sequence: grant.sequence }
    }
}

/// The first of all streams, mapped when it is first asked for.
fn arena() -> Option<&'static Stream> {
    let mut first = ARENA.load(Ordering::Acquire);
    if first.is_null() {
        let bytes = STREAMS * size_of::<Stream>();
        let mapped = sys::map_wiped(bytes).ok()?.cast::<Stream>();
        first = match ARENA.compare_exchange(ptr::null_mut(), mapped, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mapped,
            Err(other) => {
                sys::unmap(mapped.cast(), bytes);
                other
            }
        };
    }
    // SAFETY: a mapping of zeroes, which is a valid Stream, and which stays.
    Some(unsafe { &*first })
}

/// A stream that has this thread's id: its own, that of a thread which is gone, or one that nobody had. Where all are of
/// living threads, one thread of the process looks for another in each pause, at some of them: however many threads have
/// none, and however much they record, that costs no more.
fn own_stream(process: &'static Stream, trace: u32, now: u32) -> Result<&'static Stream, Without> {
    let mine = stream();
    if ptr::eq(mine, &NONE) {
        if process.spare.load(Ordering::Relaxed) == u64::from(now) {
            return Err(Without::Stream);
        }
        if !process.is_ours() {
            return Err(Without::Area);
        }
        let Some(found) = take_stream(process, sys::thread(), trace) else {
            process.spare.store(now.into(), Ordering::Relaxed);
            return Err(Without::Stream);
        };
        STREAM.set(found);
        return Ok(found);
    }
    // In the child of a fork it is cleared, and no other thread has it. After vfork it is the parent's, and stays that.
    // Otherwise no call is made: where a thread's memory is full, it comes here with every mark.
    if mine.tid.load(Ordering::Relaxed) == 0 {
        mine.tid.store(sys::thread(), Ordering::Relaxed);
    }
    Ok(mine)
}

fn take_stream(process: &'static Stream, tid: u32, trace: u32) -> Option<&'static Stream> {
    let first = ptr::from_ref(process);
    // SAFETY: the arena has that many, all zero or in use.
    let at = |n: usize| unsafe { &*first.add(n) };
    let given = (GIVEN.load(Ordering::Relaxed) as usize).min(STREAMS) - 1;
    if given > 0 {
        let look = LOOK.fetch_add(LOOKS, Ordering::Relaxed) as usize;
        let mut some = (0..given.min(LOOKS as usize)).map(|n| at(1 + (look + n) % given));
        if let Some(stream) = some.find(|stream| stream.inherit(tid, trace)) {
            // The next thread finds this one again, if it has gone by then.
            LOOK.fetch_sub(LOOKS, Ordering::Relaxed);
            return Some(stream);
        }
    }
    if given + 1 < STREAMS {
        let fresh = GIVEN.fetch_add(1, Ordering::Relaxed) as usize;
        if fresh < STREAMS {
            at(fresh).tid.store(tid, Ordering::Relaxed);
            return Some(at(fresh));
        }
    }
    None
}

impl Stream {
    /// Whether this is the process that has the memory, by the first stream. Another that shares it, as after vfork, may
    /// share what is a thread's as well.
    fn is_ours(&self) -> bool {
        let (owner, process) = (self.grants.load(Ordering::Relaxed), sys::process());
        if owner == process {
            return true;
        }
        if owner != 0 && !sys::is_gone(owner) {
            return false;
        }
        // Another thread may say so first, of the same process.
        match self.grants.compare_exchange(owner, process, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(first) => first == process,
        }
    }

    /// Takes over from a thread that is gone, with what it had not used of its grant in this trace; false if it is not,
    /// or another got there first.
    fn inherit(&'static self, tid: u32, trace: u32) -> bool {
        let owner = self.tid.load(Ordering::Relaxed);
        if owner == 0 || (owner != tid && !sys::is_gone(owner)) {
            return false;
        }
        if self.tid.compare_exchange(owner, tid, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        if self.trace.load(Ordering::Acquire) == trace {
            let left = rest(Position(self.position.load(Ordering::Relaxed)));
            let sequence = self.sequence.load(Ordering::Relaxed);
            self.position.store(Position::NONE.0, Ordering::Relaxed);
            self.deadline.store(0, Ordering::Relaxed);
            self.grants.store(0, Ordering::Relaxed);
            if let Some(at) = left {
                self.keep_spare(Granted { at, sequence });
            }
        } else {
            self.trace.store(0, Ordering::Release);
        }
        true
    }
}

/// Writes a name into the area of `stream`: its number, or `None` where there is no room.
pub fn define(stream: &Stream, name: &[u8]) -> Option<u32> {
    let name = &name[..name.len().min(TEXT_MAX)];
    let words = (2 + name.len()).div_ceil(8);
    let bytes = 8 * words as u32;
    let next = stream.word(NEXT_NAME_AT);
    let at = loop {
        let seen = next.load(Ordering::Relaxed);
        let (mut at, mut end) = names_left(seen)?;
        if end.saturating_sub(at) < bytes {
            let more = grant(stream, KIND_NAMES, PAGE_BYTES).ok()?.at;
            (at, end) = (more.offset(), more.end());
        }
        let after = u64::from(end) << 32 | u64::from(at + bytes);
        if next.compare_exchange(seen, after, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            break at;
        }
    };
    let mut bytes = [0; (2 + TEXT_MAX + 7) & !7];
    bytes[2..2 + name.len()].copy_from_slice(name);
    let mut put = |length: u16| {
        bytes[..2].copy_from_slice(&length.to_le_bytes());
        for (n, word) in bytes.chunks_exact(8).take(words).enumerate().rev() {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            stream.word(at + 8 * n as u32).store(word, Ordering::Release);
        }
    };
    put(name.len() as u16 | NAME_OPEN);
    put(name.len() as u16);
    Some(at / 8)
}

/// Where the next name goes and up to where names may, as the area says; `None` for a place where no name can be.
fn names_left(seen: u64) -> Option<(u32, u32)> {
    let (at, end) = match seen {
        0 => (NAMES_AT, PAGE_BYTES),
        seen => (seen as u32, (seen >> 32) as u32),
    };
    (at >= NAMES_AT && at % 8 == 0 && at <= end && u64::from(end) <= AREA_BYTES).then_some((at, end))
}

/// A time in which nothing more is asked for: [`Stream::grants`] of a thread whose process is above its rate, and
/// [`Stream::spare`] of a process of which more threads live than there are streams. Never 0.
fn pause(tsc: u64) -> u32 {
    1 << 31 | (tsc >> PAUSE_SHIFT) as u32 & (u32::MAX >> 2)
}

fn grant(stream: &Stream, kind: u32, bytes: u32) -> Result<Granted, Errno> {
    let granted = ask(stream, Grant { kind, bytes, ..Grant::default() })?;
    let (at, end) = (granted.at.offset() as usize, granted.at.end() as usize);
    // One page comes as fast when it is first written.
    if end - at > PAGE_BYTES as usize {
        sys::populate(stream.base.load(Ordering::Relaxed) as usize + at, end - at);
    }
    Ok(granted)
}

fn ask(stream: &Stream, grant: Grant) -> Result<Granted, Errno> {
    let mut grant = Grant { serial: stream.serial.load(Ordering::Relaxed), ..grant };
    sys::grant(&mut grant)?;
    Ok(Granted::from(grant))
}

impl Lane for &'static Stream {
    #[inline(always)]
    fn position(self) -> Position {
        Position(self.position.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn exchange(self, old: Position, new: Position) -> bool {
        sys::exchange(&self.position, old.0, new.0)
    }

    #[inline(always)]
    fn now(self) -> u64 {
        sys::tsc()
    }

    #[inline(always)]
    fn deadline(self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    fn set_deadline(self, tsc: u64) {
        self.deadline.store(tsc, Ordering::Release);
    }

    #[inline(always)]
    fn store(self, offset: u32, word: u64) {
        self.word(offset).store(word, Ordering::Release);
    }

    fn take_spare(self) -> Option<Granted> {
        let spare = self.spare.load(Ordering::Relaxed);
        if spare == 0 || !sys::exchange(&self.spare, spare, 0) {
            return None;
        }
        let (offset, sequence) = (Position(spare).offset(), self.spare_sequence.load(Ordering::Relaxed));
        ask(self, Grant { kind: KIND_REST, offset, sequence, ..Grant::default() }).ok()
    }

    fn keep_spare(self, grant: Granted) {
        // A handler that comes between finds none, or one whose number is another's, which is refused.
        self.spare.store(0, Ordering::Relaxed);
        self.spare_sequence.store(grant.sequence, Ordering::Release);
        self.spare.store(grant.at.0, Ordering::Release);
    }

    fn grant(self) -> Option<Granted> {
        let now = pause(sys::tsc());
        let bytes = match self.grants.load(Ordering::Relaxed) {
            FULL => return None,
            grants if grants == now => return None,
            0 => PAGE_BYTES,
            _ => GRANT_BYTES,
        };
        let more = grant(self, KIND_WORDS, bytes);
        let grants = match more {
            Ok(_) => 1,
            Err(Errno::DQUOT) => now,
            Err(_) => FULL,
        };
        self.grants.store(grants, Ordering::Relaxed);
        more.ok()
    }

    fn took(self, sequence: u64) {
        self.sequence.store(sequence, Ordering::Relaxed);
    }

    fn lose(self) {
        self.word(LOST_AT).fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of the arena in use by a thread that lives for as long as the machine runs.
    fn fill() -> &'static Stream {
        let process = arena().unwrap();
        assert!(process.is_ours());
        for n in 1..STREAMS {
            // SAFETY: the arena has that many.
            unsafe { &*ptr::from_ref(process).add(n) }.tid.store(1, Ordering::Relaxed);
        }
        GIVEN.store(STREAMS as u32, Ordering::Relaxed);
        process
    }

    /// What is in the area names no place outside of it, whoever has written that.
    #[test]
    fn no_word_of_an_area_leads_out_of_it() {
        const PAGE: usize = PAGE_BYTES as usize / 8;
        // An area with names in its first page, and what else the process has after it.
        let memory: Vec<AtomicU64> = (0..AREA_BYTES as usize / 8 + PAGE).map(|_| AtomicU64::new(0)).collect();
        let stream = Stream::new();
        stream.base.store(memory.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
        let define = |at: u64, end: u64| {
            memory[NEXT_NAME_AT as usize / 8].store(end << 32 | at, Ordering::Relaxed);
            super::define(&stream, b"a name")
        };
        let (names, page, area) = (NAMES_AT as u64, PAGE_BYTES as u64, AREA_BYTES);
        for (at, end) in [
            (area, area + page),
            (area - 8, area + 8),
            (0, page),
            (8, page),
            (names + 1, page),
            (page, page - 8),
            (names, u64::from(u32::MAX)),
        ] {
            assert_eq!(define(at, end), None, "{at:#x} {end:#x}");
            let written = memory.iter().enumerate().filter(|(n, word)| *n != 1 && word.load(Ordering::Relaxed) != 0);
            assert_eq!(written.count(), 0, "{at:#x} {end:#x}");
        }
        assert_eq!(define(0, 0), Some(NAMES_AT / 8));
        assert_eq!(define(area - 8, area), Some(area as u32 / 8 - 1));
        assert!(memory[AREA_BYTES as usize / 8..].iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn threads_without_a_stream_look_at_some_of_them_once_in_a_pause_whichever_they_are() {
        let process = fill();
        let asks = |now: u32| {
            let before = sys::ASKED.get();
            assert_eq!(own_stream(process, 7, now).err(), Some(Without::Stream));
            sys::ASKED.get() - before
        };
        assert_eq!([1, 1, 2, 2].map(|n| asks(pause(n << PAUSE_SHIFT))), [LOOKS, 0, LOOKS, 0]);
        let other = std::thread::scope(|scope| scope.spawn(|| asks(pause(2 << PAUSE_SHIFT))).join().unwrap());
        assert_eq!(other, 0);
        // As in the child of a fork, where nothing is known.
        process.spare.store(0, Ordering::Relaxed);
        assert_eq!(asks(pause(2 << PAUSE_SHIFT)), LOOKS);
        // A thread that is gone leaves its stream to one that finds it.
        let look = 1 + LOOK.load(Ordering::Relaxed) as usize % (STREAMS - 1);
        // SAFETY: as above.
        let gone = unsafe { &*ptr::from_ref(process).add(look) };
        gone.tid.store(i32::MAX as u32, Ordering::Relaxed);
        assert!(own_stream(process, 7, pause(3 << PAUSE_SHIFT)).is_ok_and(|mine| ptr::eq(mine, gone)));
    }
}
