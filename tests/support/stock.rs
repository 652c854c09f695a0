// SPDX-License-Identifier: BSD-3-Clause
//! The part of a recorded trace that the tracepoints of a kernel without the hooks would have recorded.

use std::collections::HashMap;

use kutrace_format::abi::event;
use kutrace_format::capability::{Capability, Unseen};

/// The vectors of NMI, machine check and page fault.
const NMI: u16 = 2;
const MACHINE_CHECK: u16 = 18;
const PAGE_FAULT: u16 = 14;

/// An entry: number and words.
pub type Entry = (u16, Vec<u32>);

/// The running thread, when an entry comes.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// The CPU, and the thread on it.
    pub cpu: u32,
    pub pid: u32,
    /// True if the thread is in its program, as far as calls and records show.
    pub in_program: bool,
}

/// A source that lacks something.
#[derive(Debug)]
pub struct Source {
    unseen: Unseen,
    /// Activities of each thread, and of each CPU while it is idle, and whether their ends are seen.
    open: HashMap<(u32, u32), Vec<(u16, bool)>>,
}

impl Source {
    /// One that lacks this.
    pub fn new(unseen: Unseen) -> Source {
        Source { unseen, open: HashMap::new() }
    }

    /// The records it makes at this entry of the hooks.
    pub fn tells(&mut self, runs: Runs, number: u16, words: &[u32]) -> Vec<Entry> {
        let whole = vec![(number, words.to_vec())];
        let lacks = |capability| self.unseen.has(capability);
        let open = self.open.entry(if runs.pid == 0 { (runs.cpu, 0) } else { (0, runs.pid) }).or_default();
        let point = |vector: u16| vec![(event::TRAP + vector, vec![]), (event::TRAP_RETURN + vector, vec![])];
        let lacking = match number {
            event::SCHED | event::SCHED_RETURN => Capability::Scheduler,
            event::THROTTLE | event::UNTHROTTLE => Capability::Quotas,
            event::WAIT => Capability::Stops,
            event::IPI => Capability::Senders,
            event::FREQUENCY => Capability::Frequency,
            event::RX_PACKET | event::TX_PACKET => Capability::Packets,
            event::EXIT_WORK => {
                open.push((number, false));
                Capability::EntryCode
            }
            event::EXIT_WORK_RETURN => {
                end(open, event::EXIT_WORK);
                Capability::EntryCode
            }
            event::TRAP..=event::TRAP_LAST => {
                let vector = number - event::TRAP;
                let program = vector == PAGE_FAULT && runs.in_program && open.is_empty();
                let seen = program && !lacks(Capability::ProgramFaults)
                    || !program
                        && match vector {
                            PAGE_FAULT => !lacks(Capability::KernelFaults),
                            NMI => !lacks(Capability::Nmis),
                            MACHINE_CHECK => !lacks(Capability::MachineChecks),
                            _ => !lacks(Capability::Exceptions),
                        };
                open.push((number, seen));
                return match vector {
                    _ if seen => whole,
                    NMI | MACHINE_CHECK => Vec::new(),
                    _ => point(vector),
                };
            }
            event::TRAP_RETURN..=event::TRAP_RETURN_LAST => {
                let vector = number - event::TRAP_RETURN;
                let seen = end(open, event::TRAP + vector).unwrap_or(true);
                return match vector {
                    _ if seen => whole,
                    // Its handler records it, at its end.
                    NMI => point(vector),
                    _ => Vec::new(),
                };
            }
            event::IRQ..=event::IRQ_LAST | event::SOFTIRQ..=event::SOFTIRQ_LAST => {
                open.push((number, true));
                return whole;
            }
            event::IRQ_RETURN..=event::IRQ_RETURN_LAST => {
                end(open, number - event::IRQ_RETURN + event::IRQ);
                return whole;
            }
            event::SOFTIRQ_RETURN..=event::SOFTIRQ_RETURN_LAST => {
                end(open, number - event::SOFTIRQ_RETURN + event::SOFTIRQ);
                return whole;
            }
            _ => return whole,
        };
        if lacks(lacking) {
            Vec::new()
        } else {
            whole
        }
    }
}

/// Ends the activities inside this one, and returns whether that is seen.
fn end(open: &mut Vec<(u16, bool)>, number: u16) -> Option<bool> {
    let at = open.iter().rposition(|(there, _)| *there == number)?;
    let seen = open[at].1;
    open.truncate(at);
    Some(seen)
}
