// SPDX-License-Identifier: BSD-3-Clause
//! TCP and UDP packets, over IPv4 and IPv6: those that the filter takes are recorded, sent and received, by their hash.

use std::collections::BTreeMap;

use postprocess::event::number::{RX_PACKET, TX_PACKET};

use crate::guest;
use crate::trace::Recording;

const SIGNATURE: u32 = 0xd1c5_17e5;
/// Messages of each kind: UDP over IPv4 and IPv6, then TCP.
const COUNT: u32 = 200;

/// How often each hash was recorded by events of a number.
fn recorded(trace: &Recording, number: u32) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    trace.of(number).for_each(|e| *counts.entry(e.arg).or_default() += 1);
    counts
}

#[test]
fn messages_that_match_are_recorded_when_they_are_sent_and_when_they_arrive() {
    let run = guest::succeed(
        &["--cpus", "2", "--no-load"],
        &format!(
            r#"
            cd /tmp
            cp $BIN/packets .
            for mask in 0xf 0 -1; do
                insmod $KUTRACE_MODULE pktmask=$mask
                kutrace_control go
                ./packets {COUNT}
                kutrace_control stop $SHARE/t$mask.raw
                rmmod kutrace
            done
            "#
        ),
    );
    let trace = Recording::read_whole(&run.file("t0xf.raw"));
    let wanted: Vec<u32> = (0..4).flat_map(|kind| (0..COUNT).map(move |n| SIGNATURE ^ kind << 16 ^ n)).collect();
    for number in [TX_PACKET, RX_PACKET] {
        let recorded = recorded(&trace, number);
        assert_eq!(
            recorded.keys().copied().collect::<std::collections::BTreeSet<_>>(),
            wanted.iter().copied().collect()
        );
        // TCP may have sent some again.
        assert!(wanted[..2 * COUNT as usize].iter().all(|hash| recorded[hash] == 1), "{recorded:?}");
    }
    let none = Recording::read_whole(&run.file("t0.raw"));
    assert_eq!(none.of(TX_PACKET).chain(none.of(RX_PACKET)).count(), 0);
    let all = Recording::read_whole(&run.file("t-1.raw"));
    for number in [TX_PACKET, RX_PACKET] {
        let recorded = recorded(&all, number);
        assert!(wanted
            .iter()
            .all(|hash| recorded.contains_key(hash) && recorded.contains_key(&(hash ^ SIGNATURE ^ (SIGNATURE + 1)))));
    }
}
