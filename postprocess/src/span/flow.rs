// SPDX-License-Identifier: BSD-3-Clause
//! Retransmissions: a TCP packet with data is one if its first byte is before the end of what its flow has already
//! sent.

use std::collections::HashMap;

use super::build::Builder;
use crate::event::flow;
use crate::event::Event;

/// By flow: the sequence number after all data sent.
#[derive(Debug, Default)]
pub struct Flows(HashMap<u32, u32>);

impl Flows {
    /// True if the data that begin at `sequence` were sent before; a connection that `begins` has sent none.
    fn send(&mut self, flow: u32, begins: bool, sequence: u32, bytes: u32) -> bool {
        if begins {
            self.0.remove(&flow);
        }
        if begins || bytes == 0 {
            return false;
        }
        let end = sequence.wrapping_add(bytes);
        let sent = self.0.entry(flow).or_insert(sequence);
        let again = is_before(sequence, *sent);
        if is_before(*sent, end) {
            *sent = end;
        }
        again
    }
}

/// True if a sequence number is before another; they must be less than half of all numbers apart.
const fn is_before(sequence: u32, other: u32) -> bool {
    (sequence.wrapping_sub(other) as i32) < 0
}

impl Builder {
    /// The event of a packet that is sent, renamed if it is a retransmission.
    pub(super) fn reclassified(&mut self, e: &Event) -> Event {
        let text = self.names.text(e.name);
        let Some(named) = flow::named(text).filter(|named| named.tcp) else { return *e };
        let again = self.flows.send(named.flow, named.begins, e.arg, e.ret as u32);
        let name = if again { self.names.id(&format!("re{}", self.names.text(e.name))) } else { e.name };
        Event { name, ..*e }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_is_sent_again() {
        let mut flows = Flows::default();
        let one = 4;
        let sent = [(u32::MAX - 9, 10), (0, 0), (0, 100), (0, 100), (50, 100), (150, 0), (150, 1), (u32::MAX - 9, 10)];
        let again = sent.map(|(sequence, bytes)| flows.send(one, false, sequence, bytes));
        assert_eq!(again, [false, false, false, true, true, false, false, true]);
        assert!(!flows.send(5, false, 0, 100), "another flow");
        assert!(!flows.send(one, true, 7, 0) && !flows.send(one, false, 8, 5), "a new connection");
    }
}
