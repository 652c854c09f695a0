// SPDX-License-Identifier: BSD-3-Clause
//! Shared by the tiers: raw traces built entry by entry, as the recorder would have written them.
//!
//! [`TraceBuilder`] makes a file, [`Recorder`] one CPU. Time is in counts; with the default clock one count is 10 ns,
//! so counts are the units of the event text. [`repeat`] makes a long trace of a recorded one, [`original`] files of
//! the original, [`program`] adds programs' records to one. [`ctf`] compares our reading of a trace with babeltrace2's,
//! [`reader`] with that of a reader written from docs/format.md alone, [`check`] compares spans with the events,
//! [`cut`] makes parts of a recorded trace, [`stock`] the trace of a stock kernel, [`causes`] plants causes of slow
//! requests, [`chromium`] drives a page, [`draw`] reads traces for the viewers of others; [`fleet`] varies a trace for
//! a thousand hosts; [`fuzz`] has the properties of any input, [`cases`] the number of inputs to try, [`skip`] lists
//! tests that were skipped, and [`prose`] extracts the text for readers from a file.

pub mod number;
pub mod program;
pub mod musl;
pub mod repeat;
pub mod original;
pub mod chromium;
pub mod ctf;
pub mod reader;
pub mod check;
pub mod cut;
pub mod stock;
pub mod calls;
pub mod causes;
pub mod draw;
pub mod fleet;
pub mod fuzz;
pub mod cases;
pub mod skip;
pub mod stream;
pub mod prose;
pub mod tree;

use std::collections::BTreeMap;

use kutrace_format::abi::block::{self, COUNTERS_AT, FLAG_BACK, FLAG_LOST, HEADER_WORDS};
use kutrace_format::abi::command::Moment;
use kutrace_format::abi::event::{self, TaskState};
use kutrace_format::abi::word::{self, Call};
use kutrace_format::capability::Unseen;
use kutrace_format::file::{self, Header, Name, NameKind, Section};

/// Shift of the default clock.
pub const SHIFT: u32 = 4;
/// TSC rate of the default clock: 16 TSC counts, one count of the trace, are 10 ns.
pub const TSC_HZ: u64 = 1_600_000_000;
/// Counter at the start of every trace built here.
pub const START: u64 = 5_000_000_000;
/// 2026-11-20 15:14:00 UTC in ns: the trace starts at the full minute.
pub const START_NS: u64 = 1_795_187_640_000_000_000;
/// Identity of every trace built here.
pub const UUID: [u8; 16] = *b"a synthetic uuid";

/// A raw file in the making.
#[derive(Clone, Debug)]
pub struct TraceBuilder {
    /// Its header; counts of blocks and losses are filled in by [`TraceBuilder::bytes`].
    pub header: Header,
    names: Vec<(NameKind, u32, u32, String)>,
    readings: Vec<(u16, u64, u64, String)>,
    cpus: BTreeMap<u32, Recorder>,
}

impl TraceBuilder {
    /// A trace of `cpus` CPUs that lasts `counts`.
    pub fn new(cpus: u32, counts: u64) -> TraceBuilder {
        let start = Moment { tsc: START << SHIFT, realtime_ns: START_NS, monotonic_ns: 77 };
        let stop = Moment {
            tsc: (START + counts) << SHIFT,
            realtime_ns: START_NS + counts * 10,
            monotonic_ns: 77 + counts * 10,
        };
        let header = Header {
            flags: 0,
            shift: SHIFT,
            tsc_hz: TSC_HZ,
            cpus,
            block_bytes: block::BYTES as u32,
            blocks: 0,
            lost: 0,
            start,
            stop,
            uuid: UUID,
            boot_id: [0; 16],
            refused_names: 0,
            refused_marks: 0,
            unseen: Unseen::default(),
        };
        TraceBuilder { header, names: Vec::new(), readings: Vec::new(), cpus: BTreeMap::new() }.named()
    }

    /// Adds the names that most tests speak of.
    fn named(mut self) -> TraceBuilder {
        let names = [
            (NameKind::Kernel, 0, "6.12.117 #1 SMP"),
            (NameKind::CpuModel, 0, "a CPU"),
            (NameKind::Host, 0, "host"),
            (NameKind::Trap, 14, "page_fault"),
            (NameKind::Irq, 0xec, "local_timer"),
            (NameKind::Irq, 0xfd, "reschedule_ipi"),
            (NameKind::Syscall, 0, "read"),
            (NameKind::Syscall, 1, "write"),
            (NameKind::Syscall, 39, "getpid"),
            (NameKind::Syscall, 56, "clone"),
            (NameKind::Syscall, 59, "execve"),
            (NameKind::Syscall, 202, "futex"),
            (NameKind::Syscall, 231, "exit_group"),
        ];
        for (kind, number, text) in names {
            self.name(kind, number, text);
        }
        self
    }

    /// Adds a name.
    pub fn name(&mut self, kind: NameKind, number: u32, text: &str) {
        self.names.push((kind, number, 0, text.to_string()));
    }

    /// Names a function of the kernel by its address.
    pub fn symbol(&mut self, start: u64, name: &str) {
        self.names.push((NameKind::Symbol, start as u32, (start >> 32) as u32, name.to_string()));
    }

    /// Adds an open file of a process: `second` is the descriptor, with the times at which it is this file.
    pub fn file(&mut self, process: u32, second: u32, path: &str) {
        self.names.push((NameKind::File, process, second, path.to_string()));
    }

    /// Adds a name that an interrupt vector has on one CPU.
    pub fn name_on(&mut self, cpu: u32, vector: u32, text: &str) {
        self.names.push((NameKind::Irq, vector, cpu + 1, text.to_string()));
    }

    /// The recorder of a CPU. Its first block begins when tracing starts, in the thread last given to
    /// [`Recorder::running`].
    pub fn cpu(&mut self, cpu: u32) -> &mut Recorder {
        self.cpus.entry(cpu).or_insert_with(|| Recorder::new(cpu))
    }

    /// The file: header, names, blocks in the order of their starts.
    pub fn bytes(&self) -> Vec<u8> {
        let stop = self.header.stop.tsc >> self.header.shift;
        let mut blocks: Vec<Closed> = self.cpus.values().flat_map(|r| r.clone().close(stop)).collect();
        blocks.sort_by_key(|b| b.begin);
        let mut header = self.header;
        header.blocks = blocks.len() as u64;
        header.lost = self.cpus.values().map(|r| r.lost).sum();
        let mut out = header.to_bytes().to_vec();
        let crc = crc32fast::hash(&out);
        out[file::CRC_AT..file::CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        let names = self.names_payload();
        let (crc32, bytes, items) = (crc32fast::hash(&names), names.len() as u64, self.names.len() as u64);
        out.extend(Section { tag: file::NAMES, crc32, bytes, items }.to_bytes());
        out.extend(names);
        if !self.readings.is_empty() {
            let readings = self.readings_payload();
            let (crc32, bytes, items) = (crc32fast::hash(&readings), readings.len() as u64, self.readings.len() as u64);
            out.extend(Section { tag: file::COUNTERS, crc32, bytes, items }.to_bytes());
            out.extend(readings);
        }
        let (bytes, items) = ((blocks.len() * block::BYTES) as u64, blocks.len() as u64);
        out.extend(Section { tag: file::BLOCKS, crc32: 0, bytes, items }.to_bytes());
        out.extend(blocks.into_iter().flat_map(|b| b.bytes));
        out
    }

    fn names_payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        for (kind, number, second, text) in &self.names {
            let name = Name { kind: *kind as u16, number: *number, second: *second, text: text.as_bytes() };
            payload.extend(name.to_bytes());
            payload.extend(text.as_bytes());
        }
        payload
    }
}

/// The recorder of one CPU.
#[derive(Clone, Debug)]
pub struct Recorder {
    cpu: u32,
    pid: u32,
    comm: String,
    state: u32,
    /// Counter of the last entry, and whether the next must be bridged to it.
    at: u64,
    sequence: u64,
    lost: u64,
    capacity: usize,
    open: Vec<u32>,
    /// Counter bytes of `open`, by word.
    counters: BTreeMap<usize, u8>,
    header: block::Header,
    done: Vec<Closed>,
}

#[derive(Clone, Debug)]
struct Closed {
    begin: u64,
    bytes: Vec<u8>,
}

impl Recorder {
    fn new(cpu: u32) -> Recorder {
        let header = block_header(cpu);
        let mut new = Recorder {
            cpu,
            pid: 0,
            comm: "swapper".to_string(),
            state: TaskState::NO_CALL.into(),
            at: START,
            sequence: 0,
            lost: 0,
            capacity: block::WORDS,
            open: Vec::new(),
            counters: BTreeMap::new(),
            header,
            done: Vec::new(),
        };
        new.begin();
        new
    }

    /// Lets blocks end after this many words, header included.
    pub fn small_blocks(&mut self, words: usize) -> &mut Self {
        self.capacity = words.clamp(HEADER_WORDS + event::ENTRY_WORDS_MAX, block::WORDS);
        self
    }

    /// Lets the first block, which is still empty, begin `counts` after the start.
    pub fn begins(&mut self, counts: u64) -> &mut Self {
        self.at = START + counts;
        self.begin();
        self
    }

    /// Sets the thread that the header of the open block names, and of those to come until the next switch.
    pub fn running(&mut self, pid: u32, comm: &str, call: Option<u16>) -> &mut Self {
        self.pid = pid;
        self.comm = comm.to_string();
        self.state = call.unwrap_or(TaskState::NO_CALL).into();
        if self.open.is_empty() {
            self.begin();
        }
        self
    }

    /// An entry at `counts` after the start of the trace, with its argument words.
    pub fn entry(&mut self, counts: u64, number: u16, words: &[u32]) -> &mut Self {
        let at = START + counts;
        assert!(at >= self.at, "time goes back on cpu {}", self.cpu);
        let bridge = at - self.at >= word::TIME_PERIOD;
        let room = 1 + words.len() + if bridge { event::FULL_TIME_WORDS } else { 0 };
        if HEADER_WORDS + self.open.len() + room > self.capacity {
            self.next_block();
        }
        if bridge {
            self.open.extend([word::entry(event::FULL_TIME, at), at as u32, (at >> 32) as u32]);
        }
        self.open.push(word::entry(number, at));
        self.open.extend(words);
        self.at = at;
        self
    }

    /// Gives the last entry, which has `words` argument words, the counter bytes of its own and its first argument
    /// word.
    pub fn counted(&mut self, words: usize, bytes: &[u8]) -> &mut Self {
        let entry = self.open.len() - 1 - words;
        self.counters.extend((entry..).zip(bytes.iter().copied()));
        self
    }

    /// A system call that blocks or returns later.
    pub fn call(&mut self, counts: u64, nr: u16, arg: u16) -> &mut Self {
        self.entry(counts, event::SYSCALL + nr, &[Call::open(arg.into())])
    }

    /// A system call with its return folded in.
    pub fn folded(&mut self, counts: u64, nr: u16, arg: u16, dur: u64, ret: i8) -> &mut Self {
        let word = Call::fold(Call::open(arg.into()), dur, ret.into()).expect("the return fits");
        self.entry(counts, event::SYSCALL + nr, &[word])
    }

    /// A return of -128..=127.
    pub fn small_return(&mut self, counts: u64, ret: i8) -> &mut Self {
        let number = i32::from(event::SMALL_RETURN) + 128 + i32::from(ret);
        self.entry(counts, number as u16, &[])
    }

    /// The scheduler is called at `counts`, switches ten later to `pid` and returns ten after that.
    pub fn switch(&mut self, counts: u64, pid: u32, comm: &str) -> &mut Self {
        self.entry(counts, event::SCHED, &[]).entry(counts + 10, event::SWITCH, &[pid]);
        self.pid = pid;
        self.comm = comm.to_string();
        self.state = TaskState::NO_CALL.into();
        self.entry(counts + 20, event::SCHED_RETURN, &[])
    }

    /// A TASK record.
    pub fn task(&mut self, counts: u64, pid: u32, comm: &str, call: Option<u16>) -> &mut Self {
        let mut words = [pid, pid, call.unwrap_or(TaskState::NO_CALL).into(), 0, 0, 0, 0];
        words[3..].copy_from_slice(&comm_words(comm));
        self.entry(counts, event::TASK, &words)
    }

    /// A name that a program gave.
    pub fn name(&mut self, counts: u64, kind: u32, number: u32, text: &str) -> &mut Self {
        let mut words = [0; event::NAME_WORDS];
        words[..2].copy_from_slice(&[kind, number]);
        for (n, byte) in text.bytes().enumerate() {
            words[2 + n / 4] |= u32::from(byte) << (8 * (n % 4));
        }
        self.entry(counts, event::NAME, &words)
    }

    /// The open block ends, and with it the recording, until the next entry; `events` are lost.
    pub fn lose(&mut self, events: u64) -> &mut Self {
        self.lost += events;
        self.header.flags |= FLAG_LOST;
        self
    }

    /// Ends the open block and begins another.
    pub fn next_block(&mut self) -> &mut Self {
        self.shut(self.at);
        self.sequence += 1;
        self.begin();
        self
    }

    /// The counter steps back by `counts`, and the recorder sees it: a block begins that records it.
    pub fn step_back(&mut self, counts: u64) -> &mut Self {
        self.shut(self.at);
        self.sequence += 1;
        self.at -= counts;
        self.begin();
        self.header.flags |= FLAG_BACK;
        self
    }

    /// Skips `blocks` sequence numbers, as if those blocks had been overwritten or lost, and `counts` of time.
    pub fn skip(&mut self, blocks: u64, counts: u64) -> &mut Self {
        self.shut(self.at);
        self.sequence += 1 + blocks;
        self.at += counts;
        self.begin();
        self
    }

    /// Drops everything recorded so far, as a flight recorder does.
    pub fn overwritten(&mut self) -> &mut Self {
        self.next_block();
        self.done.clear();
        self
    }

    fn begin(&mut self) {
        self.header = block::Header {
            begin: self.at,
            sequence: self.sequence,
            pid: self.pid,
            tgid: self.pid,
            task_state: self.state,
            comm: comm_words(&self.comm),
            ..block_header(self.cpu)
        };
        self.open.clear();
        self.counters.clear();
    }

    fn shut(&mut self, end: u64) {
        let words = HEADER_WORDS + self.open.len();
        let header = block::Header { end, lost: self.lost, content_bits: words as u64 * 32, ..self.header };
        let mut bytes = header_bytes(&header);
        bytes.extend(self.open.iter().flat_map(|w| w.to_le_bytes()));
        bytes.resize(block::BYTES, 0);
        self.counters.iter().for_each(|(word, byte)| bytes[COUNTERS_AT + word] = *byte);
        sign(&mut bytes);
        self.done.push(Closed { begin: header.begin, bytes });
    }

    /// Ends the last block at the stop, as the recorder does, unless there was no room for more.
    fn close(mut self, stop: u64) -> Vec<Closed> {
        let full = self.header.flags & block::FLAG_LOST != 0;
        self.shut(if full { self.at } else { self.at.max(stop) });
        self.done
    }
}

fn block_header(cpu: u32) -> block::Header {
    let quarter = |n: usize| u32::from_le_bytes(UUID[4 * n..4 * n + 4].try_into().expect("four bytes"));
    block::Header {
        magic: block::MAGIC,
        uuid: [0, 1, 2, 3].map(quarter),
        stream: 0,
        begin: START,
        end: 0,
        content_bits: 0,
        packet_bits: block::BYTES as u64 * 8,
        sequence: 0,
        lost: 0,
        cpu,
        pid: 0,
        tgid: 0,
        task_state: TaskState::NO_CALL.into(),
        comm: [0; 4],
        flags: 0,
        crc32: 0,
        events: 0,
        for_now: [0; 3],
    }
}

fn header_bytes(h: &block::Header) -> Vec<u8> {
    let mut out = Vec::with_capacity(block::BYTES);
    let mut words = |words: &[u32]| out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    let halves = |long: u64| [long as u32, (long >> 32) as u32];
    words(&[h.magic]);
    words(&h.uuid);
    words(&[h.stream]);
    for long in [h.begin, h.end, h.content_bits, h.packet_bits, h.sequence, h.lost] {
        words(&halves(long));
    }
    words(&[h.cpu, h.pid, h.tgid, h.task_state]);
    words(&h.comm);
    words(&[h.flags, h.crc32, h.events]);
    words(&h.for_now);
    out
}

fn comm_words(comm: &str) -> [u32; 4] {
    let mut bytes = [0; 16];
    let len = comm.len().min(15);
    bytes[..len].copy_from_slice(&comm.as_bytes()[..len]);
    [0, 4, 8, 12].map(|at| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
}

/// Puts the right checksum into a block, for tests that change one.
pub fn sign(block: &mut [u8]) {
    block[block::CRC_AT..block::CRC_AT + 4].fill(0);
    let crc = crc32fast::hash(block);
    block[block::CRC_AT..block::CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
}

/// A trace like that of a busy machine: `entries` entries or a few more on `cpus` CPUs, from a fixed seed. Threads
/// make folded and open calls, block in futex, are woken by each other, and timers interrupt them.
pub fn busy(cpus: u32, entries: usize, seed: u64) -> TraceBuilder {
    let mut random = Random(seed | 1);
    let mut trace = TraceBuilder::new(cpus, 0);
    let (mut count, mut at) = (0, 0);
    // The thread on each CPU, and which of the CPU's eight threads are inside futex.
    let mut threads: Vec<(u32, u8)> = (0..cpus).map(|_| (0, 0)).collect();
    while count < entries {
        for cpu in 0..cpus {
            at += 40 + random.below(200);
            let (pid, inside) = &mut threads[cpu as usize];
            let recorder = trace.cpu(cpu);
            count += step(recorder, at, pid, inside, cpu, &mut random);
        }
    }
    let last = at + 1_000;
    trace.header.stop.tsc = (START + last) << SHIFT;
    trace.header.stop.realtime_ns = START_NS + last * 10;
    trace.header.stop.monotonic_ns = 77 + last * 10;
    trace
}

/// One step of a CPU of [`busy`], at most 39 counts long; returns the number of entries made.
fn step(r: &mut Recorder, at: u64, pid: &mut u32, inside: &mut u8, cpu: u32, random: &mut Random) -> usize {
    let at = at.max(r.at - START);
    match (random.below(100), *pid) {
        (0..40, 0) | (0..2, _) => {
            let which = random.below(8) as u32;
            let next = 1000 + cpu * 100 + which;
            if next == *pid {
                return 0;
            }
            r.switch(at, next, "worker");
            *pid = next;
            if *inside & 1 << which == 0 {
                return 3;
            }
            *inside &= !(1 << which);
            r.small_return(at + 25, 0);
            4
        }
        (40..60, 0) => {
            r.entry(at, event::MWAIT, &[32]);
            1
        }
        (_, 0) | (90.., _) => {
            r.entry(at, event::IRQ + 0xec, &[]).entry(at + 3, event::RUNNABLE, &[1000 + random.below(900) as u32]);
            r.entry(at + 10, event::IRQ_RETURN + 0xec, &[]);
            r.entry(at + 11, event::SOFTIRQ + 1, &[]).entry(at + 30, event::SOFTIRQ_RETURN + 1, &[]);
            5
        }
        (2..70, _) => {
            r.folded(at, random.below(40) as u16, random.below(100) as u16, 1 + random.below(30), 0);
            1
        }
        (70..80, _) => {
            r.call(at, 0, 3).entry(at + 20, event::SYSCALL_RETURN, &[4096]);
            2
        }
        (80..85, _) => {
            r.call(at, 202, 7).switch(at + 5, 0, "swapper");
            *inside |= 1 << ((*pid - 1000) % 100);
            *pid = 0;
            4
        }
        _ => {
            r.entry(at, event::TRAP + 14, &[]).entry(at + 20, event::TRAP_RETURN + 14, &[]);
            2
        }
    }
}

/// Numbers that look random and are the same in every run: xorshift.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}
