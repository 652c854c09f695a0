// SPDX-License-Identifier: BSD-3-Clause
//! Events from a Perfetto trace: its recording of the kernel's tracepoints, in its protobuf schema.
//!
//! They become lines of [`tracepoint`](super::tracepoint), and follow the same rules as lines of text. A trace has the
//! events of one CPU after those of another: all are kept as bytes, and are read in time order once the trace has
//! ended.
//!
//! Invariants: no content is an error; invalid content is counted. Memory is that of the events' bytes, and
//! 24 bytes for each event.

mod message;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Cursor, Read};

use flate2::read::ZlibDecoder;
use prost::Message;

use super::tracepoint::convert::Converter;
use super::tracepoint::line::{one_word, state, Line, NANOSECONDS_MAX};
use crate::event::batch::Batch;
use crate::event::names::Names;
use crate::event::{Event, Meta};
use crate::perfetto::Clock;
use crate::readable::count;
use crate::time::Time;
use message::{CompactSched, FtraceEvent, FtraceEventBundle, Happened, SchedSwitch, Stamp, TracePacket, Woken};

/// The byte before each packet: field 1, with a length.
const PACKET: u8 = 0x0a;
/// Maximum bytes of packets that were compressed together.
const UNPACKED_MAX: u64 = 1 << 28;
/// Clocks by the numbers that Perfetto gives them.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;
/// Number of events converted before the first is passed on.
const AHEAD: usize = 1 << 16;
/// Number of events in a batch.
const BATCH: usize = 1 << 12;

/// True if a file with this start is such a trace: its first packet has fields as far as it goes, and not everything is
/// text.
pub fn is_trace(start: &[u8]) -> bool {
    let is_text = |c: &u8| *c >= b' ' || c.is_ascii_whitespace();
    let mut rest = start;
    let Some(length) = rest.strip_prefix(&[PACKET]).and_then(|after| {
        rest = after;
        varint(&mut rest)
    }) else {
        return false;
    };
    let packet = &rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    length > 0 && has_fields(packet, packet.len() as u64 == length) && !start.iter().all(is_text)
}

/// True if a message has fields of possible kinds; a message that is not `whole`, as far as it goes.
fn has_fields(mut rest: &[u8], whole: bool) -> bool {
    while !rest.is_empty() {
        let Some(tag) = varint(&mut rest) else { return !whole };
        let skipped = match tag & 7 {
            0 => varint(&mut rest).map(|_| 0),
            1 => Some(8),
            2 => varint(&mut rest),
            5 => Some(4),
            _ => return false,
        };
        if tag < 8 || tag >> 3 >= 1 << 29 {
            return false;
        }
        let Some(after) = skipped.and_then(|bytes| rest.get(usize::try_from(bytes).ok()?..)) else { return !whole };
        rest = after;
    }
    true
}

/// Takes a number of seven bits in each byte, the lowest first.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(rest).ok()
}

/// Reads the events of a trace.
#[derive(Debug)]
pub struct Packets {
    read: Kept,
    /// Number of moments converted.
    next: usize,
    convert: Converter,
    names: Names,
    /// Number of names passed on.
    sent: usize,
    /// Number of events that made no sense.
    unread: u64,
    /// Facts known when the first events were passed on.
    meta: Meta,
}

impl Packets {
    /// A reader of `input`, which has read all of it.
    ///
    /// # Errors
    /// Any error of `input`.
    pub fn new(input: impl BufRead) -> io::Result<Packets> {
        let mut read = Kept::default();
        read.packets(input)?;
        read.moments.sort_by_key(|moment| moment.at);
        let mut names = Names::default();
        let mut convert = Converter::new(&mut names);
        convert.recorder = Some("perfetto");
        for (key, value) in [("# hostname : ", &read.host), ("# os release : ", &read.kernel)] {
            if !value.is_empty() {
                convert.other(&format!("{key}{value}"), &mut names);
            }
        }
        let mut packets = Packets { read, next: 0, convert, names, sent: 0, unread: 0, meta: Meta::default() };
        while packets.next < AHEAD && packets.convert_next() {}
        packets.meta = packets.convert.meta();
        Ok(packets)
    }

    /// Facts about the whole trace so far.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The next events; `None` at the end.
    pub fn batch(&mut self) -> Option<Batch<Event>> {
        while self.convert.events.len() < BATCH && self.convert_next() {}
        let names = self.names.since(self.sent).to_vec();
        self.sent += names.len();
        let rows = std::mem::take(&mut self.convert.events);
        Some(Batch { names, rows }).filter(|batch| !batch.rows.is_empty())
    }

    /// Facts about the whole trace at the end.
    pub fn finish(self) -> Meta {
        let mut meta = self.convert.meta();
        let Kept { damaged, cut, .. } = self.read;
        if let Some(at) = cut {
            meta.quality.push(format!("byte {at}: the trace is cut off or damaged here; the rest is missing"));
        }
        for (number, one, many) in [
            (damaged, "packet could not be read", "packets could not be read"),
            (self.unread, "event could not be read", "events could not be read"),
        ] {
            meta.quality.extend((number > 0).then(|| count(number, one, many)));
        }
        meta
    }

    /// Converts the next moment; false if there is none.
    fn convert_next(&mut self) -> bool {
        let Some(moment) = self.read.moments.get(self.next) else { return false };
        self.next += 1;
        let Moment { at, cpu, from, bytes } = *moment;
        let taken = match bytes {
            0 => self.convert.other(&format!("CPU:{cpu} [EVENTS DROPPED]"), &mut self.names),
            _ => self.event(at, cpu, from..from + bytes as usize),
        };
        self.unread += u64::from(taken.is_none());
        true
    }

    fn event(&mut self, at: u64, cpu: u32, place: std::ops::Range<usize>) -> Option<()> {
        let FtraceEvent { pid, happened, .. } = FtraceEvent::decode(&self.read.bytes[place]).ok()?;
        let Some(happened) = happened else { return Some(()) };
        let running = pid.or_else(|| self.convert.running(cpu));
        let (event, fields) = line(happened, running);
        let at = i128::from(at) + i128::from(self.read.shift());
        let known = pid.and_then(|pid| self.read.threads.get(&pid));
        let line = Line {
            comm: known.map_or("", |thread| &thread.0),
            pid,
            process: known.and_then(|thread| thread.1),
            cpu,
            time: Time(i64::try_from(at.div_euclid(10)).ok()?),
            decimals: 9,
            event: &event,
            fields: &fields,
            perf: false,
        };
        self.convert.line(&line, &mut self.names)
    }
}

/// Contents of a trace, kept until it has ended.
#[derive(Debug, Default)]
struct Kept {
    /// Events, one after the other.
    bytes: Vec<u8>,
    moments: Vec<Moment>,
    /// Names and processes of threads. The process is `None` if unknown.
    threads: BTreeMap<u32, (String, Option<u32>)>,
    host: String,
    kernel: String,
    /// Nanoseconds from the boot clock to 1970, by the first snapshot.
    since_1970: Option<i64>,
    /// True if events have times of another clock.
    other_clock: bool,
    /// Number of packets that made no sense.
    damaged: u64,
    /// Offset at which a packet should begin and does not.
    cut: Option<u64>,
}

/// An event: time, CPU, and its place among the bytes; without bytes, events are missing here.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: u64,
    cpu: u32,
    bytes: u32,
    from: usize,
}

impl Kept {
    /// Offset added to the times of events.
    fn shift(&self) -> i64 {
        self.since_1970.filter(|_| !self.other_clock).unwrap_or(0)
    }

    /// Takes all packets of a trace.
    fn packets(&mut self, mut input: impl BufRead) -> io::Result<()> {
        let (mut at, mut packet) = (0, Vec::new());
        loop {
            if input.fill_buf()?.is_empty() {
                return Ok(());
            }
            packet.clear();
            let head = length(&mut input)?;
            if let Some((bytes, length)) = head {
                input.by_ref().take(length).read_to_end(&mut packet)?;
                if packet.len() as u64 == length {
                    self.packet(&packet, true)?;
                    at += bytes + length;
                    continue;
                }
            }
            self.cut = Some(at);
            return Ok(());
        }
    }

    /// Takes a packet, and the packets inside it, unless it was itself inside another.
    fn packet(&mut self, bytes: &[u8], outer: bool) -> io::Result<()> {
        let Ok(packet) = TracePacket::decode(bytes) else {
            self.damaged += 1;
            return Ok(());
        };
        let TracePacket { ftrace_events, process_tree, clock_snapshot, system_info, compressed_packets } = packet;
        if let Some(compressed) = compressed_packets {
            self.damaged += u64::from(!outer || !self.unpack(&compressed));
        }
        let [real, boot] = [REALTIME, BOOTTIME].map(|id| {
            let clocks = clock_snapshot.iter().flat_map(|snapshot| &snapshot.clocks);
            let of = |clock: &&Clock| clock.clock_id == Some(id);
            clocks.clone().find(of).and_then(|clock| i64::try_from(clock.timestamp?).ok())
        });
        self.since_1970 = self.since_1970.or_else(|| Some(real? - boot?));
        for thread in process_tree.iter().flat_map(|tree| &tree.threads) {
            self.introduce(thread.tid, thread.name.as_deref().unwrap_or_default(), thread.tgid);
        }
        for process in process_tree.iter().flat_map(|tree| &tree.processes) {
            let program = process.cmdline.first().map_or("", String::as_str);
            self.introduce(process.pid, program.rsplit('/').next().unwrap_or_default(), process.pid);
        }
        if let Some(system) = system_info {
            self.host = system.machine_name.unwrap_or_default();
            self.kernel = system.utsname.and_then(|utsname| utsname.release).unwrap_or_default();
        }
        if let Some(bundle) = ftrace_events {
            self.bundle(bundle);
        }
        Ok(())
    }

    /// Takes packets that were compressed; false if they are invalid.
    fn unpack(&mut self, compressed: &[u8]) -> bool {
        let mut bytes = Vec::new();
        let read = ZlibDecoder::new(compressed).take(UNPACKED_MAX).read_to_end(&mut bytes);
        let mut rest = Cursor::new(&bytes);
        while let Ok(Some((_, length))) = length(&mut rest) {
            let from = rest.position() as usize;
            let end = usize::try_from(length).ok().and_then(|length| from.checked_add(length));
            let Some(packet) = end.and_then(|end| bytes.get(from..end)) else { return false };
            if self.packet(packet, false).is_err() {
                return false;
            }
            rest.set_position((from + packet.len()) as u64);
        }
        read.is_ok() && rest.position() as usize == bytes.len()
    }

    /// The first name given for a thread is kept; its process may come later.
    fn introduce(&mut self, tid: Option<i32>, name: &str, process: Option<i32>) {
        let number = |id: Option<i32>| id.and_then(|id| u32::try_from(id).ok()).filter(|&id| id > 0);
        let Some(tid) = number(tid) else { return };
        let thread = self.threads.entry(tid).or_default();
        if thread.0.is_empty() {
            thread.0 = one_word(name);
        }
        thread.1 = thread.1.or(number(process));
    }

    fn bundle(&mut self, bundle: FtraceEventBundle) {
        let cpu = bundle.cpu.unwrap_or_default();
        self.other_clock |= bundle.ftrace_clock.is_some_and(|clock| clock != 0);
        let first = self.moments.len();
        for event in &bundle.event {
            let at = Stamp::decode(&event[..]).ok().and_then(|stamp| stamp.timestamp);
            self.keep(at, cpu, event);
        }
        if let Some(compact) = bundle.compact_sched {
            for event in expanded(&compact) {
                self.keep(event.timestamp, cpu, &event.encode_to_vec());
            }
        }
        if bundle.lost_events == Some(true) {
            let at = self.moments[first..].iter().map(|moment| moment.at).min();
            let moment = at.map(|at| Moment { at, cpu, bytes: 0, from: 0 });
            self.moments.splice(first..first, moment);
        }
    }

    fn keep(&mut self, at: Option<u64>, cpu: u32, event: &[u8]) {
        match (at.filter(|at| *at < NANOSECONDS_MAX), u32::try_from(event.len())) {
            (Some(at), Ok(bytes)) => {
                self.moments.push(Moment { at, cpu, bytes, from: self.bytes.len() });
                self.bytes.extend_from_slice(event);
            }
            _ => self.damaged += 1,
        }
    }
}

/// The events in lists of fields, without the running thread.
fn expanded(compact: &CompactSched) -> Vec<FtraceEvent> {
    let name = |index: Option<&u32>| index.and_then(|&index| compact.intern_table.get(index as usize)).cloned();
    let mut events = Vec::new();
    let mut add = |times: &[u64], happened: &dyn Fn(usize) -> Happened| {
        let mut now = 0u64;
        for (n, step) in times.iter().enumerate() {
            now = now.saturating_add(*step);
            events.push(FtraceEvent { timestamp: Some(now), pid: None, happened: Some(happened(n)) });
        }
    };
    add(&compact.switch_timestamp, &|n| {
        Happened::SchedSwitch(SchedSwitch {
            prev_comm: None,
            prev_pid: None,
            prev_state: compact.switch_prev_state.get(n).copied(),
            next_comm: name(compact.switch_next_comm_index.get(n)),
            next_pid: compact.switch_next_pid.get(n).copied(),
        })
    });
    add(&compact.waking_timestamp, &|n| {
        let (comm, pid) = (name(compact.waking_comm_index.get(n)), compact.waking_pid.get(n).copied());
        Happened::SchedWaking(Woken { comm, pid })
    });
    events
}

/// The length of the next packet, and the number of bytes that encode it; `None` if there is no length.
fn length(input: &mut impl BufRead) -> io::Result<Option<(u64, u64)>> {
    let (mut length, mut byte) = (0, [0]);
    for n in 0..11 {
        match input.read_exact(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        if n == 0 {
            if byte[0] != PACKET {
                return Ok(None);
            }
            continue;
        }
        length |= u64::from(byte[0] & 0x7f) << (7 * (n - 1));
        if byte[0] < 0x80 {
            return Ok(Some((n + 1, length)));
        }
    }
    Ok(None)
}

/// An event as a line: its name, and its fields, where this thread runs.
fn line(happened: Happened, running: Option<u32>) -> (String, String) {
    let name = |comm: Option<String>| one_word(&comm.unwrap_or_default());
    let number = |number: Option<i32>| number.unwrap_or(-1);
    let woken = |Woken { comm, pid }| format!("comm={} pid={}", name(comm), number(pid));
    let named = |pid, comm| format!("pid={} oldcomm= newcomm={}", number(pid), name(comm));
    let vector = |of: message::Number| of.number.map_or(-1, i64::from);
    let (event, fields) = match happened {
        Happened::Print(print) => ("print", print.buf.unwrap_or_default()),
        Happened::SchedSwitch(SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid }) => {
            let old = prev_pid.or(running.and_then(|pid| i32::try_from(pid).ok())).unwrap_or(0);
            let state = state(prev_state.unwrap_or(0));
            let (before, after, next) = (name(prev_comm), name(next_comm), number(next_pid));
            let fields =
                format!("prev_comm={before} prev_pid={old} prev_state={state} ==> next_comm={after} next_pid={next}");
            ("sched_switch", fields)
        }
        Happened::CpuFrequency(now) => {
            let [khz, cpu] = [now.state, now.cpu_id].map(Option::unwrap_or_default);
            ("cpu_frequency", format!("state={khz} cpu_id={cpu}"))
        }
        Happened::SchedWakeup(of) => ("sched_wakeup", woken(of)),
        Happened::SchedWaking(of) => ("sched_waking", woken(of)),
        Happened::SchedWakeupNew(of) => ("sched_wakeup_new", woken(of)),
        Happened::SoftirqEntry(of) => ("softirq_entry", format!("vec={}", vector(of))),
        Happened::SoftirqExit(of) => ("softirq_exit", format!("vec={}", vector(of))),
        Happened::IrqHandlerEntry(of) => {
            ("irq_handler_entry", format!("irq={} name={}", number(of.irq), name(of.name)))
        }
        Happened::IrqHandlerExit(of) => ("irq_handler_exit", format!("irq={}", number(of.irq))),
        Happened::TaskNewtask(of) => ("task_rename", named(of.pid, of.comm)),
        Happened::TaskRename(of) => ("task_rename", named(of.pid, of.newcomm)),
        Happened::SchedProcessExec(of) => {
            ("sched_process_exec", format!("filename= pid={} old_pid={}", number(of.pid), number(of.old_pid)))
        }
        Happened::SysEnter(of) => {
            let first = of.args.first().copied().unwrap_or_default();
            ("sys_enter", format!("NR {} ({first:x})", of.id.unwrap_or(-1)))
        }
        Happened::SysExit(of) => ("sys_exit", format!("NR {} = {}", of.id.unwrap_or(-1), of.ret.unwrap_or_default())),
        Happened::LocalTimerEntry(of) => ("local_timer_entry", format!("vector={}", vector(of))),
        Happened::LocalTimerExit(of) => ("local_timer_exit", format!("vector={}", vector(of))),
        Happened::Generic(generic) => {
            let value = |field: message::Field| match (field.str_value, field.int_value, field.uint_value) {
                (Some(text), ..) => text,
                (_, Some(number), _) => number.to_string(),
                (.., number) => number.unwrap_or_default().to_string(),
            };
            let told = |field: message::Field| format!("{}={}", name(field.name.clone()), one_word(&value(field)));
            let fields: Vec<String> = generic.field.into_iter().map(told).collect();
            return (generic.event_name.unwrap_or_default(), fields.join(" "));
        }
    };
    (event.to_string(), fields)
}
