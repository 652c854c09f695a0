// SPDX-License-Identifier: BSD-3-Clause
//! The memory that the recorder grants this process, and each thread's access to it.
//!
//! The process attaches once, before it can have been put into a sandbox: it maps an area of addresses, and memory for
//! the state of its threads. From then on nothing here makes a system call, so no filter, limit or lost privilege
//! matters. A thread that reads an address of the area during a trace is granted the unit at that address, or reads a
//! word that means that there is no room.
//!
//! A thread's state is a [`Stream`] in pages that the kernel clears in the child of a fork, because the child has a
//! different area in the same place. One check therefore covers leftovers of another process, leftovers of another
//! trace, and an empty stream: is the stream's trace the one being recorded now? A thread that ends gives its stream
//! back.
//!
//! A number read from the area may have been put there by anyone: it never leads out of the area.
//!
//! Invariants: no two threads ever point to the same stream, not even in the child of a fork, because a stream is given
//! out again only after its thread has given it back. No two threads ask for the same unit before all other units of
//! its kind were asked for: a thread that writes late into a unit of an earlier trace writes into a unit that has no
//! other owner. Mappings stay.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use kutrace_format::abi::programs::{
    AREA_BYTES, LATER, LOST_AT, NAMES_AT, NAME_OPEN, NEXT_NAME_AT, NO_ROOM, PAGE_BYTES, RUNS_AT, RUN_BYTES, SERIAL_AT,
    TEXT_MAX, WORDS_AT,
};

use crate::stream::{Lane, Position};
use crate::sys;

/// Maximum number of threads that record at the same time.
const STREAMS: u32 = 65536;
/// Number of occupied units that a thread skips before it gives up for now.
const TRIES: u32 = 16;
/// [`Stream::asks`]: ask only for a page, as there is no room for a run.
const SMALL: u32 = 2;
/// [`Stream::asks`]: ask for nothing more in this trace.
const FULL: u32 = u32::MAX;
/// Number of low bits of the TSC that a [`pause`] drops: a few ms, within which the reason for the pause may end.
const PAUSE_SHIFT: u32 = 24;

/// State of one thread.
#[repr(C, align(64))]
pub struct Stream {
    /// First, because it is the field that every record writes.
    position: AtomicU64,
    /// The trace that the other fields belong to; 0 for none.
    trace: AtomicU32,
    /// The next request: 0 for the first page, 1 for a run, [`SMALL`], [`FULL`], or none during a [`pause`].
    asks: AtomicU32,
    deadline: AtomicU64,
    /// Number of the attachment.
    serial: AtomicU32,
    /// The next stream in the list of free ones.
    next: AtomicU32,
    /// Address of the area.
    base: AtomicU64,
}

/// State shared by all threads of the process.
#[repr(C, align(64))]
struct Process {
    /// The trace that the process is attached to; 0 for none.
    trace: AtomicU32,
    /// Number of the attachment.
    serial: AtomicU32,
    /// The trace that refused to attach the process.
    refused: AtomicU32,
    /// Number of units requested: of a page, and runs.
    pages: AtomicU32,
    runs: AtomicU32,
    /// Low half: index of the first free stream, 0 for none. High half: number of streams taken from the list.
    free: AtomicU64,
}

/// Layout of the mapping: zeroes, which are valid, and zeroes again in the child of a fork.
#[repr(C)]
struct Arena {
    process: Process,
    streams: [Stream; STREAMS as usize],
}

/// The stream of a thread that has none yet: it belongs to no trace.
static NONE: Stream = Stream::new();

/// Null before the process has attached.
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());
/// Address of the area.
static BASE: AtomicU64 = AtomicU64::new(0);
/// Number of streams given out, in this process and its ancestors. Stream 0 is never given out.
static GIVEN: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static STREAM: Cell<*const Stream> = const { Cell::new(&raw const NONE) };
}

/// Maps the area unless it is mapped already. Returns true if the process has one.
pub fn attach() -> bool {
    if arena().is_some() {
        return true;
    }
    let Ok(arena) = sys::map_wiped(size_of::<Arena>()) else { return false };
    let Ok(area) = sys::map_area() else {
        sys::unmap(arena, size_of::<Arena>());
        return false;
    };
    let base = area.expose_provenance() as u64;
    // If several threads map at the same time, the first wins.
    if BASE.compare_exchange(0, base, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        sys::unmap(arena, size_of::<Arena>());
        sys::unmap(area, AREA_BYTES as usize);
        return true;
    }
    sys::at_thread_end(give_back);
    ARENA.store(arena.cast(), Ordering::Release);
    true
}

fn arena() -> Option<&'static Arena> {
    // SAFETY: null, or a mapping of zeroes, which are a valid Arena, and the mapping stays.
    unsafe { ARENA.load(Ordering::Acquire).as_ref() }
}

impl Stream {
    const fn new() -> Stream {
        Stream {
            trace: AtomicU32::new(0),
            asks: AtomicU32::new(0),
            position: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            serial: AtomicU32::new(0),
            next: AtomicU32::new(0),
            base: AtomicU64::new(0),
        }
    }

    /// Number of the process' attachment, if the stream belongs to this trace.
    #[inline(always)]
    pub fn serial(&self, trace: u32) -> Option<u32> {
        (self.trace.load(Ordering::Acquire) == trace).then(|| self.serial.load(Ordering::Relaxed))
    }

    /// Resets the stream for a trace, in this thread; a signal handler that interrupts it does the same.
    fn begin(&self, trace: u32, serial: u32) {
        self.position.store(Position::NONE.0, Ordering::Relaxed);
        self.deadline.store(0, Ordering::Relaxed);
        self.asks.store(0, Ordering::Relaxed);
        self.base.store(BASE.load(Ordering::Relaxed), Ordering::Relaxed);
        self.serial.store(serial, Ordering::Relaxed);
        self.trace.store(trace, Ordering::Release);
    }

    /// The word at this offset of the area.
    #[inline(always)]
    fn word(&self, offset: u32) -> &AtomicU64 {
        word_at(self.base.load(Ordering::Relaxed), offset)
    }
}

#[inline(always)]
fn word_at<'a>(base: u64, offset: u32) -> &'a AtomicU64 {
    // SAFETY: the offset is in the area at `base`, which is aligned and stays mapped; other users of the word do not
    // matter, since it is atomic here.
    unsafe { &*ptr::with_exposed_provenance(base as usize + offset as usize) }
}

/// This thread's stream; one that belongs to no trace if the thread has none.
#[inline(always)]
pub fn stream() -> &'static Stream {
    // SAFETY: it points to NONE or into the arena, which stays.
    unsafe { &*STREAM.get() }
}

/// This thread's stream, prepared for a trace; `None` if the process has no memory, or if there are more live threads
/// than streams, which counts as a lost entry.
#[cold]
pub fn prepare(trace: u32) -> Option<&'static Stream> {
    let Arena { process, streams } = arena()?;
    let serial = process.serial(trace)?;
    let mut mine = stream();
    if ptr::eq(mine, &NONE) {
        let Some(found) = process.take_stream(streams) else {
            word_at(BASE.load(Ordering::Relaxed), LOST_AT).fetch_add(1, Ordering::Relaxed);
            return None;
        };
        sys::remember(ptr::from_ref(found).cast());
        STREAM.set(found);
        mine = found;
    }
    if mine.trace.load(Ordering::Acquire) != trace {
        mine.begin(trace, serial);
    }
    Some(mine)
}

/// Runs when a thread ends. A record that the thread makes afterwards gets another stream.
unsafe extern "C" fn give_back(stream: *mut c_void) {
    let Some(Arena { process, streams }) = arena() else { return };
    STREAM.set(&raw const NONE);
    let number = (stream.addr() - streams.as_ptr().addr()) / size_of::<Stream>();
    process.put_back(streams, number as u32);
}

impl Process {
    /// Number of the attachment to a trace. Threads that ask at the same time get the same number.
    fn serial(&self, trace: u32) -> Option<u32> {
        if self.trace.load(Ordering::Acquire) == trace {
            return Some(self.serial.load(Ordering::Relaxed));
        }
        if self.refused.load(Ordering::Relaxed) == trace {
            return None;
        }
        let serial = sys::ask(word_at(BASE.load(Ordering::Relaxed), SERIAL_AT)) as u32;
        if serial == 0 {
            self.refused.store(trace, Ordering::Relaxed);
            return None;
        }
        self.serial.store(serial, Ordering::Relaxed);
        self.trace.store(trace, Ordering::Release);
        Some(serial)
    }

    /// A stream that a thread has given back, or one that was never used.
    fn take_stream(&self, streams: &'static [Stream]) -> Option<&'static Stream> {
        let mut free = self.free.load(Ordering::Acquire);
        while free as u32 != 0 {
            let stream = &streams[free as u32 as usize % streams.len()];
            let taken = (free >> 32).wrapping_add(1) << 32 | u64::from(stream.next.load(Ordering::Relaxed));
            match self.free.compare_exchange(free, taken, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(stream),
                Err(other) => free = other,
            }
        }
        let fresh = GIVEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |given| {
            (given < streams.len() as u32).then_some(given + 1)
        });
        fresh.ok().map(|fresh| &streams[fresh as usize])
    }

    fn put_back(&self, streams: &[Stream], number: u32) {
        let stream = &streams[number as usize];
        stream.trace.store(0, Ordering::Release);
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            stream.next.store(free as u32, Ordering::Relaxed);
            let put = free & !u64::from(u32::MAX) | u64::from(number);
            match self.free.compare_exchange(free, put, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => free = other,
            }
        }
    }

    /// The next unit of a page, or the next run.
    fn next_unit(&self, is_run: bool) -> Position {
        const PAGES: u32 = (RUNS_AT - WORDS_AT) / PAGE_BYTES;
        const RUNS: u32 = (AREA_BYTES as u32 - RUNS_AT) / RUN_BYTES;
        if is_run {
            Position::new(RUNS_AT + self.runs.fetch_add(1, Ordering::Relaxed) % RUNS * RUN_BYTES, RUN_BYTES)
        } else {
            Position::new(WORDS_AT + self.pages.fetch_add(1, Ordering::Relaxed) % PAGES * PAGE_BYTES, PAGE_BYTES)
        }
    }

    /// Asks for units until one is granted, or the answer is another word.
    fn ask(&self, stream: &Stream, is_run: bool) -> Result<Position, u64> {
        for _ in 0..TRIES {
            let unit = self.next_unit(is_run);
            match sys::ask(stream.word(unit.offset())) {
                0 => return Ok(unit),
                word @ (NO_ROOM | LATER) => return Err(word),
                // Another thread still has this unit.
                _ => {}
            }
        }
        Err(LATER)
    }
}

/// Writes a name into the area of `stream`. Returns its number, or `None` if there is no room.
pub fn define(stream: &Stream, name: &[u8]) -> Option<u32> {
    let name = &name[..name.len().min(TEXT_MAX)];
    let words = (2 + name.len()).div_ceil(8);
    let bytes = 8 * words as u32;
    let next = stream.word(NEXT_NAME_AT);
    let at = loop {
        let seen = next.load(Ordering::Relaxed);
        let (mut at, mut end) = names_left(seen)?;
        if end.saturating_sub(at) < bytes {
            (at, end) = (end, end + PAGE_BYTES);
            if end > WORDS_AT || sys::ask(stream.word(at)) >= LATER {
                return None;
            }
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

/// Offset of the next name and end of the space for names, from the area's word; `None` if no name can be there.
fn names_left(seen: u64) -> Option<(u32, u32)> {
    let (at, end) = match seen {
        0 => (NAMES_AT, PAGE_BYTES),
        seen => (seen as u32, (seen >> 32) as u32),
    };
    (at >= NAMES_AT && at % 8 == 0 && at <= end && end <= WORDS_AT && end % PAGE_BYTES == 0).then_some((at, end))
}

/// [`Stream::asks`] for a period without requests, because the process is above its rate, or a stream is read late.
/// Differs from all other values of the field.
fn pause(tsc: u64) -> u32 {
    1 << 31 | (tsc >> PAUSE_SHIFT) as u32 & (u32::MAX >> 2)
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

    fn grant(self) -> Option<Position> {
        let process = &arena()?.process;
        let asks = self.asks.load(Ordering::Relaxed);
        if asks == FULL || asks > SMALL && asks == pause(sys::tsc()) {
            return None;
        }
        let page = || process.ask(self, false);
        let (granted, next) = match asks {
            0 => (page(), 1),
            SMALL => (page(), SMALL),
            _ => match process.ask(self, true) {
                Err(NO_ROOM) => (page(), SMALL),
                Err(_) => (page(), 1),
                run => (run, 1),
            },
        };
        let next = match granted {
            Ok(_) => next,
            Err(NO_ROOM) => FULL,
            Err(_) => pause(sys::tsc()),
        };
        self.asks.store(next, Ordering::Relaxed);
        granted.ok()
    }

    fn lose(self) {
        self.word(LOST_AT).fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No content of the area, from any writer, makes an access leave the area.
    #[test]
    fn no_word_of_an_area_leads_out_of_it() {
        const PAGE: usize = PAGE_BYTES as usize / 8;
        // Pages of names, and the words after them.
        let memory: Vec<AtomicU64> = (0..WORDS_AT as usize / 8 + 2 * PAGE).map(|_| AtomicU64::new(0)).collect();
        let stream = Stream::new();
        stream.base.store(memory.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
        let define = |at: u64, end: u64| {
            memory[NEXT_NAME_AT as usize / 8].store(end << 32 | at, Ordering::Relaxed);
            super::define(&stream, b"a name")
        };
        let (first, page, names) = (NAMES_AT as u64, PAGE_BYTES as u64, WORDS_AT as u64);
        for (at, end) in [
            (names, names),
            (names, names + page),
            (names - 8, names + 8),
            (names - 8, names - 8),
            (0, page),
            (8, page),
            (first + 1, page),
            (page, page - 8),
            (first, u64::from(u32::MAX)),
        ] {
            assert_eq!(define(at, end), None, "{at:#x} {end:#x}");
            let written = memory.iter().enumerate().filter(|(n, word)| *n != 1 && word.load(Ordering::Relaxed) != 0);
            assert_eq!(written.count(), 0, "{at:#x} {end:#x}");
        }
        assert_eq!(define(0, 0), Some(NAMES_AT / 8));
        assert_eq!(define(names - 8, names), Some(WORDS_AT / 8 - 1));
        // The next page already has a name of another thread, or is not granted.
        assert_eq!(define(page, page), Some(PAGE_BYTES / 8));
        assert_eq!(define(page, page), Some(PAGE_BYTES / 8));
        memory[2 * PAGE].store(NO_ROOM, Ordering::Relaxed);
        assert_eq!(define(2 * page - 8, 2 * page), Some(2 * PAGE_BYTES / 8 - 1));
        assert_eq!(define(2 * page, 2 * page), None);
        assert!(memory[WORDS_AT as usize / 8..].iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn threads_that_come_and_go_have_the_streams_of_those_that_went() {
        fn come_and_go(times: u32) {
            for _ in 0..times {
                std::thread::scope(|scope| {
                    for _ in 0..8 {
                        scope.spawn(|| {
                            let Arena { process, streams } = arena().unwrap();
                            let mine = process.take_stream(streams).unwrap();
                            assert_eq!(mine.asks.swap(1, Ordering::Relaxed), 0, "another thread has it");
                            std::thread::yield_now();
                            mine.asks.store(0, Ordering::Relaxed);
                            let number = (ptr::from_ref(mine).addr() - streams.as_ptr().addr()) / size_of::<Stream>();
                            process.put_back(streams, number as u32);
                        });
                    }
                });
            }
        }
        let mapped = sys::map_wiped(size_of::<Arena>()).unwrap().cast();
        ARENA.store(mapped, Ordering::Release);
        come_and_go(200);
        assert!(GIVEN.load(Ordering::Relaxed) <= 9);
    }
}
