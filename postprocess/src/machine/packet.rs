// SPDX-License-Identifier: BSD-3-Clause
//! What a machine sent and received, by what tells one packet from another.

use foldhash::HashMap;

use crate::event::names::Names;
use crate::event::{flow, number, Event};
use crate::time::Time;

/// When something was first sent and first received, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    sent: Option<Time>,
    received: Option<Time>,
    times_sent: u32,
    times_received: u32,
}

/// What tells one packet from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The hash of its first data.
    Hash(u32),
    /// The same of a message that programs saw.
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
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// When it was received, by the receiver's.
    pub received: Time,
}

impl Packets {
    /// Takes an event; those that are no packets are left out. So are those of flows without data: one that says no
    /// more than what has arrived is like the one before.
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

    /// Takes that something was sent; of what is sent again, the first time counts.
    pub fn sent(&mut self, key: Key, at: Time) {
        let seen = self.0.entry(key).or_default();
        seen.sent = Some(seen.sent.map_or(at, |known| known.min(at)));
        seen.times_sent = seen.times_sent.saturating_add(1);
    }

    /// The same of what was received.
    pub fn received(&mut self, key: Key, at: Time) {
        let seen = self.0.entry(key).or_default();
        seen.received = Some(seen.received.map_or(at, |known| known.min(at)));
        seen.times_received = seen.times_received.saturating_add(1);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What went from here to another machine, ordered by when it was sent. What either has more than once is of
    /// several packets, or was sent again, and of none is known which it was.
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
