// SPDX-License-Identifier: BSD-3-Clause
//! Tracepoints by name, and probes of programs, on a kernel of Debian's: each record is in the trace, with its fields,
//! at its place among the recorder's own events.

use std::collections::BTreeMap;
use std::env;
use std::process::Command;

use kutrace_tests::skip::skip;
use postprocess::event::number::TRACEPOINT_MARK;
use postprocess::event::Event;

use crate::guest;
use crate::trace::Recording;

/// The kernel: `KUTRACE_VM_KERNEL=stock=6.1`, or the usual one of Debian's.
fn kernel() -> String {
    env::var(guest::KERNEL).ok().filter(|kernel| kernel.starts_with("stock")).unwrap_or("stock".to_owned())
}

fn run(more: &[&str], script: &str) -> guest::Run {
    let kernel = kernel();
    guest::succeed(&[&["--kernel", &kernel, "--cpus", "2", "--timeout", "900"], more].concat(), script)
}

/// The entries of a tracepoint, each with its fields.
fn records<'t>(trace: &'t Recording, name: &str) -> Vec<(&'t Event, BTreeMap<&'t str, &'t str>)> {
    let fields = |e: &'t Event| match trace.event_name(e).strip_prefix(name)? {
        "" => Some(""),
        fields => fields.strip_prefix('(')?.strip_suffix(')'),
    };
    let pairs = |text: &'t str| text.split(',').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    trace.of(TRACEPOINT_MARK).filter_map(|e| Some((e, pairs(fields(e)?)))).collect()
}

#[test]
fn the_scheduler_s_tracepoint_agrees_with_the_recorder_s_own_switches() {
    let run = run(
        &[],
        r#"
        forks() { awk '/^processes/ { print "'$1'=" $2 }' /proc/stat; }
        forks before
        kutrace_control go --tracepoint sched:sched_switch,sched:sched_process_fork
        for n in $(seq 200); do /bin/true; done
        kutrace_control stop $SHARE/t.raw
        forks after
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    // The recorder has its own probe on the same tracepoint; at the stop one of the two may be the last.
    let (mut own, mut theirs) = (BTreeMap::<_, Vec<u32>>::new(), BTreeMap::<_, Vec<u32>>::new());
    trace.switches().for_each(|e| own.entry(e.cpu).or_default().push(e.arg));
    for (e, fields) in records(&trace, "sched:sched_switch") {
        theirs.entry(e.cpu).or_default().push(fields["next_pid"].parse().unwrap());
    }
    assert_eq!(own.len(), 2);
    for (cpu, own) in &own {
        let theirs = &theirs[cpu];
        assert!(own.len() > 100 && own.len().abs_diff(theirs.len()) <= 1, "{} {}", own.len(), theirs.len());
        assert!(own.iter().zip(theirs).all(|(own, theirs)| own == theirs), "{cpu:?}");
    }
    let forks = records(&trace, "sched:sched_process_fork").len() as u64;
    let counted = run.number("after") - run.number("before");
    assert!((200..=counted).contains(&forks) && forks + 20 >= counted, "{forks} of {counted}");
    // Who forks is who runs.
    for (e, fields) in records(&trace, "sched:sched_process_fork") {
        assert_eq!(fields["parent_pid"], e.pid.number().to_string());
    }
}

#[test]
fn typed_events_of_a_module_are_all_there_in_tasks_and_in_interrupts() {
    const TIMES: u64 = guest::by_form(5_000, 20_000, 20_000);
    let run = run(
        &["--beside"],
        &format!(
            r#"
            insmod $KUTRACE_BESIDE/said.ko
            cd /sys/module/said/parameters
            kutrace_control record -b 64M --tracepoint said:said,said:said_briefly -o $SHARE/t.raw -- \
                bash -c 'echo {TIMES} >times; rmmod said 2>/dev/null && echo unloaded while it was recorded; true' >$SHARE/out
            echo tasks=$(cat tasks)
            echo interrupts=$(cat interrupts)
            # What is not recorded is a NOP again, and the module can go.
            echo 1000 >times
            rmmod said
            "#
        ),
    );
    assert_eq!(std::fs::read_to_string(run.file("out")).unwrap(), "");
    let trace = Recording::read_whole(&run.file("t.raw"));
    let (mut tasks, mut interrupts) = (BTreeMap::new(), 0);
    for (e, fields) in records(&trace, "said:said") {
        assert_eq!(fields["cpu"], e.cpu.number().to_string());
        if fields["where"] == "irq" {
            interrupts += 1;
            assert_eq!(fields["pair"], "3/4");
        } else {
            assert_eq!((fields["where"], fields["pair"]), ("task", "1/65535"));
            let next = tasks.entry(e.cpu).or_insert(0);
            assert_eq!(fields["number"], next.to_string(), "none is missing, and they are in order");
            *next += 1;
        }
    }
    assert_eq!(tasks.values().sum::<u64>(), run.number("tasks"));
    assert_eq!(tasks.len(), 2);
    assert_eq!(interrupts, run.number("interrupts"));
    assert!(interrupts > 0);
    let brief = records(&trace, "said:said_briefly");
    assert_eq!(brief.len() as u64, 2 * TIMES);
}

/// Of the night: all refusals and ends of all sorts, on a kernel that is slow in a guest.
#[cfg(feature = "night")]
#[test]
fn what_cannot_be_recorded_is_said_and_the_trace_before_stays() {
    let run = run(
        &[],
        r#"
        kutrace_control go
        kutrace_control mark before
        kutrace_control stop $SHARE/t.raw
        refused() { kutrace_control go --tracepoint $1 2>>$SHARE/said && exit 9; true; }
        refused sched:no_such_thing
        refused $(cd /sys/kernel/debug/tracing/events/sched; for n in $(ls -d sched_*/ | head -17); do echo -n sched:${n%/},; done | sed s/,$//)
        kutrace_control stop $SHARE/again.raw
        refused ftrace:function
        # Each CPU that comes online is recorded from then on.
        kutrace_control go --tracepoint sched:sched_switch
        echo 0 >/sys/devices/system/cpu/cpu1/online
        echo 1 >/sys/devices/system/cpu/cpu1/online
        sleep 0.5
        kutrace_control mark online
        for n in $(seq 50); do taskset -c 1 /bin/true; done
        kutrace_control stop $SHARE/hotplug.raw
        # Unloaded while it records.
        kutrace_control go --tracepoint sched:sched_switch,irq:softirq_entry
        ls -R /usr/lib >/dev/null
        rmmod kutrace
        insmod $KUTRACE_MODULE
        # Who records and is killed leaves nothing.
        kutrace_control record --tracepoint sched:sched_switch -o $SHARE/killed.raw & 
        sleep 1; kill -9 $!; wait $! || true
        kutrace_control record --tracepoint raw_syscalls:sys_enter -o $SHARE/after.raw -- /bin/true
        kutrace_control go --stream --tracepoint raw_syscalls:sys_enter -o $SHARE/stream.raw
        /bin/true
        kutrace_control stop
        "#,
    );
    let said = std::fs::read_to_string(run.file("said")).unwrap();
    assert!(said.contains("sched:no_such_thing: the kernel has no such tracepoint"), "{said}");
    assert!(
        said.contains("no records of one of the chosen tracepoints") && said.contains("more than the 16"),
        "{said}"
    );
    let hotplug = Recording::read(&run.file("hotplug.raw"));
    let late = hotplug.events.events.iter().position(|e| hotplug.event_name(e) == "mark_a=online").unwrap();
    let is_late = |e: &Event| e.cpu.number() == 1 && e.ts > hotplug.events.events[late].ts;
    let recorded = records(&hotplug, "sched:sched_switch").iter().filter(|(e, _)| is_late(e)).count();
    let own = hotplug.switches().filter(|e| is_late(e)).count();
    assert!(own > 50 && recorded + 3 >= own, "{recorded} of {own}");
    for file in ["after.raw", "stream.raw"] {
        let trace = Recording::read_whole(&run.file(file));
        let calls = records(&trace, "raw_syscalls:sys_enter");
        assert!(
            calls.iter().any(|(_, fields)| fields["id"] == "59" && fields["args"].split('/').count() == 6),
            "{file}"
        );
    }
}

#[test]
fn probes_of_programs_that_run_are_recorded_with_their_arguments() {
    let run = run(
        &[],
        r#"
        cat >/tmp/work.py <<'WORK'
import gc, sys

sys.stdin.readline()
import wave
for n in range(7):
    gc.collect(1)
WORK
        # Before it is traced the program runs already.
        mkfifo /tmp/go
        /usr/bin/python3.11 /tmp/work.py </tmp/go & program=$!
        exec 3>/tmp/go
        sleep 1
        echo program=$program
        kutrace_control go --usdt '/usr/bin/python3.11:python:import__find__load__start(string)' \
            --usdt /usr/bin/python3.11:python:gc__start --usdt /usr/bin/python3.11:python:gc__done
        echo >&3
        wait $program
        kutrace_control stop $SHARE/t.raw
        ls /sys/kernel/debug/tracing/events/kutrace 2>/dev/null | grep __ && exit 9
        kutrace_control record -o $SHARE/off.raw -- /usr/bin/python3.11 -c 'import gc; gc.collect()'
        "#,
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let program = run.number("program") as u32;
    let imports = records(&trace, "python:import__find__load__start");
    let (e, _) = imports.iter().find(|(_, fields)| fields["arg1"] == "wave").expect("an import");
    assert_eq!(e.pid.number(), program);
    let (starts, dones) = (records(&trace, "python:gc__start"), records(&trace, "python:gc__done"));
    assert!(starts.iter().filter(|(_, fields)| fields["arg1"] == "1").count() >= 7, "{starts:?}");
    assert_eq!(starts.len(), dones.len());
    let off = Recording::read_whole(&run.file("off.raw"));
    assert_eq!(off.of(TRACEPOINT_MARK).count(), 0);
}

/// Of the night: a virtual machine for Java takes long to start in such a guest, and the test above has the same
/// probes.
#[cfg(feature = "night")]
#[test]
fn probes_of_java_s_virtual_machine_are_recorded() {
    let Some(library) = java() else { return skip("probes of Java", "no javac, or a virtual machine without probes") };
    let run = run(
        &[],
        &format!(
            r#"
        cat >/tmp/Work.java <<'WORK'
public class Work {{
    public static void main(String[] arguments) throws InterruptedException {{
        for (int n = 0; n < 20; n++) {{
            System.gc();
            Thread thread = new Thread(() -> {{}});
            thread.start();
            thread.join();
        }}
    }}
}}
WORK
        probe() {{ echo --usdt {library}:hotspot:$1; }}
        cd /tmp; javac Work.java
        kutrace_control go $(probe gc__begin) $(probe gc__end) $(probe thread__start) $(probe thread__stop)
        java -Xint -XX:+UseSerialGC -Xmx64m Work
        kutrace_control stop $SHARE/t.raw
        "#
        ),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let of = |name: &str| records(&trace, &format!("hotspot:{name}"));
    assert_eq!([of("gc__begin").len(), of("gc__end").len()], [20, 20]);
    // The kernel knows each thread by the number that the thread gives for itself.
    let stops = of("thread__stop");
    assert!(stops.iter().all(|(e, fields)| fields["arg4"] == e.pid.number().to_string()));
    assert!(stops.len() >= 20 && of("thread__start").len() >= stops.len());
}

/// The library of a virtual machine for Java that has probes, if there is one, and a compiler.
fn java() -> Option<String> {
    let out = Command::new("javac").args(["-J-XshowSettings:properties", "-version"]).output().ok()?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let home = said.lines().find_map(|line| line.trim().strip_prefix("java.home = "))?.to_owned();
    let library = format!("{home}/lib/server/libjvm.so");
    let notes = Command::new("readelf").args(["-n", &library]).output().ok()?;
    String::from_utf8_lossy(&notes.stdout).contains("gc__begin").then_some(library)
}
