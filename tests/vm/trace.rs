// SPDX-License-Identifier: BSD-3-Clause
//! A trace, taken through every stage up to the spans, text included, as the pipeline does.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use kutrace_format::file::FLAG_WRAPPED;
use kutrace_tests::check::Texts;
use kutrace_tests::cut::{self, Part};
use kutrace_tests::number::on_cpu;
use kutrace_tests::reader;
use postprocess::event::number::{STALLED, SWITCH, USER};
use postprocess::event::{Event, Events};
use postprocess::id::Pid;
use postprocess::span::check;
use postprocess::span::{self, Span, Spans, Tally};
use postprocess::time::Time;
use postprocess::{raw, source};
use tempfile::NamedTempFile;

use crate::guest;

/// Of traces with more events than this, only a part is given to the second readers, which would take minutes for all.
const ASKED: usize = if guest::SOAK { 1_000_000 } else { PART };
/// Entries of such a part.
const PART: usize = guest::by_form(50_000, 300_000, 300_000);
/// Percent of a CPU's time in which it may have stood still.
const STILL: i64 = 10;
/// Folder for the traces, or the checkers' inputs, whose spans do not match the events.
const KEEP: &str = "KUTRACE_KEEP";

/// Events and spans of one raw file.
pub struct Recording {
    /// The event lines, read back.
    pub events: Events,
    /// The spans built from them.
    pub spans: Spans,
    /// Counts from the build.
    pub tally: Tally,
}

impl Recording {
    /// Reads a raw file; it must be one, and a second reader must agree.
    pub fn read(path: &Path) -> Recording {
        let (trace, text) = Recording::decode(path);
        Shown::of(path, &trace, text).compare(path);
        trace
    }

    /// A raw file's trace and its event lines.
    fn decode(path: &Path) -> (Recording, Vec<u8>) {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let text = reader::lines(&bytes);
        let events = source::events::read(&mut &text[..]).unwrap();
        let (spans, tally) = span::build(events.clone());
        (Recording { events, spans, tally }, text)
    }

    /// Reads a raw file as [`Recording::read`] does; its spans must match the events.
    pub fn read_and_ask(path: &Path) -> Recording {
        let (trace, text) = Recording::decode(path);
        let shown = Shown::of(path, &trace, text);
        // The guest's CPUs are free by now.
        thread::scope(|scope| {
            scope.spawn(|| shown.compare(path));
            shown.ask(path);
        });
        trace
    }

    /// Reads a raw file that must be complete, and whose spans must cover every CPU exactly and match the events.
    pub fn read_whole(path: &Path) -> Recording {
        Recording::read_and_ask(path).whole()
    }

    /// Reads a raw file as [`Recording::read`] does, without second opinions.
    pub fn read_alone(path: &Path) -> Recording {
        Recording::decode(path).0
    }

    /// Reads a raw file as [`Recording::read_whole`] does, without second opinions: those take seconds each.
    pub fn read_whole_alone(path: &Path) -> Recording {
        Recording::decode(path).0.whole()
    }

    fn whole(self) -> Recording {
        assert!(self.events.meta.is_whole(), "{:?}", self.events.meta);
        self.check();
        assert_eq!((self.tally.late, self.tally.unknown), (0, 0), "{:?}", self.tally);
        // The hooks go on one after the other: a CPU may be found inside an interrupt whose start was not recorded.
        let cpus = self.events.meta.intervals.len() as u64;
        assert!(self.tally.repairs <= 3 * cpus, "{:?}", self.tally);
        self
    }

    /// A test may rely on the times: no CPU stood still for long because the host had taken it. If one did, the test
    /// cannot decide, and reports that; `cargo xtask test` repeats it once. Only a guest with [`crate::guest::AT_ONCE`]
    /// needs this.
    ///
    /// Counts, losses and the checkers' questions do not depend on it: a test checks those first.
    pub fn steady(&self) {
        for interval in &self.events.meta.intervals {
            let on_cpu = |s: &&Span| s.cpu == on_cpu(interval.cpu.index()) && s.event() as u32 == STALLED;
            let still: i64 = self.spans.spans.iter().filter(on_cpu).map(|s| s.dur.0).sum();
            let percent = 100 * still / (interval.to.0 - interval.from.0).max(1);
            assert!(
                percent <= STILL,
                "inconclusive: CPU {} stood still for {percent} % of the trace",
                interval.cpu.index()
            );
        }
    }

    /// Every CPU's spans cover its traced time without gap or overlap, and every wakeup led somewhere.
    pub fn check(&self) {
        let found = check(&self.spans, &self.events.meta.intervals, &self.tally);
        assert!(found.is_empty(), "{found:#?}");
    }

    /// The name of an event.
    pub fn event_name(&self, e: &Event) -> &str {
        self.events.names.text(e.name)
    }

    /// The name of a span.
    pub fn span_name(&self, s: &Span) -> &str {
        &self.spans.names[s.name]
    }

    /// The events of a number.
    pub fn of(&self, number: u32) -> impl Iterator<Item = &Event> {
        self.events.events.iter().filter(move |e| e.event() == number)
    }

    /// Switches from one thread to another; duration 1 marks a statement of who runs.
    pub fn switches(&self) -> impl Iterator<Item = &Event> {
        self.of(SWITCH).filter(|e| e.dur == Time::ZERO)
    }

    /// Threads whose user spans are named like this, the pid after the dot left off.
    pub fn pids_of(&self, program: &str) -> BTreeSet<Pid> {
        let users =
            self.spans.spans.iter().filter(|s| s.is_execution() && s.event() as u32 > USER && s.thread().is_some());
        let named = users.filter(|s| self.span_name(s).rsplit_once('.').is_some_and(|(name, _)| name == program));
        named.filter_map(|s| s.pid).collect()
    }
}

/// Results of `look` for each file, as many at a time as there are CPUs; in no order.
pub fn each<T: Send>(paths: &[PathBuf], look: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || iter::from_fn(|| paths.get(next.fetch_add(1, Relaxed))).map(|path| look(path)).collect::<Vec<_>>();
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// The part of a raw file for the second readers: all, or the middle of a large one.
struct Shown {
    bytes: Vec<u8>,
    lines: Vec<u8>,
}

impl Shown {
    fn of(path: &Path, trace: &Recording, lines: Vec<u8>) -> Shown {
        let bytes = fs::read(path).unwrap();
        if trace.events.events.len() < ASKED {
            return Shown { bytes, lines };
        }
        let bytes = middle(&bytes);
        Shown { lines: reader::lines(&bytes), bytes }
    }

    /// A second reader must agree on the event lines.
    fn compare(&self, path: &Path) {
        let mut shown = NamedTempFile::new().unwrap();
        shown.write_all(&self.bytes).unwrap();
        reader::compare(shown.path(), &self.lines).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// The spans must match the events.
    fn ask(&self, path: &Path) {
        let folder = tempfile::tempdir().unwrap();
        Texts::of(&self.bytes).check(folder.path()).unwrap_or_else(|said| {
            if let Some(kept) = std::env::var_os(KEEP) {
                let name = thread::current().name().unwrap_or("trace").replace("::", "-");
                fs::write(Path::new(&kept).join(name + ".raw"), &self.bytes).unwrap();
            }
            panic!("{}: {said}", path.display())
        });
    }
}

/// The middle of a raw file, as a recording of its own.
fn middle(bytes: &[u8]) -> Vec<u8> {
    let raw = raw::parse(bytes).unwrap();
    let entries = cut::entries(&raw);
    // In a trace that wrapped, a CPU's activity before its first entry is unknown.
    let mut cpus = BTreeSet::new();
    let begins = entries.iter().enumerate().filter(|(_, (cpu, _))| cpus.insert(*cpu)).map(|(place, _)| place);
    let all = if raw.header.flags & FLAG_WRAPPED == 0 { 0 } else { begins.last().unwrap_or(0) };
    let first = all.max(entries.len().saturating_sub(PART) / 2);
    let last = (first + PART).min(entries.len() - 1);
    let [from, to] = [first, last].map(|place| entries[place].1.at);
    cut::part(&raw, &entries, &Part { from, to, ..Part::default() }).bytes()
}
