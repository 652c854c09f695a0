// SPDX-License-Identifier: BSD-3-Clause
//! Guests of the guest, by KVM in Debian's version: exits match KVM's counters, and the trace of a guest lies inside
//! that of its host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kutrace_format::abi::event::{PC_KERNEL, PC_USER};
use kutrace_format::abi::guest::GuestExit;
use kutrace_format::capability::Capability;
use kutrace_format::x86::vector;
use postprocess::event::number::{GUEST_ENTER, GUEST_EXIT, GUEST_WAKE, IRQ, RETURN_BIT, STEAL};
use postprocess::event::point::Point;
use postprocess::event::what::What as Said;
use postprocess::event::work::Work;
use postprocess::id::Pid;
use postprocess::inspect::verdict::{judge, verdict, Verdict};
use postprocess::source;
use postprocess::span::what::{Activity, What};
use postprocess::span::{self, Span};
use postprocess::time::Time;

use crate::blocks::Blocks;
use crate::guest;
use crate::machines;
use crate::trace::Recording;

/// The first guest's kernel has KVM as a module. Not paced: where QEMU counts the instructions of a guest's guest, that takes
/// five times as long.
const OPTIONS: [&str; 5] = [guest::AT_ONCE, "--kernel", "stock", "--timeout", "900"];

/// Number of exits of the guest, by reason.
fn exits(trace: &Recording) -> BTreeMap<String, u64> {
    let mut exits = BTreeMap::new();
    for e in trace.of(GUEST_EXIT) {
        let reason = GuestExit(e.arg).name().map_or_else(|| format!("{:#x}", e.arg), str::to_string);
        *exits.entry(reason).or_default() += 1;
    }
    exits
}

#[test]
fn exits_are_by_reason_what_kvm_counted() {
    const ROUNDS: u64 = 2000;
    const HALTS: u64 = 50;
    // The tracepoints come with a module, which is loaded while a trace is recorded.
    let script = format!(
        r#"
        cd /tmp
        cp $BIN/vcpu .
        kutrace_control go
        modprobe -d $KUTRACE_MODULES kvm_amd
        ./vcpu {ROUNDS} {HALTS}
        modprobe -d $KUTRACE_MODULES -r kvm_amd
        modprobe -d $KUTRACE_MODULES kvm_amd
        ./vcpu 10 1 >/dev/null
        kutrace_control stop $SHARE/t.raw
        kutrace_control go
        ./vcpu 10 1 >/dev/null
        kutrace_control stop $SHARE/again.raw
        "#
    );
    let run = guest::succeed(&[&OPTIONS[..], &["--cpus", "2"]].concat(), &script);
    let trace = Recording::read(&run.file("t.raw"));
    let exits = exits(&trace);
    println!("{exits:?}\n{}", run.out);
    let of = |reason: &str| exits.get(reason).copied().unwrap_or_default();
    assert_eq!(of("io"), run.number("io_exits") + 10);
    assert_eq!(of("io"), ROUNDS + 10);
    assert_eq!(of("cpuid"), ROUNDS + 10);
    assert_eq!(of("hlt"), run.number("halt_exits") + 1);
    assert_eq!(of("hlt"), HALTS + 1);
    // The second one's are few.
    let all: u64 = exits.values().sum();
    let counted = run.number("exits");
    assert!((counted + 21..counted + 200).contains(&all), "{all} exits, of which KVM counted {counted} in the first");
    assert_eq!(trace.of(GUEST_ENTER).count() as u64, all);
    assert_eq!(of("unknown"), 0);
    // Each is a span of its own inside the call, and has the reason of its end.
    let guest = |s: &&Span| s.what == What::Run(Activity::Call(Work::Guest));
    let spans: Vec<_> = trace.spans.spans.iter().filter(guest).collect();
    assert!(spans.len() as u64 >= all);
    let halts = spans.iter().filter(|s| trace.span_name(s) == "-guest-:hlt").count() as u64;
    assert_eq!(halts, HALTS + 1);
    assert!(Recording::read(&run.file("again.raw")).of(GUEST_EXIT).count() >= 21);
}

/// The trace of several machines.
fn merged(path: &Path) -> Recording {
    let events = source::decode(&fs::read(path).unwrap()).unwrap();
    let (spans, tally) = span::build(events.clone());
    let trace = Recording { events, spans, tally };
    trace.check();
    trace
}

/// Work of the guest of the guest: 3 s that enter and leave the kernel, with pauses, on both CPUs.
const WORK: &str = r#"
for cpu in 0 1; do
    taskset -c $cpu perl -e '
        my $end = time + 3;
        while (time < $end) { getppid for 1 .. 2000; select undef, undef, undef, 0.002 }' &
done
wait
"#;

#[test]
fn the_trace_of_a_guest_lies_inside_that_of_its_host() {
    // One CPU for both of the guest's: with two, which QEMU executes in turn, the guest hangs while it boots, each time in
    // another place, in code that holds a lock with interrupts off.
    let options = [&OPTIONS[..], &["--cpus", "1", "--inside", "--mem", "2048"]].concat();
    // A load competes with the guest.
    let script = format!(
        r#"
        modprobe -d $KUTRACE_MODULES kvm_amd
        cat >$SHARE/inside/job.sh <<'JOB'
set -e
echo inner >/proc/sys/kernel/hostname
kutrace_control go
touch /mnt/share/inside/begun
{WORK}
kutrace_control stop /mnt/share/guest.trace
touch /mnt/share/inside/ended
while ! [ -e /mnt/share/inside/done ]; do sleep 0.2; done
JOB
        $SHARE/inside/run &
        run=$!
        while ! [ -e $SHARE/inside/begun ]; do kill -0 $run; sleep 0.1; done
        kutrace_control go
        for n in 1 2; do perl -e 'do {{ 1 for 1 .. 100000 }} until -e "/mnt/share/inside/ended"' & done
        while ! [ -e $SHARE/inside/ended ]; do kill -0 $run; sleep 0.1; done
        kutrace_control stop $SHARE/host.trace
        touch $SHARE/inside/done
        wait $run
        "#
    );
    let run = guest::succeed(&options, &script);
    println!("{}", run.err);
    let out = run.file("both.trace");
    let said = machines::merge(&[&run.file("host.trace"), &run.file("guest.trace")], &out);
    let line = said.lines().find(|line| line.contains("lie in the time in which")).expect("a host and its guest");
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [inside, all, ..] = numbers[..] else { panic!("{line}") };
    assert!(all > 10_000 && inside * 10_000 >= all * 9_999, "{line}");
    // A guest that pauses halts, and continues: without a sleep, if the event it waits for has come while it was on its
    // way, as more often happens the later its CPU runs.
    let host = Recording::read(&run.file("host.trace"));
    let halts = exits(&host).get("hlt").copied().unwrap_or_default();
    assert!(halts > 100 && host.of(GUEST_WAKE).count() as u64 * 2 > halts, "{halts} {}", host.of(GUEST_WAKE).count());
    let both = merged(&out);
    let stolen = |what: &str| {
        let of = |s: &&Span| s.what == What::Run(Activity::Stalled) && both.span_name(s).starts_with(what);
        both.spans.spans.iter().filter(of).count()
    };
    // The guest was left for its own doings, and for the load's.
    assert!(
        stolen("stolen:exit_") > 100 && stolen("stolen:ran_perl") > 10,
        "{} {}",
        stolen("stolen:exit_"),
        stolen("stolen:ran_perl")
    );
    // And is a cause of the time that it delayed.
    let why = machines::control().arg("why").arg(&out).args(["--run", "perl", "--top", "1000"]).output().unwrap();
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.contains("stolen: the host ran perl."), "{why}");
    assert!(why.contains("stolen: the host handled an exit of the CPU ("), "{why}");
    host.steady();
    knows_what_its_host_took(&run.file("guest.trace"), &both);
}

/// Time of spans that lies in a range.
fn within<'a>(spans: impl Iterator<Item = &'a Span>, (from, to): (Time, Time)) -> Time {
    spans.map(|s| ((s.start + s.dur).min(to) - s.start.max(from)).max(Time::ZERO)).sum()
}

/// The guest's own facts match its own kernel's counters and its host's waits of threads for their CPU.
fn knows_what_its_host_took(path: &Path, both: &Recording) {
    let bytes = fs::read(path).unwrap();
    let guest = Recording::read(path);
    let ns = |trace: &Recording, (from, to): (Time, Time), cpu: Option<u32>| -> u64 {
        let of = trace.of(STEAL).filter(|e| e.ts >= from && e.ts < to && cpu.is_none_or(|cpu| e.cpu.number() == cpu));
        of.map(|e| u64::from(e.arg)).sum()
    };
    // The kernel counts hundredths of a second, and notices a pause at the next tick: at either end one may be under way.
    let longest = Time(guest.of(STEAL).map(|e| i64::from(e.arg)).max().unwrap_or_default() / 10);
    for counted in source::trace(&bytes).unwrap().idle() {
        let told = Time(ns(&guest, counted.window, Some(counted.cpu.number())) as i64 / 10);
        println!("cpu {}: {:?} by the kernel, {told:?} recorded", counted.cpu, counted.stolen);
        assert!(
            (counted.stolen - told).abs() <= Time(2_800_000) + longest + longest,
            "{counted:?} {told:?} {longest:?}"
        );
        assert!(told > Time(20_000_000), "{told:?}");
    }
    // Its host records the time for which threads that run its CPUs were ready, and did not run.
    let threads: BTreeSet<Pid> = both.of(GUEST_ENTER).map(|e| e.pid).collect();
    let intervals = &both.events.meta.intervals;
    let of_guest = |cpu: u32| cpu > 0;
    let from = intervals.iter().map(|i| i.from).max().unwrap();
    let to = intervals.iter().map(|i| i.to).min().unwrap();
    let could_run = |s: &&Span| {
        matches!(s.what, What::Wait(reason) if reason.could_run()) && s.pid.is_some_and(|pid| threads.contains(&pid))
    };
    let waited = within(both.spans.spans.iter().filter(could_run), (from, to));
    let told = Time(ns(both, (from, to), None) as i64 / 10);
    println!("the host's threads waited {waited:?}, the guest recorded {told:?}");
    assert!((waited - told).abs() <= told / 20 + Time(1_000_000), "{waited:?} {told:?}");
    // If the host is not in the trace, that is drawn where the CPU was not run, as the host would show it.
    let mut alone = both.events.clone();
    alone.events.retain(|e| !matches!(e.what, Said::Point(Point::Stolen | Point::StolenReturn)));
    let (alone, _) = span::build(alone);
    let drawn: Vec<&Span> = alone.spans.iter().filter(|s| s.point() == Some(Point::Steal) && s.start >= from).collect();
    let not_run = |s: &&Span| s.what == What::Run(Activity::Stalled) && s.cpu.is_some_and(|cpu| of_guest(cpu.number()));
    let not_run: Vec<&Span> = both.spans.spans.iter().filter(not_run).collect();
    let right = |drawn: &&Span| {
        let here = not_run.iter().copied().filter(|s| s.cpu == drawn.cpu);
        within(here, (drawn.start, drawn.start + drawn.dur))
    };
    let (all, right): (Time, Time) = (drawn.iter().map(|s| s.dur).sum(), drawn.iter().map(right).sum());
    println!("{} pieces are drawn, {all:?}, of which {right:?} were not run by the host", drawn.len());
    assert!(all.0 * 100 >= told.0 * 99 && right.0 * 10 >= all.0 * 8, "{told:?} {all:?} {right:?}");
    let steals = both.spans.spans.iter().filter(|s| s.point() == Some(Point::Steal) && s.start >= from);
    assert_eq!(steals.count(), 0, "the host records its own work");
    let said = |command: &[&str]| {
        let out = machines::control().args(command).arg(path).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let why = said(&["why", "--run", "perl", "--top", "1000"]);
    assert!(why.contains("stolen: the host ran something else instead of the CPU"), "{why}");
    let summary = said(&["summary"]);
    assert!(summary.contains("while its host ran something else: "), "{summary}");
    assert!(!summary.contains("cannot show time that the host takes"), "{summary}");
}

#[test]
fn the_interrupts_of_hyper_v_are_told() {
    let options = [&OPTIONS[..], &["--cpus", "1", "--inside=stock", "--mem", "2048"]].concat();
    // KVM shows its guest all that it has of Hyper-V's. The first trace is not the last.
    let script = r#"
        cp $BIN/hyperv.so /tmp
        modprobe -d $KUTRACE_MODULES kvm_amd
        cat >$SHARE/inside/job.sh <<'JOB'
set -e
dmesg | grep -q 'Hypervisor detected: Microsoft Hyper-V'
kutrace_control go
kutrace_control stop /tmp/first.trace
kutrace_control go
perl -e '1 for 1 .. 3e6; select undef, undef, undef, 0.5'
kutrace_control stop /mnt/share/t.raw
JOB
        sed -i "s/'host'/'host,kvm=off,hv-passthrough'/" $SHARE/inside/run
        LD_PRELOAD=/tmp/hyperv.so $SHARE/inside/run || { tail -n 60 $SHARE/inside/console; exit 1; }
        "#;
    let run = guest::succeed(&options, script);
    let trace = Recording::read(&run.file("t.raw"));
    assert!(!Blocks::read(&run.file("t.raw")).header.unseen.has(Capability::Interrupts));
    let found = judge(&fs::read(run.file("t.raw")).unwrap()).unwrap();
    let said: String = found.iter().map(|finding| format!("{finding}\n")).collect();
    assert!(
        verdict(&found) != Verdict::Fail && said.contains("info  timer interrupts of Hyper-V: the kernel"),
        "{said}"
    );
    let timer = IRQ + vector::HYPERV_TIMER;
    let [begins, ends] = [timer, timer | RETURN_BIT].map(|number| trace.of(number).count());
    assert!(begins > 200 && begins.abs_diff(ends) <= 2, "{begins} begin, {ends} end");
    // Each names the activity it came in.
    let samples = [PC_USER, PC_KERNEL].map(|number| trace.of(number.into()).count());
    assert!(samples[0] > 50 && begins.abs_diff(samples.iter().sum()) <= 2, "{samples:?} of {begins}");
}
