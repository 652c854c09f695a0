// SPDX-License-Identifier: BSD-3-Clause
//! Parts of recorded traces, as the recorder would have written them had it begun later, ended earlier, or lost events.
//!
//! A recording begins in the middle of anything: in the scheduler, in an interrupt, in a call. A header or a TASK has
//! the facts about a thread that the kernel would have recorded at that time: [`Machine`] follows the whole trace and
//! knows them.

use std::collections::{BTreeMap, HashMap, HashSet};

use kutrace_format::abi::event::{self, TaskState};
use kutrace_format::abi::word;
use kutrace_format::capability::Unseen;
use kutrace_format::file::{NameKind, FLAG_WRAP, FLAG_WRAPPED};
use postprocess::raw::stream::{Item, Opening, Stream, Timed};
use postprocess::raw::{self, Raw};

use crate::stock::{Entry, Runs, Source};
use crate::{comm_words, TraceBuilder, START};

/// The part of a trace that is kept. Times are counts from its start.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// From when on, and how much later than that each of some CPUs begins, as where a trace wrapped.
    pub from: u64,
    pub late: BTreeMap<u32, u64>,
    /// Up to when.
    pub to: u64,
    /// A loss: its CPU, its start and its end.
    pub lost: Vec<(u32, u64, u64)>,
}

/// A thread, as the kernel knows it.
#[derive(Clone, Debug)]
struct Task {
    tgid: u32,
    comm: String,
    group: u16,
    /// State of a thread that is in no call: it is one of the kernel, or not.
    other: u16,
    call: Call,
    /// True if it recorded its end.
    exits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Unknown,
    In(u16),
    /// The last has returned; nothing has shown the thread in its program since.
    Returned(u16),
    Out,
}

/// Running threads, with their CPUs and calls.
#[derive(Debug, Default)]
struct Machine {
    tasks: HashMap<u32, Task>,
    running: HashMap<u32, u32>,
    scheduling: HashSet<u32>,
    offline: HashSet<u32>,
}

/// All entries of a trace, in order of time, which counts from the start. A CPU that read its clock just before the
/// start, and found that recording had begun, has its first entries there.
pub fn entries<'a>(raw: &Raw<'a>) -> Vec<(u32, Timed<'a>)> {
    let start = raw.header.start.tsc >> raw.header.shift;
    let opening = Opening::of(raw.header.flags);
    let mut all = Vec::new();
    for (cpu, blocks) in raw.cpus() {
        let entries = Stream::new(cpu, blocks.to_vec(), start, opening);
        all.extend(entries.map(|timed| (cpu.number(), Timed { at: timed.at.saturating_sub(start), ..timed })));
    }
    // Events of one CPU at one time stay in order.
    all.sort_by_key(|(cpu, timed)| (timed.at, *cpu));
    all
}

/// The part of the trace that has these entries.
pub fn part(raw: &Raw, entries: &[(u32, Timed)], part: &Part) -> TraceBuilder {
    recorded(raw, entries, part, |_, number, words| vec![(number, words)])
}

/// All of the trace that has these entries, as a source with fewer capabilities records it.
pub fn told_by(raw: &Raw, entries: &[(u32, Timed)], unseen: Unseen) -> TraceBuilder {
    let mut source = Source::new(unseen);
    let to = (raw.header.stop.tsc >> raw.header.shift) - (raw.header.start.tsc >> raw.header.shift);
    let all = Part { to, ..Part::default() };
    let mut out = recorded(raw, entries, &all, |runs, number, words| source.tells(runs, number, &words));
    out.header.unseen = unseen;
    out
}

/// Records of a part of the time: the entries that replace each entry.
fn recorded(
    raw: &Raw,
    entries: &[(u32, Timed)],
    part: &Part,
    mut told: impl FnMut(Runs, u16, Vec<u32>) -> Vec<Entry>,
) -> TraceBuilder {
    let mut machine = Machine::default();
    let mut out = TraceBuilder { names: Vec::new(), ..TraceBuilder::new(raw.header.cpus, 0) };
    let mut writers: BTreeMap<u32, Writer> = BTreeMap::new();
    let mut begun = false;
    for (cpu, Timed { at, item }) in entries {
        let at = *at;
        if !begun && at >= part.from {
            begun = true;
            header(&mut out, raw, part, &machine);
        }
        let writer = writers.entry(*cpu).or_default();
        let within = at >= part.from + part.late.get(cpu).unwrap_or(&0) && at <= part.to;
        // Every CPU has a block for its first event.
        let lost = writer.begun && part.lost.iter().any(|&(on, from, to)| on == *cpu && (from..to).contains(&at));
        match item {
            Item::Entry(number, words, _) if within && !lost => {
                let words = to_words(words);
                // A call that returns later, and is folded then, has no return.
                let written = match word::Call::decode(words.first().copied().unwrap_or_default()) {
                    call if is_call(*number) && call.folded.is_some_and(|(dur, _)| at + u64::from(dur) > part.to) => {
                        vec![word::Call::open(u64::from(call.arg))]
                    }
                    _ => words.clone(),
                };
                let wrapped = !part.late.is_empty();
                for (number, words) in told(machine.runs(*cpu), *number, written) {
                    writer.entry(&mut out, &machine, *cpu, at - part.from, (number, &words), wrapped);
                }
                machine.entry(*cpu, *number, &words);
            }
            Item::Entry(number, words, _) => {
                let words = to_words(words);
                writer.lost += u64::from(within);
                machine.entry(*cpu, *number, &words);
            }
            Item::Begin { pid, tgid, state, comm } => {
                machine.told(*pid, *tgid, *state, comm);
                machine.running.insert(*cpu, *pid);
            }
            Item::Lost(_) => writer.lost += u64::from(within),
        }
    }
    // A loss at the end is recorded there.
    for (cpu, writer) in writers {
        if let (true, Some(recorder)) = (writer.lost > 0, out.cpus.get_mut(&cpu)) {
            recorder.lose(writer.lost);
        }
    }
    out
}

/// The first entries of a raw file, as a recording of its own.
pub fn beginning(bytes: &[u8], count: usize) -> Vec<u8> {
    let raw = raw::parse(bytes).expect("a raw file");
    let entries = entries(&raw);
    let to = entries[count].1.at;
    part(&raw, &entries, &Part { to, ..Part::default() }).bytes()
}

fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

fn is_call(number: u16) -> bool {
    matches!(number, event::SYSCALL..=event::SYSCALL_LAST | event::SYSCALL32..=event::SYSCALL32_LAST)
}

/// Header and names of a recording that begins now.
fn header(out: &mut TraceBuilder, raw: &Raw, part: &Part, machine: &Machine) {
    let was = &raw.header;
    let rate = (was.stop.monotonic_ns - was.start.monotonic_ns) as f64 / (was.stop.tsc - was.start.tsc) as f64;
    let ns = |counts: u64| ((counts << was.shift) as f64 * rate) as u64;
    let h = &mut out.header;
    (h.shift, h.tsc_hz, h.cpus, h.unseen) = (was.shift, was.tsc_hz, was.cpus, was.unseen);
    if !part.late.is_empty() {
        h.flags |= FLAG_WRAP | FLAG_WRAPPED;
    }
    h.start.tsc = START << was.shift;
    h.start.realtime_ns = was.start.realtime_ns + ns(part.from);
    h.start.monotonic_ns = was.start.monotonic_ns + ns(part.from);
    let counts = part.to - part.from;
    h.stop.tsc = (START + counts) << was.shift;
    h.stop.realtime_ns = h.start.realtime_ns + ns(counts);
    h.stop.monotonic_ns = h.start.monotonic_ns + ns(counts);
    for name in raw.names() {
        let Some(kind) = NameKind::from_number(name.kind) else { continue };
        let second = match kind {
            NameKind::Cpu => name.second & !1 | u32::from(machine.offline.contains(&name.number)),
            _ => name.second,
        };
        out.names.push((kind, name.number, second, String::from_utf8_lossy(name.text).into_owned()));
    }
}

/// Records of one CPU.
#[derive(Debug, Default)]
struct Writer {
    begun: bool,
    /// The threads that the open block has named, and its number.
    named: HashSet<u32>,
    block: u64,
    /// Entries lost since the last that was written.
    lost: u64,
}

impl Writer {
    fn entry(
        &mut self,
        out: &mut TraceBuilder,
        machine: &Machine,
        cpu: u32,
        at: u64,
        entry: (u16, &[u32]),
        wrapped: bool,
    ) {
        let (number, words) = entry;
        let pid = machine.running.get(&cpu).copied().unwrap_or(0);
        let new = !std::mem::replace(&mut self.begun, true);
        let recorder = out.cpu(cpu);
        recorder.pid = pid;
        (recorder.state, recorder.comm) = machine.state(pid, number);
        if new && wrapped {
            recorder.sequence = 1;
            recorder.at = START + at;
            recorder.begin();
        } else if new {
            recorder.begin();
        } else if self.lost > 0 {
            recorder.lose(std::mem::take(&mut self.lost));
            recorder.skip(0, START + at - recorder.at);
        }
        self.lost = 0;
        if self.block != recorder.sequence {
            self.block = recorder.sequence;
            self.named.clear();
        }
        if number == event::TASK {
            self.named.insert(words[0]);
        }
        if number == event::SWITCH && words[0] != 0 && self.named.insert(words[0]) {
            if let Some(task) = machine.tasks.get(&words[0]) {
                let state = machine.state(words[0], number).0;
                let mut told = [words[0], task.tgid, state, 0, 0, 0, 0];
                told[3..].copy_from_slice(&comm_words(&task.comm));
                recorder.entry(at, event::TASK, &told);
            }
        }
        recorder.entry(at, number, words);
    }
}

impl Machine {
    /// State and name of a thread when its next entry comes, which is of this number.
    fn state(&self, pid: u32, next: u16) -> (u32, String) {
        let Some(task) = self.tasks.get(&pid) else { return (TaskState::NO_CALL.into(), "?".to_string()) };
        let low = match (task.call, next) {
            (Call::In(nr), _) => nr,
            (Call::Returned(_), event::SYSCALL..=event::SYSCALL_LAST) => next - event::SYSCALL,
            (Call::Out, event::SYSCALL..=event::SYSCALL_LAST) => next - event::SYSCALL,
            (Call::Returned(nr), event::SCHED | event::EXIT_WORK | event::SWITCH) => nr,
            _ => task.other,
        };
        (u32::from(low) | u32::from(task.group) << 16, task.comm.clone())
    }

    fn runs(&self, cpu: u32) -> Runs {
        let pid = self.running.get(&cpu).copied().unwrap_or(0);
        let is_out = |task: &Task| task.other != TaskState::KERNEL && !matches!(task.call, Call::In(_));
        Runs { cpu, pid, in_program: pid != 0 && self.tasks.get(&pid).is_some_and(is_out) }
    }

    fn told(&mut self, pid: u32, tgid: u32, state: TaskState, comm: &[u8]) {
        let other = if state.is_kernel() { TaskState::KERNEL } else { TaskState::NO_CALL };
        let call = state.open_call().map_or(Call::Out, Call::In);
        let group = state.group();
        let comm = String::from_utf8_lossy(comm).trim_end_matches('\0').to_string();
        let new = Task { tgid, comm: comm.clone(), group, other, call, exits: false };
        let task = self.tasks.entry(pid).or_insert(new);
        (task.tgid, task.comm, task.group, task.other) = (tgid, comm, group, other);
        if task.call == Call::Unknown {
            task.call = call;
        }
    }

    /// Contents of the words of a TASK.
    fn told_by(&mut self, words: &[u32]) {
        let comm: Vec<u8> = words[3..7].iter().flat_map(|w| w.to_le_bytes()).collect();
        self.told(words[0], words[1], TaskState(words[2]), &comm);
    }

    fn entry(&mut self, cpu: u32, number: u16, words: &[u32]) {
        let pid = self.running.get(&cpu).copied().unwrap_or(0);
        let now = |task: &mut Task, call: Call| task.call = call;
        let compat = event::SYSCALL32 - TaskState::COMPAT;
        let folded = |nr: u16| match word::Call::decode(words[0]).folded {
            Some(_) => Call::Returned(nr),
            None => Call::In(nr),
        };
        let Some(task) = self.tasks.get_mut(&pid) else {
            // No running thread was known, as at the start of a trace that wrapped; the entry may name another one.
            match number {
                event::TASK => self.told_by(words),
                event::SWITCH => drop(self.running.insert(cpu, words[0])),
                _ => {}
            }
            return;
        };
        match number {
            event::TASK => {
                let state = TaskState(words[2]);
                let exec = |call: Option<u16>| call.is_some_and(|nr| [59, 322].contains(&nr));
                let loads = matches!(task.call, Call::In(nr) if exec(Some(nr)));
                if words[0] != pid && !self.scheduling.contains(&cpu) && loads && exec(state.open_call()) {
                    self.tasks.remove(&pid);
                    self.tasks.remove(&words[0]);
                    self.running.insert(cpu, words[0]);
                }
                self.told_by(words);
            }
            event::SWITCH => {
                if task.exits {
                    self.tasks.remove(&pid);
                }
                self.running.insert(cpu, words[0]);
            }
            event::EXIT => task.exits = true,
            event::SCHED => drop(self.scheduling.insert(cpu)),
            event::SCHED_RETURN => drop(self.scheduling.remove(&cpu)),
            event::OFFLINE => drop(self.offline.insert(cpu)),
            event::ONLINE => drop(self.offline.remove(&cpu)),
            event::PC_USER if task.call != Call::Unknown => now(task, Call::Out),
            event::IRQ..=event::IRQ_LAST | event::TRAP..=event::TRAP_LAST if matches!(task.call, Call::Returned(_)) => {
                now(task, Call::Out)
            }
            event::SYSCALL..=event::SYSCALL_LAST => now(task, folded(number - event::SYSCALL)),
            event::SYSCALL32..=event::SYSCALL32_LAST => now(task, folded(number - compat)),
            event::SYSCALL_RETURN..=event::SMALL_RETURN_LAST => match task.call {
                Call::In(nr) => now(task, Call::Returned(nr)),
                _ => now(task, Call::Out),
            },
            _ => {}
        }
    }
}
