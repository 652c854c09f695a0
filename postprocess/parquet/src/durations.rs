// SPDX-License-Identifier: BSD-3-Clause
//! The table of durations: how often a call, interrupt or wakeup took exactly this long.
//!
//! Queries over a thousand traces at once mostly ask for durations, and times come in steps of 10 ns: so a million
//! spans have some ten thousand different durations, and these counts give exactly the same results as the spans. Calls
//! are whole, as in [`postprocess::sink::track`]; those that began before the recording or have not ended at its end
//! have no duration.
//!
//! Memory: up to [`GROUP`] different durations. If there are more, a duration may have several rows, whose sum counts.

use std::collections::BTreeMap;

use anyhow::Result;
use foldhash::HashMap;
use parquet::data_type::ByteArray;
use postprocess::event::names::NameId;
use postprocess::id::Pid;
use postprocess::sink::perfetto::program;
use postprocess::sink::track::{Item, Track, Tracks};
use postprocess::span::wait::Reason;
use postprocess::span::what::{Activity, Arc, What};
use postprocess::span::{Span, NONE};
use postprocess::time::Time;

use crate::file::{Data, Place, TableFile, Values, GROUP, UNIT};
use crate::kind;
use crate::schema::{DURATION, DURATIONS};

/// Key of a count of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    kind: &'static str,
    name: NameId,
    /// `None` for a wakeup, and for work that stays on its CPU.
    shared: Option<bool>,
    dur: Time,
}

/// A call or interrupt that is open; `None` if it is not counted.
type Open = Option<(&'static str, NameId, Time)>;

/// Durations of a trace, counted as its spans come.
pub struct Durations {
    file: TableFile,
    trace: ByteArray,
    texts: Vec<ByteArray>,
    /// Programs of threads, among `texts`.
    programs: HashMap<Pid, NameId>,
    tracks: Tracks,
    open: HashMap<Track, Vec<Open>>,
    /// End of each thread's last wait for a CPU that others had.
    waited: HashMap<Pid, Time>,
    times: HashMap<Key, u64>,
}

impl Durations {
    /// Starts counting for a trace with these names, [`postprocess::span::Meta::flags`], and threads.
    ///
    /// # Errors
    /// If its file already exists, or cannot be created.
    pub fn new(place: &Place, flags: u32, names: &[String], threads: &BTreeMap<Pid, NameId>) -> Result<Durations> {
        let mut known: BTreeMap<&str, NameId> = BTreeMap::new();
        let mut texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut programs = HashMap::default();
        for (pid, name) in threads {
            let program = program(names.get(name.index()).map_or("", String::as_str), *pid);
            let id = *known.entry(program).or_insert_with(|| {
                texts.push(program);
                NameId(texts.len() as u32 - 1)
            });
            programs.insert(*pid, id);
        }
        Ok(Durations {
            file: TableFile::new(place, DURATIONS, DURATION)?,
            trace: ByteArray::from(place.trace),
            texts: texts.into_iter().map(ByteArray::from).collect(),
            programs,
            tracks: Tracks::new(flags),
            open: HashMap::default(),
            waited: HashMap::default(),
            times: HashMap::default(),
        })
    }

    /// Adds a span; spans must come in order.
    ///
    /// # Errors
    /// If the file cannot be written, here and below.
    pub fn span(&mut self, span: &Span) -> Result<()> {
        match span.what() {
            What::Wait(Reason::Cpu) => {
                let until = span.start.saturating_add(span.dur);
                if let Some(pid) = span.pid {
                    let last = self.waited.entry(pid).or_insert(until);
                    *last = until.max(*last);
                }
                return Ok(());
            }
            What::Arc(Arc::Wakeup { woken, .. }) => {
                let name = self.programs.get(&woken).copied().unwrap_or_default();
                let key = Key { kind: "wakeup", name, shared: None, dur: span.dur };
                *self.times.entry(key).or_default() += 1;
            }
            What::Run(_) => {
                let Durations { tracks, open, waited, times, .. } = self;
                let taken: Result<(), std::convert::Infallible> = tracks.span(span, &mut |item| {
                    take(item, open, waited, times);
                    Ok(())
                });
                let Ok(()) = taken;
            }
            _ => return Ok(()),
        }
        match self.times.len() < GROUP {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Finishes after all spans have been added.
    ///
    /// # Errors
    /// As [`Durations::span`].
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.file.finish().map(drop)
    }

    fn flush(&mut self) -> Result<()> {
        let mut rows: Vec<(Key, u64)> = self.times.drain().collect();
        rows.sort_unstable();
        let text = |name: NameId| self.texts.get(name.index()).cloned().unwrap_or_default();
        let shared = rows.iter().filter_map(|(key, _)| key.shared.map(i32::from)).collect();
        let present = rows.iter().map(|(key, _)| key.shared.is_some().into()).collect();
        self.file.group(vec![
            Values::text(vec![self.trace.clone(); rows.len()]),
            Values::text(rows.iter().map(|(key, _)| ByteArray::from(key.kind)).collect()),
            Values::text(rows.iter().map(|(key, _)| text(key.name)).collect()),
            Values { data: Data::Int(shared), present: Some(present) },
            Values::long(rows.iter().map(|(key, _)| key.dur.0.saturating_mul(UNIT)).collect()),
            Values::long(rows.iter().map(|(_, times)| *times as i64).collect()),
        ])
    }
}

/// Counts slices and flows that end.
fn take(item: Item, open: &mut HashMap<Track, Vec<Open>>, waited: &HashMap<Pid, Time>, times: &mut HashMap<Key, u64>) {
    match item {
        Item::Begin { track, at, name, does, .. } => {
            let seen = does.filter(|(_, arg)| *arg != NONE);
            let counted = seen.map(|(work, _)| (kind::of(What::Run(Activity::Call(work))).1, name, at));
            open.entry(track).or_default().push(counted);
        }
        Item::End { track, at, .. } => {
            let Some((kind, name, from)) = open.get_mut(&track).and_then(Vec::pop).flatten() else { return };
            // A fault that is only a point has no known duration.
            if at > from || kind != "fault" {
                let moves = matches!(kind, "syscall" | "fault");
                let thread = if let Track::Thread(pid) = track { Some(pid) } else { None };
                let until = thread.and_then(|pid| waited.get(&pid));
                let shared = moves.then(|| until.is_some_and(|until| *until > from));
                *times.entry(Key { kind, name, shared, dur: at - from }).or_default() += 1;
            }
        }
        _ => {}
    }
}
