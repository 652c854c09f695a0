// SPDX-License-Identifier: BSD-3-Clause
//! A trace as Chrome's JSON (the Trace Event Format), for viewers that read nothing else.
//!
//! What CPUs run and what idle CPUs do are threads of two processes, [`CPUS`]
//! and [`IDLE`], whose numbers no process has. Times are microseconds after the trace's minute.
//!
//! Invariant: what is written is gone; memory is that of [`Tracks`](super::track::Tracks).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde_json::{json, Value};

use super::perfetto::{beside_name, program};
use super::track::{Beside, Counter, Draw, Item, Track};
use crate::event::names::NameId;
use crate::id::{CpuId, Pid};
use crate::span::{Meta, NONE};
use crate::time::Time;

/// The process whose threads are CPUs with what they run.
pub const CPUS: u64 = 1 << 32;
/// The process whose threads are CPUs with what they do while they are idle.
pub const IDLE: u64 = CPUS + 1;
/// Bytes gathered before they are handed on.
const CHUNK: usize = 64 * 1024;

/// Writes a trace, item by item.
#[derive(Debug)]
pub struct Writer<'a, W> {
    out: W,
    lines: Vec<u8>,
    meta: &'a Meta,
    texts: &'a [String],
    /// The same as JSON has them.
    names: Vec<String>,
    threads: &'a BTreeMap<Pid, NameId>,
    described: BTreeSet<(u64, u64)>,
    processes: BTreeSet<u64>,
    runs: BTreeMap<CpuId, Pid>,
    flows: u64,
}

impl<'a, W: Write> Writer<'a, W> {
    /// A writer to `out`, which need not be buffered; `threads` are the threads with their names.
    ///
    /// # Errors
    /// Whatever error `out` returns.
    pub fn new(
        meta: &'a Meta,
        texts: &'a [String],
        threads: &'a BTreeMap<Pid, NameId>,
        out: W,
    ) -> io::Result<Writer<'a, W>> {
        let names = texts.iter().map(|name| json!(name).to_string()).collect();
        let (described, processes, runs) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let mut lines = Vec::with_capacity(CHUNK + 1024);
        let about = json!({
            "tracebase": meta.tracebase, "host": meta.host, "kernel": meta.kernel, "lost": meta.lost,
            "quality": meta.quality, "unseen": meta.unseen,
        });
        write!(lines, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
        for (pid, name) in [(CPUS, "CPUs"), (IDLE, "CPUs while idle")] {
            let comma = if pid == CPUS { "" } else { "," };
            let entry = json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}});
            write!(lines, "{comma}\n{entry}")?;
        }
        Ok(Writer { out, lines, meta, texts, names, threads, described, processes, runs, flows: 0 })
    }
}

impl<W: Write> Draw for Writer<'_, W> {
    type Out = W;

    fn item(&mut self, item: Item) -> io::Result<()> {
        match item {
            Item::Begin { track: track @ Track::Beside(..), at, name, arg, .. } => {
                self.beside('b', track, at, Some(name), arg)
            }
            Item::End { track: track @ Track::Beside(..), at, .. } => self.beside('e', track, at, None, NONE),
            Item::Begin { track, at, name, arg, .. } => {
                let text = format!(",\"name\":{}{}", self.name(name), values("arg", arg, None));
                let place = self.place(track)?;
                self.put('B', place, at, &text)
            }
            Item::End { track, at, ret } => {
                let error = self.meta.errors.get(&(ret.checked_neg().unwrap_or(0) as u32));
                let error = error.filter(|_| self.meta.value_bits == 32 && (-4095..0).contains(&ret));
                let text = values("ret", ret, error);
                let place = self.place(track)?;
                self.put('E', place, at, &text)
            }
            Item::StaysOpen { track, at } => self.item(Item::End { track, at, ret: NONE }),
            Item::Instant { track, at, name, arg } => {
                let text = format!(",\"s\":\"t\",\"name\":{}{}", self.name(name), values("arg", arg, None));
                let place = self.place(track)?;
                self.put('i', place, at, &text)
            }
            Item::Runs { cpu, at, pid } => {
                let place = (CPUS, cpu.number().into());
                self.describe(place, || format!("CPU {cpu}"))?;
                if self.runs.insert(cpu, pid).is_some_and(|before| before != Pid::IDLE) {
                    self.put('E', place, at, "")?;
                }
                match self.threads.get(&pid) {
                    _ if pid == Pid::IDLE => Ok(()),
                    Some(name) => self.put('B', place, at, &format!(",\"name\":{}", self.name(*name))),
                    None => self.put('B', place, at, &format!(",\"name\":\".{pid}\"")),
                }
            }
            Item::Stops { cpu, at } => self.item(Item::Runs { cpu, at, pid: Pid::IDLE }),
            // What the tracks of CPUs and waits show.
            Item::Switch { .. } | Item::Waking { .. } => Ok(()),
            Item::Flow { from, at, to, until, name } => {
                self.flows += 1;
                let text = format!(",\"cat\":\"flow\",\"id\":{},\"name\":{}", self.flows, self.name(name));
                let (from, to) = (self.place(from)?, self.place(to)?);
                self.put('s', from, at, &text)?;
                self.put('f', to, until, &format!(",\"bp\":\"e\"{text}"))
            }
            Item::Count { cpu, counter, at, value } => {
                let (name, value) = match counter {
                    Counter::Frequency => ("MHz", json!(value)),
                    Counter::Idle => ("idle state", json!(value)),
                    Counter::Ipc => ("instructions per cycle", json!(value as f64 / 16.0)),
                };
                let text = format!(",\"name\":\"CPU {cpu} {name}\",\"args\":{{\"value\":{value}}}");
                self.put('C', (CPUS, cpu.number().into()), at, &text)
            }
            Item::Value { pid, name, at, value } => {
                let place = self.place(Track::Thread(pid))?;
                let text = format!(",\"name\":{},\"args\":{{\"value\":{value}}}", self.name(name));
                self.put('C', place, at, &text)
            }
        }
    }

    fn finish(mut self) -> io::Result<W> {
        self.lines.extend_from_slice(b"\n]}\n");
        self.out.write_all(&self.lines)?;
        Ok(self.out)
    }
}

impl<W: Write> Writer<'_, W> {
    /// What lasts beside what a thread does: where it starts and ends belongs together by its number.
    fn beside(&mut self, phase: char, track: Track, at: Time, name: Option<NameId>, arg: i64) -> io::Result<()> {
        let Track::Beside(beside, pid, lane) = track else { return Ok(()) };
        let place = self.place(pid.map_or(Track::Cpu(CpuId::default()), Track::Thread))?;
        let arg = if beside == Beside::Locks { arg } else { NONE };
        let name = name.map_or(format!("\"{}\"", beside_name(beside)), |name| self.name(name).to_string());
        let id = format!("{}-{}-{}-{lane}", place.0, place.1, beside_name(beside));
        let values = values("arg", arg, None);
        self.put(
            phase,
            place,
            at,
            &format!(",\"cat\":\"{}\",\"id\":\"{id}\",\"name\":{name}{values}", beside_name(beside)),
        )
    }

    /// Process and thread of a track.
    fn place(&mut self, track: Track) -> io::Result<(u64, u64)> {
        let place = match track {
            Track::Cpu(cpu) => (IDLE, cpu.number().into()),
            Track::Thread(pid) | Track::Beside(_, Some(pid), _) => {
                (self.meta.process_of(pid).number().into(), pid.number().into())
            }
            Track::Beside(_, None, _) => (IDLE, 0),
        };
        let name = match track {
            Track::Cpu(cpu) => format!("CPU {cpu}"),
            Track::Thread(pid) | Track::Beside(_, Some(pid), _) => self.program(pid).to_string(),
            Track::Beside(_, None, _) => "CPU 0".to_string(),
        };
        self.describe(place, || name)?;
        Ok(place)
    }

    fn describe(&mut self, place: (u64, u64), name: impl FnOnce() -> String) -> io::Result<()> {
        if !self.described.insert(place) {
            return Ok(());
        }
        let (pid, tid) = place;
        let entry =
            |kind: &str, name: &str| json!({"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": {"name": name}});
        let entries = entry("thread_name", &name());
        if let Some(first) = u32::try_from(pid).ok().filter(|_| self.processes.insert(pid)) {
            let entry = entry("process_name", self.program(Pid::new(first)));
            write!(self.lines, ",\n{entry}")?;
        }
        write!(self.lines, ",\n{entries}")
    }

    /// The name of a thread, without its number.
    fn program(&self, pid: Pid) -> &str {
        let text = self.threads.get(&pid).and_then(|name| self.texts.get(name.index()));
        text.map_or("", |text| program(text, pid))
    }

    fn name(&self, name: NameId) -> &str {
        self.names.get(name.index()).map_or("\"\"", String::as_str)
    }

    fn put(&mut self, phase: char, (pid, tid): (u64, u64), at: Time, rest: &str) -> io::Result<()> {
        let sign = if at < Time::ZERO { "-" } else { "" };
        let (us, part) = (at.0.unsigned_abs() / 100, at.0.unsigned_abs() % 100);
        write!(self.lines, ",\n{{\"ph\":\"{phase}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{sign}{us}.{part:02}{rest}}}")?;
        if self.lines.len() >= CHUNK {
            self.out.write_all(&self.lines)?;
            self.lines.clear();
        }
        Ok(())
    }
}

/// A value and the name of an error, where there are any.
fn values(name: &str, value: i64, error: Option<&String>) -> String {
    match (value, error) {
        (NONE, _) => String::new(),
        (_, None) => format!(",\"args\":{{\"{name}\":{value}}}"),
        (_, Some(error)) => format!(",\"args\":{{\"{name}\":{value},\"error\":{}}}", Value::from(error.as_str())),
    }
}
