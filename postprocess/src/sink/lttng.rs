// SPDX-License-Identifier: BSD-3-Clause
//! A trace as LTTng's kernel tracer writes one, in the Common Trace Format, 1.8 or 2: Trace Compass knows events of these
//! names, and analyses what kernels did by them. Names and fields are those of LTTng 2.9.
//!
//! | of ours | there |
//! |---|---|
//! | threads that get and lose CPUs | `sched_switch`, with the state that the wait says |
//! | wakeups | `sched_waking`; the target is the CPU where the thread ran last |
//! | system calls | `syscall_entry_NAME`, `syscall_exit_NAME`, with LTTng's names; of 32-bit programs `compat_syscall_entry_NAME`, with the kernel's |
//! | interrupts of devices | `irq_handler_entry`, `irq_handler_exit`; the vector is the number |
//! | the machine's own interrupts | `x86_irq_vectors_NAME_entry`, `x86_irq_vectors_NAME_exit` |
//! | softirqs | `irq_softirq_entry`, `irq_softirq_exit` |
//! | frequency, low-power states | `power_cpu_frequency`, `power_cpu_idle` |
//! | threads and their processes | `lttng_statedump_process_state`, at the start |
//!
//! A CPU is a stream, and a file; its packets have up to [`PACKET`] bytes. Times are nanoseconds.
//!
//! Invariants: the events of a stream are in the order of their times; the end of what a span says to have ended is
//! kept until the CPU has got there. What is written is gone, but for the place of a switch whose reason is not known
//! yet, one of each thread.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Seek, SeekFrom, Write};

use foldhash::HashMap;
use kutrace_format::x86::vector::{CALL_FUNCTION, CALL_FUNCTION_SINGLE, IRQ_WORK, LOCAL_TIMER, RESCHEDULE};
use serde_json::json;

use super::ctf2::{self, Edition, Fields};
use super::perfetto::{program, state_bits};
use super::track::{Counter, Draw, Item, State, Track};
use crate::event::date;
use crate::event::names::NameId;
use crate::event::work::Work;
use crate::id::{CpuId, Pid};
use crate::span::{Meta, NONE};
use crate::time::Time;

/// Bytes of a packet, but for the last event in it.
pub const PACKET: usize = 256 * 1024;
/// Bytes of the header of a packet.
const HEAD: usize = 60;
/// First word of a packet.
const MAGIC: u32 = 0xc1fc_1fc1;
/// The priority of threads, which a trace does not tell: LTTng's for the usual one.
const PRIO: i32 = 20;
/// From the moment that times count from this is taken, as no time there is negative: a minute.
const BEFORE: i64 = 60;
/// Bytes of a thread's name.
const COMM: usize = 16;

/// The machine's own interrupts that LTTng has events for.
const OWN: [(u32, [&str; 2]); 5] = [
    (LOCAL_TIMER, ["x86_irq_vectors_local_timer_entry", "x86_irq_vectors_local_timer_exit"]),
    (IRQ_WORK, ["x86_irq_vectors_irq_work_entry", "x86_irq_vectors_irq_work_exit"]),
    (CALL_FUNCTION_SINGLE, ["x86_irq_vectors_call_function_single_entry", "x86_irq_vectors_call_function_single_exit"]),
    (CALL_FUNCTION, ["x86_irq_vectors_call_function_entry", "x86_irq_vectors_call_function_exit"]),
    (RESCHEDULE, ["x86_irq_vectors_reschedule_entry", "x86_irq_vectors_reschedule_exit"]),
];

/// System calls that LTTng calls otherwise: as the kernel's functions are called.
const CALLS: [(&str, &str); 7] = [
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("uname", "newuname"),
    ("sendfile", "sendfile64"),
    ("umount2", "umount"),
    ("_sysctl", "sysctl"),
];
/// What stands before them.
const ENTRY: &str = "syscall_entry_";
const EXIT: &str = "syscall_exit_";

/// What the clock is called.
const CLOCK: &str = "monotonic";
/// The fields of [`HEAD`].
const PACKET_HEADER: &str = "u32 magic; u32 stream_id; ";
const PACKET_CONTEXT: &str = "moment timestamp_begin; moment timestamp_end; u64 content_size; u64 packet_size; \
                              u64 packet_seq_num; u64 events_discarded; u32 cpu_id; ";
const EVENT_HEADER: &str = "u16 id; moment timestamp; ";
const SWITCH: &str = "text prev_comm[16]; i32 prev_tid; i32 prev_prio; i64 prev_state; text next_comm[16]; \
                      i32 next_tid; i32 next_prio; ";
/// Where a switch has its state.
const STATE_AT: usize = COMM + 8;
const WAKING: &str = "text comm[16]; i32 tid; i32 prio; i32 target_cpu; ";
const POWER: &str = "u32 state; u32 cpu_id; ";
const THREAD: &str = "i32 tid; i32 vtid; i32 pid; i32 vpid; i32 ppid; i32 vppid; text name[16]; i32 type; i32 mode; \
                      i32 submode; i32 status; ";

/// What a trace in this form does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    /// Calls of which it is not known what they returned: 0 stands there.
    pub values: u64,
    /// Faults and interrupts that cannot be masked.
    pub faults: u64,
    /// Marks, samples, and what else happens at a moment.
    pub points: u64,
}

/// An event without its time: its number and the bytes of its fields.
#[derive(Clone, Debug)]
struct Said {
    class: u16,
    fields: Vec<u8>,
}

/// The file of a CPU.
#[derive(Debug)]
struct Stream<S> {
    out: S,
    /// Bytes in the file.
    written: u64,
    packet: Vec<u8>,
    /// The times of the first and the last event of the packet.
    times: (u64, u64),
    packets: u64,
    /// What ends later.
    ends: Vec<(Time, Said)>,
}

/// Writes a trace, item by item.
#[derive(Debug)]
pub struct Writer<'a, S, F> {
    edition: Edition,
    open: F,
    meta: &'a Meta,
    names: &'a [String],
    threads: &'a BTreeMap<Pid, NameId>,
    /// Names and fields of events, by number.
    classes: Vec<(String, &'static str)>,
    /// Their numbers, by what stands before a name of the trace, and the name.
    numbers: HashMap<(&'static str, NameId), u16>,
    streams: BTreeMap<CpuId, Stream<S>>,
    /// What each CPU runs.
    runs: BTreeMap<CpuId, Pid>,
    /// Where each thread runs, or ran last.
    places: HashMap<Pid, CpuId>,
    /// What is open on each track: how it ends, if that is said.
    inside: HashMap<Track, Vec<Option<(Work, Said)>>>,
    /// A CPU's switches: where their state belongs in the file, or what it is, whichever is known first.
    states: HashMap<(CpuId, Time), Known>,
    untold: Untold,
}

/// What is known of a switch.
#[derive(Clone, Copy, Debug)]
enum Known {
    Is(State),
    BelongsAt(u64),
}

impl<'a, S: Write + Seek, F: FnMut(CpuId) -> io::Result<S>> Writer<'a, S, F> {
    /// A writer to the files that `open` gives; `threads` are the threads with their names.
    pub fn new(
        (meta, names, threads): (&'a Meta, &'a [String], &'a BTreeMap<Pid, NameId>),
        edition: Edition,
        open: F,
    ) -> Writer<'a, S, F> {
        Writer {
            edition,
            open,
            meta,
            names,
            threads,
            classes: Vec::new(),
            numbers: HashMap::default(),
            streams: BTreeMap::new(),
            runs: BTreeMap::new(),
            places: HashMap::default(),
            inside: HashMap::default(),
            states: HashMap::default(),
            untold: Untold::default(),
        }
    }

    /// The number of an event: what stands before a name of the trace, and that.
    fn class(&mut self, before: &'static str, name: NameId, fields: &'static str) -> u16 {
        if let Some(&known) = self.numbers.get(&(before, name)) {
            return known;
        }
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let text = if name == NameId::EMPTY { "" } else { self.names.get(name.index()).map_or("", String::as_str) };
        let other = CALLS.iter().find(|(ours, _)| [ENTRY, EXIT].contains(&before) && *ours == text);
        let text = other.map_or(text, |(_, theirs)| theirs);
        self.classes.push((format!("{before}{}", text.chars().map(word).collect::<String>()), fields));
        let number = (self.classes.len() - 1) as u16;
        self.numbers.insert((before, name), number);
        number
    }

    fn say(&mut self, before: &'static str, name: NameId, fields: &'static str, bytes: &[&[u8]]) -> Said {
        Said { class: self.class(before, name, fields), fields: bytes.concat() }
    }

    /// The stream of a CPU; the first begins with what threads there are.
    fn stream(&mut self, cpu: CpuId, at: Time) -> io::Result<&mut Stream<S>> {
        if !self.streams.contains_key(&cpu) {
            let is_first = self.streams.is_empty();
            let stream = Stream {
                out: (self.open)(cpu)?,
                written: 0,
                packet: vec![0; HEAD],
                times: (0, 0),
                packets: 0,
                ends: Vec::new(),
            };
            self.streams.insert(cpu, stream);
            if is_first {
                self.dump_threads(cpu, at)?;
            }
        }
        self.streams.get_mut(&cpu).ok_or_else(|| io::Error::other("no stream"))
    }

    fn dump_threads(&mut self, cpu: CpuId, at: Time) -> io::Result<()> {
        let none = NameId::EMPTY;
        let mut all = vec![self.say("lttng_statedump_start", none, "", &[])];
        for pid in self.threads.keys().copied().filter(|pid| *pid != Pid::IDLE) {
            let (own, comm) = (pid.number().to_le_bytes(), self.comm(cpu, pid));
            let (process, zero) = (self.meta.process_of(pid).number().to_le_bytes(), [0; 4]);
            let ids: [&[u8]; 6] = [&own, &own, &process, &process, &zero, &zero];
            let bytes = [&ids[..], &[&comm, &zero, &zero, &zero, &zero]].concat();
            all.push(self.say("lttng_statedump_process_state", none, THREAD, &bytes));
        }
        all.push(self.say("lttng_statedump_end", none, "", &[]));
        all.iter().try_for_each(|said| self.put(cpu, at, said).map(drop))
    }

    /// Writes an event after all that has ended before; returns where its fields are in the file.
    fn put(&mut self, cpu: CpuId, at: Time, said: &Said) -> io::Result<u64> {
        let stream = self.stream(cpu, at)?;
        stream.end_until(at, cpu)?;
        stream.put(at, said, cpu)
    }

    fn comm(&self, cpu: CpuId, pid: Pid) -> [u8; COMM] {
        let text = self.threads.get(&pid).and_then(|name| self.names.get(name.index()));
        let text = match pid {
            Pid::IDLE => format!("swapper/{cpu}"),
            _ => text.map_or("", |text| program(text, pid)).to_string(),
        };
        let mut comm = [0; COMM];
        let length = text.len().min(COMM - 1);
        comm[..length].copy_from_slice(&text.as_bytes()[..length]);
        comm
    }

    /// A CPU runs another thread.
    fn switch(&mut self, cpu: CpuId, at: Time, to: Pid) -> io::Result<()> {
        let from = self.runs.insert(cpu, to).unwrap_or(Pid::IDLE);
        self.places.insert(to, cpu);
        if from == to {
            return Ok(());
        }
        let state = match self.states.remove(&(cpu, at)) {
            Some(Known::Is(state)) => Some(state_bits(state)),
            _ => None,
        };
        let (before, after) = (self.comm(cpu, from), self.comm(cpu, to));
        let bits = state.unwrap_or(0).to_le_bytes();
        let [from, to, prio] = [from.number() as i32, to.number() as i32, PRIO].map(i32::to_le_bytes);
        let bytes: [&[u8]; 7] = [&before, &from, &prio, &bits, &after, &to, &prio];
        let said = self.say("sched_switch", NameId::EMPTY, SWITCH, &bytes);
        let place = self.put(cpu, at, &said)?;
        if state.is_none() {
            self.states.insert((cpu, at), Known::BelongsAt(place + STATE_AT as u64));
        }
        Ok(())
    }

    /// It is known now why a thread lost its CPU.
    fn tell(&mut self, cpu: CpuId, at: Time, state: State) -> io::Result<()> {
        let Some(Known::BelongsAt(place)) = self.states.remove(&(cpu, at)) else {
            self.states.insert((cpu, at), Known::Is(state));
            return Ok(());
        };
        let stream = self.stream(cpu, at)?;
        let bits = state_bits(state).to_le_bytes();
        match place.checked_sub(stream.written) {
            Some(place) => stream.packet[place as usize..][..bits.len()].copy_from_slice(&bits),
            None => {
                stream.out.seek(SeekFrom::Start(place))?;
                stream.out.write_all(&bits)?;
                stream.out.seek(SeekFrom::Start(stream.written))?;
            }
        }
        Ok(())
    }

    /// How work begins and ends, if there is an event for it.
    fn events(&mut self, work: Work, name: NameId, arg: i64) -> Option<(Said, Said)> {
        let none = NameId::EMPTY;
        Some(match work {
            Work::Irq(vector) => {
                let number = u32::from(vector).to_le_bytes();
                if let Some((_, own)) = OWN.iter().find(|(own, _)| *own == u32::from(vector)) {
                    let [begins, ends] = own.map(|event| self.say(event, none, "i32 vector; ", &[&number]));
                    return Some((begins, ends));
                }
                let text = self.names.get(name.index()).map_or("", String::as_str).replace('\0', "");
                (
                    self.say("irq_handler_entry", none, "i32 irq; string name; ", &[&number, text.as_bytes(), &[0]]),
                    self.say("irq_handler_exit", none, "i32 irq; i32 ret; ", &[&number, &1_u32.to_le_bytes()]),
                )
            }
            Work::Softirq if arg == NONE => return None,
            Work::Softirq => {
                let number = (arg as u32).to_le_bytes();
                (
                    self.say("irq_softirq_entry", none, "u32 vec; ", &[&number]),
                    self.say("irq_softirq_exit", none, "u32 vec; ", &[&number]),
                )
            }
            Work::Syscall32(_) => (
                self.say("compat_syscall_entry_", name, "", &[]),
                self.say("compat_syscall_exit_", name, "i64 ret; ", &[]),
            ),
            Work::UnknownCall => (
                self.say("syscall_entry_unknown", none, "", &[]),
                self.say("syscall_exit_unknown", none, "i64 ret; ", &[]),
            ),
            work if work.is_call() => (self.say(ENTRY, name, "", &[]), self.say(EXIT, name, "i64 ret; ", &[])),
            Work::Trap(_) => {
                self.untold.faults += 1;
                return None;
            }
            _ => return None,
        })
    }

    /// Where what happens on a track happens.
    fn place(&self, track: Track) -> Option<CpuId> {
        match track {
            Track::Cpu(cpu) => Some(cpu),
            Track::Thread(pid) => self.places.get(&pid).copied(),
            Track::Beside(..) => None,
        }
    }

    /// The trace's metadata: what its files are read by.
    fn metadata(&self) -> String {
        let base = date::seconds(&self.meta.tracebase).unwrap_or(0) - BEFORE;
        match self.edition {
            Edition::One => self.tsdl(base),
            Edition::Two => self.json(base),
        }
    }

    /// That of CTF 2.
    fn json(&self, base: i64) -> String {
        let stream = |declared| ctf2::structure(&ctf2::members(declared, Fields::OfStream), 8);
        let environment = json!({
            "domain": "kernel",
            "tracer_name": "lttng-modules",
            "tracer_major": 2,
            "tracer_minor": 9,
            "hostname": self.meta.host,
            "kernel_release": self.meta.kernel,
            "converted_from": "kutrace",
        });
        let parts = [
            ctf2::preamble(None),
            ctf2::clock(CLOCK, 1_000_000_000, (base, 0)),
            json!({
                "type": "trace-class",
                "packet-header-field-class": stream(PACKET_HEADER),
                "environment": environment,
            }),
            json!({
                "type": "data-stream-class",
                "default-clock-class-id": CLOCK,
                "packet-context-field-class": stream(PACKET_CONTEXT),
                "event-record-header-field-class": stream(EVENT_HEADER),
            }),
        ];
        let events = self.classes.iter().enumerate().map(|(id, (name, fields))| {
            ctf2::event(id, name, &ctf2::structure(&ctf2::members(fields, Fields::OfEvent), 8))
        });
        parts.into_iter().chain(events).map(|part| ctf2::fragment(&part)).collect()
    }

    /// That of CTF 1.8.
    fn tsdl(&self, base: i64) -> String {
        let quoted = |text: &str| text.replace(['\\', '"', '\n'], " ");
        let (host, kernel) = (quoted(&self.meta.host), quoted(&self.meta.kernel));
        let mut text = format!(
            "/* CTF 1.8 */
typealias integer {{ size = 16; align = 8; signed = false; }} := u16;
typealias integer {{ size = 32; align = 8; signed = false; }} := u32;
typealias integer {{ size = 32; align = 8; signed = true; }} := i32;
typealias integer {{ size = 64; align = 8; signed = false; }} := u64;
typealias integer {{ size = 64; align = 8; signed = true; }} := i64;
typealias integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} := text;
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ {PACKET_HEADER}}}; }};
env {{ domain = \"kernel\"; tracer_name = \"lttng-modules\"; tracer_major = 2; tracer_minor = 9; \
hostname = \"{host}\"; kernel_release = \"{kernel}\"; converted_from = \"kutrace\"; }};
clock {{ name = {CLOCK}; freq = 1000000000; offset_s = {base}; }};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.{CLOCK}.value; }} := moment;
stream {{
    id = 0;
    packet.context := struct {{ {PACKET_CONTEXT}}};
    event.header := struct {{ {EVENT_HEADER}}};
}};
"
        );
        for (id, (name, fields)) in self.classes.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "event {{ id = {id}; name = \"{name}\"; stream_id = 0; fields := struct {{ {fields}}}; }};"
            );
        }
        text
    }
}

impl<S: Write> Stream<S> {
    /// Writes what has ended by a moment.
    fn end_until(&mut self, at: Time, cpu: CpuId) -> io::Result<()> {
        let ended = self.ends.partition_point(|(end, _)| *end <= at);
        let ended: Vec<_> = self.ends.drain(..ended).collect();
        ended.iter().try_for_each(|(end, said)| self.put(*end, said, cpu).map(drop))
    }

    /// Returns where the fields are in the file.
    fn put(&mut self, at: Time, said: &Said, cpu: CpuId) -> io::Result<u64> {
        if self.packet.len() >= PACKET {
            self.flush(cpu)?;
        }
        let ns = (at.0 * 10 + BEFORE * 1_000_000_000).max(0) as u64;
        let first = if self.packet.len() == HEAD { ns } else { self.times.0 };
        self.times = (first, ns);
        self.packet.extend_from_slice(&said.class.to_le_bytes());
        self.packet.extend_from_slice(&ns.to_le_bytes());
        let place = self.written + self.packet.len() as u64;
        self.packet.extend_from_slice(&said.fields);
        Ok(place)
    }

    /// Writes the packet, if there is anything in it.
    fn flush(&mut self, cpu: CpuId) -> io::Result<()> {
        if self.packet.len() == HEAD {
            return Ok(());
        }
        let bits = self.packet.len() as u64 * 8;
        let head = [u64::from(MAGIC), self.times.0, self.times.1, bits, bits, self.packets, 0];
        let head = head.iter().flat_map(|word| word.to_le_bytes()).chain(cpu.number().to_le_bytes());
        self.packet.splice(..HEAD, head);
        self.out.write_all(&self.packet)?;
        self.written += self.packet.len() as u64;
        self.packets += 1;
        self.packet.truncate(HEAD);
        Ok(())
    }
}

impl<S: Write + Seek, F: FnMut(CpuId) -> io::Result<S>> Draw for Writer<'_, S, F> {
    type Out = (String, Untold);

    fn item(&mut self, item: Item) -> io::Result<()> {
        match item {
            Item::Begin { track, at, name, does, .. } => {
                let Some(cpu) = self.place(track) else { return Ok(()) };
                let events = does.and_then(|(work, arg)| Some((work, self.events(work, name, arg)?)));
                // What began before it was recorded only ends.
                if let Some((_, (begins, _))) = events.as_ref().filter(|_| does.is_some_and(|(_, arg)| arg != NONE)) {
                    self.put(cpu, at, begins)?;
                }
                self.inside.entry(track).or_default().push(events.map(|(work, (_, ends))| (work, ends)));
            }
            Item::End { track, at, ret } => {
                let Some(cpu) = self.place(track) else { return Ok(()) };
                let Some(Some((work, mut ends))) = self.inside.get_mut(&track).and_then(Vec::pop) else {
                    return Ok(());
                };
                if work.is_call() {
                    self.untold.values += u64::from(ret == NONE);
                    ends.fields = if ret == NONE { 0 } else { ret }.to_le_bytes().to_vec();
                }
                self.stream(cpu, at)?.ends.push((at, ends));
            }
            Item::Instant { .. } | Item::Value { .. } => self.untold.points += 1,
            Item::Runs { cpu, at, pid } => self.switch(cpu, at, pid)?,
            Item::Switch { cpu, at, state, .. } => self.tell(cpu, at, state)?,
            Item::Waking { cpu, at, woken, .. } => {
                let target = self.places.get(&woken).copied().unwrap_or(cpu);
                let comm = self.comm(target, woken);
                let numbers = [woken.number() as i32, PRIO, target.number() as i32].map(i32::to_le_bytes);
                let said = self.say("sched_waking", NameId::EMPTY, WAKING, &[&comm, &numbers.concat()]);
                self.put(cpu, at, &said)?;
            }
            Item::Count { cpu, counter, at, value } => {
                let (event, value) = match counter {
                    Counter::Frequency => ("power_cpu_frequency", value as u32 * 1000),
                    Counter::Idle => ("power_cpu_idle", value as u32),
                    Counter::Ipc => return Ok(()),
                };
                let bytes = [value, cpu.number()].map(u32::to_le_bytes).concat();
                let said = self.say(event, NameId::EMPTY, POWER, &[&bytes]);
                self.put(cpu, at, &said)?;
            }
            // What has not ended does not end, and a CPU goes on.
            Item::StaysOpen { .. } | Item::Stops { .. } | Item::Flow { .. } => {}
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<(String, Untold)> {
        for (cpu, stream) in &mut self.streams {
            stream.end_until(Time(i64::MAX), *cpu)?;
            stream.flush(*cpu)?;
            stream.out.flush()?;
        }
        Ok((self.metadata(), self.untold))
    }
}
