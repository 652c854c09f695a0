// SPDX-License-Identifier: BSD-3-Clause
//! Causes: where a part of a request's time went, and who is to blame. Threads of one program are one culprit here.

use std::borrow::Cow;

use foldhash::HashMap;
use serde::Serialize;

use super::timeline::Timeline;
use crate::event::names::NameId;
use crate::event::stolen;
use crate::span::wait::Reason;

/// Cause of a part of a request's time. Names are numbers among those of the trace's spans, programs among
/// [`Timeline::programs`], chains among those of [`Causes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    /// Kind of the cause.
    pub kind: Kind,
    /// Program that the request waits for, the one that this one waits for, and so on.
    pub chain: Chain,
    /// Program that had the CPU, that sent an interrupt, or that a request was on its way to; [`NAMELESS`] for none.
    pub by: NameId,
    /// Name of a call, an interrupt or a wait; [`NAMELESS`] for none.
    pub name: NameId,
    /// Name of what ended a wait; [`NAMELESS`] for none.
    pub ended: NameId,
}

/// Number of a list of programs that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain(u32);

impl Chain {
    /// The empty chain: the cause lies in the request's own thread.
    pub const OWN: Chain = Chain(0);
}

/// Last element of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Link {
    before: Chain,
    /// Program waited for.
    program: NameId,
    /// Name of the wait for it.
    wait: NameId,
}

/// First character of the name of a wait for a lock that a program has named.
const LOCK: char = '~';

/// No name.
pub const NAMELESS: NameId = NameId(u32::MAX);
/// Name of the wait for a thread that starts the one waited for.
pub const UNBORN: NameId = NameId(u32::MAX - 1);
/// Name of the time after the end of the thread.
pub const ENDED: NameId = NameId(u32::MAX - 2);

/// The kinds of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// User code runs.
    User,
    /// The kernel runs for the thread: a system call, a fault, the scheduler, work of the kernel's own.
    Kernel,
    /// An interrupt, or work that it left for later, took the CPU.
    Interrupt,
    /// The thread could run and another had its CPU.
    Queue,
    /// The thread could run, and its CPU was idle or leaving idle.
    Idle,
    /// The thread could run, and its control group had used up its quota.
    Quota,
    /// The thread waited, and no thread is known to have kept it waiting.
    Wait,
    /// The message that the thread waited for was on its way: sent, but not yet received.
    Network,
    /// Like `Network`, and the message was sent again.
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
    /// Makes a cause with no other program to blame.
    pub const fn own(kind: Kind, name: NameId) -> Cause {
        Cause { kind, chain: Chain::OWN, by: NAMELESS, name, ended: NAMELESS }
    }

    /// The cause is unknown.
    pub const UNKNOWN: Cause = Cause::own(Kind::Unknown, NAMELESS);
}

/// Causes of a trace, each stored once and referred to by number.
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
    /// Returns the number of a cause.
    pub fn id(&mut self, cause: Cause) -> u32 {
        *self.ids.entry(cause).or_insert_with(|| {
            self.list.push(cause);
            self.list.len() as u32 - 1
        })
    }

    /// Adds the causes of `others` in their order and returns the numbers that these have here.
    pub fn adopt(&mut self, others: &Causes) -> Vec<u32> {
        let mut chains = vec![Chain::OWN];
        for link in &others.links[1..] {
            let link = Link { before: chains[link.before.0 as usize], ..*link };
            chains.push(self.link(link));
        }
        let known = |cause: &Cause| Cause { chain: chains[cause.chain.0 as usize], ..*cause };
        others.list.iter().map(|cause| self.id(known(cause))).collect()
    }

    /// Returns the cause of this number.
    pub fn cause(&self, id: u32) -> &Cause {
        &self.list[id as usize]
    }

    /// Returns the number of causes.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns the chain continued with this program, waited for in this way. Threads of one program that wait for each
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

    /// Returns the last program in a chain; [`NAMELESS`] for none.
    pub fn awaited(&self, chain: Chain) -> NameId {
        self.links[chain.0 as usize].program
    }

    /// Returns the name of the wait in which the request's own thread is; [`NAMELESS`] if it waits for no program.
    pub fn first_wait(&self, chain: Chain) -> NameId {
        self.chain(chain).0.first().map_or(NAMELESS, |link| link.wait)
    }

    /// Returns a cause as a line of a table, with the culprit's name if one thread alone is to blame.
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

    /// Returns a chain, first to last; of a long one the first link and the last two, and the number of links between
    /// them.
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

/// Describes the direction of a message: to the last program of the chain, or from it.
fn on_its_way(cause: &Cause) -> &'static str {
    match (cause.chain, cause.by) {
        (Chain::OWN, _) => "a packet was on its way",
        (_, NAMELESS) => "the packet was on its way",
        _ => "the request was on its way to it",
    }
}

/// Describes the wait of a thread for another; a lock, if the program named it, by that name.
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
        // Waits for a CPU are causes of another kind.
        Reason::Cpu | Reason::Idle | Reason::Quota | Reason::Stall => "waiting for",
    })
}

/// Describes a wait by its name, and what ended it.
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
            ("waiting for an unknown reason", "")
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
