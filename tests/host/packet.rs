// SPDX-License-Identifier: BSD-3-Clause
//! Packets of flows are distinguished.

use kutrace_format::abi::packet::{hash, FlowPacket, Packet, BYTES_MAX, FLOW_DIRECTION, WORDS};
use proptest::prelude::*;

fn words(bytes: &[u8; 32]) -> [u64; WORDS] {
    std::array::from_fn(|n| u64::from_le_bytes(bytes[8 * n..8 * n + 8].try_into().unwrap()))
}

proptest! {
    #[test]
    fn the_hash_is_what_a_program_computes_of_a_message(bytes: [u8; 32]) {
        let sum = bytes.chunks(4).fold(0, |sum, word| sum ^ u32::from_le_bytes(word.try_into().unwrap()));
        prop_assert_eq!(hash(&words(&bytes)), sum);
    }

    #[test]
    fn a_packet_of_a_flow_is_read_as_it_was_recorded(packet in packet(), data: [u64; WORDS]) {
        let recorded = FlowPacket::of(&packet, &data);
        prop_assert_eq!(FlowPacket::read(recorded.words()), recorded);
        prop_assert_eq!((recorded.ports, recorded.bytes), (packet.ports, packet.bytes.min(BYTES_MAX)));
        prop_assert_eq!(recorded.sequence, if packet.flags == 0 { hash(&data) } else { packet.sequence });
    }

    #[test]
    fn the_way_back_is_the_same_flow_in_the_other_direction(packet in packet(), other in packet()) {
        let flow = |packet: &Packet| FlowPacket::of(packet, &[0; WORDS]).flow;
        let [[a, b], [from, to]] = [packet.addresses, [[0; 4]; 2]];
        prop_assume!(a != b && from == to);
        let back = Packet { addresses: [b, a], ports: [packet.ports[1], packet.ports[0]], ..packet };
        prop_assert_eq!(flow(&packet) ^ flow(&back), FLOW_DIRECTION);
        prop_assert_ne!(flow(&packet) | FLOW_DIRECTION, flow(&other) | FLOW_DIRECTION);
    }
}

fn packet() -> impl Strategy<Value = Packet> {
    (any::<[[u32; 4]; 2]>(), any::<[u16; 2]>(), any::<u32>(), 0..256u32, any::<u32>())
        .prop_map(|(addresses, ports, bytes, flags, sequence)| Packet { addresses, ports, bytes, flags, sequence })
}

#[test]
fn flows_that_differ_by_one_bit_are_told_apart() {
    let address = |last: u32| [0, 0, 0xffff_0000, last << 24 | 10];
    let mut flows = std::collections::BTreeSet::new();
    for port in 32768..36864 {
        for last in 1..5 {
            let packet =
                Packet { addresses: [address(last), address(9)], ports: [port, 80], flags: 16, ..Packet::default() };
            flows.insert(FlowPacket::of(&packet, &[0; WORDS]).flow & !FLOW_DIRECTION);
        }
    }
    // Of 16384 flows in 2^31, that two are the same is expected once in 16 times.
    assert!(flows.len() >= 16383, "{}", flows.len());
}
