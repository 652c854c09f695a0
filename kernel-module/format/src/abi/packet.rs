// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Network packets, and the numbers by which they are recorded.

/// Words at the start of a packet's data that are read: 32 bytes.
pub const WORDS: usize = 4;
/// The exclusive or of the first eight four-byte words of data: it identifies a datagram, and a program's message.
pub const fn hash(words: &[u64; WORDS]) -> u32 {
    let all = words[0] ^ words[1] ^ words[2] ^ words[3];
    (all ^ all >> 32) as u32
}

/// The content of the headers of a packet of TCP or UDP. Layout of `struct kutrace_packet` in source/packets.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The addresses of sender and receiver as they are in a packet of IPv6; those of IPv4 are mapped into IPv6.
    pub addresses: [[u32; 4]; 2],
    /// Their ports.
    pub ports: [u16; 2],
    /// Bytes of data.
    pub bytes: u32,
    /// TCP's flags, the lowest eight, never 0; 0 for UDP.
    pub flags: u32,
    /// TCP's sequence number of the first byte.
    pub sequence: u32,
}

/// The bit of a flow for the end that sends: packets of a connection have the same flow except for this bit.
pub const FLOW_DIRECTION: u32 = 1;
/// A packet of more bytes is recorded as one of this size.
pub const BYTES_MAX: u32 = (1 << 24) - 1;

/// A packet of a flow as it is recorded.
///
/// ```text
///  31                     1  0   31          16 15           0   31      24 23            0   31                    0
/// |   flow: connection   | dir| | sender's port | receiver's  | | TCP flags |    bytes     | | sequence, or hash     |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPacket {
    /// Distinguishes the connection and its direction from others; the same at both ends.
    pub flow: u32,
    /// The ports of sender and receiver.
    pub ports: [u16; 2],
    /// Bytes of data.
    pub bytes: u32,
    /// Like [`Packet::flags`].
    pub flags: u8,
    /// Like [`Packet::sequence`]; for UDP the [`hash`] of its data, as if zeros followed them.
    pub sequence: u32,
}

impl FlowPacket {
    /// The record of a packet with these headers, and with this first data if it is UDP.
    pub const fn of(packet: &Packet, data: &[u64; WORDS]) -> FlowPacket {
        FlowPacket {
            flow: flow(packet),
            ports: packet.ports,
            bytes: if packet.bytes > BYTES_MAX { BYTES_MAX } else { packet.bytes },
            flags: packet.flags as u8,
            sequence: if packet.flags == 0 { hash(data) } else { packet.sequence },
        }
    }

    /// Its argument words.
    pub const fn words(&self) -> [u32; 4] {
        let ports = (self.ports[0] as u32) << 16 | self.ports[1] as u32;
        [self.flow, ports, (self.flags as u32) << 24 | self.bytes, self.sequence]
    }

    /// The packet of these words.
    pub const fn read([flow, ports, length, sequence]: [u32; 4]) -> FlowPacket {
        let ports = [(ports >> 16) as u16, ports as u16];
        FlowPacket { flow, ports, bytes: length & BYTES_MAX, flags: (length >> 24) as u8, sequence }
    }
}

/// The flow of a packet: a hash of both ends, the lesser first, and of whether it is UDP; and the bit for the end that
/// sends.
const fn flow(packet: &Packet) -> u32 {
    let ends = [end(packet, 0), end(packet, 1)];
    let (low, high) = if ends[0] < ends[1] { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    let udp = (packet.flags == 0) as u64;
    let all = mixed(mixed(mixed(udp, low), high), 0);
    (all >> 32) as u32 & !FLOW_DIRECTION | if ends[0] > ends[1] { FLOW_DIRECTION } else { 0 }
}

const fn end(packet: &Packet, n: usize) -> u64 {
    let [a, b, c, d] = packet.addresses[n];
    let high = mixed(packet.ports[n] as u64, (a as u64) << 32 | b as u64);
    mixed(high, (c as u64) << 32 | d as u64)
}

/// Every bit of both changes about half of the bits, the high ones above all.
const fn mixed(hash: u64, word: u64) -> u64 {
    ((hash ^ word).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash.rotate_left(29)).rotate_left(31)
}
