// SPDX-License-Identifier: BSD-3-Clause
//! Reports of the kernel during a trace about programs that are loaded and files that are mapped for execution.
//!
//! They come from perf events, one for each CPU, that count nothing. A thread of this process empties the buffers when
//! they are half full, and sleeps otherwise, so most traces end before it wakes.
//!
//! Invariant: starting never fails; if the kernel does not report, for example without rights to watch all CPUs, only
//! the content of /proc is known.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;

use super::known::Known;
use super::machine;
use super::maps::{self, Map, Maps, Told};
use crate::sys::{self, Mapping};

/// Size of a CPU's ring in bytes: some hundred mappings. A power of two.
const RING: usize = 1 << 17;
/// Size of the page before it in bytes.
const PAGE: usize = 4096;
/// Indices of four-byte words in that page: the position up to which the kernel has written, and up to which it was
/// read.
const HEAD: usize = 256;
const TAIL: usize = 258;
/// Kinds of records, and bits of a header's `misc`, from the kernel's include/uapi/linux/perf_event.h.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
const IS_EXEC: u16 = 1 << 13;
const HAS_BUILD_ID: u16 = 1 << 14;
/// Bytes at the end of each record: process, thread, time.
const TRAILER: usize = 16;

/// Folder with the processes.
const PROC: &str = "/proc";

/// State of programs. If the kernel reports, it does until this is dropped.
#[derive(Debug, Default)]
pub struct Mapped {
    rings: Arc<Mutex<Rings>>,
    telling: Option<Telling>,
}

#[derive(Debug)]
struct Telling {
    end: OwnedFd,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Rings {
    rings: Vec<Ring>,
    known: Known,
}

#[derive(Debug)]
struct Ring {
    event: OwnedFd,
    memory: Mapping,
    /// Number of bytes read from it.
    read: u64,
}

impl Mapped {
    /// Begins to receive reports, if the kernel provides them.
    pub fn begin() -> Mapped {
        Mapped::listening().unwrap_or_default()
    }

    fn listening() -> Option<Mapped> {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
        let ring = |cpu| -> Option<Ring> {
            let event = sys::open_program_events(cpu, (RING / 2) as u32).ok()?;
            let memory = Mapping::writable(event.as_fd(), PAGE + RING).ok()?;
            Some(Ring { event, memory, read: 0 })
        };
        let rings: Vec<Ring> = machine::cpus(&online).into_iter().map(ring).collect::<Option<_>>()?;
        let events = rings.iter().map(|ring| ring.event.try_clone()).collect::<Result<Vec<_>, _>>().ok()?;
        let end = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
        let ended = end.try_clone().ok()?;
        let rings = Arc::new(Mutex::new(Rings { rings, known: Known::default() }));
        let shared = Arc::clone(&rings);
        let thread = thread::spawn(move || {
            while sleep(&events, ended.as_fd()) {
                let mut rings = locked(&shared);
                rings.empty();
                if rings.known.is_full() {
                    drop(rings);
                    see(&shared);
                }
            }
        });
        Some(Mapped { rings, telling: Some(Telling { end, thread }) })
    }

    /// All mappings of processes up to now, and the number of reports that are missing.
    pub fn now(&self) -> (Maps, u64) {
        locked(&self.rings).empty();
        see(&self.rings);
        let known = &mut locked(&self.rings).known;
        (known.maps(), known.take_lost())
    }

    /// Begins another file at a time, in ns of the monotonic clock: the file does not need mappings that ended before.
    pub fn begin_file(&self, at: u64) {
        locked(&self.rings).known.begin(at);
    }

    /// Forgets mappings without a sample that ended before a time up to which all samples are known.
    pub fn forget(&self, before: u64, sampled: &BTreeSet<u64>) {
        let known = &mut locked(&self.rings).known;
        if known.is_long() {
            known.forget(before, sampled);
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let Some(Telling { end, thread }) = self.telling.take() else { return };
        let _ = rustix::io::write(&end, &1u64.to_ne_bytes());
        let _ = thread.join();
    }
}

/// Reads the current processes; the kernel's reports need not wait for this.
fn see(rings: &Mutex<Rings>) {
    let now = sys::moment().monotonic_ns;
    let alive = maps::alive(Path::new(PROC));
    locked(rings).known.see(now, alive);
}

fn locked(rings: &Mutex<Rings>) -> MutexGuard<'_, Rings> {
    rings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until one of the events has something to read; false at the end, or if nothing more will arrive.
fn sleep(events: &[OwnedFd], end: BorrowedFd<'_>) -> bool {
    let mut fds = vec![PollFd::from_borrowed_fd(end, PollFlags::IN)];
    fds.extend(events.iter().map(|event| PollFd::new(event, PollFlags::IN)));
    match poll(&mut fds, None) {
        Ok(_) => fds[0].revents().is_empty() && fds.iter().any(|fd| fd.revents().contains(PollFlags::IN)),
        Err(error) => error == Errno::INTR,
    }
}

impl Rings {
    /// Takes all reports up to now, in order.
    fn empty(&mut self) {
        let mut told = Vec::new();
        for ring in &mut self.rings {
            read(&ring.take(), &mut told);
        }
        told.sort_by_key(|(at, _)| *at);
        told.into_iter().for_each(|(at, told)| self.known.tell(at, told));
    }
}

impl Ring {
    /// The bytes that the kernel has written since the last call.
    fn take(&mut self) -> Vec<u8> {
        let words = &self.memory;
        // The low half is enough: less than 4 GB are written at a time.
        let new = words[HEAD].load(Ordering::Acquire).wrapping_sub(self.read as u32) as usize;
        let start = self.read as usize;
        let word = |byte: usize| words[(PAGE + byte % RING) / 4].load(Ordering::Relaxed).to_le_bytes();
        let bytes = (start..start + new).step_by(4).flat_map(word).collect();
        self.read += new as u64;
        // The kernel only looks at the low bits of the two.
        words[TAIL].store(self.read as u32, Ordering::Release);
        words[TAIL + 1].store((self.read >> 32) as u32, Ordering::Release);
        bytes
    }
}

/// Parses records one after the other.
fn read(mut bytes: &[u8], told: &mut Vec<(u64, Told)>) {
    while let (Some(kind), Some(sizes)) = (int(bytes, 0), int(bytes, 4)) {
        let (misc, size) = (sizes as u16, (sizes >> 16) as usize);
        let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size >= 8 + TRAILER) else { return };
        let (body, trailer) = record[8..].split_at(size - 8 - TRAILER);
        told.extend(long(trailer, 8).zip(one(kind, misc, body)));
        bytes = rest;
    }
}

fn one(kind: u32, misc: u16, body: &[u8]) -> Option<Told> {
    let (int, long) = (|at| int(body, at), |at| long(body, at));
    Some(match kind {
        LOST => Told::Lost(long(8)?),
        COMM if misc & IS_EXEC != 0 => Told::Loaded(int(0)?),
        // A new thread has the mappings of its process.
        FORK if int(0)? == int(4)? => Told::Threaded(int(0)?),
        FORK => Told::Forked(int(0)?, int(4)?),
        EXIT if int(0)? == int(8)? => Told::Ended(int(0)?),
        MMAP2 => {
            let (from, bytes, offset) = (long(8)?, long(16)?, long(24)?);
            let id = body.get(32..56)?;
            let build_id = match misc & HAS_BUILD_ID != 0 {
                true => id[4..][..usize::from(id[0]).min(20)].to_vec(),
                false => Vec::new(),
            };
            let path = body.get(64..)?.split(|&c| c == 0).next()?.to_vec();
            // The kernel gives mappings without a file a name that begins like this, or one for their purpose.
            if path.is_empty() || path.starts_with(b"//") {
                return None;
            }
            Told::Mapped(int(0)?, Map { from, to: from.saturating_add(bytes), offset, build_id, path })
        }
        _ => return None,
    })
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::maps::Since;

    fn record(kind: u32, misc: u16, body: &[u8], at: u64) -> Vec<u8> {
        let size = (8 + body.len() + TRAILER) as u16;
        let head = [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes()].concat();
        [&head[..], body, &[0; 8], &at.to_le_bytes()].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn records_tell_what_was_mapped_forked_loaded_and_lost() {
        let numbers = words(&[7, 7, 0x1000, 0, 0x2000, 0, 0x3000, 0]);
        let mut id = [0; 24];
        (id[0], id[4], id[5]) = (2, 0xab, 1);
        let file = [&numbers[..], &id, &words(&[5, 2]), b"/bin/program\0\0\0\0"].concat();
        let memory = [&numbers[..], &id, &words(&[5, 2]), b"//anon\0\0"].concat();
        let bytes = [
            record(MMAP2, HAS_BUILD_ID, &file, 5),
            record(MMAP2, 0, &file, 6),
            record(MMAP2, 0, &memory, 7),
            record(FORK, 0, &words(&[9, 7, 9, 7, 0, 0]), 8),
            record(FORK, 0, &words(&[7, 7, 10, 7, 0, 0]), 9),
            record(COMM, IS_EXEC, &words(&[9, 9, 0, 0]), 10),
            record(COMM, 0, &words(&[9, 9, 0, 0]), 11),
            record(LOST, 0, &words(&[1, 0, 3, 0]), 12),
            record(EXIT, 0, &words(&[7, 1, 10, 7, 0, 0]), 13),
            record(EXIT, 0, &words(&[7, 1, 7, 1, 0, 0]), 14),
            vec![1, 0, 0],
        ]
        .concat();
        let mut told = Vec::new();
        read(&bytes, &mut told);
        let map = |build_id: &[u8]| Map {
            from: 0x1000,
            to: 0x3000,
            offset: 0x3000,
            build_id: build_id.to_vec(),
            path: b"/bin/program".to_vec(),
        };
        let expected = [
            (5, Told::Mapped(7, map(&[0xab, 1]))),
            (6, Told::Mapped(7, map(&[]))),
            (8, Told::Forked(9, 7)),
            (9, Told::Threaded(7)),
            (10, Told::Loaded(9)),
            (12, Told::Lost(3)),
            (14, Told::Ended(7)),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_record_that_says_it_is_nothing_ends_the_reading() {
        let mut told = Vec::new();
        read(&[0; 64], &mut told);
        assert_eq!(told, []);
    }

    #[test]
    fn where_the_kernel_tells_it_tells_of_a_program_that_has_ended() {
        // Not every environment lets a test watch all CPUs; tests/vm/control/functions.rs does.
        let mapped = Mapped::begin();
        if mapped.telling.is_none() {
            return;
        }
        let child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait_with_output().unwrap();
        let is_there = || {
            let (maps, _) = mapped.now();
            let mut of_child = maps.iter().filter(|(tgid, ..)| *tgid == pid);
            of_child.any(|(_, since, map)| matches!(since, Since::At(_)) && map.path.ends_with(b"/true"))
        };
        assert!(is_there());
        mapped.begin_file(sys::moment().monotonic_ns);
        assert!(!is_there(), "it had ended before");
    }
}
