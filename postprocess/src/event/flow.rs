// SPDX-License-Identifier: BSD-3-Clause
//! Packets of flows: their names, and the meaning of these names.
//!
//! ```text
//! tx.40112>6379#5be7a1c2        sent from port 40112 to 6379, over TCP
//! rx.40112>6379#5be7a1c2:S      the same flow, received: with SYN, FIN or RST
//! retx.40112>6379#5be7a1c2      sent again; in spans
//! tx.40113>53/udp#08c1d7f4      over UDP
//! ```
//!
//! After the ports comes the flow: a hash of both addresses, both ports and the protocol, with the direction in its
//! lowest bit. Everything after the first point is therefore the same where a packet is sent and where it arrives. The
//! argument of the event is TCP's sequence number of the first byte, or for UDP the hash of the first 32 bytes; its
//! value is the number of bytes of data.

use kutrace_format::abi::packet::FlowPacket;

/// TCP's flags that begin and end a connection, with their letters.
const FLAGS: [(u8, char); 3] = [(2, 'S'), (1, 'F'), (4, 'R')];

/// Name of a packet that is `sent` or received.
pub fn name(sent: bool, packet: &FlowPacket) -> String {
    let way = if sent { "tx" } else { "rx" };
    let [from, to] = packet.ports;
    let udp = if packet.flags == 0 { "/udp" } else { "" };
    let letters: String = FLAGS.iter().filter(|(bit, _)| packet.flags & bit != 0).map(|(_, letter)| letter).collect();
    let colon = if letters.is_empty() { "" } else { ":" };
    format!("{way}.{from}>{to}{udp}#{:08x}{colon}{letters}", packet.flow)
}

/// Meaning of a packet's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The flow, with its direction.
    pub flow: u32,
    /// True if it is a TCP packet.
    pub tcp: bool,
    /// True if it begins a connection.
    pub begins: bool,
}

/// Reads the name of a packet; `None` for any other name.
pub fn named(name: &str) -> Option<Named> {
    let (ports, flow) = name.split_once('#')?;
    let (flow, letters) = flow.split_once(':').unwrap_or((flow, ""));
    let flow = u32::from_str_radix(flow, 16).ok()?;
    Some(Named { flow, tcp: !ports.ends_with("/udp"), begins: letters.contains('S') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_of_which_flow_a_packet_is() {
        let packet = |flags| FlowPacket { flow: 0xbeef, ports: [40112, 53], bytes: 7, flags, sequence: 9 };
        for (flags, sent, text) in [
            (0x10, true, "tx.40112>53#0000beef"),
            (0x12, false, "rx.40112>53#0000beef:S"),
            (0x05, true, "tx.40112>53#0000beef:FR"),
            (0, false, "rx.40112>53/udp#0000beef"),
        ] {
            assert_eq!(name(sent, &packet(flags)), text);
            let said = Named { flow: 0xbeef, tcp: flags != 0, begins: flags & 2 != 0 };
            assert_eq!(named(text), Some(said));
        }
        assert_eq!(named("tx.00F3"), None);
    }
}
