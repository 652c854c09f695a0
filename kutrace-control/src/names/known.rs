// SPDX-License-Identifier: BSD-3-Clause
//! The executable mappings that processes have now, and had since a file of a trace began.
//!
//! Long recordings keep only these: a process that has ended is forgotten with the file in which it ended, or sooner,
//! if no sample is in its mappings.
//!
//! Invariants: nothing grows with the length of a recording, and ended processes have at most [`PAST`] mappings;
//! reports of one CPU are taken in order, and a late report of another CPU does not affect later ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::maps::{Map, Maps, Process as Seen, Since, Told};

/// Maximum number of mappings of ended processes: some tens of megabytes.
const PAST: usize = 1 << 18;
/// With fewer mappings than this, no search for forgettable ones is made.
const FEW: usize = 1 << 14;

/// Mappings of processes.
#[derive(Debug)]
pub struct Known {
    processes: BTreeMap<u32, Process>,
    /// Mappings that have ended, in the order of the reports.
    past: VecDeque<Past>,
    /// Number of ended mappings above which those without a sample are searched.
    many: usize,
    /// Number of current mappings; above `full`, /proc is to be asked which of them still exist.
    held: usize,
    full: usize,
    /// Number of mappings that were not reported, or were forgotten too early.
    lost: u64,
}

#[derive(Debug, Default)]
struct Process {
    parts: Vec<Part>,
    /// Time at which it last loaded a program.
    loaded: u64,
    /// True if it may have threads that outlive its first.
    has_threads: bool,
}

/// A mapping of a process and its start.
#[derive(Clone, Debug)]
struct Part {
    since: Since,
    map: Arc<Map>,
}

#[derive(Debug)]
struct Past {
    tgid: u32,
    part: Part,
    /// In ns of the monotonic clock.
    until: u64,
}

impl Default for Known {
    fn default() -> Known {
        Known { processes: BTreeMap::new(), past: VecDeque::new(), many: FEW, held: 0, full: FEW, lost: 0 }
    }
}

impl Known {
    /// Takes a report of this time.
    pub fn tell(&mut self, at: u64, told: Told) {
        match told {
            Told::Mapped(tgid, map) => {
                let hides = |part: &Part| map.from <= part.map.from && part.map.to <= map.to;
                self.end(tgid, at, hides);
                let part = Part { since: Since::At(at), map: Arc::new(map) };
                self.held += 1;
                self.processes.entry(tgid).or_default().parts.push(part);
            }
            Told::Forked(child, parent) => self.fork(child, parent, at),
            Told::Threaded(tgid) => {
                if let Some(process) = self.processes.get_mut(&tgid) {
                    process.has_threads = true;
                }
            }
            Told::Loaded(tgid) => {
                self.end(tgid, at, |_| true);
                let process = self.processes.entry(tgid).or_default();
                process.loaded = process.loaded.max(at);
            }
            Told::Ended(tgid) => {
                if self.processes.get(&tgid).is_some_and(|process| !process.has_threads) {
                    self.end(tgid, at, |_| true);
                    self.forget_if_empty(tgid);
                }
            }
            Told::Lost(times) => self.lost += times,
        }
        self.keep(PAST);
    }

    /// Keeps the last `parts` ended mappings.
    fn keep(&mut self, parts: usize) {
        let many = self.past.len().saturating_sub(parts);
        self.past.drain(..many);
        self.lost += many as u64;
    }

    /// Handles a process that was forked with the mappings of another.
    fn fork(&mut self, child: u32, parent: u32, at: u64) {
        self.end(child, at, |_| true);
        let parts = self.processes.get(&parent).map_or(&[][..], |parent| &parent.parts);
        let parts = parts.iter().filter(|part| part.since.ns() <= at);
        let parts: Vec<Part> = parts.map(|part| Part { since: Since::At(at), map: Arc::clone(&part.map) }).collect();
        let process = self.processes.entry(child).or_default();
        process.has_threads = false;
        if process.loaded > at {
            let until = process.loaded;
            self.past.extend(parts.into_iter().map(|part| Past { tgid: child, part, until }));
        } else {
            self.held += parts.len();
            process.parts.extend(parts);
        }
    }

    /// Ends the mappings of a process that it has had since before a time and that `which` selects.
    fn end(&mut self, tgid: u32, at: u64, which: impl Fn(&Part) -> bool) {
        let Some(process) = self.processes.get_mut(&tgid) else { return };
        let over = process.parts.extract_if(.., |part| part.since.ns() < at && which(part));
        let before = self.past.len();
        self.past.extend(over.map(|part| Past { tgid, part, until: at }));
        self.held -= self.past.len() - before;
    }

    fn forget_if_empty(&mut self, tgid: u32) {
        if self.processes.get(&tgid).is_some_and(|process| process.parts.is_empty()) {
            self.processes.remove(&tgid);
        }
    }

    /// Takes the state of /proc, which was read from time `now` on: mappings that it does not have ended without a
    /// report; mappings that were unknown began without a report.
    pub fn see(&mut self, now: u64, seen: Vec<(u32, Seen)>) {
        let seen: BTreeMap<u32, Seen> = seen.into_iter().collect();
        let known: Vec<u32> = self.processes.keys().copied().collect();
        for tgid in known {
            match seen.get(&tgid) {
                None => self.end(tgid, now, |_| true),
                Some(Seen::Maps(maps)) => self.end(tgid, now, |part| !maps.iter().any(|map| part.map.is_at(map))),
                Some(Seen::Hidden) => continue,
            }
            self.forget_if_empty(tgid);
        }
        for (tgid, seen) in seen {
            let Seen::Maps(maps) = seen else { continue };
            for map in maps {
                let process =
                    self.processes.entry(tgid).or_insert_with(|| Process { has_threads: true, ..Process::default() });
                if !process.parts.iter().any(|part| part.map.is_at(&map)) {
                    self.held += 1;
                    process.parts.push(Part { since: Since::Seen(now), map: Arc::new(map) });
                }
            }
        }
        self.full = (2 * self.held).max(FEW);
    }

    /// Returns whether there are enough current mappings that /proc should be [asked](Known::see) which still exist.
    pub fn is_full(&self) -> bool {
        self.held > self.full
    }

    /// Returns whether there are enough ended mappings that those without a sample should be
    /// [forgotten](Known::forget).
    pub fn is_long(&self) -> bool {
        self.past.len() > self.many
    }

    /// Forgets mappings without a sample that ended before a time up to which all samples are known.
    pub fn forget(&mut self, before: u64, sampled: &BTreeSet<u64>) {
        self.past.retain(|past| past.until >= before || past.part.map.has_any(sampled));
        // This leaves room until another search is worthwhile.
        self.keep(PAST / 2);
        self.many = (2 * self.past.len()).max(FEW);
    }

    /// Begins another file at a time, which does not need mappings that ended before.
    pub fn begin(&mut self, at: u64) {
        self.past.retain(|past| past.until >= at);
        self.past.shrink_to(2 * self.past.len());
        self.many = (2 * self.past.len()).max(FEW);
        for part in self.processes.values_mut().flat_map(|process| &mut process.parts) {
            if let Since::Seen(_) = part.since {
                part.since = Since::Start;
            }
        }
    }

    /// All mappings.
    pub fn maps(&self) -> Maps {
        let past = self.past.iter().map(|past| (past.tgid, &past.part));
        let present = self.processes.iter().flat_map(|(tgid, process)| process.parts.iter().map(|part| (*tgid, part)));
        Maps::new(past.chain(present).map(|(tgid, part)| (tgid, part.since, Arc::clone(&part.map))).collect())
    }

    /// Number of mappings that were not reported, or were forgotten too early, since the last call.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::maps::tests::{part, texts};

    /// Process 7 ran a shell at the start, and 6 is hidden.
    fn begun() -> Known {
        let mut known = Known::default();
        known.see(
            1,
            vec![(7, Seen::Maps(vec![part(0x1000, "/bin/sh"), part(0x5000, "/lib/quiet")])), (6, Seen::Hidden)],
        );
        known.begin(2);
        known
    }

    fn named(known: &Known, sampled: &[u64]) -> Vec<(u32, String)> {
        texts(&known.maps(), sampled)
    }

    fn of(named: &[(u32, &str)]) -> Vec<(u32, String)> {
        named.iter().map(|(tgid, text)| (*tgid, text.to_string())).collect()
    }

    const SHELL: (u32, &str) = (7, "1000-2000 0 0 ab01 /bin/sh");

    #[test]
    fn what_was_sampled_is_named_with_since_when_it_was_there() {
        let mut known = begun();
        known.tell(10, Told::Forked(8, 7));
        known.tell(11, Told::Loaded(8));
        known.tell(12, Told::Mapped(8, part(0x3000, "/bin/program")));
        known.tell(13, Told::Forked(9, 8));
        known.tell(14, Told::Lost(1));
        let seen = [(5, "/bin/program", 0x3000), (7, "/bin/sh", 0x1000), (8, "/bin/program", 0x3000)];
        known.see(15, seen.map(|(tgid, path, from)| (tgid, Seen::Maps(vec![part(from, path)]))).to_vec());
        let expected = [
            (5, "3000-4000 0 - ab01 /bin/program"),
            SHELL,
            (8, "1000-2000 0 a ab01 /bin/sh"),
            (8, "3000-4000 0 c ab01 /bin/program"),
            (9, "3000-4000 0 d ab01 /bin/program"),
        ];
        let mut found = named(&known, &[0x1234, 0x3000, 0x4000]);
        found.sort();
        assert_eq!(found, of(&expected));
        assert_eq!(named(&known, &[]), []);
        assert_eq!((known.take_lost(), known.take_lost()), (1, 0));
    }

    #[test]
    fn the_next_file_begins_with_what_there_is_and_without_what_ended_before_it() {
        let mut known = begun();
        for (child, end) in [(8, 20), (9, 40)] {
            known.tell(10, Told::Forked(child, 7));
            known.tell(end, Told::Ended(child));
        }
        known.see(50, vec![(6, Seen::Maps(vec![part(0x1000, "/bin/other")])), (7, Seen::Hidden)]);
        known.begin(30);
        let other = (6, "1000-2000 0 0 ab01 /bin/other");
        let late = (9, "1000-2000 0 a ab01 /bin/sh");
        let mut found = named(&known, &[0x1000]);
        found.sort();
        assert_eq!(found, of(&[other, SHELL, late]));
        // It has ended without a report.
        known.see(60, vec![(6, Seen::Maps(vec![part(0x1000, "/bin/other")]))]);
        known.begin(61);
        assert_eq!(named(&known, &[0x1000]), of(&[other]));
    }

    #[test]
    fn a_process_whose_first_thread_ends_may_go_on() {
        let mut known = begun();
        known.tell(10, Told::Forked(8, 7));
        known.tell(11, Told::Threaded(8));
        known.tell(12, Told::Ended(8));
        known.tell(12, Told::Ended(7));
        known.begin(20);
        assert_eq!(named(&known, &[0x1000]).len(), 2);
        known.see(30, Vec::new());
        known.begin(31);
        assert_eq!(named(&known, &[0x1000]), []);
    }

    #[test]
    fn what_a_cpu_tells_late_does_no_harm_to_what_came_after() {
        let mut known = begun();
        // Forked at 10 on one CPU, it loads a program at 11 on another, whose ring is read first; the process id was
        // used before.
        known.tell(11, Told::Loaded(8));
        known.tell(12, Told::Mapped(8, part(0x3000, "/bin/program")));
        known.tell(9, Told::Ended(8));
        known.tell(10, Told::Forked(8, 7));
        known.begin(20);
        assert_eq!(named(&known, &[0x1000, 0x3000]), of(&[SHELL, (8, "3000-4000 0 c ab01 /bin/program")]));
    }

    #[test]
    fn what_takes_the_place_of_another_part_ends_it() {
        let mut known = begun();
        for at in 10..20 {
            known.tell(at, Told::Mapped(7, part(0x5000, "/lib/new")));
        }
        known.begin(100);
        assert_eq!(named(&known, &[0x5000]), of(&[(7, "5000-6000 0 13 ab01 /lib/new")]));
        assert_eq!(known.held, 2);
    }

    #[test]
    fn a_storm_of_processes_takes_no_more_memory_the_longer_it_lasts() {
        let mut known = begun();
        let sampled = BTreeSet::from([0x1010]);
        for n in 0..2 * PAST as u64 {
            let child = 1000 + (n % 30_000) as u32;
            known.tell(10 * n + 10, Told::Forked(child, 7));
            known.tell(10 * n + 11, Told::Loaded(child));
            let from = if n % 1024 == 0 { 0x1000 } else { 0x9000 };
            known.tell(10 * n + 12, Told::Mapped(child, part(from, "/bin/program")));
            known.tell(10 * n + 13, Told::Ended(child));
            if known.is_long() {
                known.forget(10 * n, &BTreeSet::new());
            }
            assert!(known.past.len() <= FEW + 3 && known.processes.len() < 9, "{n}");
        }
        assert_eq!((known.held, known.take_lost()), (2, 0));
        // Mappings with a sample stay, and if there are too many, the oldest are dropped.
        for n in 0..PAST as u64 {
            known.tell(2 * n, Told::Forked(8, 7));
            known.tell(2 * n + 1, Told::Ended(8));
            if known.is_long() {
                known.forget(u64::MAX, &sampled);
            }
        }
        let (kept, lost) = (known.past.len(), known.take_lost());
        assert!((PAST / 2..=PAST).contains(&kept) && lost > 0, "{kept} parts, {lost} lost");
        known.begin(u64::MAX);
        assert_eq!(known.past.len(), 0);
    }
}
