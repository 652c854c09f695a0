// SPDX-License-Identifier: BSD-3-Clause
//! Nothing is missing: over a traced interval our counts equal the kernel's own.
//!
//! proof.c reads each of the kernel's files between two marks, before and after a load. Everything between the second
//! mark and the third was counted; everything counted happened between the first and the fourth. So the count lies
//! between two numbers from the trace, which differ by the events during the readings. Beyond that, a CPU that was
//! inside a hooked place at an edge may have counted already and recorded later, or the reverse: one for each CPU and
//! edge.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use kutrace_format::x86::{softirq, trap, vector};
use kutrace_tests::number::{of_thread, on_cpu};
use postprocess::event::number::{
    EXIT, IDLE_EXIT, IPI, IRQ, IRQ_LAST, MONITOR_EXIT, MWAIT, PC_KERNEL, RUNNABLE, SCHED, SOFTIRQ, STALLED, SYSCALL,
    SYSCALL32, SYSCALL_LAST, SYSCALL_RETURN, SYSCALL_RETURN_LAST, TRAP, USER,
};
use postprocess::event::Event;
use postprocess::id::Pid;
use postprocess::span::what::What;
use postprocess::span::Span;
use postprocess::time::Time;

use crate::audit::certifies;
use crate::guest::{self, Run};
use crate::trace::Recording;

const CPUS: usize = 4;
/// The marks: calls of sched_get_priority_max.
const MARK: u32 = SYSCALL + 146;
/// The marks before the reading of the first file, before and after the load, before the program's own work, and before
/// its major faults.
pub const BEFORE: u32 = 20_000;
pub const AFTER: u32 = 20_100;
const OWN: u32 = 20_200;
const FAULTS: u32 = 20_300;
/// The mark of calls.c.
const FIRST_CALL: u32 = 30_000;
/// `rt_sigreturn`, whose number is not known when it comes back; `exit` and `exit_group`, which do not.
const NO_RETURN: [u32; 3] = [15, 60, 231];
/// Non-maskable interrupts, all of which are sent by a CPU here.
const NMI: u32 = TRAP + trap::NMI;
/// The hint of `mwait` for idle that polls.
const POLLING: u32 = 253;
/// Units of 10 ns in the kernel's unit.
const HUNDREDTH: i64 = 1_000_000;
/// Units of 10 ns in a tick of 250 Hz.
const TICK: i64 = 400_000;

/// The time between two readings of a counter, each of them between two marks.
pub struct Window {
    /// Everything here was counted.
    pub inner: Range<i64>,
    /// Everything counted happened here.
    pub outer: Range<i64>,
}

impl Window {
    /// Between the readings that follow these marks.
    pub fn new(trace: &Recording, before: u32, after: u32) -> Window {
        let at = |mark| {
            let found: Vec<_> = trace.of(MARK).filter(|e| e.arg == mark).collect();
            assert_eq!(found.len(), 1, "mark {mark}");
            found[0].ts.0
        };
        Window { inner: at(before + 1)..at(after), outer: at(before)..at(after + 1) + 1 }
    }

    /// Compares with `events`, `in_flight` of which may have been under way at the edges.
    pub fn assert<'a>(&self, what: &str, counted: u64, events: impl Iterator<Item = &'a Event>, in_flight: u64) {
        let (mut inner, mut outer) = (0, 0);
        for event in events {
            inner += u64::from(self.inner.contains(&event.ts.0));
            outer += u64::from(self.outer.contains(&event.ts.0));
        }
        eprintln!("{what}: the kernel counted {counted}, the trace {inner} to {outer}");
        assert!((inner.saturating_sub(in_flight)..=outer + in_flight).contains(&counted), "{what}");
    }
}

/// Growth of the columns of the line `key` from the file `name.before` to `name.after`.
pub fn growth(run: &Run, name: &str, key: &str) -> Vec<u64> {
    let read = |when: &str| {
        let text = fs::read_to_string(run.file(&format!("{name}.{when}"))).unwrap();
        let line = text.lines().find_map(|l| l.trim_start().strip_prefix(key)).unwrap_or_else(|| panic!("no {key}"));
        line.split_whitespace().map_while(|n| n.parse::<u64>().ok()).collect::<Vec<_>>()
    };
    read("after").iter().zip(read("before")).map(|(after, before)| after - before).collect()
}

/// Number of interrupts of devices on each CPU.
fn devices(run: &Run) -> [u64; CPUS] {
    let text = fs::read_to_string(run.file("interrupts.after")).unwrap();
    let mut sums = [0; CPUS];
    for key in text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())) {
        if key.parse::<u32>().is_ok() {
            let growth = growth(run, "interrupts", &format!("{key}:"));
            sums.iter_mut().zip(growth).for_each(|(sum, n)| *sum += n);
        }
    }
    sums
}

#[test]
fn the_trace_has_what_the_kernel_counted() {
    let monitor = tempfile::tempdir().unwrap();
    let monitor = monitor.path().join("monitor");
    let run = guest::run_beside(
        &["--cpus", "4", "--monitor", monitor.to_str().unwrap()],
        &[
            SAY_CHECKS,
            r#"
        cd /tmp
        cp $BIN/proof .
        cat >load <<'LOAD'
        say_checks & checks=$!
        for n in $(seq 10); do echo l >/proc/sysrq-trigger; sleep 0.1; done &
        for n in $(seq 20); do cat /usr/bin/perl >/mnt/share/copy; done &
        stress-ng --quiet --switch 1 --fault 1 --fork 1 --timer 1 --timer-freq 2000 --sock 1 --membarrier 1 --timeout 1
        until [ -e /mnt/share/checked ]; do sleep 0.1; done
        kill $checks
        wait
LOAD
        dmesg --console-level 1
        kutrace_control go
        ./proof $SHARE bash load
        kutrace_control stop $SHARE/t.raw
        rm $SHARE/copy
        "#,
        ]
        .concat(),
        |share, over| {
            machine_checks(&monitor, share, over);
            fs::write(share.join("checked"), "").unwrap();
        },
    )
    .succeeded();
    let trace = Recording::read_whole(&run.file("t.raw"));
    interrupts(&run, &trace);
    assert_eq!(growth(&run, "interrupts", "MCE:"), [2; CPUS], "machine checks that were raised");
    softirqs(&run, &trace);
    totals(&run, &trace);
    idle_time(&run, &trace);
    faults(&run, &trace);
    own(&run, &trace);
    certifies(
        &run.file("t.raw"),
        &[
            "NMIs",
            "timer interrupts",
            "machine checks",
            "softirqs RCU",
            "context switches",
            "new threads",
            "page faults",
        ],
    );
    let often = 4 * CPUS as u64;
    // Work that a CPU sends itself an interrupt for is rare.
    every_ipi_was_sent(&trace, &[(2, often), (0xf6, 0), (0xfb, often), (0xfc, often), (0xfd, often)]);
}

/// `say_checks` prints again and again the number of machine checks, and the kind of the processor.
pub const SAY_CHECKS: &str = r#"
    export SHARE
    cat >/tmp/checks <<'PERL'
    my $kind = `grep -m 1 vendor_id /proc/cpuinfo`;
    my $said = "";
    while (1) {
        open my $interrupts, "<", "/proc/interrupts" or die;
        my ($checks) = grep /MCE:/, <$interrupts>;
        if ($checks ne $said) {
            open my $file, ">", "$ENV{SHARE}/checks.new" or die;
            print $file $kind, $said = $checks;
            close $file;
            rename "$ENV{SHARE}/checks.new", "$ENV{SHARE}/checks" or die;
        }
        select undef, undef, undef, 0.02;
    }
PERL
    say_checks() { exec nice -n -20 perl /tmp/checks; }
    export -f say_checks
"#;

/// Raises two machine checks on each CPU, from outside, one after the other, while the guest prints their number. The
/// kernel continues after them: an error to be handled later, as AMD reports it, or one found by scrubbing memory, as
/// Intel does, to all CPUs at once.
pub fn machine_checks(monitor: &Path, share: &Path, over: &AtomicBool) {
    let said = || fs::read_to_string(share.join("checks")).unwrap_or_default();
    let count = |said: &str| -> Option<u64> {
        let counts = said.lines().find_map(|line| line.trim_start().strip_prefix("MCE:"))?;
        Some(counts.split_whitespace().map_while(|count| count.parse::<u64>().ok()).sum())
    };
    let reached = |wanted: u64| {
        while count(&said()).is_none_or(|count| count < wanted) {
            if over.load(Relaxed) {
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        count(&said())
    };
    let Some(mut before) = reached(0) else { return };
    let is_intel = said().contains("GenuineIntel");
    let mut monitor = UnixStream::connect(monitor).unwrap();
    for cpu in [0, 1, 2, 3, 0, 1, 2, 3].into_iter().take(if is_intel { 2 } else { 8 }) {
        let check = match is_intel {
            true => format!("mce -b {cpu} 9 0xbd000000000000c0 5 0x62000000 0x8c\n"),
            false => format!("mce {cpu} 2 0xb000100000000000 5 0x1000 0\n"),
        };
        monitor.write_all(check.as_bytes()).unwrap();
        let Some(now) = reached(before + if is_intel { CPUS as u64 } else { 1 }) else { return };
        before = now;
    }
}

/// The machine's own interrupts: a line of /proc/interrupts, and the numbers of its events.
pub const SYSTEM: [(&str, &[u32]); 5] = [
    ("NMI:", &[NMI]),
    ("LOC:", &[IRQ + vector::LOCAL_TIMER]),
    ("IWI:", &[IRQ + vector::IRQ_WORK]),
    ("RES:", &[IRQ + vector::RESCHEDULE]),
    ("CAL:", &[IRQ + vector::CALL_FUNCTION_SINGLE, IRQ + vector::CALL_FUNCTION]),
];

pub fn interrupts(run: &Run, trace: &Recording) {
    vectors(run, trace, &[&SYSTEM[..], &[("MCE:", &[TRAP + trap::MACHINE_CHECK])]].concat());
}

/// Interrupts of these kinds, and of devices.
pub fn vectors(run: &Run, trace: &Recording, system: &[(&str, &[u32])]) {
    let window = Window::new(trace, BEFORE, AFTER);
    let of = |cpu: usize, numbers: &[u32]| {
        let numbers = numbers.to_vec();
        trace.events.events.iter().filter(move |e| e.cpu.index() == cpu && numbers.contains(&e.event()))
    };
    for &(key, numbers) in system {
        for (cpu, counted) in growth(run, "interrupts", key).into_iter().enumerate() {
            window.assert(&format!("{key} cpu {cpu}"), counted, of(cpu, numbers), 2);
        }
    }
    let vectors: Vec<u32> = vector::DEVICES.map(|vector| IRQ + vector).collect();
    for (cpu, counted) in devices(run).into_iter().enumerate() {
        window.assert(&format!("devices, cpu {cpu}"), counted, of(cpu, &vectors), 2);
    }
    for key in ["NMI:", "LOC:", "RES:", "CAL:"] {
        assert!(growth(run, "interrupts", key).iter().sum::<u64>() > 20, "{key} too few");
    }
    assert!(devices(run).iter().sum::<u64>() > 20, "too few interrupts of devices");
}

pub fn softirqs(run: &Run, trace: &Recording) {
    let window = Window::new(trace, BEFORE + 2, AFTER + 2);
    for (nr, name) in (0..).zip(softirq::NAMES) {
        for (cpu, counted) in growth(run, "softirqs", &format!("{name}:")).into_iter().take(CPUS).enumerate() {
            let events = trace.of(SOFTIRQ).filter(|e| e.arg == nr && e.cpu.index() == cpu);
            window.assert(&format!("softirq {name}, cpu {cpu}"), counted, events, 2);
        }
    }
}

pub fn totals(run: &Run, trace: &Recording) {
    let of_all_cpus = 2 * CPUS as u64;
    let window = Window::new(trace, BEFORE + 4, AFTER + 4);
    window.assert("context switches", growth(run, "stat", "ctxt ")[0], trace.switches(), of_all_cpus);
    window.assert("new tasks", growth(run, "stat", "processes ")[0], births(trace).into_iter(), of_all_cpus);
}

/// Idle time of each CPU. The kernel counts it in hundredths of a second, which may be off by one at each edge, and
/// without the entry and exit code of interrupts, which lie around the hooks; an NMI is idle to it. It may take a part
/// for a wait for a disk, as 7.3 does with a sleep without ticks, or for the interrupt that ended it. And until an
/// interrupt has come to the place where it ends the kernel's idle time, its CPU may stand still.
fn idle_time(run: &Run, trace: &Recording) {
    let window = Window::new(trace, BEFORE + 4, AFTER + 4).inner;
    for cpu in 0..trace.events.meta.intervals.len() {
        let counted = growth(run, "stat", &format!("cpu{cpu} "));
        let [idle, waiting, interrupts] =
            [3..4, 4..5, 5..7].map(|of| counted[of].iter().sum::<u64>() as i64 * HUNDREDTH);
        let (most, traced) = (idle + waiting + interrupts, time_within(&window, idle_spans(trace, cpu)));
        let in_interrupts = idle_thread(trace, cpu).filter(|s| s.event() as u32 == STALLED && !is_idle(s));
        let still = time_within(&window, in_interrupts);
        eprintln!(
            "idle, cpu {cpu}: the kernel counted {idle} to {most} units of 10 ns, the trace {traced} and {still}"
        );
        let (edges, allowed) = (2 * HUNDREDTH, most + most / 20);
        assert!(idle - edges <= traced + still && traced < allowed + edges, "idle, cpu {cpu}");
    }
}

/// Polling time of each idle CPU, by the ticks that found it there: a CPU that polls has them, even if the kernel, as
/// 7.3 does, counts fewer. One that stood still missed some; and a tick represents all of its 4 ms, including the
/// interrupts in them, of which it is one.
fn idle_ticks(trace: &Recording) {
    let window = Window::new(trace, BEFORE + 4, AFTER + 4).inner;
    for cpu in 0..trace.events.meta.intervals.len() {
        let is_idle = |e: &&Event| e.cpu.index() == cpu && e.pid.number() == 0 && window.contains(&e.ts.0);
        let sampled = trace.of(PC_KERNEL).filter(is_idle).count() as i64 * TICK;
        let with_interrupts = trace.spans.spans.iter().filter(|s| s.cpu == on_cpu(cpu) && s.pid == of_thread(0));
        let most = time_within(&window, with_interrupts);
        let least = time_within(&window, idle_spans(trace, cpu).filter(|s| s.event() as u32 != STALLED));
        eprintln!("idle, cpu {cpu}: its ticks show {sampled} units of 10 ns, the trace {least} to {most}");
        let most = most + most / 20 + 5 * TICK;
        assert!(sampled > 20 * TICK && (least - least / 20 - 5 * TICK..most).contains(&sampled), "idle, cpu {cpu}");
    }
}

/// The spans in which a CPU was idle.
fn idle_spans(trace: &Recording, cpu: usize) -> impl Iterator<Item = &Span> {
    idle_thread(trace, cpu).filter(|s| is_idle(s))
}

fn is_idle(span: &Span) -> bool {
    [USER, IDLE_EXIT, NMI].contains(&did(span))
}

fn idle_thread(trace: &Recording, cpu: usize) -> impl Iterator<Item = &Span> {
    trace.spans.spans.iter().filter(move |s| s.cpu == on_cpu(cpu) && s.pid == of_thread(0))
}

fn time_within<'a>(window: &Range<i64>, spans: impl Iterator<Item = &'a Span>) -> i64 {
    spans.map(|s| ((s.start.0 + s.dur.0).min(window.end) - s.start.0.max(window.start)).max(0)).sum()
}

#[test]
fn idle_that_polls_is_idle() {
    let run = guest::succeed(
        &["--cpus", "2", "--append", "idle=poll"],
        r#"
        cd /tmp
        cp $BIN/proof .
        kutrace_control go
        ./proof $SHARE bash -c 'for n in 1 2 3 4; do sleep 0.1; ls -R /etc >/dev/null; done'
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    idle_ticks(&trace);
    let (begins, ends) = (trace.of(MWAIT).count(), trace.of(MONITOR_EXIT).count());
    assert!(trace.of(MWAIT).all(|e| e.arg == POLLING));
    assert!(ends > 100 && begins.abs_diff(ends) <= trace.events.meta.intervals.len(), "{begins} {ends}");
}

/// The first wakeup of each thread younger than proof.c: pids are given in ascending order.
fn births(trace: &Recording) -> Vec<&Event> {
    let oldest = trace.of(MARK).next().expect("a mark").pid.number();
    let mut born = BTreeSet::new();
    trace.of(RUNNABLE).filter(|e| e.arg > oldest && born.insert(e.arg)).collect()
}

/// Number of calls that these threads made since the mark of calls.c, by number.
fn calls(trace: &Recording, pids: &BTreeSet<Pid>, base: u32) -> BTreeMap<u32, u64> {
    let begin = trace.of(MARK).find(|e| e.arg == FIRST_CALL).expect("the mark").ts;
    let mut counts = BTreeMap::new();
    for e in trace.events.events.iter().filter(|e| e.ts >= begin && pids.contains(&e.pid)) {
        if (base..base + SYSCALL_LAST - SYSCALL).contains(&e.event()) {
            *counts.entry(e.event() - base).or_default() += 1;
        }
    }
    counts
}

/// Number of these calls that returned, by number.
fn returns(trace: &Recording, pids: &BTreeSet<Pid>) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for e in trace.events.events.iter().filter(|e| pids.contains(&e.pid)) {
        let returned = match e.event() {
            number @ SYSCALL..=SYSCALL_LAST if e.dur > Time::ZERO => number - SYSCALL,
            number @ SYSCALL_RETURN..=SYSCALL_RETURN_LAST => number - SYSCALL_RETURN,
            _ => continue,
        };
        *counts.entry(returned).or_default() += 1;
    }
    counts
}

/// Counts the calls of some programs, by ptrace.
pub const CALLS: &str = r#"
    cd /tmp
    cp $BIN/calls $BIN/proof .
    cat >programs <<'PROGRAMS'
    ls -lR /etc | sort | tail -n 1
    gcc -O1 -c -o proof.o $VM/proof.c
    perl -MIO::Socket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); fork || exec "true"; syswrite A, $_ for 1 .. 99; wait'
    ./proof $PWD sleep 0.1
PROGRAMS
    export VM
    # A slow host makes more of it.
    rmmod kutrace
    insmod $KUTRACE_MODULE tracemb=64
    kutrace_control go
    ./calls $SHARE/counts bash programs
    kutrace_control stop $SHARE/t.raw
"#;

#[test]
fn every_call_is_there_by_its_number() {
    let run = guest::succeed(&["--cpus", "4"], CALLS);
    calls_by_number(&run, &Recording::read_whole(&run.file("t.raw")));
}

/// The counts of ptrace match the trace.
pub fn calls_by_number(run: &Run, trace: &Recording) {
    let counts = fs::read_to_string(run.file("counts")).unwrap();
    let lines = |key: &str| counts.lines().filter_map(|l| l.strip_prefix(key)).map(numbers).collect::<Vec<_>>();
    let pids: BTreeSet<Pid> = lines("pid ").iter().map(|pid| Pid::new(pid[0] as u32)).collect();
    for (bits, base, min) in [("call 64 ", SYSCALL, 50), ("call 32 ", SYSCALL32, 1)] {
        let counted: BTreeMap<u32, u64> = lines(bits).iter().map(|call| (call[0] as u32, call[1])).collect();
        eprintln!("{bits}: {} of {} numbers, {} programs", counted.values().sum::<u64>(), counted.len(), pids.len());
        assert!(counted.len() >= min, "{counted:?}");
        assert_eq!(calls(trace, &pids, base), counted);
    }
    let returned = returns(trace, &pids);
    let calls = calls(trace, &pids, SYSCALL).into_iter();
    for (number, times) in calls.filter(|(number, _)| !NO_RETURN.contains(number)) {
        // A fork returns twice, and so may a call from before the mark.
        let back = returned.get(&number).copied().unwrap_or_default();
        assert!(back >= times, "call {number}: {back} of {times} came back");
    }
}

#[test]
fn every_end_of_a_task_is_there_with_its_status() {
    let run = guest::succeed(
        &["--cpus", "2"],
        r#"
        cat >/tmp/ends <<'PERL'
        for my $n (0 .. 63) {
            my $pid = fork;
            if (!$pid) { $n % 4 == 3 ? kill $n % 2 ? 9 : 15, $$ : exit $n }
            waitpid $pid, 0;
            print "$pid $?\n";
        }
PERL
        kutrace_control go
        perl /tmp/ends >$SHARE/ends
        kutrace_control stop $SHARE/t.raw
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let ends = fs::read_to_string(run.file("ends")).unwrap();
    let mut seen: Vec<_> = ends.lines().map(numbers).map(|end| (Pid::new(end[0] as u32), end[1] as u32)).collect();
    seen.sort_unstable();
    assert_eq!(seen.len(), 64);
    let children: BTreeSet<Pid> = seen.iter().map(|end| end.0).collect();
    let mut traced: Vec<_> = trace.of(EXIT).filter(|e| children.contains(&e.pid)).map(|e| (e.pid, e.arg)).collect();
    // A task may be waited for, and the next one started, before it has left the CPU, which is its end.
    traced.sort_unstable();
    assert_eq!(traced, seen);
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

/// The kernel's counts while only a program ran whose pages have to be read: a look of the kernel itself at a program's
/// pages counts as a fault, too, without an exception.
fn faults(run: &Run, trace: &Recording) {
    let window = Window::new(trace, FAULTS, FAULTS + 2);
    window.assert("page faults", run.number("pgfault"), trace.of(TRAP + trap::PAGE_FAULT), 0);
    assert!(run.number("pgmajfault") > 20, "too few major faults");
}

/// The kernel's counts for the program's own work.
pub fn own(run: &Run, trace: &Recording) {
    own_counts(run, trace);
    own_time(run, trace);
}

/// Faults, switches and calls of the program.
pub fn own_counts(run: &Run, trace: &Recording) {
    let window = Window::new(trace, OWN, OWN + 2);
    let pid = trace.of(MARK).find(|e| e.arg == OWN).unwrap().pid;
    let of = |number| trace.of(number).filter(move |e| e.pid == pid);
    window.assert("own page faults", run.number("faults"), of(TRAP + trap::PAGE_FAULT), 0);
    // Each time that it blocked it was woken; who is woken before it sleeps did not block.
    let woken = trace.of(RUNNABLE).filter(|e| e.arg == pid.number() && window.outer.contains(&e.ts.0)).count() as u64;
    let blocked = run.number("blocked");
    assert!(blocked > 0 && woken >= blocked, "blocked {blocked} times, woken {woken}");
    window.assert("own switches", run.number("switches"), trace.switches().filter(|e| e.arg == pid.number()), 0);
    window.assert("own 64-bit getppid", run.number("calls"), of(SYSCALL + 110), 0);
    window.assert("own 32-bit getpid", run.number("calls"), of(SYSCALL32 + 20), 0);
}

/// Its running time: no less than between the inner marks, and no more than between the outer ones, as a host may let a
/// CPU stand still between a mark and the reading next to it.
fn own_time(run: &Run, trace: &Recording) {
    let window = Window::new(trace, OWN, OWN + 2);
    let pid = trace.of(MARK).find(|e| e.arg == OWN).unwrap().pid;
    let counted = run.number("ns") as i64 / 10;
    let is_own = |s: &Span| s.pid == Some(pid);
    let ran = |within| {
        let spans = trace.spans.spans.iter().filter(|s| is_own(s) && s.cpu.is_some());
        time_within(within, spans.filter(|s| matches!(What::of(s.event()), What::Run(_))))
    };
    let (least, most, scheduler) = (ran(&window.inner), ran(&window.outer), scheduling(&window.outer, trace, is_own));
    eprintln!(
        "own CPU time: the kernel counted {counted} units of 10 ns, the trace {least} to {most}, {scheduler} in the \
         scheduler"
    );
    let edge = TICK + scheduler;
    assert!((least - edge..=most + edge).contains(&counted), "{counted} {least} {most} {scheduler}");
}

/// Time of the scheduler from or to a thread. Each side assigns that time to one of two threads in its own way.
fn scheduling(window: &Range<i64>, trace: &Recording, is_own: impl Fn(&Span) -> bool) -> i64 {
    let mut time = 0;
    for cpu in 0..trace.events.meta.intervals.len() {
        let mut before: Vec<&Span> = Vec::new();
        let runs = |s: &&Span| s.cpu == on_cpu(cpu) && matches!(What::of(s.event()), What::Run(_));
        for span in trace.spans.spans.iter().filter(runs) {
            if did(span) == SCHED {
                before.push(span);
            } else {
                let between = std::mem::take(&mut before);
                if is_own(span) || between.iter().any(|s| is_own(s)) {
                    time += time_within(window, between.into_iter());
                }
            }
        }
    }
    time
}

/// Activity of the CPU: one that stood still was doing what it did before.
fn did(span: &Span) -> u32 {
    if span.event() as u32 == STALLED {
        span.arg as u32
    } else {
        span.event() as u32
    }
}

/// Interrupts from one CPU to another with the same vector merge, but none arrives that was not sent to its CPU with
/// its vector. A send is recorded just before it is made: of those recorded before an arrival, each CPU may have one
/// that is still to come, so no more than that many are kept for the next. `vectors` are those that are sent here, with
/// the least number of each that must arrive.
pub fn every_ipi_was_sent(trace: &Recording, vectors: &[(u32, u64)]) {
    let vector_of = |number: u32| match number {
        NMI => 2,
        number if (IRQ..=IRQ_LAST).contains(&number) => number - IRQ,
        _ => 0,
    };
    let mut open: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut counts: BTreeMap<u32, [u64; 3]> = BTreeMap::new();
    for event in &trace.events.events {
        let (cpu, vector) = match event.event() {
            IPI => (event.arg, event.ret as u32),
            number => (event.cpu.number(), vector_of(number)),
        };
        if !vectors.iter().any(|(sent, _)| *sent == vector) {
            assert_ne!(event.event(), IPI, "a vector without a sender here: {event:?}");
            continue;
        }
        let left = open.entry((cpu, vector)).or_default();
        let [sent, arrived, early] = counts.entry(vector).or_default();
        if event.event() == IPI {
            *sent += 1;
            *left += 1;
        } else {
            *arrived += 1;
            *early += u64::from(*left == 0);
            *left = left.saturating_sub(1).min(CPUS as u64);
        }
    }
    for (vector, min) in vectors {
        let [sent, arrived, early] = counts.remove(vector).unwrap_or_default();
        eprintln!("vector {vector:#x}: {sent} sent, {arrived} arrived, {early} of them sent before the trace");
        assert!(arrived >= *min && early <= CPUS as u64, "vector {vector:#x}: {sent} {arrived} {early}");
    }
}
