// SPDX-License-Identifier: BSD-3-Clause
//! A page of several machines: its groups of rows, its banner, its packets.

use kutrace_tests::number::{idle, of_thread, on_cpu};
use postprocess::event::number::{user, RX_FLOW, TX_FLOW};
use postprocess::event::{Inside, Machine};
use postprocess::id::Pid;
use postprocess::span::what::What;
use postprocess::span::{Span, Spans};
use postprocess::time::Time;
use serde_json::json;

use crate::drive::run_on;
use crate::spans::Made;

/// The clock of the second machine, in the words of `merge`.
const CLOCK: &str = "db = web + 1.234567 s - 0.2 ppm, within 0.8 us (1 there, 1 back)";

/// A client, a server, and a guest of the server's: 2 CPUs each, and a packet there and one back.
fn three() -> Spans {
    let mut made = Made::default();
    let machine = |name: &str, first_cpu, clock: &str, inside| Machine {
        name: name.into(),
        first_cpu,
        clock: clock.into(),
        within: Some(Time(80)),
        inside,
        ..Machine::default()
    };
    let thread = |machine: u32, number: u32| (machine << 22 | number) as i32;
    made.0.meta.machines = vec![
        machine("web", 0, "web: its clock is used for all", None),
        machine("db", 2, CLOCK, None),
        machine(
            "guest",
            4,
            "guest = db - 0.000010 s + 0.0 ppm, by its host's record of its counter",
            Some(Inside { host: 1, threads: vec![thread(1, 800) as u32, thread(1, 801) as u32] }),
        ),
    ];
    let work = [
        (0, thread(0, 70), "client.70"),
        (1, thread(0, 71), "client.71"),
        (2, thread(1, 800), "qemu.800"),
        (3, thread(1, 801), "qemu.801"),
        (4, thread(2, 90), "served.90"),
        (5, thread(2, 91), "served.91"),
    ];
    for (cpu, pid, name) in work {
        let number = user(Pid::new(pid as u32));
        made.row((cpu, pid, number, 6_000_000_000, 1_000_000, name));
    }
    let mut packet = |at, cpu, event: u32, seq, name| {
        let span = Span { start: Time(at), dur: Time(1), what: What::of(event as i32), arg: seq, ret: 64, ..idle() };
        made.add(Span { cpu: on_cpu(cpu), pid: of_thread(70), ..span }, name);
    };
    packet(6_000_200_000, 0, TX_FLOW, 1000, "tx.40112>6379#0000beef");
    packet(6_000_300_000, 3, RX_FLOW, 1000, "rx.40112>6379#0000beef");
    packet(6_000_600_000, 3, TX_FLOW, 5000, "tx.6379>40112#0000cafe");
    packet(6_000_700_000, 0, RX_FLOW, 5000, "rx.6379>40112#0000cafe");
    made.done()
}

#[test]
fn machines_are_groups_that_fold_with_packets_between_them_and_guests_under_their_hosts() {
    run_on("machines", &three(), &json!({ "clock": CLOCK }));
}
