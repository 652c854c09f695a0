// SPDX-License-Identifier: BSD-3-Clause
//! Converts lines of tracepoints to events of the table.
//!
//! The numbers are those that our module gives the same tracepoints on a stock kernel, except for interrupts of
//! devices: lines have no vector, so it is derived from the kernel's number of the interrupt. A page fault has no end
//! here and is a point, as in any source of tracepoints.

mod call;
mod interrupt;

use std::collections::BTreeMap;

use foldhash::HashMap;
use kutrace_format::abi::event::{WAIT_STOPPED, WAIT_TRACED};
use kutrace_format::capability::{Capability, Unseen};
use kutrace_format::file::Name;
use kutrace_format::x86::trap;

use super::line::{field, lost, seconds, thread, Line};
use crate::event::fact::Fact;
use crate::event::names::{clean, clean_sentence, NameId, Names};
use crate::event::what::What;
use crate::event::{date, number, Event, Meta, CPUS_MAX};
use crate::id::{CpuId, Pid};
use crate::raw::name::EventNames;
use crate::raw::task::Tasks;
use crate::tables;
use crate::time::Time;

const PAGE_FAULT: u32 = number::TRAP + trap::PAGE_FAULT;
/// A minute, in units of time.
const MINUTE: i64 = 60 * Time::SECOND.0;
/// Maximum letters of a text that a program wrote.
const TEXT_MAX: usize = 120;

/// The first line of text made from systing's tables.
pub const SYSTING: &str = "# systing";

/// Capabilities that all texts of tracepoints lack.
const NEVER: Unseen = Unseen::TRACEPOINTS.and(Unseen::of(&[
    Capability::Tasks,
    Capability::Scheduler,
    Capability::ProgramFaults,
    Capability::IdleStates,
    Capability::Packets,
    Capability::Steal,
]));

/// Capabilities, each with the events of which at least one is needed.
const NEEDED: [(&[Seen], Capability); 11] = [
    (&[Seen::Switch], Capability::Idle),
    (&[Seen::Switch], Capability::Exits),
    (&[Seen::Waking, Seen::Wakeup], Capability::Wakeups),
    (&[Seen::New], Capability::Births),
    (&[Seen::Vector], Capability::Interrupts),
    (&[Seen::Fault], Capability::Faults),
    (&[Seen::Ipi], Capability::Senders),
    (&[Seen::Frequency], Capability::Frequency),
    (&[Seen::Call], Capability::Calls),
    (&[Seen::Softirq], Capability::Softirqs),
    (&[Seen::Fine], Capability::Moments),
];

/// Events seen in the lines.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Switch,
    Waking,
    Wakeup,
    New,
    Vector,
    Fault,
    Ipi,
    Frequency,
    Call,
    Softirq,
    /// Not an event, but times finer than a microsecond.
    Fine,
    /// Not an event: perf's lines, which do not show where events are missing.
    Perf,
}

/// A CPU, with the thread that runs on it, if that is known.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    pid: Option<Pid>,
    last: Time,
}

/// Converts lines to events, one after the other.
#[derive(Debug)]
pub struct Converter {
    /// Events made so far.
    pub events: Vec<Event>,
    cpus: BTreeMap<u32, Cpu>,
    tasks: Tasks,
    event_names: EventNames,
    /// Names of devices' interrupts, by vector.
    devices: HashMap<u32, NameId>,
    /// The bits of [`Seen`].
    seen: u32,
    /// The minute that times count from; `None` until it is known.
    base: Option<i64>,
    /// Offset from the recording's clock to the time of day, if perf's head has it, and true if that clock is
    /// CLOCK_MONOTONIC.
    reference: Option<(Time, bool)>,
    lost: u64,
    /// True if older events were replaced by newer ones.
    pub overwritten: bool,
    /// The program that recorded the lines, if it does not itself write this text.
    pub recorder: Option<&'static str>,
}

impl Converter {
    /// A converter that starts with the names of all events.
    pub fn new(names: &mut Names) -> Converter {
        let named = |(kind, table)| {
            let record = move |(number, text): (u32, &'static str)| Name {
                kind: kind as u16,
                number,
                second: 0,
                text: text.as_bytes(),
            };
            tables::entries(table).map(record)
        };
        let records: Vec<Name> = tables::TABLES.into_iter().flat_map(named).collect();
        let (event_names, events) = EventNames::new(&records, names);
        Converter {
            events,
            cpus: BTreeMap::new(),
            tasks: Tasks::default(),
            event_names,
            devices: HashMap::default(),
            seen: 0,
            base: None,
            reference: None,
            lost: 0,
            overwritten: false,
            recorder: None,
        }
    }

    /// True if there was no event yet.
    pub fn is_new(&self) -> bool {
        self.base.is_none()
    }

    /// The thread that a CPU runs, if that is known.
    pub fn running(&self, cpu: u32) -> Option<u32> {
        Some(self.cpus.get(&cpu)?.pid?.number())
    }

    /// Takes the name of a tracepoint that occurs in the recording, and true if it has a vector.
    pub fn expect(&mut self, event: &str, has_vector: bool) {
        let seen = match event {
            "sched_switch" => Seen::Switch,
            "sched_waking" => Seen::Waking,
            "sched_wakeup" => Seen::Wakeup,
            "sched_wakeup_new" => Seen::New,
            "page_fault_user" | "page_fault_kernel" => Seen::Fault,
            "cpu_frequency" => Seen::Frequency,
            "ipi_send_cpu" | "ipi_send_cpumask" => Seen::Ipi,
            "softirq_entry" | "softirq_exit" => Seen::Softirq,
            event if event.starts_with("sys_") => Seen::Call,
            _ if has_vector => Seen::Vector,
            _ => return,
        };
        self.see(seen, true);
    }

    /// Facts about the recording so far.
    pub fn meta(&self) -> Meta {
        let seen = |one: &Seen| self.seen >> *one as u32 & 1 != 0;
        let missing = NEEDED.iter().filter(|(events, _)| !events.iter().any(seen)).map(|(_, capability)| *capability);
        let perf = Some(Capability::Losses).filter(|_| seen(&Seen::Perf));
        let unseen = missing.chain(perf).fold(NEVER, |all, one| all.and(Unseen::of(&[one])));
        let shift = self.reference.filter(|(_, is_monotonic)| *is_monotonic).map(|(shift, _)| shift);
        Meta {
            monotonic: self.base.zip(shift).map(|(minute, shift)| (Time(minute * MINUTE) - shift).0.saturating_mul(10)),
            format: 5,
            base: self.base.map(|minute| date::utc(minute * 60)).unwrap_or_default(),
            flags: 5 | if self.overwritten { kutrace_format::flag::WRAPPED } else { 0 },
            lost: self.lost,
            unseen: unseen.0,
            recorder: self.recorder.unwrap_or(if seen(&Seen::Perf) { "perf" } else { "ftrace" }).to_string(),
            ..Meta::default()
        }
    }

    /// Takes a line that is not an event; `None` if it is invalid.
    pub fn other(&mut self, text: &str, names: &mut Names) -> Option<()> {
        if let Some((cpu, number)) = lost(text) {
            self.lose(cpu, number, names);
            return Some(());
        }
        let text = text.trim();
        if let Some((_, counts)) = text.split_once("entries-in-buffer/entries-written: ") {
            let (kept, written) = counts.split_whitespace().next()?.split_once('/')?;
            self.overwritten |= kept != written;
        }
        if text == SYSTING {
            self.recorder = Some("systing");
        }
        // Lines of perf's head.
        for (key, kind) in [
            ("# hostname : ", number::HOST_NAME),
            ("# os release : ", number::KERNEL_NAME),
            ("# cpudesc : ", number::MODEL_NAME),
        ] {
            if let Some(value) = text.strip_prefix(key) {
                let name = names.id(&clean_sentence(value.as_bytes()));
                self.events.push(Event { ts: self.last(), what: What::of(kind), name, ..Event::default() });
            }
        }
        if let Some(times) = text.strip_prefix("# reference time: ").filter(|_| self.is_new()) {
            self.reference = reference(times);
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        // A frame of a call stack, which perf writes below an event.
        let frame = first.len() >= 6 && first.bytes().all(|c| c.is_ascii_hexdigit()) && text.ends_with(')');
        let head = ["#", "cpus=", "version = "].iter().any(|start| text.starts_with(start));
        (text.is_empty() || head || frame).then_some(())
    }

    /// Takes a line; `None` if it is invalid.
    pub fn line(&mut self, line: &Line, names: &mut Names) -> Option<()> {
        if line.cpu >= CPUS_MAX {
            return None;
        }
        let time = line.time + self.reference.map_or(Time::ZERO, |(shift, _)| shift);
        let base = *self.base.get_or_insert(time.0.div_euclid(MINUTE));
        let ts = time - Time(base * MINUTE);
        self.see(Seen::Fine, line.decimals > 6);
        self.see(Seen::Perf, line.perf);
        let here = self.here(line, ts, names);
        match line.event {
            "sched_switch" => self.switch(here, line.fields, names),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => self.wake(here, line, names),
            "task_rename" => self.rename(here, line.fields, names),
            "sched_process_exec" => self.exec(here, line.fields, names),
            "sys_enter" => self.enter(here, line.fields, names),
            "sys_exit" => self.exit(here, line.fields, names),
            "irq_handler_entry" | "irq_handler_exit" => self.device(here, line, names),
            "softirq_entry" | "softirq_exit" => self.softirq(here, line, names),
            "page_fault_user" | "page_fault_kernel" => {
                self.see(Seen::Fault, true);
                for event in [PAGE_FAULT, PAGE_FAULT | number::RETURN_BIT] {
                    self.plain(Event { what: What::of(event), ..here }, names);
                }
                Some(())
            }
            "cpu_frequency" => self.frequency(here, line.fields, names),
            "ipi_send_cpu" | "ipi_send_cpumask" => self.send(here, line, names),
            "tracing_mark_write" | "print" => {
                let text: String =
                    line.fields.trim_start_matches("tracing_mark_write: ").chars().take(TEXT_MAX).collect();
                let (event, name) = (number::PROGRAM_MARK, names.id(&clean(text.as_bytes())));
                self.events.push(Event { dur: Time::UNIT, what: What::of(event), name, ..here });
                Some(())
            }
            "PERF_RECORD_LOST" => {
                let number = line.fields.rsplit(' ').next()?.parse().ok()?;
                self.lose(line.cpu, number, names);
                Some(())
            }
            event if event.starts_with("sys_") => self.named_call(here, event, line.fields, names),
            // The entry and the exit of a vector; other events do not show what a CPU does.
            event => match (event.rsplit_once('_'), field(line.fields, " vector=")) {
                (Some((_, edge @ ("entry" | "exit"))), Some(vector)) => self.vector(here, edge, vector, names),
                _ => Some(()),
            },
        }
    }

    fn see(&mut self, what: Seen, seen: bool) {
        self.seen |= u32::from(seen) << what as u32;
    }

    fn last(&self) -> Time {
        self.cpus.values().map(|cpu| cpu.last).max().unwrap_or(Time(-1))
    }

    /// An event without a kind at the place of a line. Adds a record of the running thread if it is new.
    fn here(&mut self, line: &Line, ts: Time, names: &mut Names) -> Event {
        let told = line.pid.map(Pid::new);
        if let Some(pid) = told {
            self.introduce(pid, line, ts, names);
        }
        let cpu = self.cpus.entry(line.cpu).or_default();
        let before = cpu.pid;
        cpu.pid = told.or(before);
        cpu.last = ts;
        let (pid, id) = (cpu.pid.unwrap_or(Pid::IDLE), CpuId::new(line.cpu));
        if before.is_none() {
            let name = self.user(pid, names);
            let (arg, event) = (pid.number(), number::SWITCH);
            self.events.push(Event {
                ts,
                dur: Time::UNIT,
                what: What::of(event),
                cpu: id,
                pid,
                arg,
                name,
                ..Event::default()
            });
        }
        Event { ts, cpu: id, pid, ..Event::default() }
    }

    /// Takes the thread of a line. Its name there is the one that ftrace knew when the line was read, not when it was
    /// written, so it is used only if nothing else names the thread.
    fn introduce(&mut self, pid: Pid, line: &Line, ts: Time, names: &mut Names) {
        let task = self.tasks.find(pid, names);
        if line.perf || self.tasks.get(task).comm == NameId::EMPTY {
            self.name(pid, line.comm, ts, names);
        }
        if let Some(process) = line.process.map(Pid::new) {
            if self.tasks.set_process(task, process) {
                let (what, arg) = (What::Fact(Fact::Process(process)), pid.number());
                self.events.push(Event { ts, dur: Time::UNIT, what, arg, ..Event::default() });
            }
        }
    }

    /// Gives a thread a name, unless the name stands for none.
    fn name(&mut self, pid: Pid, comm: &str, ts: Time, names: &mut Names) {
        let task = self.tasks.find(pid, names);
        if comm != "<...>" && self.tasks.rename(task, &clean(comm.as_bytes()), names) {
            let (event, name) = (number::PID_NAME, self.tasks.get(task).comm);
            self.events.push(Event {
                ts,
                dur: Time::UNIT,
                what: What::of(event),
                arg: pid.number(),
                name,
                ..Event::default()
            });
        }
    }

    /// Name of a thread's user code.
    fn user(&mut self, pid: Pid, names: &mut Names) -> NameId {
        let task = self.tasks.find(pid, names);
        self.tasks.get(task).user
    }

    /// An event that its number describes completely.
    fn plain(&mut self, event: Event, names: &mut Names) {
        let name = self.event_names.event(event.event(), names);
        self.events.push(Event { name, ..event });
    }

    /// A point that is named after its argument.
    fn point(&mut self, event: Event, names: &mut Names) {
        let name = self.event_names.point(event.event(), event.arg, names);
        self.events.push(Event { dur: Time::UNIT, name, ..event });
    }

    fn switch(&mut self, here: Event, fields: &str, names: &mut Names) -> Option<()> {
        let (from, to) = fields.split_once(" ==> ")?;
        let (before, old) = thread(from, "prev_comm=", " prev_pid=")?;
        let (after, new) = thread(to, "next_comm=", " next_pid=")?;
        let (old, new) = (Pid::new(old), Pid::new(new));
        let state = field(from, " prev_state=").or_else(|| from.rsplit(' ').next()).unwrap_or_default();
        self.see(Seen::Switch, true);
        self.name(old, before, here.ts, names);
        self.name(new, after, here.ts, names);
        let here = Event { pid: old, ..here };
        match state.chars().next() {
            Some('X' | 'Z') => self.point(Event { what: What::of(number::EXIT), ..here }, names),
            Some('T') => self.point(Event { what: What::of(number::WAIT), arg: WAIT_STOPPED, ..here }, names),
            Some('t') => self.point(Event { what: What::of(number::WAIT), arg: WAIT_TRACED, ..here }, names),
            _ => {}
        }
        let name = self.user(new, names);
        self.events.push(Event { what: What::of(number::SWITCH), arg: new.number(), name, ..here });
        self.cpus.entry(here.cpu.number()).or_default().pid = Some(new);
        Some(())
    }

    /// The woken thread. If the trace also has the start of wakeups, their end would count them twice.
    fn wake(&mut self, here: Event, line: &Line, names: &mut Names) -> Option<()> {
        let (comm, pid) = thread(line.fields, "comm=", " pid=")?;
        let kind = match line.event {
            "sched_waking" => Seen::Waking,
            "sched_wakeup" => Seen::Wakeup,
            _ => Seen::New,
        };
        self.see(kind, true);
        self.name(Pid::new(pid), comm, here.ts, names);
        if !matches!(kind, Seen::Wakeup) || self.seen >> Seen::Waking as u32 & 1 == 0 {
            let task = self.tasks.find(Pid::new(pid), names);
            let (event, name) = (number::RUNNABLE, self.tasks.get(task).runnable);
            self.events.push(Event { dur: Time::UNIT, what: What::of(event), arg: pid, name, ..here });
        }
        Some(())
    }

    fn rename(&mut self, here: Event, fields: &str, names: &mut Names) -> Option<()> {
        let pid = field(fields, " pid=")?.parse().ok()?;
        let (_, rest) = fields.split_once(" newcomm=")?;
        let comm = rest.rsplit_once(" oom_score_adj=").map_or(rest, |(comm, _)| comm);
        self.name(Pid::new(pid), comm, here.ts, names);
        Some(())
    }

    /// A thread that is not the first of its program loads another: it is then the first, under that one's number.
    fn exec(&mut self, here: Event, fields: &str, names: &mut Names) -> Option<()> {
        let [new, old] = [" pid=", " old_pid="].map(|key| field(fields, key)?.parse::<u32>().ok());
        let pid = Pid::new(new?);
        if old != new {
            let (event, name) = (number::SWITCH, self.user(pid, names));
            self.events.push(Event { dur: Time::UNIT, what: What::of(event), pid, arg: pid.number(), name, ..here });
            self.cpus.entry(here.cpu.number()).or_default().pid = Some(pid);
        }
        Some(())
    }

    /// From here on a CPU, this one or another, has a new frequency.
    fn frequency(&mut self, here: Event, fields: &str, names: &mut Names) -> Option<()> {
        let khz: u32 = field(fields, " state=")?.parse().ok()?;
        let cpu: u32 = field(fields, " cpu_id=")?.parse().ok()?;
        self.see(Seen::Frequency, true);
        // If nothing else is known of the CPU yet, its running thread is unknown.
        if let Some(pid) = self.cpus.get(&cpu).and_then(|cpu| cpu.pid) {
            let (event, arg) = (number::FREQUENCY_SET, khz / 1000);
            self.point(Event { cpu: CpuId::new(cpu), pid, what: What::of(event), arg, ..here }, names);
        }
        Some(())
    }

    /// Events of a CPU are missing from its last one to the next. The line that reports this comes before the next one;
    /// events passed on by then stay before it.
    fn lose(&mut self, cpu: u32, count: u64, names: &mut Names) {
        self.lost = self.lost.saturating_add(count.max(1));
        let Some(Cpu { pid: Some(pid), last }) = self.cpus.get(&cpu).copied() else { return };
        let (event, name, id) = (number::LOST, names.id("-lost-"), CpuId::new(cpu));
        let arg = u32::try_from(count).unwrap_or(u32::MAX);
        let of_this = |e: &Event| e.cpu == id && e.what.is_event();
        let (at, ts) = match self.events.iter().rposition(of_this) {
            Some(before) => (before + 1, self.events[before].ts),
            None => (0, self.events.first().map_or(self.last(), |first| first.ts)),
        };
        self.events.insert(at, Event { ts, what: What::of(event), cpu: id, pid, arg, name, ..Event::default() });
        self.cpus.insert(cpu, Cpu { pid: None, last });
    }
}

/// Offset from a recording's clock to the time of day, and true if it is CLOCK_MONOTONIC, from perf's head: `DATE =
/// SECONDS (TOD) = SECONDS (monotonic)`.
fn reference(text: &str) -> Option<(Time, bool)> {
    let mut parts = text.trim_end().split(" = ").skip(1);
    let (day, _) = seconds(parts.next()?.strip_suffix(" (TOD)")?)?;
    let (shown, clock) = parts.next()?.split_once(' ')?;
    let shift = day - seconds(shown)?.0;
    (shift >= Time::ZERO).then_some((shift, clock == "(monotonic)"))
}
