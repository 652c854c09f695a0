// SPDX-License-Identifier: BSD-3-Clause
//! Packets of chosen ports, of unmodified programs: each is there when it is sent and when it arrives, as many as the
//! kernel counted, and retransmissions are marked as such.

use std::collections::BTreeMap;

use kutrace_format::capability::Capability;
use postprocess::event::flow::named;
use postprocess::event::number::{RX_FLOW, TX_FLOW};
use postprocess::event::Event;
use postprocess::time::Time;

use crate::guest;
use crate::trace::Recording;

/// By flow, sequence number and bytes: when such packets passed.
type Passed = BTreeMap<(u32, u32, i32), Vec<Time>>;

/// Packets of a kind: all, or those with data.
fn passed(trace: &Recording, number: u32, has: impl Fn(&Event) -> bool) -> Passed {
    let mut passed = Passed::new();
    for e in trace.of(number).filter(|e| has(e)) {
        let flow = named(trace.event_name(e)).expect("a flow").flow;
        passed.entry((flow, e.arg, e.ret)).or_default().push(e.ts);
    }
    passed
}

/// Everything that was sent arrived after that, as often.
fn all_arrive(trace: &Recording) -> usize {
    let [sent, received] = [TX_FLOW, RX_FLOW].map(|number| passed(trace, number, |_| true));
    assert_eq!(sent.keys().collect::<Vec<_>>(), received.keys().collect::<Vec<_>>());
    for (key, times) in &sent {
        assert_eq!(times.len(), received[key].len(), "{key:?}");
        assert!(times.iter().zip(&received[key]).all(|(sent, received)| sent <= received), "{key:?}");
    }
    sent.values().map(Vec::len).sum()
}

/// The kernel's counters of TCP, printed as `NAME=COUNT`; `segments NAME`.
const SEGMENTS: &str = r#"
    segments() { awk -v name=$1 '/^Tcp:/ && !c { for (n = 1; n <= NF; n++) if ($n == "InSegs") c = n; next }
        /^Tcp:/ { print name "=" $c }' /proc/net/snmp; }
"#;

#[test]
fn each_request_of_redis_is_followed_from_send_to_receive() {
    const REQUESTS: usize = guest::by_form(300, 1000, 1000);
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            r#"
            {SEGMENTS}
            redis-server --port 6399 --save '' --appendonly no --dir /tmp >/tmp/redis.log &
            until redis-cli -p 6399 ping >/dev/null 2>&1; do sleep 0.1; done
            sleep 0.5
            kutrace_control go --packets 6399,4711
            segments before
            redis-benchmark -p 6399 -n {REQUESTS} -c 4 -t set -d 100 >/dev/null
            sleep 0.5
            segments after
            kutrace_control stop $SHARE/t.raw
            kutrace_control go --packets 4711
            redis-cli -p 6399 ping
            kutrace_control stop $SHARE/none.raw
            kutrace_control go
            redis-cli -p 6399 ping
            kutrace_control stop $SHARE/off.raw
            "#
        ),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let packets = all_arrive(&trace);
    assert_eq!(packets as u64, run.number("after") - run.number("before"), "what the kernel received");
    // Each request is a packet to the server, and each answer one back.
    let to = |e: &Event| trace.event_name(e).contains(">6399#");
    let data = |to_server: bool| passed(&trace, TX_FLOW, |e| e.ret > 0 && to(e) == to_server).len();
    assert!(data(true) >= REQUESTS && data(false) >= REQUESTS, "{} {}", data(true), data(false));
    assert!(!trace.spans.names.iter().any(|name| name.starts_with("retx.")));
    for other in ["none.raw", "off.raw"] {
        let trace = Recording::read(&run.file(other));
        assert_eq!(trace.of(TX_FLOW).chain(trace.of(RX_FLOW)).count(), 0, "{other}");
    }
}

#[test]
fn what_is_sent_again_is_told_as_often_as_the_kernel_counted() {
    const ROUNDS: u32 = 10;
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            r#"
            cd /tmp
            cp $BIN/flows $BIN/packets .
            kutrace_control go --packets 4712
            ./flows {ROUNDS}
            sleep 0.5
            kutrace_control stop $SHARE/lost.raw
            kutrace_control go --packets all
            ./packets 50
            kutrace_control stop $SHARE/all.raw
            "#
        ),
    );
    let trace = Recording::read_whole(&run.file("lost.raw"));
    all_arrive(&trace);
    let again: Vec<_> = trace.spans.spans.iter().filter(|s| trace.span_name(s).starts_with("retx.")).collect();
    assert_eq!(again.len() as u64, run.number("again"));
    // The acknowledgements of answers are lost, too, so some of those are sent again.
    assert!(again.len() >= ROUNDS as usize);
    for s in again {
        assert_eq!(s.ret, if trace.span_name(s).contains(">4712#") { 100 } else { 1 }, "{s:?}");
    }
    // Over IPv4 and IPv6, by UDP and TCP; 150 messages of each.
    let all = Recording::read_whole(&run.file("all.raw"));
    assert!(all_arrive(&all) >= 4 * 150);
    let messages = passed(&all, TX_FLOW, |e| e.ret == 64 || e.ret == 28);
    let count = |udp: bool| {
        let of = |e: &&Event| e.ret > 0 && all.event_name(e).contains("/udp#") == udp;
        all.of(TX_FLOW).filter(of).count()
    };
    assert_eq!((count(true), messages.values().map(Vec::len).sum::<usize>()), (300, 600));
    let said = crate::blocks::Blocks::read(&run.file("all.raw")).header.unseen;
    assert!(!said.has(Capability::Packets));
}
