// SPDX-License-Identifier: BSD-3-Clause
//! The names of events: from the file if it has one, otherwise from the number.

use std::collections::BTreeMap;

use kutrace_format::abi::event as abi;
use kutrace_format::abi::event::{Rpc, Vector};
use kutrace_format::base40;
use kutrace_format::event::of_line;
use kutrace_format::file::{self, Name, NameKind};

use crate::event::fact::{Fact, OpenFile};
use crate::event::names::{clean, clean_sentence, NameId, Names};
use crate::event::what::What;
use crate::event::{number, Event, CPUS_MAX};
use crate::id::CpuId;
use crate::tables;
use crate::time::Time;

/// Number of softirqs that an event can distinguish.
const SOFTIRQS: u32 = 16;

/// Number of interrupt vectors with a name; the last number is that of softirqs.
const VECTORS: u32 = number::SOFTIRQ - number::IRQ;

/// Names of events by number.
#[derive(Debug)]
pub struct EventNames {
    /// By event number, 0 if not asked for yet.
    known: Vec<NameId>,
    softirqs: [NameId; 2 * SOFTIRQS as usize],
    given: BTreeMap<u32, String>,
    /// Names of softirqs, by their number.
    given_softirqs: BTreeMap<u32, String>,
    /// Names that programs gave to methods, locks, queues and resources, by the kind of name and their number.
    learned: BTreeMap<(u32, u32), String>,
    /// Names that interrupts have on one CPU only at present, for the call and its return, by event number and CPU.
    on_cpu: BTreeMap<(u32, CpuId), NameId>,
    /// Functions of the kernel that contain samples, by their start.
    functions: BTreeMap<u64, String>,
}

impl EventNames {
    /// Takes the names of a file, and returns them as the events that open the text: all except those of threads.
    pub fn new(records: &[Name], names: &mut Names) -> (EventNames, Vec<Event>) {
        let mut given = BTreeMap::new();
        let mut given_softirqs: BTreeMap<u32, String> =
            tables::of(NameKind::Softirq).map(|(n, name)| (n, name.into())).collect();
        let mut on_cpu = BTreeMap::new();
        let mut functions = BTreeMap::new();
        let mut events = Vec::new();
        for record in records {
            let Some(kind) = NameKind::from_number(record.kind) else { continue };
            // The names of these are those of its entries, too.
            if kind == NameKind::Tracepoint {
                continue;
            }
            if kind == NameKind::Cpu {
                events.extend(about_cpu(record));
                continue;
            }
            let sentence = matches!(kind, NameKind::Kernel | NameKind::CpuModel | NameKind::Host);
            let text = if sentence { clean_sentence(record.text) } else { clean(record.text) };
            if text.is_empty() || kind == NameKind::Task {
                continue;
            }
            // `maps.rs` reads the names of maps.
            if kind == NameKind::Map {
                continue;
            }
            if kind == NameKind::File {
                let Some(file) = OpenFile::new(record.second) else { continue };
                let (what, name) = (What::Fact(Fact::File(file)), names.id(&text));
                events.push(Event { ts: Time(-1), what, arg: record.number, name, ..Event::default() });
                continue;
            }
            if kind == NameKind::Symbol {
                functions.insert(u64::from(record.number) | u64::from(record.second) << 32, text);
                continue;
            }
            if let (NameKind::Irq, 0..VECTORS, cpu @ 1..) = (kind, record.number, record.second) {
                name_vector(&mut on_cpu, record.number, CpuId::new(cpu - 1), &text, names);
                continue;
            }
            let what = What::of(record.kind.into());
            events.push(Event { ts: Time(-1), what, arg: record.number, name: names.id(&text), ..Event::default() });
            let (base, room) = match kind {
                NameKind::Trap => (number::TRAP, number::IRQ - number::TRAP),
                NameKind::Irq => (number::IRQ, VECTORS),
                NameKind::Syscall => (number::SYSCALL, number::SYSCALL32_RETURN - number::SYSCALL),
                NameKind::Syscall32 => (number::SYSCALL32, number::SCHED - number::SYSCALL32),
                NameKind::Softirq => {
                    given_softirqs.insert(record.number, text);
                    continue;
                }
                _ => continue,
            };
            if record.number < room {
                given.insert(base + record.number, text);
            }
        }
        (
            EventNames {
                known: vec![NameId::EMPTY; number::NUMBERS as usize],
                softirqs: [NameId::EMPTY; 2 * SOFTIRQS as usize],
                given,
                given_softirqs,
                learned: BTreeMap::new(),
                on_cpu,
                functions,
            },
            events,
        )
    }

    /// The name of an event that depends on its number alone; softirqs have their own, see [`EventNames::softirq`].
    #[inline]
    pub fn event(&mut self, event: u32, names: &mut Names) -> NameId {
        let at = (event % number::NUMBERS) as usize;
        if self.known[at] == NameId::EMPTY {
            self.known[at] = names.id(&self.default_name(event % number::NUMBERS));
        }
        self.known[at]
    }

    /// The name of an interrupt or of its return on a CPU.
    pub fn interrupt(&mut self, event: u32, cpu: CpuId, names: &mut Names) -> NameId {
        match self.on_cpu.get(&(event, cpu)) {
            Some(&name) => name,
            None => self.event(event, names),
        }
    }

    /// The function that contains a sample of the kernel: the file has each one that was sampled.
    pub fn function(&self, event: u16, pc: u64) -> Option<&str> {
        let (_, function) = self.functions.range(..=pc).next_back().filter(|_| event == abi::PC_KERNEL)?;
        Some(function)
    }

    /// Takes the kernel's name for a vector of a CPU from here on; an empty text removes it.
    pub fn learn_vector(&mut self, which: Vector, text: &str, names: &mut Names) {
        if let (vector @ 0..VECTORS, Some(cpu)) = (which.vector(), which.cpu()) {
            name_vector(&mut self.on_cpu, vector, CpuId::new(cpu), text, names);
        }
    }

    /// The name of softirq `n`, of which the lowest 4 bits count, or of its return.
    pub fn softirq(&mut self, event: u32, n: u32, names: &mut Names) -> NameId {
        let n = n % SOFTIRQS;
        let returns = event == number::SOFTIRQ_RETURN;
        let at = (n + if returns { SOFTIRQS } else { 0 }) as usize;
        if self.softirqs[at] == NameId::EMPTY {
            let name = self.given_softirqs.get(&n).cloned().unwrap_or_else(|| n.to_string());
            self.softirqs[at] = names.id(&format!("{}BH:{name}", if returns { "/" } else { "" }));
        }
        self.softirqs[at]
    }

    /// Takes a name that a program gave: its events have it from here on. Returns false if programs do not name this
    /// kind.
    pub fn learn(&mut self, kind: u32, number: u32, text: &str) -> bool {
        let number = match kind {
            number::METHOD_NAME => method(number),
            number::LOCK_NAME | number::QUEUE_NAME | number::RESOURCE_NAME => number,
            _ => return false,
        };
        self.learned.insert((kind, number), text.to_string());
        true
    }

    /// The name of a point event other than a switch or wakeup, which are named after threads.
    #[inline]
    pub fn point(&mut self, event: u32, arg: u32, names: &mut Names) -> NameId {
        let at = (event % number::NUMBERS) as usize;
        if self.known[at] != NameId::EMPTY {
            return self.known[at];
        }
        match self.name_from_argument(event, arg) {
            Some(name) => names.id(&name),
            None => self.event(event, names),
        }
    }

    fn default_name(&self, event: u32) -> String {
        let call = if event < number::TRAP { event } else { event & !number::RETURN_BIT };
        let slash = if call != event { "/" } else { "" };
        if let Some(name) = self.given.get(&call) {
            return format!("{slash}{name}");
        }
        match of_line(event) {
            Some(row) if row.first == row.last => row.name.to_string(),
            Some(row) => format!("{}{}", row.name, event - row.first as u32),
            None => format!("spl#{}", event % number::SPECIAL),
        }
    }

    /// The name of a point event that depends on its argument; `None` for an event that always has the same name.
    fn name_from_argument(&self, event: u32, arg: u32) -> Option<String> {
        let name = of_line(event).map_or("", |row| row.name);
        let told = |kind, number| self.learned.get(&(kind, number));
        Some(match event {
            number::WAIT => match abi::WAITS.iter().find(|(_, value, _)| *value == arg) {
                Some((_, _, reason)) => format!("wait_{reason}"),
                None => format!("wait_{arg}"),
            },
            number::MARK_A..=number::MARK_C => format!("{name}={}", base40::text(arg).collect::<String>()),
            number::LOCK_TRY..=number::LOCK_RELEASED => match told(number::LOCK_NAME, arg) {
                Some(lock) => format!("{name}{lock}"),
                None => format!("{name}{arg}"),
            },
            number::RX_PACKET..=number::TX_USER => format!("{name}.{:04X}", (arg ^ arg >> 16) & 0xffff),
            number::RPC_REQUEST..=number::RPC_SENT => {
                let id = Rpc(arg).id();
                format!("{}.{id}", told(number::METHOD_NAME, id).map_or(name, |method| method))
            }
            number::RESOURCE | number::ENQUEUE | number::DEQUEUE => {
                let kind = if event == number::RESOURCE { number::RESOURCE_NAME } else { number::QUEUE_NAME };
                told(kind, arg).map_or(name.to_string(), |told| format!("{name}_{told}"))
            }
            _ => return None,
        })
    }
}

/// Facts in a record about a CPU.
fn about_cpu(record: &Name) -> Vec<Event> {
    let told = [(file::CPU_OFFLINE, Fact::Offline), (file::CPU_TICKLESS, Fact::Tickless)];
    let told = told.into_iter().filter(|(bit, _)| record.second & bit != 0 && record.number < CPUS_MAX);
    told.map(|(_, fact)| Event { ts: Time(-1), what: What::Fact(fact), arg: record.number, ..Event::default() })
        .collect()
}

/// Names a vector of a CPU, both the interrupt and its return.
fn name_vector(on_cpu: &mut BTreeMap<(u32, CpuId), NameId>, vector: u32, cpu: CpuId, text: &str, names: &mut Names) {
    let call = number::IRQ + vector;
    for (event, name) in [(call, text.to_string()), (call | number::RETURN_BIT, format!("/{text}"))] {
        match text.is_empty() {
            true => on_cpu.remove(&(event, cpu)),
            false => on_cpu.insert((event, cpu), names.id(&name)),
        };
    }
}

/// The id of an RPC: in the low half, or if that is zero in the high one.
fn method(number: u32) -> u32 {
    match number & 0xffff {
        0 => number >> 16,
        id => id,
    }
}
