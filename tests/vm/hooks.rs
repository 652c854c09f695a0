// SPDX-License-Identifier: BSD-3-Clause
//! Hooks that no other test distinguishes, each against the counts of the kernel or a program. tests/mutants/hooks.txt
//! lists the test that fails without each hook.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use kutrace_format::x86::{softirq, trap, vector};
use postprocess::event::number::{
    IPI, IRQ, IRQ_LAST, MONITOR_EXIT, MONITOR_STORE, MWAIT, PC_KERNEL, PC_USER, PID_NAME, RETURN_BIT, RUNNABLE, SCHED,
    SOFTIRQ, SYSCALL, TRAP,
};
use postprocess::event::Event;
use postprocess::id::{CpuId, Pid};

use crate::blocks::Blocks;
use crate::guest::{self, Run};
use crate::proof::{self, growth, Window};
use crate::trace::Recording;

const CLONE_RETURN: u32 = (SYSCALL + 56) | RETURN_BIT;
const MACHINE_CHECK: u32 = TRAP + trap::MACHINE_CHECK;
/// Hints of `mwait` for polling, for hlt, for an I/O port (in the night), and for the state of provoke.c that watches a
/// word.
const POLLING: u32 = 253;
const HLT: u32 = 254;
const IO_PORT: u32 = 255;
const WATCHING: u32 = 0x21;
/// Interrupts that one CPU sends another to wake it.
const FROM_A_CPU: std::ops::RangeInclusive<u32> = IRQ + vector::IRQ_WORK..=IRQ + vector::RESCHEDULE;
/// The softirq that balances the load is over.
const BALANCED: (u32, u32) = (SOFTIRQ | RETURN_BIT, softirq::SCHED);
/// As in hooks.c.
const FORKS: usize = 30;
/// Units of 10 ns in which a store that ends a sleep is recorded, by a CPU whose turn may come after the
/// others', each of which has a tick at most.
const SOON: i64 = 2_000_000;

#[test]
fn a_short_load_is_told_as_the_kernel_counts_it() {
    let run = guest::succeed(
        // Two other CPUs are asked by one interrupt.
        &["--cpus", "4"],
        r#"
        cd /tmp
        cp $BIN/proof $BIN/hooks .
        cat >load <<'LOAD'
        for n in $(seq 10); do echo l >/proc/sysrq-trigger; done
        ./hooks
        for n in 1 2 3 4 5; do cat /usr/bin/perl >$SHARE/copy; done
LOAD
        export SHARE
        dmesg --console-level 1
        kutrace_control go
        ./proof $SHARE bash load
        kutrace_control stop $SHARE/t.raw
        echo mwait=$(dmesg | grep -c 'using mwait in idle' || true)
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    proof::interrupts(&run, &trace);
    proof::softirqs(&run, &trace);
    proof::totals(&run, &trace);
    proof::own(&run, &trace);
    proof::every_ipi_was_sent(&trace, &[(2, 20), (0xf6, 20), (0xfb, 20), (0xfc, 20), (0xfd, 20)]);
    each_tick_has_a_sample(&run, &trace);
    forks_are_named_and_return_in_the_child(&trace);
    assert!(trace.of(PID_NAME).any(|e| trace.event_name(e) == "renamed"));

    // The kernel's name for its way to idle.
    let hints: BTreeSet<u32> = trace.of(MWAIT).map(|e| e.arg).collect();
    assert_eq!(hints, [if run.number("mwait") == 1 { 0 } else { HLT }].into());
    let (sleeps, unexplained) = ends_of_sleep(&trace);
    assert!(unexplained.is_empty(), "{} of {sleeps}: {:?}", unexplained.len(), unexplained.first());
}

/// A tick during a program, or during the kernel's work, counts as 4 ms of that; the kernel shows hundredths of a
/// second.
fn each_tick_has_a_sample(run: &Run, trace: &Recording) {
    let window = Window::new(trace, proof::BEFORE + 4, proof::AFTER + 4);
    let mut all = 0;
    for cpu in 0..trace.events.meta.intervals.len() {
        let columns = growth(run, "stat", &format!("cpu{cpu} "));
        let ticks = (columns[0] + columns[1]) * 10 / 4;
        let samples = trace.of(PC_USER).filter(|e| e.cpu.index() == cpu);
        // Two columns, each cut off at both ends.
        window.assert(&format!("ticks in programs, cpu {cpu}"), ticks, samples, 6);
        all += ticks;
        // In the kernel, in interrupts and in softirqs. One that finds an idle CPU may find it in any of these, too.
        let ticks = (columns[2] + columns[5] + columns[6]) * 10 / 4;
        let (mut idle, mut at_work) = (0, 0);
        for e in trace.of(PC_KERNEL).filter(|e| e.cpu.index() == cpu && window.outer.contains(&e.ts.0)) {
            *(if e.pid == Pid::IDLE { &mut idle } else { &mut at_work }) += 1;
        }
        eprintln!(
            "ticks in the kernel, cpu {cpu}: the kernel counted {ticks}, the trace {at_work}, and {idle} while idle"
        );
        assert!((at_work.max(12) - 12..=at_work + idle + 12).contains(&ticks), "cpu {cpu}");
    }
    assert!(all > 40, "{all}");
}

fn forks_are_named_and_return_in_the_child(trace: &Recording) {
    let pids = trace.pids_of("hooks");
    let returned = trace.of(CLONE_RETURN).filter(|e| e.ret == 0 && pids.contains(&e.pid));
    let children: BTreeSet<Pid> = returned.map(|e| e.pid).collect();
    assert!(children.len() > FORKS, "{children:?}");
    // And each has its name from the time it is made runnable, not only from the time it runs.
    let when = |number, pid: Pid| trace.of(number).find(|e| e.arg == pid.number()).map(|e| e.ts);
    for pid in children {
        let (named, woken) = (when(PID_NAME, pid), when(RUNNABLE, pid));
        assert!(named.is_some() && named <= woken, "{pid} is named at {named:?} and woken at {woken:?}");
    }
}

/// Number of times a CPU left a sleep that a store can end, and their moments without interrupt and without store. The
/// CPU that stores records it right after that, perhaps when the other is idle but not yet asleep. A CPU that polls
/// continues doing so after an interrupt that wakes no thread; one that balanced the load last may have taken a thread
/// itself.
fn ends_of_sleep(trace: &Recording) -> (usize, Vec<(CpuId, i64)>) {
    let mut stores: BTreeMap<CpuId, Vec<i64>> = BTreeMap::new();
    trace.of(MONITOR_STORE).for_each(|e| stores.entry(CpuId::new(e.arg)).or_default().push(e.ts.0));
    let mut idle: BTreeMap<CpuId, i64> = BTreeMap::new();
    let mut asleep: BTreeMap<CpuId, bool> = BTreeMap::new();
    let mut balanced: BTreeMap<CpuId, bool> = BTreeMap::new();
    let (mut sleeps, mut unexplained) = (0, Vec::new());
    let end = trace.events.events.last().map_or(0, |e| e.ts.0);
    for e in &trace.events.events {
        let polls = asleep.get(&e.cpu).is_some_and(|&polls| polls);
        let balanced = balanced.insert(e.cpu, (e.event(), e.arg) == BALANCED).unwrap_or(false);
        match e.event() {
            MONITOR_EXIT if balanced => drop(asleep.remove(&e.cpu)),
            MWAIT if e.arg != HLT && idle.contains_key(&e.cpu) => drop(asleep.insert(e.cpu, e.arg == POLLING)),
            SCHED => {
                let since = idle.remove(&e.cpu);
                let (Some(since), Some(_)) = (since, asleep.remove(&e.cpu)) else { continue };
                sleeps += 1;
                let of_cpu = stores.get(&e.cpu).map_or(&[][..], Vec::as_slice);
                let is_explained = of_cpu.iter().any(|store| (since..=e.ts.0 + SOON).contains(store));
                if !is_explained && e.ts.0 + SOON < end {
                    unexplained.push((e.cpu, e.ts.0));
                }
            }
            number if number == SCHED | RETURN_BIT => drop(idle.insert(e.cpu, e.ts.0)),
            RUNNABLE if asleep.remove(&e.cpu).is_none() => drop(idle.remove(&e.cpu)),
            number if FROM_A_CPU.contains(&number) => drop(asleep.remove(&e.cpu)),
            number if (TRAP..=IRQ_LAST).contains(&number) && !polls => drop(asleep.remove(&e.cpu)),
            _ => {}
        }
    }
    (sleeps, unexplained)
}

/// Wakeups far apart: by a pipe on another CPU, by a fork, by a thread that is moved to another CPU while it waits for
/// its turn (203 is sched_setaffinity), and by a timer that another CPU sets.
const SLOW_WAKEUPS: &str = r#"
    cat >/tmp/wakeups <<'PERL'
    open my $pipe, "|-", "taskset -c 1 cat >/dev/null" or die;
    select((select($pipe), $| = 1)[0]);
    my $second = pack "Q", 2;
    for (1 .. 8) {
        select undef, undef, undef, 0.04;
        print $pipe "x";
        select undef, undef, undef, 0.04;
        fork || exit;
        wait;
        my $spins = fork || do { 1 while 1 };
        select undef, undef, undef, 0.04;
        syscall(203, $spins, 8, $second) == 0 or die;
        kill KILL => $spins;
        wait;
        next unless -e "/sys/module/provoke";
        select undef, undef, undef, 0.04;
        open my $do, ">", "/sys/module/provoke/parameters/do" or die;
        syswrite $do, "timer 1";
    }
PERL
"#;

#[test]
fn a_poll_ends_by_an_interrupt_or_a_store() {
    let script = "
        kutrace_control go
        taskset -c 0 sleep 0.1
        taskset -c 0 perl /tmp/wakeups
        kutrace_control stop $SHARE/t.raw
        ";
    let run = guest::succeed(&["--cpus", "2", "--append", "idle=poll"], &[SLOW_WAKEUPS, script].concat());
    let trace = Recording::read_whole(&run.file("t.raw"));
    assert!(trace.of(MWAIT).all(|e| e.arg == POLLING));
    let (sleeps, unexplained) = ends_of_sleep(&trace);
    assert!(sleeps > 16 && unexplained.is_empty(), "{} of {sleeps}: {:?}", unexplained.len(), unexplained.first());
}

#[test]
fn each_idle_state_of_a_driver_is_recorded_and_what_ends_it() {
    let run = guest::succeed(
        &["--cpus", "2", "--beside"],
        &[
            SLOW_WAKEUPS,
            "
        insmod $KUTRACE_BESIDE/provoke.ko watch=1
        idle() { taskset -c 0 perl /tmp/wakeups; }
            ",
            IDLE,
        ]
        .concat(),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let entered = idle_states_entered(&run, &trace, [POLLING, HLT, WATCHING]);
    assert!(entered.iter().sum::<u64>() > 40, "{entered:?}");
    let (sleeps, unexplained) = ends_of_sleep(&trace);
    assert!(sleeps > 10 && unexplained.is_empty(), "{} of {sleeps}: {:?}", unexplained.len(), unexplained.first());
}

/// Of the night: with a driver of ACPI's, which only the distribution's kernel has, CPUs never idle by default.
#[cfg(feature = "night")]
#[test]
fn each_idle_state_of_acpi_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("cstates.aml");
    let source = guest::folder().join("cstates.asl");
    let iasl = Command::new("iasl").arg("-p").arg(&table).arg(source).output().unwrap();
    assert!(iasl.status.success(), "{}", String::from_utf8_lossy(&iasl.stdout));
    let run = guest::succeed(
        &["--kernel", "distribution", "--cpus", "2", "--acpi-table", table.to_str().unwrap()],
        &["grep acpi_idle /sys/devices/system/cpu/cpuidle/current_driver\nidle() { sleep 0.3; }", IDLE].concat(),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let entered = idle_states_entered(&run, &trace, [POLLING, HLT, IO_PORT]);
    // It polls only for a sleep that it expects to be shorter than any state is worth.
    assert!(entered[1] > 10 && entered[2] > 1000, "{entered:?}");
}

/// Traces two CPUs while `idle` runs, and returns the counts of cpuidle.
const IDLE: &str = r#"
    usage() {
        for cpu in 0 1; do for state in 0 1 2; do
            echo $1$cpu$state=$(cat /sys/devices/system/cpu/cpu$cpu/cpuidle/state$state/usage)
        done; done
    }
    usage outer_begin
    kutrace_control go
    usage inner_begin
    idle
    usage inner_end
    kutrace_control stop $SHARE/t.raw
    usage outer_end
    "#;

/// Number of times the two CPUs entered each idle state, by its hint; it must equal the count of cpuidle.
fn idle_states_entered(run: &Run, trace: &Recording, hints: [u32; 3]) -> [u64; 3] {
    let mut entered = [0; 3];
    for cpu in [0, 1].map(CpuId::new) {
        for (state, hint) in hints.into_iter().enumerate() {
            let grown = |edge: &str| {
                let of = |when: &str| run.number(&format!("{edge}_{when}{cpu}{state}"));
                of("end") - of("begin")
            };
            let traced = trace.of(MWAIT).filter(|e| e.cpu == cpu && e.arg == hint).count() as u64;
            eprintln!("cpu {cpu}, state {state}: {} to {}, traced {traced}", grown("inner"), grown("outer"));
            // A sleep is counted at its end.
            assert!((grown("inner").saturating_sub(1)..=grown("outer") + 1).contains(&traced), "cpu {cpu}, {hint}");
            entered[state] += traced;
        }
    }
    entered
}

#[test]
fn timers_that_are_broadcast_are_sent() {
    let run = guest::succeed(
        &["--cpus", "2", "--append", "nolapic_timer"],
        r#"
        kutrace_control go
        taskset -c 1 perl -e '$n++ for 1 .. 3000000' &
        taskset -c 0 perl -e '$n++ for 1 .. 3000000'
        wait
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    proof::every_ipi_was_sent(&trace, &[(0xec, 30), (2, 0), (0xf6, 0), (0xfb, 0), (0xfc, 0), (0xfd, 0)]);
}

#[test]
fn machine_checks_of_programs_and_of_idle_cpus_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let monitor = folder.path().join("monitor");
    let beside = |share: &Path, over: &AtomicBool| {
        for (begin, end) in [("busy", "enough"), ("idle", "over")] {
            while !share.join(begin).exists() && !over.load(Relaxed) {
                thread::sleep(Duration::from_millis(20));
            }
            proof::machine_checks(&monitor, share, over);
            fs::write(share.join(end), "").unwrap();
        }
    };
    let run = guest::run_beside(
        &["--cpus", "4", "--monitor", monitor.to_str().unwrap()],
        &[
            proof::SAY_CHECKS,
            r#"
        dmesg --console-level 1
        awk '$1 == "MCE:" { print "before=" $2 + $3 + $4 + $5 }' /proc/interrupts
        kutrace_control go
        for cpu in 0 1 2 3; do taskset -c $cpu perl -e '$n++ while 1' & done
        hogs=$(jobs -p)
        say_checks & checks=$!
        sleep 0.2
        touch $SHARE/busy
        until [ -e $SHARE/enough ]; do sleep 0.1; done
        kill $hogs
        sleep 0.2
        touch $SHARE/idle
        until [ -e $SHARE/over ]; do sleep 0.1; done
        kill $checks
        kutrace_control stop $SHARE/t.raw
        awk '$1 == "MCE:" { print "after=" $2 + $3 + $4 + $5 }' /proc/interrupts
        "#,
        ]
        .concat(),
        beside,
    )
    .succeeded();
    let trace = Recording::read_whole(&run.file("t.raw"));
    let counted = run.number("after") - run.number("before");
    let of = |number| trace.of(number).count() as u64;
    assert_eq!((of(MACHINE_CHECK), of(MACHINE_CHECK | RETURN_BIT)), (counted, counted));
    let in_programs = trace.of(MACHINE_CHECK).filter(|e| e.pid != Pid::IDLE).count();
    assert!(in_programs >= 2 && counted as usize >= in_programs + 2, "{in_programs} of {counted}");
}

/// The names of an interrupt one after the other.
fn names<'a>(trace: &'a Recording, wanted: &str) -> Vec<&'a str> {
    let of_devices = |e: &&Event| vector::DEVICES.contains(&e.event().wrapping_sub(IRQ));
    let named = trace.events.events.iter().filter(of_devices).map(|e| trace.event_name(e));
    let mut names: Vec<&str> = named.filter(|name| name.contains(wanted)).collect();
    names.dedup();
    names
}

#[test]
fn what_a_kernel_seldom_does_is_told() {
    let run = guest::succeed(
        // An interrupt that is a message cannot be shared.
        &["--cpus", "2", "--beside", "--append", "pci=nomsi"],
        r#"
        do=/sys/module/provoke/parameters/do
        insmod $KUTRACE_BESIDE/provoke.ko
        head -c 4000000 /dev/urandom >$SHARE/data
        # The share's own: all that share this interrupt have one name together.
        irq=$(awk '/virtio/ { sub(":", "", $1); print $1, $2 + $3 }' /proc/interrupts | sort -nk2 | tail -n 1)
        irq=${irq% *}
        use() { for n in 1 2 3 4; do cat $SHARE/data >/dev/null; done; }
        kutrace_control go
        echo "wake 50" >$do
        use
        echo "share $irq" >$do
        use
        echo "unshare $irq" >$do
        use
        exec 3>/dev/ttyS0
        echo one >&3
        sleep 0.1
        echo "off 4" >$do
        echo two >&3 &
        sleep 0.1
        echo "on 4" >$do
        wait
        exec 3>&-
        kutrace_control stop $SHARE/t.raw
        echo me=$$
        grep -E "^ *$irq:" /proc/interrupts
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let me = run.number("me") as u32;
    let itself = trace.of(RUNNABLE).filter(|e| e.arg == me && e.pid.number() == me).count();
    assert_eq!(itself, 50, "a thread that wakes itself");

    let shared = names(&trace, "provoked");
    assert_eq!(shared.len(), 1, "{shared:?}");
    let alone = shared[0].trim_end_matches(",_provoked");
    assert_eq!(names(&trace, alone), [alone, shared[0], alone]);

    assert!(names(&trace, "ttyS0").contains(&"ttyS0"), "{:?}", names(&trace, ""));
    let resent: Vec<_> = trace.of(IPI).filter(|e| (0x20..0xec).contains(&e.ret)).collect();
    assert!(!resent.is_empty(), "the interrupt that came while it was off");
    let [first, ..] = resent[..] else { unreachable!() };
    let arrived = trace.of(IRQ + first.ret as u32).any(|e| e.cpu.number() == first.arg && e.ts >= first.ts);
    assert!(arrived, "{first:?}");
}

/// Traces begin and end while the owner of an interrupt is freed and made again. The debug kernel reports any access to
/// freed memory.
#[test]
fn a_device_that_goes_takes_its_vector_along() {
    let debug = &["--kernel", "debug", "--timeout", "3600"][..];
    let (kernel, rounds) = guest::by_form((&[][..], 10), (&[][..], 20), (debug, 300));
    let run = guest::succeed(
        &[&["--cpus", "2", "--disk", "64"], kernel].concat(),
        &format!(
            r#"
            driver=/sys/bus/virtio/drivers/virtio_blk
            disk=$(basename $driver/virtio*)
            again() {{
                until [ -e $SHARE/enough ]; do
                    echo $disk >$driver/unbind
                    echo $disk >$driver/bind
                done
            }}
            again &
            for n in $(seq {rounds}); do
                kutrace_control go
                kutrace_control stop --force $SHARE/again.raw
            done
            touch $SHARE/enough
            wait
            grep -q $disk-req /proc/interrupts
            kutrace_control go
            echo $disk >$driver/unbind
            kutrace_control stop $SHARE/t.raw
            "#
        ),
    );
    Recording::read_whole(&run.file("again.raw"));
    Recording::read_whole(&run.file("t.raw"));
    let mut owners: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
    for (_, cpu, vector, name) in Blocks::read(&run.file("t.raw")).vectors {
        owners.entry((cpu, vector)).or_default().push(name);
    }
    let of_disk: Vec<_> = owners.values().filter(|names| names.iter().any(|name| name.contains("-req."))).collect();
    assert!(!of_disk.is_empty(), "{owners:?}");
    assert!(of_disk.iter().all(|names| names.last().is_some_and(String::is_empty)), "{owners:?}");
}

#[test]
fn a_vector_that_no_device_has_any_more_is_told() {
    let run = guest::succeed(
        // A vector moves with the next interrupt, which comes within the sleep.
        &["--cpus", "2"],
        r#"
        kutrace_control go
        for n in $(seq 8); do
            echo $((n % 2 + 1)) >/proc/irq/4/smp_affinity
            for m in 1 2 3; do echo one >/dev/ttyS0; sleep 0.02; done
        done
        irq=$(awk '/virtio/ { sub(":", "", $1); print $1, $2 + $3 }' /proc/interrupts | sort -nk2 | tail -n 1)
        for n in $(seq 8); do
            echo $((n % 2 + 1)) >/proc/irq/${irq% *}/smp_affinity
            for m in 1 2 3; do cat /mnt/share/job.sh >/dev/null; sleep 0.02; done
        done
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    Recording::read_whole(&run.file("t.raw"));
    let mut owners: BTreeMap<(u32, u32), String> = BTreeMap::new();
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    for (_, cpu, vector, name) in Blocks::read(&run.file("t.raw")).vectors {
        let before = owners.insert((cpu, vector), name.clone());
        *given.entry(name).or_default() += usize::from(before.is_none_or(|before| before.is_empty()));
    }
    eprintln!("vectors were given so often: {given:?}; they are in the end {owners:?}");
    let holders = |wanted: &str| owners.values().filter(|name| name.contains(wanted)).count();
    let times = |wanted: &str| given.iter().filter(|(name, _)| name.contains(wanted)).map(|(_, n)| n).sum::<usize>();
    assert!(times("ttyS0") > 1 && times("virtio") > 4, "{given:?}");
    // Two are called i8042. One more until the first interrupt has come on the new CPU.
    let names: BTreeSet<&String> = owners.values().filter(|name| !name.is_empty()).collect();
    assert!(names.iter().all(|name| holders(name) <= 2), "{owners:?}");
    assert!(owners.values().filter(|name| !name.is_empty()).count() <= names.len() + 1, "{owners:?}");
}
