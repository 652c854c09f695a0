// SPDX-License-Identifier: BSD-3-Clause
//! Several machines: guests that are connected by a cable exchange packets, and their traces become one.
//!
//! The truth is known as far as it can be: QEMU gives each guest the host's counter less a constant, so the rates of two
//! guests' counters are the same, and what two recordings of the same guests say of that constant must agree.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use postprocess::event::number::{RX_PACKET, TX_PACKET};
use postprocess::machine::file::{split, Layout};
use postprocess::machine::shift::{Shift, POINT};
use postprocess::raw;
use postprocess::source;
use postprocess::time::Time;
use tempfile::TempDir;

use crate::guest::{self, Run};

/// Requests of each recording: two seconds, at most 1000 a second.
const REQUESTS: u32 = 2000;

/// Runs a script in each guest, which is connected to the next one by a cable: at `10.0.n.1` its end of the cable to
/// the next, at `10.0.n.2` that guest's end of it.
fn guests(scripts: &[&str]) -> (TempDir, Vec<Run>) {
    let folder = tempfile::tempdir().unwrap();
    let end = |cable: usize, side: &str| folder.path().join(format!("{cable}{side}")).display().to_string();
    let runs: Mutex<BTreeMap<usize, Run>> = Mutex::default();
    thread::scope(|scope| {
        for (n, script) in scripts.iter().enumerate() {
            let mut options = vec!["--no-load".to_string(), "--cpus".into(), "2".into()];
            let mut head = format!("echo machine{n} >/proc/sys/kernel/hostname\n");
            let mut card = 0;
            let mut connect = |own: String, other: String, address: String| {
                options.extend(["--cable".to_string(), format!("{own}:{other}")]);
                head += &format!("ip addr add {address}/24 dev eth{card}; ip link set eth{card} up\n");
                card += 1;
            };
            if n > 0 {
                connect(end(n - 1, "b"), end(n - 1, "a"), format!("10.0.{}.2", n - 1));
            }
            if n + 1 < scripts.len() {
                connect(end(n, "a"), end(n, "b"), format!("10.0.{n}.1"));
            }
            let build = "cd /tmp; gcc -O2 -o exchange $VM/exchange.c\n";
            let script = format!("{head}{build}{script}");
            let runs = &runs;
            scope.spawn(move || {
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                let run = guest::run(&options, &script);
                runs.lock().unwrap().insert(n, run);
            });
        }
    });
    let runs = runs.into_inner().unwrap().into_values().map(Run::succeeded).collect();
    (folder, runs)
}

fn control() -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/release/kutrace_control"))
}

/// Merges traces as a user does; what was said.
fn merge(traces: &[&Path], out: &Path) -> String {
    let merged = control().arg("merge").args(traces).arg("-o").arg(out).output().unwrap();
    let said = String::from_utf8_lossy(&merged.stderr).into_owned();
    println!("{said}");
    assert!(merged.status.success(), "{said}");
    assert!(said.contains("; no packet arrives before it was sent"), "{said}");
    said
}

/// What a merged trace says of its last machine: the way to the first one's time.
fn shift(file: &[u8]) -> Shift {
    let Layout { machines, damage } = split(file).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    machines.last().unwrap().0.shift.clone()
}

/// The second guest's counter less the first one's, in counts, by a merged trace; and how far that may be wrong.
fn apart(file: &[u8], traces: [&[u8]; 2]) -> (i128, i128) {
    let shift = shift(file);
    let headers = traces.map(|trace| raw::parse(trace).unwrap().header);
    let clocks = traces.map(|trace| raw::parse(trace).unwrap().clock);
    // A moment of the second machine, by both counters.
    let counter = headers[1].start.tsc / 2 + headers[1].stop.tsc / 2;
    let at = shift.at(clocks[1].tsc_units(counter.into()));
    let (start, stop) = (i128::from(headers[0].start.tsc), i128::from(headers[0].stop.tsc));
    let rate = (stop - start) as f64 / (headers[0].stop.monotonic_ns - headers[0].start.monotonic_ns) as f64;
    let since = (at - clocks[0].tsc_units(start)).0 as f64 * 10.0 * rate;
    let within = shift.within().expect("a bound").0 as f64 * 10.0 * rate;
    (i128::from(counter) - start - since as i128, within.ceil() as i128)
}

#[test]
fn two_guests_on_one_cable_have_one_time() {
    let rounds = ["tcp", "udp"];
    let load = "insmod $KUTRACE_MODULE pktmask=-1\n";
    let serve = rounds.map(|kind| {
        format!("kutrace_control go\n./exchange serve {kind} 4711\nkutrace_control stop $SHARE/{kind}.trace\n")
    });
    let ask = rounds.map(|kind| {
        format!(
            "kutrace_control go\n./exchange ask {kind} 10.0.0.2 4711 {REQUESTS}\n\
             kutrace_control stop $SHARE/{kind}.trace\nsleep 2\n"
        )
    });
    let (folder, runs) = guests(&[&(load.to_string() + &ask.concat()), &(load.to_string() + &serve.concat())]);
    let mut constants = Vec::new();
    for kind in rounds {
        let traces = [0, 1].map(|n: usize| runs[n].file(&format!("{kind}.trace")));
        let out = folder.path().join(format!("{kind}.trace"));
        let said = merge(&[&traces[0], &traces[1]], &out);
        assert!(said.contains("machine1 = machine0 "), "{said}");
        let [file, a, b] = [&out, &traces[0], &traces[1]].map(|path| std::fs::read(path).unwrap());
        // All that a merged trace says is what its parts say.
        let packets = |bytes: &[u8]| {
            let events = source::decode(bytes).unwrap().events;
            events.iter().filter(|e| [TX_PACKET, RX_PACKET].contains(&e.event())).count()
        };
        let count = packets(&a);
        assert!(count >= 2 * REQUESTS as usize, "{count}");
        assert_eq!(packets(&file), count + packets(&b));
        // The counters run at one rate; the clocks, at what each kernel made of it.
        let rate = |trace: &[u8]| {
            let header = raw::parse(trace).unwrap().header;
            let counts = (header.stop.tsc - header.start.tsc) as f64;
            counts / (header.stop.monotonic_ns - header.start.monotonic_ns) as f64
        };
        let (truth, shift) = (rate(&b) / rate(&a) - 1.0, shift(&file));
        let found = shift.0[0].rate as f64 / (1u64 << POINT) as f64;
        let within = shift.within().expect("a bound");
        let length = raw::parse(&b).unwrap().header;
        let seconds = (length.stop.monotonic_ns - length.start.monotonic_ns) as f64 / 1e9;
        let error = Time::of_seconds((found - truth).abs() * seconds);
        println!("{kind}: {truth:e} is the rate, {found:e} was found; within {within} over {seconds} s");
        assert!(error <= within * 2, "{error} {within}");
        constants.push(apart(&file, [&a, &b]));
    }
    let [(tcp, within_tcp), (udp, within_udp)] = constants[..] else { panic!("{constants:?}") };
    println!("apart by {tcp} counts within {within_tcp}, and {udp} within {within_udp}");
    assert!((tcp - udp).abs() <= within_tcp + within_udp);
}

#[test]
fn three_guests_in_a_row_have_one_time() {
    let ask = |next: u32| format!("./exchange ask tcp 10.0.{next}.2 4711 500\n");
    let record = |work: &str| {
        format!(
            "insmod $KUTRACE_MODULE pktmask=0\nkutrace_control go --packets 4711\n{work}\n\
             kutrace_control stop $SHARE/t.trace\nsleep 2\n"
        )
    };
    let (folder, runs) = guests(&[
        &record(&ask(0)),
        &record(&format!("./exchange serve tcp 4711 & {}wait\n", ask(1))),
        &record("./exchange serve tcp 4711"),
    ]);
    let traces: Vec<_> = runs.iter().map(|run| run.file("t.trace")).collect();
    let out = folder.path().join("all.trace");
    let said = merge(&traces.iter().map(|trace| trace.as_path()).collect::<Vec<_>>(), &out);
    // The first and the last have not spoken with each other.
    for machine in ["machine1", "machine2"] {
        assert!(said.contains(&format!("{machine} = machine0 ")), "{said}");
    }
    let events = source::decode(&std::fs::read(&out).unwrap()).unwrap();
    let within: Vec<Time> = events.meta.machines.iter().map(|machine| machine.within.unwrap()).collect();
    assert!(within[0] == Time::ZERO && within[1] < within[2], "{within:?}");
    // What the first waits for is on its way, or at the second, which waits for the third.
    let why = control().arg("why").arg(&out).args(["--client", "exchange", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.status.success(), "{}", String::from_utf8_lossy(&why.stderr));
    for part in ["waiting for a message of exchange on machine1, meanwhile ", "it was on its way through the network"] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
}
