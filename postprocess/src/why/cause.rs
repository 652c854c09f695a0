// SPDX-License-Identifier: BSD-3-Clause
//! Causes: what a part of a request's time went into, and who is to blame. Threads of one program are one culprit here.

use std::borrow::Cow;

use foldhash::HashMap;
use serde::Serialize;

use super::timeline::Timeline;
use crate::event::names::NameId;
use crate::event::stolen;
use crate::span::wait::Reason;

/// What a part of a request's time went into. Numbers of names are those of the trace's spans, of programs those of
/// [`Timeline::programs`], of chains those of [`Causes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    /// What.
    pub kind: Kind,
    /// Whom the request waits for, and whom that one waits for, and so on.
    pub chain: Chain,
    /// The program that had the CPU, that sent an interrupt, or that a request was on its way to; [`NAMELESS`] for
    /// none.
    pub by: NameId,
    /// The name of a call, an interrupt, a wait; [`NAMELESS`] for none.
    pub name: NameId,
    /// The name of what ended a wait; [`NAMELESS`] for none.
    pub ended: NameId,
}

/// A list of whom is waited for, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain(u32);

impl Chain {
    /// Nobody: what happens, happens to the request's own thread.
    pub const OWN: Chain = Chain(0);
}

/// The last of a chain of whom is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Link {
    before: Chain,
    /// The program waited for.
    program: NameId,
    /// The name of the wait for it.
    wait: NameId,
}

/// What the name of a wait for a lock begins with that a program has given a name.
const LOCK: char = '~';

/// No name.
pub const NAMELESS: NameId = NameId(u32::MAX);
/// The name of the wait for a thread that starts the one which is waited for.
pub const UNBORN: NameId = NameId(u32::MAX - 1);
/// The name of time in which the thread does not exist any more.
pub const ENDED: NameId = NameId(u32::MAX - 2);

/// The kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// User code runs.
    User,
    /// The kernel runs for the thread: a system call, a fault, the scheduler, work of the kernel's own.
    Kernel,
    /// An interrupt, or what it left for later, took the CPU.
    Interrupt,
    /// The thread could run and another had its CPU.
    Queue,
    /// The thread could run, and its CPU was idle or on its way out of that.
    Idle,
    /// The thread could run, and its control group had used up its quota.
    Quota,
    /// The thread waited, and no thread is known that kept it waiting.
    Wait,
    /// What the thread waited for was on its way: sent, and not received yet.
    Network,
    /// The same, and it was sent again.
    Resent,
    /// The CPU stood still.
    Stalled,
    /// The CPU was offline.
    Offline,
    /// Events were lost.
    Lost,
    /// Nothing is known.
    Unknown,
}

impl Cause {
    /// A cause that nobody else is to blame for.
    pub const fn own(kind: Kind, name: NameId) -> Cause {
        Cause { kind, chain: Chain::OWN, by: NAMELESS, name, ended: NAMELESS }
    }

    /// Nothing is known.
    pub const UNKNOWN: Cause = Cause::own(Kind::Unknown, NAMELESS);
}

/// The causes of a trace, each kept once and spoken of by number.
#[derive(Clone, Debug)]
pub struct Causes {
    list: Vec<Cause>,
    ids: HashMap<Cause, u32>,
    links: Vec<Link>,
    chains: HashMap<Link, Chain>,
}

impl Default for Causes {
    fn default() -> Causes {
        let own = Link { before: Chain::OWN, program: NAMELESS, wait: NAMELESS };
        Causes { list: Vec::new(), ids: HashMap::default(), links: vec![own], chains: HashMap::default() }
    }
}

impl Causes {
    /// The number of a cause.
    pub fn id(&mut self, cause: Cause) -> u32 {
        *self.ids.entry(cause).or_insert_with(|| {
            self.list.push(cause);
            self.list.len() as u32 - 1
        })
    }

    /// Adds those of others in their order; the numbers that they have here.
    pub fn adopt(&mut self, others: &Causes) -> Vec<u32> {
        let mut chains = vec![Chain::OWN];
        for link in &others.links[1..] {
            let link = Link { before: chains[link.before.0 as usize], ..*link };
            chains.push(self.link(link));
        }
        let known = |cause: &Cause| Cause { chain: chains[cause.chain.0 as usize], ..*cause };
        others.list.iter().map(|cause| self.id(known(cause))).collect()
    }

    /// The cause of this number.
    pub fn cause(&self, id: u32) -> &Cause {
        &self.list[id as usize]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The chain that continues with this program, waited for in this way. Threads of a program that wait for each
    /// other are one link.
    pub fn waiting(&mut self, before: Chain, program: NameId, wait: NameId) -> Chain {
        let last = self.links[before.0 as usize];
        if before != Chain::OWN && (last.program, last.wait) == (program, wait) {
            return before;
        }
        self.link(Link { before, program, wait })
    }

    fn link(&mut self, link: Link) -> Chain {
        *self.chains.entry(link).or_insert_with(|| {
            self.links.push(link);
            Chain(self.links.len() as u32 - 1)
        })
    }

    /// The last program that is waited for; [`NAMELESS`] for none.
    pub fn awaited(&self, chain: Chain) -> NameId {
        self.links[chain.0 as usize].program
    }

    /// As a line of a table says it, with the name of the culprit where one thread alone is to blame.
    pub fn text(&self, id: u32, timeline: &Timeline, culprit: Option<&str>) -> String {
        let cause = self.cause(id);
        let text = |name: NameId| timeline.spans.names.get(name.index()).map_or("", String::as_str);
        let program = |id: NameId| timeline.programs.get(id.index()).map_or("?", String::as_str);
        let by = culprit.filter(|_| cause.by != NAMELESS).unwrap_or(program(cause.by));
        let name = text(cause.name);
        let softirq = if name.starts_with("BH:") { "softirq " } else { "" };
        let did = match cause.kind {
            Kind::User => "user code".to_string(),
            Kind::Kernel if name == "-sched-" => "running in the scheduler".to_string(),
            Kind::Kernel if name.is_empty() => "kernel code".to_string(),
            Kind::Kernel => format!("running in {name}"),
            Kind::Interrupt if cause.by != NAMELESS => format!("interrupted by {softirq}{name} of {by}"),
            Kind::Interrupt => format!("interrupted by {softirq}{name}"),
            Kind::Queue if cause.by == NAMELESS => "waiting for a CPU".to_string(),
            Kind::Queue => format!("waiting for a CPU that ran {by}"),
            Kind::Idle => "waiting for an idle CPU to wake up".to_string(),
            Kind::Quota => "waiting for the CPU quota of the control group".to_string(),
            Kind::Wait => wait(name, text(cause.ended)),
            Kind::Network => on_its_way(cause).to_string(),
            Kind::Resent => format!("{}, and sent again", on_its_way(cause)),
            Kind::Stalled => match stolen::sentence(name) {
                Some(instead) => format!("stolen: the host {instead}"),
                None => "the CPU stood still (steal, SMI or emulation)".to_string(),
            },
            Kind::Offline => "the CPU was offline".to_string(),
            Kind::Lost => "not known: events were lost".to_string(),
            Kind::Unknown if cause.name == ENDED => "the thread had ended".to_string(),
            Kind::Unknown => "not known: not in the trace".to_string(),
        };
        let (chain, left_out) = self.chain(cause.chain);
        let last = chain.len().saturating_sub(1);
        let links = chain.iter().enumerate().map(|(n, link)| {
            let more = if n == 0 && left_out > 0 { format!("... {left_out} more ..., ") } else { String::new() };
            let name = if n == last && cause.by == NAMELESS {
                culprit.unwrap_or(program(link.program))
            } else {
                program(link.program)
            };
            let waits = if link.wait == UNBORN { Cow::Borrowed("to be started by") } else { awaited(text(link.wait)) };
            format!("{waits} {name}, {more}")
        });
        match chain.is_empty() {
            true => did,
            false => format!("{}meanwhile {did}", links.collect::<Vec<_>>().join("which is ")),
        }
    }

    /// Whom a request waits for, first to last; of many the first and the last two, and how many are left out between.
    fn chain(&self, of: Chain) -> (Vec<Link>, usize) {
        let mut links = Vec::new();
        let mut at = of;
        while at != Chain::OWN {
            let link = self.links[at.0 as usize];
            links.push(link);
            at = link.before;
        }
        links.reverse();
        let left_out = links.len().saturating_sub(3);
        if left_out > 0 {
            links.drain(1..=left_out);
        }
        (links, left_out)
    }
}

/// Which way something was sent: to the last of those who are waited for, or from there.
fn on_its_way(cause: &Cause) -> &'static str {
    match (cause.chain, cause.by) {
        (Chain::OWN, _) => "a packet was on its way",
        (_, NAMELESS) => "the packet was on its way",
        _ => "the request was on its way to it",
    }
}

/// What a thread waits for, of another; a lock perhaps by the name that its program gave it.
fn awaited(name: &str) -> Cow<'static, str> {
    if let Some(lock) = name.strip_prefix(LOCK) {
        return Cow::Owned(format!("waiting for the lock {lock} of"));
    }
    Cow::Borrowed(match Reason::named(name) {
        Reason::Lock => "waiting for a lock of",
        Reason::Pipe => "waiting for a pipe or socket of",
        Reason::Net => "waiting for a message of",
        Reason::Disk => "waiting for disk work of",
        Reason::Memory => "waiting for memory work of",
        Reason::Stop => "stopped until a signal of",
        Reason::Trace => "stopped by its tracer",
        Reason::Frozen => "frozen until thawed by",
        Reason::Guest => "halted, with nothing for its guest to do, until woken by",
        Reason::Task | Reason::Time | Reason::Rcu | Reason::Sched => "waiting for",
        Reason::Unknown | Reason::Other(_) => "waiting for",
        // Who waits for a CPU is another kind of cause.
        Reason::Cpu | Reason::Idle | Reason::Quota | Reason::Stall => "waiting for",
    })
}

/// What the name of a wait means, and what ended it.
fn wait(name: &str, ended: &str) -> String {
    if let Some(lock) = name.strip_prefix(LOCK) {
        return format!("waiting for the lock {lock}");
    }
    let reason = Reason::named(name);
    let (what, by_timer) = match reason {
        Reason::Disk => (
            "waiting for the disk",
            "waiting for the disk until a timer: held back while too much is still to be written",
        ),
        Reason::Net => (
            "waiting for a packet whose sender is not in the trace",
            "waiting for the network until a timer: a packet sent again, held back or delayed",
        ),
        Reason::Time => ("waiting for time to pass: a sleep or a timeout", ""),
        Reason::Lock => ("waiting for a lock", ""),
        Reason::Pipe => ("waiting for a pipe or socket of another thread", ""),
        Reason::Task => ("waiting for another task", ""),
        Reason::Memory => ("waiting for memory", ""),
        Reason::Frozen => ("frozen", ""),
        Reason::Guest => ("halted: its guest had nothing to do", ""),
        Reason::Stop => ("stopped by a signal", ""),
        Reason::Trace => ("stopped by its tracer", ""),
        Reason::Rcu => ("waiting for an RCU grace period", ""),
        Reason::Sched => ("waiting for the scheduler's balancing", ""),
        Reason::Unknown | Reason::Other(_) | Reason::Cpu | Reason::Idle | Reason::Quota | Reason::Stall => {
            ("waiting, for what is not known", "")
        }
    };
    match (ended, reason) {
        ("", _) => what.to_string(),
        ("BH:timer", _) if !by_timer.is_empty() => by_timer.to_string(),
        ("BH:timer", _) => what.to_string(),
        (device, Reason::Disk | Reason::Net) => format!("{what} ({device})"),
        (device, _) => format!("{what}, until {device}"),
    }
}
