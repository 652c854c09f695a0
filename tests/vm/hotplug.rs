// SPDX-License-Identifier: BSD-3-Clause
//! CPUs that go offline and come back, at any moment: a CPU's last block is complete while it is away, its first event
//! records that it is back, and nothing is recorded after the stop.

use std::fs;
use std::path::Path;

use kutrace_format::abi::event::{OFFLINE, ONLINE};
use postprocess::event::number::{self, MARK_A};
use postprocess::id::CpuId;

use crate::blocks::Blocks;
use crate::guest;
use crate::trace::{self, Recording};

/// Traces of each kind.
const ROUNDS: usize = guest::by_form(3, 6, 60);
/// Least number of times that a CPU goes or comes in a test: in the soak as often as in a day with one each minute.
const TOGGLES: u64 = guest::by_form(24, 48, 1440);
/// From the moment of a stop or a snapshot until the last CPU has ended its block. It is an interrupt; but the host may let
/// a CPU wait for as long as it likes.
const ROUND_SECONDS: u64 = 60;

/// Switches the CPUs 1 to 3 off and on, until there is a file /tmp/over; then all are on. `toggles N` waits for that many
/// more: among four in a row are some of each kind.
const TOGGLE: &str = r#"
    switch() { echo $2 >/sys/devices/system/cpu/cpu$1/online; }
    toggle() {
        echo >/tmp/toggles
        while [ ! -e /tmp/over ]; do
            for state in 0 1; do for cpu in 1 2 3; do switch $cpu $state && echo >>/tmp/toggles; done; done
        done
    }
    toggles() {
        local wanted=$(($(wc -l </tmp/toggles) + $1))
        enough() { [ $(wc -l </tmp/toggles) -ge $wanted ]; }
        await enough
    }
"#;

#[test]
fn traces_are_whole_while_cpus_come_and_go() {
    let script = format!(
        r#"
        insmod $KUTRACE_MODULE tracemb=48
        nice -n 19 stress-ng --quiet --switch 1 --fault 1 --fork 1 --timeout 0 &
        load=$!
        toggle & toggler=$!
        for n in $(seq {ROUNDS}); do
            kutrace_control go
            toggles 5
            kutrace_control stop $SHARE/go$n.raw
        done
        rmmod kutrace
        insmod $KUTRACE_MODULE tracemb=8
        kutrace_control gowrap
        for n in $(seq {ROUNDS}); do
            toggles 5
            kutrace_control snapshot $SHARE/wrap$n.raw
        done
        toggles {TOGGLES}
        kutrace_control stop $SHARE/wrap.raw
        touch /tmp/over
        wait $toggler
        kill $load
        dmesg >$SHARE/dmesg
        ! grep -E 'WARNING|BUG|Oops|RIP:' $SHARE/dmesg >&2
        echo toggles=$(wc -l </tmp/toggles)
        "#
    );
    let run = guest::succeed(&[guest::AT_ONCE, "--no-load", "--timeout", "1200"], &[TOGGLE, &script].concat());
    let named = |kind: &str| (1..=ROUNDS).map(|n| run.file(&format!("{kind}{n}.raw"))).collect::<Vec<_>>();
    let counted = trace::each(&[named("go"), named("wrap"), vec![run.file("wrap.raw")]].concat(), |path| {
        let name = path.file_name().unwrap().to_string_lossy();
        let blocks = Blocks::read(path);
        each_cpu_says_when_it_is_there(&blocks, &name);
        nothing_comes_after_the_stop(&blocks, &name);
        let second_opinion = guest::by_form(name == "wrap.raw", !name.starts_with("go"), true);
        let read = if second_opinion { Recording::read_whole } else { Recording::read_whole_alone };
        read(path);
        fs::remove_file(path).unwrap();
        let gone = blocks.all().filter(|block| block.offline_after).count();
        (gone, blocks.all().filter(|block| block.ends.is_some_and(|ends| ends.0 == ONLINE)).count())
    });
    let (gone, back) = counted.into_iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    assert!(run.number("toggles") >= TOGGLES);
    eprintln!(
        "hotplug: CPUs were switched {} times; {gone} blocks end with their CPU, {back} begin with it",
        run.number("toggles")
    );
    assert!(gone >= ROUNDS && back >= ROUNDS, "CPUs went {gone} times and came {back} times");
}

/// A block after which its CPU went offline records that with its last entry, and the next one with its first.
fn each_cpu_says_when_it_is_there(blocks: &Blocks, name: &str) {
    for (cpu, of_cpu) in &blocks.cpus {
        let place = |sequence: u64| format!("{name}: cpu {cpu}, block {sequence}");
        for block in of_cpu {
            let (first, last) = block.ends.unwrap_or_else(|| panic!("{}: is empty", place(block.sequence)));
            assert_eq!(block.offline_after, last == OFFLINE, "{}: last is {last:#x}", place(block.sequence));
            assert!(block.sequence != 0 || blocks.offline.contains(cpu) == (first == ONLINE), "{first:#x}");
        }
        for pair in of_cpu.windows(2) {
            let first = pair[1].ends.map(|ends| ends.0);
            assert_eq!(pair[0].offline_after, first == Some(ONLINE), "{}: {first:x?}", place(pair[1].sequence));
        }
    }
    let silent = (0..blocks.header.cpus).filter(|cpu| !blocks.cpus.contains_key(cpu));
    silent.for_each(|cpu| assert!(blocks.offline.contains(&cpu), "{name}: cpu {cpu} has no block and was not offline"));
}

/// Every CPU that is there at the end has its last block up to then, and no CPU has one that continues.
fn nothing_comes_after_the_stop(blocks: &Blocks, name: &str) {
    let header = &blocks.header;
    let stop = header.stop.tsc >> header.shift;
    let round = (ROUND_SECONDS * header.tsc_hz) >> header.shift;
    for (cpu, of_cpu) in &blocks.cpus {
        let last = of_cpu[of_cpu.len() - 1];
        assert!(last.span.1 < stop + round, "{name}: cpu {cpu} ends {} after the stop", last.span.1 - stop);
        assert!(last.offline_after || last.span.1 >= stop, "{name}: cpu {cpu} ends before the stop");
    }
}

#[test]
fn a_cpu_that_is_away_is_in_every_snapshot_and_one_away_at_the_start_is_named() {
    let script = r#"
        insmod $KUTRACE_MODULE tracemb=8
        kutrace_control gowrap
        taskset -c 3 kutrace_control mark three
        switch 3 0
        kutrace_control snapshot $SHARE/away.raw
        kutrace_control stop $SHARE/stop.raw
        kutrace_control go
        kutrace_control mark here
        switch 3 1
        taskset -c 3 kutrace_control mark back
        kutrace_control stop $SHARE/back.raw
        "#;
    let run = guest::succeed(&[guest::AT_ONCE, "--no-load"], &[TOGGLE, script].concat());
    let marks = |path: &Path| {
        let trace = Recording::read_whole(path);
        let of = trace.of(MARK_A).map(|e| (trace.event_name(e).to_string(), e.cpu.number()));
        of.collect::<Vec<_>>()
    };
    for name in ["away.raw", "stop.raw"] {
        assert_eq!(marks(&run.file(name)), [("mark_a=three".to_string(), 3)], "{name}");
        assert!(Blocks::read(&run.file(name)).offline.is_empty());
    }
    for name in ["stop.raw", "back.raw"] {
        let blocks = Blocks::read(&run.file(name));
        let stop = blocks.header.stop.tsc >> blocks.header.shift;
        let late: Vec<_> = blocks.all().filter(|block| block.span.0 > stop).collect();
        assert!(late.is_empty(), "{name}: these begin after the stop at {stop}: {late:?}");
    }
    let path = run.file("back.raw");
    assert_eq!(Blocks::read(&path).offline, [3].into());
    assert_eq!(marks(&path)[1], ("mark_a=back".to_string(), 3));
    let trace = Recording::read_and_ask(&path);
    let first = trace
        .events
        .events
        .iter()
        .find(|e| e.cpu == CpuId::new(3) && e.event() >= number::TRAP || e.event() == number::ONLINE);
    assert_eq!(first.map(|e| (e.event(), e.cpu.number(), e.arg)), Some((number::ONLINE, 3, 3)), "{first:?}");
}
