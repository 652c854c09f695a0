// SPDX-License-Identifier: BSD-3-Clause
//! A trace for Perfetto, in its protobuf schema.
//!
//! | ours | Perfetto's |
//! |---|---|
//! | threads that get and lose CPUs | `sched_switch` of ftrace, with the state that the wait implies |
//! | wakeups | `sched_waking`, and a flow between two instants |
//! | calls, faults, interrupts, softirqs, the scheduler, what stood still | slices inside of slices, on the thread, or on the track of an idle CPU |
//! | waits, locks, messages of RPCs, requests | slices on tracks below the thread |
//! | frequency, low-power states | `cpu_frequency`, `cpu_idle` |
//! | instructions per cycle | a counter of each CPU |
//! | values of programs | a counter of the process, by name |
//! | marks, samples, packets, other points | instants |
//!
//! Times are nanoseconds since 1970, UTC, and are declared to be those of the boot clock too.
//!
//! Invariant: nothing is kept after it was written; memory is that of [`Tracks`], the names' numbers, and a bundle of
//! each CPU.

#[allow(missing_docs)]
pub mod message;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::track::{Beside, Counter, Item, LeftOut, State, Track, Tracks};
use crate::event::date;
use crate::event::names::NameId;
use crate::id::{CpuId, Pid};
use crate::perfetto::{Clock, ClockSnapshot, CpuValue, SystemInfo, Utsname};
use crate::span::wait::Reason;
use crate::span::{Meta, Span, NONE};
use crate::time::Time;
use message::*;

/// Sequence of all packets.
const SEQUENCE: u32 = 1;
/// Number of events of a CPU in a bundle.
const BUNDLE: usize = 256;
/// Number of bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;
/// Numbers of Perfetto's clocks.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
/// Numbers of the names of values.
const ARG: u64 = 1;
const RET: u64 = 2;
const ERROR: u64 = 3;
/// Track of notes about the trace.
const ABOUT: u64 = 1 << 60;
/// First of the tracks of program counters.
const COUNTERS: u64 = 2 << 60;
/// Priority of threads, which a trace does not record: the default.
const PRIO: i32 = 120;

/// Draws spans as they come.
#[derive(Debug)]
pub struct Drawing<'a, W> {
    tracks: Tracks,
    to: Writer<'a, W>,
}

impl<'a, W: Write> Drawing<'a, W> {
    /// Starts a drawing on `out`, which need not be buffered; `threads` are the threads with their names.
    ///
    /// # Errors
    /// Whatever error `out` returns, here and below.
    pub fn new(
        meta: &'a Meta,
        names: &'a [String],
        threads: &'a BTreeMap<Pid, NameId>,
        out: W,
    ) -> io::Result<Drawing<'a, W>> {
        Ok(Drawing { tracks: Tracks::new(meta.flags), to: Writer::new(meta, names, threads, out)? })
    }

    /// Draws a span; spans must come in order.
    ///
    /// # Errors
    /// As [`Drawing::new`].
    pub fn span(&mut self, span: &Span) -> io::Result<()> {
        let to = &mut self.to;
        self.tracks.span(span, &mut |item| to.item(item))
    }

    /// Draws a request; requests come by start.
    ///
    /// # Errors
    /// As [`Drawing::new`].
    pub fn request(&mut self, request: (Pid, Time, Time), name: NameId) -> io::Result<()> {
        let to = &mut self.to;
        self.tracks.request(request, name, &mut |item| to.item(item))
    }

    /// Draws the ends of what is open; returns the output, and the numbers of things that were not drawn.
    ///
    /// # Errors
    /// As [`Drawing::new`].
    pub fn finish(self) -> io::Result<(W, LeftOut)> {
        let Drawing { tracks, mut to } = self;
        let left_out = tracks.finish(&mut |item| to.item(item))?;
        Ok((to.finish()?, left_out))
    }
}

/// Writes a trace, item by item.
#[derive(Debug)]
struct Writer<'a, W> {
    out: W,
    bytes: Vec<u8>,
    meta: &'a Meta,
    names: &'a [String],
    threads: &'a BTreeMap<Pid, NameId>,
    /// Origin of times, in nanoseconds since 1970.
    base: i128,
    cleared: bool,
    interned: Vec<bool>,
    described: BTreeSet<u64>,
    bundles: BTreeMap<u32, Vec<FtraceEvent>>,
    flows: u64,
    /// Tracks of program counters, by process and name.
    counters: BTreeMap<(Pid, NameId), u64>,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(
        meta: &'a Meta,
        names: &'a [String],
        threads: &'a BTreeMap<Pid, NameId>,
        out: W,
    ) -> io::Result<Writer<'a, W>> {
        let mut writer = Writer {
            out,
            bytes: Vec::with_capacity(CHUNK + 1024),
            meta,
            names,
            threads,
            base: i128::from(date::seconds(&meta.tracebase).unwrap_or(0)) * 1_000_000_000,
            cleared: false,
            interned: vec![false; names.len()],
            described: BTreeSet::new(),
            bundles: BTreeMap::new(),
            flows: 0,
            counters: BTreeMap::new(),
        };
        writer.head()?;
        Ok(writer)
    }
}

/// Makes an empty packet.
fn packet() -> TracePacket {
    TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..TracePacket::default() }
}

impl<W: Write> Writer<'_, W> {
    fn item(&mut self, item: Item) -> io::Result<()> {
        match item {
            Item::Begin { track, at, name, arg, .. } => self.named(BEGIN, track, at, name, arg, |_| {}),
            Item::End { track, at, ret } => {
                let mut end = event(END, self.track(track)?);
                end.debug_annotations.extend(value(RET, ret));
                let bits = self.meta.value_bits;
                let error = self.meta.errors.get(&(ret.checked_neg().unwrap_or(0) as u32));
                if let Some(error) = error.filter(|_| bits == 32 && (-4095..0).contains(&ret)) {
                    let string_value = Some(error.clone());
                    end.debug_annotations.push(DebugAnnotation {
                        name_iid: Some(ERROR),
                        string_value,
                        int_value: None,
                    });
                }
                self.track_event(at, end, InternedData::default())
            }
            Item::StaysOpen { track, at } => self.item(Item::End { track, at, ret: NONE }),
            Item::Instant { track, at, name, arg } => self.named(INSTANT, track, at, name, arg, |_| {}),
            Item::Flow { from, at, to, until, name } => {
                self.flows += 1;
                let flow = self.flows;
                self.named(INSTANT, from, at, name, NONE, |event| event.flow_ids.push(flow))?;
                self.named(INSTANT, to, until, name, NONE, |event| event.terminating_flow_ids.push(flow))
            }
            Item::Switch { cpu, at, from, state, to } => {
                let switch = SchedSwitch {
                    prev_comm: Some(self.program(from).to_string()),
                    prev_pid: Some(from.number() as i32),
                    prev_prio: Some(PRIO),
                    prev_state: Some(state_bits(state)),
                    next_comm: Some(self.program(to).to_string()),
                    next_pid: Some(to.number() as i32),
                    next_prio: Some(PRIO),
                };
                self.ftrace(cpu, at, from, FtraceEvent { sched_switch: Some(switch), ..FtraceEvent::default() })
            }
            Item::Waking { cpu, at, by, woken } => {
                let comm = Some(self.program(woken).to_string());
                let (pid, prio, success) = (Some(woken.number() as i32), Some(PRIO), Some(1));
                let waking = Some(SchedWaking { comm, pid, prio, success });
                self.ftrace(cpu, at, by, FtraceEvent { sched_waking: waking, ..FtraceEvent::default() })
            }
            Item::Count { cpu, counter, at, value } => self.count(cpu, counter, at, value),
            Item::Value { pid, name, at, value } => {
                let event = TrackEvent { counter_value: Some(value), ..event(COUNT, self.counter(pid, name)?) };
                self.track_event(at, event, InternedData::default())
            }
        }
    }

    fn finish(mut self) -> io::Result<W> {
        for (cpu, event) in std::mem::take(&mut self.bundles) {
            self.put(TracePacket { ftrace_events: Some(FtraceEventBundle { cpu: Some(cpu), event }), ..packet() })?;
        }
        self.out.write_all(&self.bytes)?;
        Ok(self.out)
    }

    /// Writes clock, machine, and notes about the trace.
    fn head(&mut self) -> io::Result<()> {
        let clock = |clock_id| Clock { clock_id: Some(clock_id), timestamp: Some(self.at(Time::ZERO)) };
        let clocks = vec![clock(REALTIME), clock(BOOTTIME)];
        self.put(TracePacket { clock_snapshot: Some(ClockSnapshot { clocks }), ..packet() })?;
        let Meta { host, kernel, quality, unseen, lost, .. } = self.meta;
        let utsname = Utsname { sysname: Some("Linux".to_string()), release: Some(kernel.clone()) };
        let system_info = Some(SystemInfo { utsname: Some(utsname), machine_name: Some(host.clone()) });
        self.put(TracePacket { system_info, ..packet() })?;
        let losses = (*lost > 0).then(|| format!("events lost while recording: {lost}"));
        let unseen = unseen.iter().map(|what| format!("the trace cannot show {what}"));
        let facts: Vec<String> = losses.into_iter().chain(quality.iter().cloned()).chain(unseen).collect();
        for fact in facts {
            let uuid = ABOUT;
            self.describe(uuid, || TrackDescriptor {
                name: Some("KUtrace".to_string()),
                ..TrackDescriptor::default()
            })?;
            let event = TrackEvent { name: Some(fact), ..event(INSTANT, uuid) };
            self.track_event(Time::ZERO, event, InternedData::default())?;
        }
        Ok(())
    }

    fn count(&mut self, cpu: CpuId, counter: Counter, at: Time, value: i64) -> io::Result<()> {
        let of_cpu = |state: i64| {
            Some(CpuValue { state: Some(u32::try_from(state).unwrap_or(u32::MAX)), cpu_id: Some(cpu.number()) })
        };
        match counter {
            Counter::Frequency => {
                let cpu_frequency = of_cpu(value.saturating_mul(1000));
                self.ftrace(cpu, at, Pid::IDLE, FtraceEvent { cpu_frequency, ..FtraceEvent::default() })
            }
            Counter::Idle => {
                let cpu_idle = of_cpu(value);
                self.ftrace(cpu, at, Pid::IDLE, FtraceEvent { cpu_idle, ..FtraceEvent::default() })
            }
            Counter::Ipc => {
                let uuid = 3 << 32 | u64::from(cpu.number());
                self.describe(uuid, || {
                    let name = Some(format!("CPU {cpu} instructions per cycle"));
                    let counter = Some(CounterDescriptor { unit_name: Some("IPC".to_string()) });
                    TrackDescriptor { name, counter, ..TrackDescriptor::default() }
                })?;
                let event = TrackEvent { double_counter_value: Some(value as f64 / 16.0), ..event(COUNT, uuid) };
                self.track_event(at, event, InternedData::default())
            }
        }
    }

    /// Returns the track of a counter of a thread's program, below the process.
    fn counter(&mut self, pid: Pid, name: NameId) -> io::Result<u64> {
        let process = self.meta.process_of(pid);
        let next = COUNTERS | self.counters.len() as u64;
        let uuid = *self.counters.entry((process, name)).or_insert(next);
        let parent = 4 << 32 | u64::from(process.number());
        let process_name = Some(self.program(process).to_string()).filter(|name| !name.is_empty());
        let descriptor = ProcessDescriptor { pid: Some(process.number() as i32), process_name };
        self.describe(parent, || TrackDescriptor { process: Some(descriptor), ..TrackDescriptor::default() })?;
        let (parent_uuid, counter) = (Some(parent), Some(CounterDescriptor::default()));
        let name = Some(self.text(name).to_string());
        self.describe(uuid, || TrackDescriptor { name, parent_uuid, counter, ..TrackDescriptor::default() })?;
        Ok(uuid)
    }

    /// Writes a slice or instant with a name of the trace.
    fn named(
        &mut self,
        kind: i32,
        track: Track,
        at: Time,
        name: NameId,
        arg: i64,
        more: impl FnOnce(&mut TrackEvent),
    ) -> io::Result<()> {
        let mut event = event(kind, self.track(track)?);
        let iid = u64::from(name.0) + 1;
        event.name_iid = Some(iid);
        event.debug_annotations.extend(value(ARG, arg));
        more(&mut event);
        let mut interned = InternedData::default();
        if self.interned.get(name.index()) != Some(&true) {
            self.interned.resize(self.interned.len().max(name.index() + 1), false);
            self.interned[name.index()] = true;
            interned.event_names.push(self::name(iid, self.text(name)));
        }
        self.track_event(at, event, interned)
    }

    fn track_event(&mut self, at: Time, event: TrackEvent, mut interned: InternedData) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.cleared, true);
        if first {
            interned.debug_annotation_names = vec![name(ARG, "arg"), name(RET, "ret"), name(ERROR, "error")];
        }
        let some = interned != InternedData::default();
        self.put(TracePacket {
            timestamp: Some(self.at(at)),
            sequence_flags: Some(if first { 1 | 2 } else { 2 }),
            track_event: Some(event),
            interned_data: some.then_some(interned),
            ..packet()
        })
    }

    fn ftrace(&mut self, cpu: CpuId, at: Time, pid: Pid, event: FtraceEvent) -> io::Result<()> {
        let event = FtraceEvent { timestamp: Some(self.at(at)), pid: Some(pid.number()), ..event };
        let bundle = self.bundles.entry(cpu.number()).or_default();
        bundle.push(event);
        if bundle.len() < BUNDLE {
            return Ok(());
        }
        let event = std::mem::take(bundle);
        let ftrace_events = Some(FtraceEventBundle { cpu: Some(cpu.number()), event });
        self.put(TracePacket { ftrace_events, ..packet() })
    }

    /// Returns the number of a track and describes the track before its first use.
    fn track(&mut self, track: Track) -> io::Result<u64> {
        let uuid = match track {
            Track::Thread(pid) => 1 << 32 | u64::from(pid.number()),
            Track::Cpu(cpu) => 2 << 32 | u64::from(cpu.number()),
            // Lanes beyond this many share a track with another.
            Track::Beside(beside, pid, lane) => {
                let pid = pid.map_or(0, |pid| u64::from(pid.number()) + 1);
                (1 + beside as u64) << 56 | u64::from(lane & 0xf_ffff) << 34 | pid
            }
        };
        if self.described.contains(&uuid) {
            return Ok(uuid);
        }
        let parent_uuid = match track {
            Track::Beside(_, Some(pid), _) => Some(self.track(Track::Thread(pid))?),
            _ => None,
        };
        let thread = match track {
            Track::Thread(pid) => {
                let number = pid.number() as i32;
                let thread_name = self.threads.contains_key(&pid).then(|| self.program(pid).to_string());
                let process = self.meta.process_of(pid).number() as i32;
                Some(ThreadDescriptor { pid: Some(process), tid: Some(number.into()), thread_name })
            }
            _ => None,
        };
        let name = match track {
            Track::Thread(_) => None,
            Track::Cpu(cpu) => Some(format!("CPU {cpu} while idle")),
            Track::Beside(beside, ..) => Some(beside_name(beside).to_string()),
        };
        self.describe(uuid, || TrackDescriptor { name, thread, parent_uuid, ..TrackDescriptor::default() })?;
        Ok(uuid)
    }

    fn describe(&mut self, uuid: u64, descriptor: impl FnOnce() -> TrackDescriptor) -> io::Result<()> {
        if !self.described.insert(uuid) {
            return Ok(());
        }
        let track_descriptor = Some(TrackDescriptor { uuid: Some(uuid), ..descriptor() });
        self.put(TracePacket { track_descriptor, ..packet() })
    }

    /// Returns the name of a thread, without its number.
    fn program(&self, pid: Pid) -> &str {
        match self.threads.get(&pid) {
            None if pid == Pid::IDLE => "swapper",
            None => "",
            Some(name) => program(self.text(*name), pid),
        }
    }

    fn text(&self, name: NameId) -> &str {
        self.names.get(name.index()).map_or("", String::as_str)
    }

    /// Returns nanoseconds since 1970; earlier times become 0.
    fn at(&self, time: Time) -> u64 {
        let ns = self.base + i128::from(time.0) * 10;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        prost::encoding::message::encode(1, &packet, &mut self.bytes);
        if self.bytes.len() >= CHUNK {
            self.out.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }
}

const BEGIN: i32 = 1;
const END: i32 = 2;
const INSTANT: i32 = 3;
const COUNT: i32 = 4;

fn event(kind: i32, track: u64) -> TrackEvent {
    TrackEvent { r#type: Some(kind), track_uuid: Some(track), ..TrackEvent::default() }
}

fn name(iid: u64, text: &str) -> Interned {
    Interned { iid: Some(iid), name: Some(text.to_string()) }
}

/// Returns a value, if there is one.
fn value(name: u64, value: i64) -> Option<DebugAnnotation> {
    let int_value = Some(value).filter(|value| *value != NONE)?;
    Some(DebugAnnotation { name_iid: Some(name), int_value: Some(int_value), string_value: None })
}

/// Returns the name of a track next to a thread's own.
fn beside_name(beside: Beside) -> &'static str {
    match beside {
        Beside::Waits => "waits",
        Beside::Locks => "locks",
        Beside::Messages => "messages",
        Beside::Parts => "parts",
        Beside::Requests => "requests",
    }
}

/// Returns the name of a thread without the number at its end.
pub fn program(name: &str, pid: Pid) -> &str {
    name.rsplit_once('.').filter(|(_, number)| *number == pid.to_string()).map_or(name, |(program, _)| program)
}

/// Returns the kernel's bits for the state of a thread that loses its CPU, as far as the wait determines it.
fn state_bits(state: State) -> i64 {
    match state {
        State::Runnable => 0,
        State::Waits(Reason::Disk) => 2,
        State::Waits(Reason::Stop) => 4,
        State::Waits(Reason::Trace) => 8,
        State::Ended => 16,
        State::Waits(_) | State::Unknown => 1,
    }
}
