// SPDX-License-Identifier: BSD-3-Clause
//! Loading and unloading, starting and stopping, under load: no complaint of the kernel, no leak, no torn entry.

use crate::guest;
use crate::trace::{self, Recording};

/// Programs that keep every CPU in system calls, faults, interrupts and switches, until they are killed; nice, so
/// that the commands between them get through.
const LOAD: &str = r#"
    nice -n 19 stress-ng --quiet --switch 1 --fault 1 --timer 1 --timer-freq 2000 --fork 1 --timeout 0 &
    load=$!
    sleep 1
"#;

const KERNEL_IS_CALM: &str = r#"
    kill $load; wait $load || true
    dmesg >$SHARE/dmesg
    ! grep -E 'WARNING|BUG|Oops|leak|RIP:' $SHARE/dmesg >&2
"#;

/// Two CPUs, as many as a small host has: an unload waits for all of them again and again.
#[test]
fn many_loads_and_unloads_under_load() {
    loads_and_unloads(guest::by_form(12, 30, 100), &["--cpus", "2"]);
}

/// Under KASAN, lockdep and PROVE_RCU: their reports fail the run.
#[cfg(feature = "soak")]
#[test]
fn a_thousand_loads_and_unloads_in_the_debug_kernel() {
    loads_and_unloads(1000, &["--kernel", "debug", "--cpus", "2", "--timeout", "7200"]);
}

#[test]
fn a_module_for_another_table_of_hooks_is_refused() {
    // The module's tables begin with the version, and continue with functions, which are zero in the file.
    guest::succeed(
        &["--no-load"],
        r#"
        perl -0777 -pe '$n = s/[\x08-\xf0](?=\x00\x02\x00\x00{88})/chr(8 + ord $&)/ge; die "no table\n" if !$n' \
            $KUTRACE_MODULE >/tmp/other.ko
        if insmod /tmp/other.ko 2>/tmp/said; then exit 99; fi
        grep -q 'Invalid module format' /tmp/said
        dmesg | grep -q 'kutrace: built for the hooks of another kernel than this one'
        test ! -e /dev/kutrace
        insmod $KUTRACE_MODULE
        kutrace_control go
        "#,
    );
}

/// NMIs, until the background job is killed: the kernel answers each `l` with one on every other CPU, and with text.
/// That keeps off the slow console, so the kernel's complaints are picked out of its log.
const NMIS: &str = r#"
    dmesg --console-level 1
    grep -E --line-buffered 'WARNING:|BUG:|KASAN:|Oops|INFO: (rcu|task|trying)' /dev/kmsg >$SHARE/complaints &
    picker=$!
    while sleep 1; do echo l >/proc/sysrq-trigger; done &
    nmis=$!
"#;

/// Loads, starts and unloads that often, every other time without a stop: first with CPUs that idle, then with hooks
/// under way in tasks, softirqs, interrupts and NMIs.
pub fn loads_and_unloads(times: u32, options: &[&str]) {
    let script = format!(
        r#"
        vmalloc() {{ awk '/VmallocUsed/ {{ print $2 }}' /proc/meminfo; }}
        cp $KUTRACE_MODULE module.ko
        {NMIS}
        before=$(vmalloc)
        perl $VM/reload.pl module.ko $(({times} / 10))
        {LOAD}
        perl $VM/reload.pl module.ko {times} >$SHARE/progress
        kill $load $nmis; wait $load || true
        sleep 1
        grown=$(( $(vmalloc) - before ))
        echo grown=$((grown > 0 ? grown : 0))
        awk '$1 == "NMI:" {{ print "nmis=" $2 + $3 }}' /proc/interrupts
        # The picker ends if it misses a line.
        kill $picker
        ! grep . $SHARE/complaints >&2
        "#
    );
    let run = guest::succeed(&[&[guest::AT_ONCE, "--no-load"], options].concat(), &script);
    // 12 leaked pools of 2 MiB would be 24576 kB; processes that come and go move some hundred.
    assert!(run.number("grown") < 8192, "{}", run.out);
    assert!(run.number("nmis") > u64::from(times) / 10, "{}", run.out);
}

#[test]
fn many_starts_and_stops_under_load_tear_no_entry() {
    let times = guest::by_form(12, 40, 200);
    let script = format!(
        r#"
        insmod $KUTRACE_MODULE tracemb=64
        {LOAD}
        for n in $(seq {times}); do
            kutrace_control go
            sleep 0.0$((n % 4))
            kutrace_control stop $SHARE/$n.raw || [ $? = 3 ]
        done
        {KERNEL_IS_CALM}
        rmmod kutrace
        "#
    );
    let run = guest::succeed(&[guest::AT_ONCE, "--no-load", "--cpus", "2"], &script);
    let paths: Vec<_> = (1..=times).map(|n| run.file(&format!("{n}.raw"))).collect();
    trace::each(&paths, |path| {
        let trace = if path.to_string_lossy().ends_with("0.raw") {
            Recording::read_and_ask(path)
        } else {
            Recording::read_alone(path)
        };
        // Of a trace this short, a host that takes the CPU between two readings of clocks makes another rate.
        let is_rate = |said: &String| said.starts_with("the clock rate between start and stop is not the processor's");
        let quality = &trace.events.meta.quality;
        assert!(quality.iter().all(is_rate), "{}: {quality:?}", path.display());
        trace.check();
    });
}
