// SPDX-License-Identifier: BSD-3-Clause
//! Packets that a machine sent and received, by a key that distinguishes them.

use foldhash::HashMap;

use crate::event::names::Names;
use crate::event::{flow, number, Event};
use crate::time::Time;

/// Time at which something was first sent and first received, and the number of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    sent: Option<Time>,
    received: Option<Time>,
    times_sent: u32,
    times_received: u32,
}

/// Distinguishes one packet from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Hash of its first data.
    Hash(u32),
    /// Hash of a message that programs saw.
    Message(u32),
    /// Its flow, and TCP's sequence number of its first byte, or the hash of UDP's data.
    Flow(u32, u32),
}

/// All packets of a machine.
#[derive(Clone, Debug, Default)]
pub struct Packets(HashMap<Key, Seen>);

/// One packet that two machines saw, by the clock of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passed {
    /// Time it was sent, by the sender's clock.
    pub sent: Time,
    /// Time it was received, by the receiver's clock.
    pub received: Time,
}

impl Packets {
    /// Takes an event; events that are not packets are skipped. So are packets of flows without data: an
    /// acknowledgement that adds nothing is like the one before.
    pub fn event(&mut self, e: &Event, names: &Names) {
        match e.event() {
            number::TX_PACKET => self.sent(Key::Hash(e.arg), e.ts),
            number::RX_PACKET => self.received(Key::Hash(e.arg), e.ts),
            number::TX_USER => self.sent(Key::Message(e.arg), e.ts),
            number::RX_USER => self.received(Key::Message(e.arg), e.ts),
            way @ (number::TX_FLOW | number::RX_FLOW) if e.ret > 0 => {
                let Some(named) = flow::named(names.text(e.name)) else { return };
                let key = Key::Flow(named.flow, e.arg);
                if way == number::TX_FLOW {
                    self.sent(key, e.ts)
                } else {
                    self.received(key, e.ts)
                }
            }
            _ => {}
        }
    }

    /// Records that something was sent; if it is sent again, the first time counts.
    pub fn sent(&mut self, key: Key, at: Time) {
        let seen = self.0.entry(key).or_default();
        seen.sent = Some(seen.sent.map_or(at, |known| known.min(at)));
        seen.times_sent = seen.times_sent.saturating_add(1);
    }

    /// Records that something was received; the first time counts.
    pub fn received(&mut self, key: Key, at: Time) {
        let seen = self.0.entry(key).or_default();
        seen.received = Some(seen.received.map_or(at, |known| known.min(at)));
        seen.times_received = seen.times_received.saturating_add(1);
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Packets that went from here to another machine, in the order they were sent. A key that either machine has more
    /// than once belongs to several packets, or to one that was sent again, and it is unknown which was which.
    pub fn passed(&self, to: &Packets) -> Vec<Passed> {
        let once = |(key, seen): (&Key, &Seen)| {
            let there = to.0.get(key)?;
            let (sent, received) = (seen.sent?, there.received?);
            (seen.times_sent == 1 && there.times_received == 1).then_some(Passed { sent, received })
        };
        let mut passed: Vec<Passed> = self.0.iter().filter_map(once).collect();
        passed.sort_unstable();
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_told_apart_on_both_sides_is_taken() {
        let (mut a, mut b) = (Packets::default(), Packets::default());
        for (key, at) in [(1, 30), (2, 10), (3, 20), (3, 25), (4, 40)] {
            a.sent(Key::Hash(key), Time(at));
        }
        for (key, at) in [(2, 12), (1, 33), (3, 22), (4, 50), (4, 51), (5, 60)] {
            b.received(Key::Hash(key), Time(at));
        }
        let passed: Vec<_> = a.passed(&b).iter().map(|p| (p.sent.0, p.received.0)).collect();
        assert_eq!(passed, [(10, 12), (30, 33)]);
        assert_eq!(b.passed(&a), []);
    }
}
