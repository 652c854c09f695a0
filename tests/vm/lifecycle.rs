// SPDX-License-Identifier: BSD-3-Clause
//! Events that end or spoil a trace, and their reports: sleep of the machine, a CPU that is stuck, programs that insert
//! too much; and the permitted requests.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use kutrace_format::abi::command::IOCTL_STOP;
use kutrace_format::file::{FLAG_MUTE, FLAG_SLEEP, FLAG_UNSTABLE};
use kutrace_format::x86::vector;
use postprocess::event::number::{IRQ, MARK_A, MARK_D};

use crate::blocks::Blocks;
use crate::guest;
use crate::trace::Recording;

/// Devices that the machine sleeps without: its root and the share are 9p, which does not survive the sleep of its
/// device. So all that runs from then on is copied into memory, and its results go through the standard output.
const IN_MEMORY: &str = r#"
    mkdir -p /tmp/m/{bin,tmp,proc,sys,dev}
    for program in bash base64 checktrace dmesg grep kutrace_control; do
        file=$(readlink -f $(type -P $program))
        cp $file /tmp/m/bin/$program
        for library in $(ldd $file | grep -o '/[^ ]*'); do
            mkdir -p /tmp/m$(dirname $library)
            cp -L $library /tmp/m$library
        done
    done
    for folder in proc sys dev; do mount --bind /$folder /tmp/m/$folder; done
    umount -l $SHARE
    exec chroot /tmp/m bash -ec "$ASLEEP"
"#;

#[test]
fn suspend_to_memory_ends_a_trace_and_every_tool_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let monitor = folder.path().join("monitor");
    let sleep = "[[ $(</sys/power/mem_sleep) == *\"[deep]\"* ]]; echo mem >/sys/power/state";
    // Not paced: where QEMU counts instructions, a machine that sleeps does not wake up.
    let options = [guest::AT_ONCE, "--monitor", monitor.to_str().unwrap()];
    sleep_ends_a_trace(&options, sleep, |over| wake(&monitor, over));
}

/// The whole memory is written to a disk and read from there again, without switching the machine off in between.
///
/// Of the night: the distribution's kernel alone hibernates.
#[cfg(feature = "night")]
#[test]
fn hibernation_ends_a_trace_and_every_tool_says_so() {
    let sleep =
        "echo 1 >/sys/power/pm_debug_messages; echo test_resume >/sys/power/disk; echo disk >/sys/power/state; \
        dmesg | grep \"Hibernation image restored successfully\" >&2 || { dmesg >&2; exit 97; }";
    let options = [guest::AT_ONCE, "--kernel", "distribution", "--disk", "1024", "--mem", "1024"];
    sleep_ends_a_trace(&options, sleep, |_| ());
}

/// In a guest with these options, `sleep` sends the machine to sleep; `beside` runs on the host until the guest's time
/// ends.
fn sleep_ends_a_trace(options: &[&str], sleep: &str, beside: impl FnOnce(&AtomicBool) + Send) {
    let script = r#"
        if [ -b /dev/vda ]; then
            mkswap -q /dev/vda
            swapon /dev/vda
        fi
        ASLEEP='
        cd /tmp
        kutrace_control gowrap
        kutrace_control mark before
        GO_TO_BED
        ! kutrace_control mark after
        kutrace_control status >status
        code=0; kutrace_control stop t.raw 2>stop || code=$?
        ((code == 3))
        code=0; checktrace t.raw >check || code=$?
        ((code == 3))
        code=0; kutrace_control summary t.raw 2>summary >/dev/null || code=$?
        ((code == 3))
        kutrace_control go
        kutrace_control mark again
        kutrace_control stop again.raw
        for file in status stop check summary t.raw again.raw; do
            echo "$file $(base64 -w0 $file)"
        done
        '
    "#;
    let script = [&script.replace("GO_TO_BED", sleep), IN_MEMORY].concat();
    let run = guest::run_beside(options, &script, |_, over| beside(over)).succeeded();
    for line in run.out.lines() {
        let (name, text) = line.split_once(' ').unwrap();
        decode(text, &run.file(name));
    }
    let sentence = "the trace ended because the machine was about to sleep (suspend or hibernation)";
    for name in ["status", "stop", "check", "summary"] {
        let said = std::fs::read_to_string(run.file(name)).unwrap();
        assert!(said.contains(sentence), "{name}: {said}");
    }
    let blocks = Blocks::read(&run.file("t.raw"));
    assert_eq!(blocks.header.flags & (FLAG_SLEEP | FLAG_UNSTABLE | FLAG_MUTE), FLAG_SLEEP);
    let trace = Recording::read_and_ask(&run.file("t.raw"));
    trace.check();
    let marks: Vec<_> = trace.of(MARK_A).map(|e| trace.event_name(e)).collect();
    assert_eq!(marks, ["mark_a=before"]);
    assert_eq!(Blocks::read(&run.file("again.raw")).header.flags & FLAG_SLEEP, 0);
    assert_eq!(Recording::read_whole(&run.file("again.raw")).of(MARK_A).count(), 1);
}

/// Wakes the guest whenever it sleeps; of one that does not, QEMU takes no notice.
fn wake(monitor: &Path, over: &AtomicBool) {
    let mut connected = None;
    while !over.load(Relaxed) {
        sleep(Duration::from_millis(500));
        connected = connected.or_else(|| UnixStream::connect(monitor).ok());
        if let Some(monitor) = &mut connected {
            // It fails when the guest is gone, and then it is over.
            let _ = monitor.write_all(b"system_wakeup\n");
        }
    }
}

/// Writes what `base64` made of a file to `to`.
fn decode(text: &str, to: &Path) {
    let file = std::fs::File::create(to).unwrap();
    let mut base64 = Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(file).spawn().unwrap();
    base64.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(base64.wait().unwrap().success(), "{}", to.display());
}

#[test]
fn a_clock_that_the_kernel_stops_to_trust_is_told_and_no_trace_is_begun_with_it() {
    let run = guest::succeed(
        &["--cpus", "2", "--beside"],
        r#"
        insmod $KUTRACE_BESIDE/provoke.ko
        kutrace_control gowrap
        kutrace_control mark before
        kutrace_control snapshot $SHARE/stable.raw
        echo tsc 0 >/sys/module/provoke/parameters/do
        status=0; kutrace_control snapshot $SHARE/snapshot.raw 2>$SHARE/snapshot || status=$?
        test $status = 3
        status=0; kutrace_control stop $SHARE/t.raw 2>$SHARE/stop || status=$?
        test $status = 3
        status=0; checktrace $SHARE/t.raw >$SHARE/check 2>&1 || status=$?
        test $status = 3
        ! kutrace_control go 2>$SHARE/go
        "#,
    );
    let said = |name| std::fs::read_to_string(run.file(name)).unwrap();
    for name in ["snapshot", "stop", "check"] {
        assert!(said(name).contains("the TSC is not stable: times may be wrong"), "{name}: {}", said(name));
    }
    assert!(said("go").contains("the TSC of this machine is not stable"), "{}", said("go"));
    let flag = |name| Blocks::read(&run.file(name)).header.flags & FLAG_UNSTABLE;
    assert_eq!(["stable.raw", "snapshot.raw", "t.raw"].map(flag), [0, FLAG_UNSTABLE, FLAG_UNSTABLE]);
}

#[test]
fn a_trace_can_be_read_although_a_cpu_takes_no_interrupts() {
    let run = guest::succeed(
        &guest::STUCK,
        r#"
        taskset -p -c 0 $$ >/dev/null
        lossy() {
            status=0; "$@" 2>$SHARE/said.$1 || status=$?
            cat $SHARE/said.$1 >&2
            test $status = 3
            grep -q 'CPU 1 takes no interrupts: its last block ends at the last event seen' $SHARE/said.$1
        }
        snapshot() { kutrace_control snapshot $SHARE/snapshot.raw; }
        stop() { kutrace_control stop $SHARE/stop.raw; }
        insmod $KUTRACE_BESIDE/stick.ko
        kutrace_control gowrap
        taskset -c 1 kutrace_control mark before
        echo 300 >/sys/module/stick/parameters/seconds
        lossy snapshot

        # It comes back, and nothing is missing.
        rmmod stick
        taskset -c 1 kutrace_control mark back
        kutrace_control stop $SHARE/back.raw

        insmod $KUTRACE_BESIDE/stick.ko
        kutrace_control go
        taskset -c 1 kutrace_control mark before
        echo 300 >/sys/module/stick/parameters/seconds
        # A command that is killed waits no longer.
        kutrace_control stop $SHARE/killed.raw & stopping=$!
        sleep 1
        kill -9 $stopping
        killed=$SECONDS
        wait $stopping || true
        # Far less than the 300 s.
        test $((SECONDS - killed)) -lt 100
        lossy stop
        if kutrace_control go; then exit 99; fi

        # And all is as before.
        rmmod stick
        kutrace_control go
        taskset -c 1 kutrace_control mark again
        kutrace_control stop $SHARE/again.raw
        "#,
    );
    for name in ["snapshot", "stop"] {
        let blocks = Blocks::read(&run.file(&format!("{name}.raw")));
        assert_eq!(blocks.header.flags & FLAG_MUTE, FLAG_MUTE, "{name}");
        let trace = Recording::read_and_ask(&run.file(&format!("{name}.raw")));
        trace.check();
        let marks: Vec<_> = trace.of(MARK_A).map(|e| (e.cpu.number(), trace.event_name(e))).collect();
        assert_eq!(marks, [(1, "mark_a=before")], "{name}");
    }
    for (name, count) in [("back", 2), ("again", 1)] {
        let file = run.file(&format!("{name}.raw"));
        assert_eq!(Blocks::read(&file).header.flags & FLAG_MUTE, 0, "{name}");
        let trace = Recording::read_whole(&file);
        assert_eq!(trace.of(MARK_A).map(|e| e.cpu.number()).collect::<Vec<_>>(), vec![1; count], "{name}");
    }
}

/// Of the night: as the test above, with a CPU that takes interrupts.
#[cfg(feature = "night")]
#[test]
fn no_command_waits_for_a_cpu_that_lets_nothing_else_run() {
    let run = guest::succeed(
        &guest::STUCK,
        r#"
        taskset -p -c 0 $$ >/dev/null
        insmod $KUTRACE_BESIDE/stick.ko interrupts=1
        kutrace_control gowrap
        taskset -c 1 kutrace_control mark before
        echo 300 >/sys/module/stick/parameters/seconds
        if timeout 200 kutrace_control snapshot $SHARE/no.raw; then exit 98; fi
        timeout 200 kutrace_control stop $SHARE/before.raw
        if timeout 200 kutrace_control go; then exit 99; fi

        # It comes back, and all is as before.
        rmmod stick
        kutrace_control go
        taskset -c 1 kutrace_control mark again
        kutrace_control stop $SHARE/again.raw
        "#,
    );
    for name in ["before", "again"] {
        let trace = Recording::read_whole(&run.file(&format!("{name}.raw")));
        let marks: Vec<_> = trace.of(MARK_A).map(|e| (e.cpu.number(), trace.event_name(e).to_string())).collect();
        assert_eq!(marks, [(1, format!("mark_a={name}"))]);
    }
}

/// Callers that need the set of CPUs wait in that time, as `kutrace_control stop` does before it stops.
#[test]
fn a_stop_ends_every_block_although_a_cpu_does_not_get_done_with_going() {
    let script = format!(
        r#"
        insmod $KUTRACE_BESIDE/provoke.ko
        echo linger 1 >/sys/module/provoke/parameters/do
        kutrace_control go
        for cpu in 0 1 2; do taskset -c $cpu kutrace_control mark $cpu; done
        echo 0 >/sys/devices/system/cpu/cpu2/online & going=$!
        await grep -q 1 /sys/module/provoke/parameters/lingers
        perl -e 'open my $device, "+<", "/dev/kutrace" or die; ioctl $device, {IOCTL_STOP}, 0 or die'
        kutrace_control stop $SHARE/going.raw
        kill -0 $going
        echo linger 0 >/sys/module/provoke/parameters/do
        wait $going
        kutrace_control go
        kutrace_control mark again
        kutrace_control stop $SHARE/again.raw
        "#
    );
    let run = guest::succeed(&["--cpus", "3", "--beside"], &script);
    let trace = Recording::read_whole_alone(&run.file("going.raw"));
    let marks: Vec<_> = trace.of(MARK_D).map(|e| (e.cpu.number(), e.arg)).collect();
    assert_eq!(marks, [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(Recording::read_whole(&run.file("again.raw")).of(MARK_A).count(), 1);
}

#[test]
fn a_device_is_named_by_the_module_also_after_its_vector_moved() {
    let run = guest::succeed(
        &[],
        r#"
        if [ -e /sys/kernel/debug/irq ]; then echo 'this kernel shows vectors by debugfs' >&2; exit 99; fi
        irqs=$(awk '/virtio/ { sub(":", "", $1); print $1 }' /proc/interrupts)
        to() { for irq in $irqs; do echo $1 >/proc/irq/$irq/smp_affinity || true; done; }
        head -c 4000000 /dev/urandom >$SHARE/data
        to 1
        kutrace_control go
        for mask in 2 4 8 1; do
            to $mask
            for n in 1 2 3 4; do cat $SHARE/data >/dev/null; done
        done
        kutrace_control stop $SHARE/t.raw
        cat /proc/interrupts >$SHARE/interrupts
        "#,
    );
    let interrupts = std::fs::read_to_string(run.file("interrupts")).unwrap();
    let trace = Recording::read_whole(&run.file("t.raw"));
    // Vectors from 0x20 to the system's are given to devices.
    let device = |e: &&postprocess::event::Event| vector::DEVICES.contains(&e.event().wrapping_sub(IRQ));
    let all: Vec<_> = trace.events.events.iter().filter(device).collect();
    assert!(all.len() > 10, "{} interrupts of devices", all.len());
    let mut cpus = BTreeSet::new();
    for e in &all {
        let name = trace.event_name(e);
        assert!(interrupts.contains(name), "cpu {}, vector {:#x} is called {name}", e.cpu, e.event() - IRQ);
        cpus.extend((name.contains("virtio")).then_some(e.cpu));
    }
    eprintln!("lifecycle: {} interrupts of devices, those of virtio on CPUs {cpus:?}", all.len());
    assert!(cpus.len() >= 2, "no vector moved: {interrupts}");
}

#[test]
fn programs_that_insert_too_much_are_refused_and_counted() {
    let run = guest::succeed(
        &["--cpus", "2", "--no-load"],
        r#"
        cp $BIN/flood /tmp
        nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
        insmod $KUTRACE_MODULE namerate=100 markrate=1000
        kutrace_control gowrap
        echo names=$(taskset -c 1 $nobody /tmp/flood n)
        echo marks=$(taskset -c 1 $nobody /tmp/flood m)
        kutrace_control status >$SHARE/status
        status=0; kutrace_control stop $SHARE/t.raw || status=$?
        test $status = 3
        rmmod kutrace
        for marks in off group; do
            insmod $KUTRACE_MODULE marks=$marks
            chgrp 4242 /dev/kutrace
            kutrace_control go
            echo ${marks}_nobody=$($nobody /tmp/flood m)
            echo ${marks}_member=$(setpriv --reuid 65534 --regid 65534 --groups 4242 /tmp/flood m)
            kutrace_control stop $SHARE/$marks.raw
            rmmod kutrace
        done
        ! insmod $KUTRACE_MODULE marks=some
        "#,
    );
    let header = Blocks::read(&run.file("t.raw")).header;
    let (names, marks) = (run.number("names"), run.number("marks"));
    assert!((100..2_000).contains(&names) && (1_000..20_000).contains(&marks), "{names} names, {marks} marks");
    assert_eq!((header.refused_names, header.refused_marks), (100_000 - names, 100_000 - marks));
    let status = std::fs::read_to_string(run.file("status")).unwrap();
    assert!(status.contains(&format!("{} names of programs were refused", header.refused_names)), "{status}");
    let numbers = ["off_nobody", "off_member", "group_nobody", "group_member"].map(|name| run.number(name));
    assert_eq!(numbers, [0, 0, 0, 100_000]);
}
