// SPDX-License-Identifier: BSD-3-Clause
//! Several machines: guests that are connected by a cable exchange packets, and their traces become one.
//!
//! The truth is known: QEMU gives each guest the host's counter less a constant, so two guests' counters have one rate;
//! or the test gives each a counter of its own ([`Counter`]), and knows what each showed at every moment of the host's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use postprocess::event::number::{RX_FLOW, TX_FLOW};
use postprocess::machine::file::{split, Layout};
use postprocess::machine::shift::{Shift, POINT};
use postprocess::raw;
use postprocess::source;
use postprocess::time::Time;
use tempfile::TempDir;

use crate::guest::{self, Run};
use crate::truth::Counter;

/// Requests of each recording, at most 1000 a second.
const REQUESTS: u32 = guest::by_form(1000, 2000, 2000);
/// Unit to which times of two machines are rounded.
const ROUNDED: Time = Time(2);

/// Work on the host while a guest runs; it gets the guest's share.
type Beside<'a> = &'a (dyn Fn(&Path) + Sync);

/// A guest: its script, its counter if it has one of its own, and the work on the host while it runs.
#[derive(Clone, Copy)]
struct Job<'a> {
    script: &'a str,
    counter: Option<&'a Counter>,
    beside: Beside<'a>,
}

/// Runs a script in each guest; see [`run`].
fn guests(scripts: &[&str]) -> (TempDir, Vec<Run>) {
    run(&scripts.iter().map(|script| Job { script, counter: None, beside: &|_| () }).collect::<Vec<_>>())
}

/// Runs guests, each of which is connected to the next one by a cable: its end of the cable to the next is at
/// `10.0.n.1`, that guest's end at `10.0.n.2`.
fn run(jobs: &[Job]) -> (TempDir, Vec<Run>) {
    let folder = tempfile::tempdir().unwrap();
    let end = |cable: usize, side: &str| folder.path().join(format!("{cable}{side}")).display().to_string();
    let runs: Mutex<BTreeMap<usize, Run>> = Mutex::default();
    let turn = guest::turn();
    thread::scope(|scope| {
        for (n, &Job { script, counter, beside }) in jobs.iter().enumerate() {
            let mut options = vec![guest::AT_ONCE.to_string(), "--no-load".into(), "--cpus".into(), "2".into()];
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
            if n + 1 < jobs.len() {
                connect(end(n, "a"), end(n, "b"), format!("10.0.{n}.1"));
            }
            let build = "cd /tmp; cp $BIN/exchange .\n";
            let script = format!("{head}{build}{script}");
            let runs = &runs;
            scope.spawn(move || {
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                let variables = counter.map(Counter::variables);
                let run = guest::run_with(
                    &variables.iter().flatten().map(|(name, path)| (*name, path.as_path())).collect::<Vec<_>>(),
                    &options,
                    &script,
                    |share, _| beside(share),
                );
                runs.lock().unwrap().insert(n, run);
            });
        }
    });
    drop(turn);
    let runs = runs.into_inner().unwrap().into_values().map(Run::succeeded).collect();
    (folder, runs)
}

pub fn control() -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/release/kutrace_control"))
}

/// Merges traces as a user does; returns the messages.
pub fn merge(traces: &[&Path], out: &Path) -> String {
    let merged = control().arg("merge").args(traces).arg("-o").arg(out).output().unwrap();
    let said = String::from_utf8_lossy(&merged.stderr).into_owned();
    println!("{said}");
    assert!(merged.status.success(), "{said}");
    assert!(said.contains("; no packet arrives before it was sent"), "{said}");
    said
}

/// The attributes of the last machine of a merged trace: the way to the first one's time.
fn shift(file: &[u8]) -> Shift {
    let Layout { machines, damage } = split(file).unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    machines.last().unwrap().0.shift.clone()
}

/// Times at which packets were recorded as these events.
fn packets(trace: &[u8], numbers: &[u32]) -> Vec<Time> {
    let events = source::decode(trace).unwrap().events;
    events.iter().filter(|e| numbers.contains(&e.event())).map(|e| e.ts).collect()
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
    let load = "insmod $KUTRACE_MODULE\n";
    let serve = rounds.map(|kind| {
        format!(
            "kutrace_control go --packets 4711\n./exchange serve {kind} 4711\n\
             kutrace_control stop $SHARE/{kind}.trace\n"
        )
    });
    let ask = rounds.map(|kind| {
        format!(
            "kutrace_control go --packets 4711\n./exchange ask {kind} 10.0.0.2 4711 {REQUESTS}\n\
             kutrace_control stop $SHARE/{kind}.trace\n"
        )
    });
    // Who asks is not answered before the other records.
    let (folder, runs) = guests(&[&(load.to_string() + &ask.concat()), &(load.to_string() + &serve.concat())]);
    let mut constants = Vec::new();
    for kind in rounds {
        let traces = [0, 1].map(|n: usize| runs[n].file(&format!("{kind}.trace")));
        let out = folder.path().join(format!("{kind}.trace"));
        let said = merge(&[&traces[0], &traces[1]], &out);
        assert!(said.contains("machine1 = machine0 "), "{said}");
        let [file, a, b] = [&out, &traces[0], &traces[1]].map(|path| std::fs::read(path).unwrap());
        // A merged trace has exactly the facts of its parts.
        let [count, other] = [&a, &b].map(|trace| packets(trace, &[TX_FLOW, RX_FLOW]).len());
        assert!(count >= 2 * REQUESTS as usize, "{count}");
        assert_eq!(packets(&file, &[TX_FLOW, RX_FLOW]).len(), count + other);
        // The counters run at one rate; the clocks at the rate that each kernel made of it.
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

/// Rate of the second guest's counter, in parts of a million, and its lead: some seconds.
const FAST_PPM: i64 = 200;
const AHEAD: u64 = 20_000_000_000;
/// By how much it is set forward once: a fraction of a second.
const STEP: u64 = 500_000_000;

/// Two traces and their merged trace, against counters that are known.
struct Known<'a> {
    counters: [&'a Counter; 2],
    clocks: [raw::clock::Clock; 2],
    shift: Shift,
}

/// A time of a counter, also before the minute that the clock counts from.
fn time(clock: &raw::clock::Clock, counter: i128) -> Time {
    Time(clock.picoseconds(counter).div_euclid(10_000) as i64)
}

impl Known<'_> {
    /// By how much the merged trace is wrong when the second guest's counter showed something: in the first one's time.
    fn error(&self, counter: i128) -> Time {
        let found = self.shift.at(self.clocks[1].tsc_units(counter));
        let host = self.counters[1].host(counter);
        found - time(&self.clocks[0], self.counters[0].at(host))
    }

    /// The largest error of many moments.
    fn worst(&self, counters: (i128, i128)) -> Time {
        let at = |n: i128| counters.0 + (counters.1 - counters.0) * n / 1000;
        (0..=1000).map(|n| Time(self.error(at(n)).0.abs())).max().unwrap()
    }
}

/// Output of `merge`: the offset and the bound in seconds, the rate in parts of a million.
fn printed(said: &str) -> [f64; 3] {
    let words: Vec<&str> =
        said.lines().find(|line| line.contains("machine1 = machine0 ")).unwrap().split(' ').collect();
    let after = |word: &str| words.iter().position(|w| *w == word).unwrap() + 1;
    let number = |at: usize| words[at].parse::<f64>().unwrap();
    let signed = |at: usize| if words[at] == "-" { -number(at + 1) } else { number(at + 1) };
    let offset = after("machine0");
    [signed(offset), number(after("within")) / 1e6, signed(offset + 3)]
}

/// Of the night: the gate has the packets and the arithmetic, in the test above and on the host.
#[cfg(feature = "night")]
#[test]
fn counters_that_are_apart_by_a_known_offset_and_rate_are_found_within_the_bound() {
    let own = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let counters = [Counter::new(own[0].path(), 0, 0), Counter::new(own[1].path(), FAST_PPM, AHEAD)];
    let rounds = ["tcp", "udp", "step"];
    // The counter is set forward while both guests record, and neither sends anything.
    let stepped: Mutex<Option<(Counter, (i128, i128))>> = Mutex::default();
    let twice = format!(
        "./exchange ask udp 10.0.0.2 4711 {REQUESTS}\ntouch $SHARE/half\n\
         until [ -e $SHARE/stepped ]; do sleep 0.1; done\n./exchange ask udp 10.0.0.2 4711 {REQUESTS}\n"
    );
    let record = |work: &dyn Fn(&str) -> String| {
        let round = |kind: &&str| {
            format!("kutrace_control go --packets 4711\n{}\nkutrace_control stop $SHARE/{kind}.trace\n", work(kind))
        };
        "insmod $KUTRACE_MODULE\n".to_string() + &rounds.iter().map(round).collect::<String>()
    };
    let ask = record(&|kind| match kind {
        "step" => twice.clone(),
        kind => format!("./exchange ask {kind} 10.0.0.2 4711 {REQUESTS}; sleep 2"),
    });
    let serve = record(&|kind| match kind {
        "step" => "./exchange serve udp 4711; ./exchange serve udp 4711".to_string(),
        kind => format!("./exchange serve {kind} 4711"),
    });
    let set_forward = |share: &Path| {
        while !share.join("half").exists() {
            thread::sleep(Duration::from_millis(50));
        }
        *stepped.lock().unwrap() = Some(counters[1].step(STEP));
        std::fs::write(share.join("stepped"), "").unwrap();
    };
    let (folder, runs) = run(&[
        Job { script: &ask, counter: Some(&counters[0]), beside: &set_forward },
        Job { script: &serve, counter: Some(&counters[1]), beside: &|_| () },
    ]);
    let [first, before] = &counters;
    let (after, (early, late)) = stepped.into_inner().unwrap().expect("the counter was set forward");
    for kind in rounds {
        let traces = [0, 1].map(|n: usize| runs[n].file(&format!("{kind}.trace")));
        let out = folder.path().join(format!("{kind}.trace"));
        let said = merge(&[&traces[0], &traces[1]], &out);
        let [file, a, b] = [&out, &traces[0], &traces[1]].map(|path| std::fs::read(path).unwrap());
        let shift = shift(&file);
        let within = shift.within().expect("a bound") + ROUNDED;
        let raws = [&a, &b].map(|trace| raw::parse(trace).unwrap());
        let header = raws[1].header;
        let clocks = raws.map(|raw| raw.clock);
        let known = |second| Known { counters: [first, second], clocks, shift: shift.clone() };
        let (start, stop) = (i128::from(header.start.tsc), i128::from(header.stop.tsc));
        if kind == "step" {
            // The place between two packets at which the counter was set is not known. A packet that left shows nothing
            // about a clock that is set forward after it; one that arrived does.
            assert!(said.contains(", in 2 parts"), "{said}");
            let arrived = packets(&b, &[RX_FLOW]).into_iter().map(|at| clocks[1].counter_at(at));
            let (all, rest): (Vec<_>, Vec<_>) = arrived.partition(|counter| *counter < before.at(early));
            let (last, next) = (all.into_iter().max().unwrap(), rest.into_iter().min().unwrap());
            assert!(next > after.at(late), "{next}");
            let worst = [known(before).worst((start, last)), known(&after).worst((next, stop))];
            println!("{kind}: wrong by up to {worst:?}, bound {within}");
            assert!(worst.into_iter().all(|worst| worst <= within), "{worst:?}");
            continue;
        }
        let known = known(before);
        let worst = known.worst((start, stop));
        assert!(worst <= within, "{worst} {within}");
        // By both counters, as they were set.
        let counts = [start, stop].map(|counter| clocks[0].counter_at(known.shift.at(clocks[1].tsc_units(counter))));
        let rate = (stop - start) as f64 / (counts[1] - counts[0]) as f64 - 1.0;
        let seconds = (header.stop.monotonic_ns - header.start.monotonic_ns) as f64 / 1e9;
        println!("{kind}: wrong by up to {worst}, bound {within}; fast by {rate:e}, set {:e}", before.rate());
        assert!(Time::of_seconds((rate - before.rate()).abs() * seconds) <= within * 2, "{rate}");
        // And by the output, for the clocks that the kernels made of their counters.
        let [offset, bound, ppm] = printed(&said);
        let ends =
            [start, stop].map(|counter| (time(&clocks[0], first.at(before.host(counter))), time(&clocks[1], counter)));
        let bases = (clocks[1].base - clocks[0].base) as f64;
        let truth = bases + (ends[0].1 - ends[0].0).0 as f64 / 1e8;
        let drift = ((ends[1].1 - ends[0].1).0 as f64 / (ends[1].0 - ends[0].0).0 as f64 - 1.0) * 1e6;
        println!("{kind}: printed {offset} s {ppm} ppm within {bound} s; {truth} s {drift} ppm is true");
        assert!((offset - truth).abs() <= bound + 1e-6, "{offset} {truth}");
        assert!((ppm - drift).abs() * seconds <= (2.0 * bound + 1e-6) * 1e6 + 0.1 * seconds, "{ppm} {drift}");
    }
}

#[test]
fn three_guests_in_a_row_have_one_time() {
    let ask = |next: u32| format!("./exchange ask tcp 10.0.{next}.2 4711 500\n");
    let record = |work: &str| {
        format!(
            "insmod $KUTRACE_MODULE\nkutrace_control go --packets 4711\n{work}\n\
             kutrace_control stop $SHARE/t.trace\n"
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
    // The event that the first waits for is on its way, or at the second, which waits for the third.
    let why = control().arg("why").arg(&out).args(["--client", "exchange", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.status.success(), "{}", String::from_utf8_lossy(&why.stderr));
    for part in ["waiting for a message of exchange on machine1, meanwhile ", "meanwhile the packet was on its way"] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
}
