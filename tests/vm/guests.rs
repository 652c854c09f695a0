// SPDX-License-Identifier: BSD-3-Clause
//! Guests of the guest, by KVM as Debian's kernel has it: exits are what KVM counted, and the trace of a guest lies inside
//! that of its host.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kutrace_format::abi::guest::GuestExit;
use postprocess::event::number::{GUEST_ENTER, GUEST_EXIT, GUEST_WAKE};
use postprocess::event::work::Work;
use postprocess::source;
use postprocess::span::what::{Activity, What};
use postprocess::span::{self, Span};

use crate::guest;
use crate::trace::Recording;

/// The first guest's kernel has KVM as a module.
const OPTIONS: [&str; 6] = ["--kernel", "stock", "--cpus", "2", "--timeout", "900"];

/// How often the guest was left, by reason.
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
        gcc -O2 -Wall -Werror -o vcpu $VM/vcpu.c
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
    let run = guest::succeed(&OPTIONS, &script);
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
    // Each is a span of its own inside of the call, and tells why it ended.
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

/// What the guest of the guest does: 3 s of work that enters and leaves the kernel, with pauses, on both CPUs.
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
    let options = [&OPTIONS[..], &["--inside", "--mem", "2048"]].concat();
    // A load on both of the host's CPUs competes with the guest's.
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
        for n in 1 2; do perl -e 'my $end = time + 2; 1 while time < $end' & done
        while ! [ -e $SHARE/inside/ended ]; do kill -0 $run; sleep 0.1; done
        kutrace_control stop $SHARE/host.trace
        touch $SHARE/inside/done
        wait $run
        kutrace_control merge $SHARE/host.trace $SHARE/guest.trace -o $SHARE/both.trace
        "#
    );
    let run = guest::succeed(&options, &script);
    println!("{}", run.err);
    let line = run.err.lines().find(|line| line.contains("lie in the time in which")).expect("a host and its guest");
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [inside, all] = numbers[..] else { panic!("{line}") };
    assert!(all > 10_000 && inside * 10_000 >= all * 9_999, "{line}");
    // A guest that pauses halts, and goes on.
    let host = Recording::read(&run.file("host.trace"));
    let halts = exits(&host).get("hlt").copied().unwrap_or_default();
    assert!(
        halts > 100 && host.of(GUEST_WAKE).count() as u64 * 10 > halts * 9,
        "{halts} {}",
        host.of(GUEST_WAKE).count()
    );
    let both = merged(&run.file("both.trace"));
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
}
