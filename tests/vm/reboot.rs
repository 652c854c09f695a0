// SPDX-License-Identifier: BSD-3-Clause
//! A trace in memory that outlives a reboot: the next kernel has it, whether the machine was shut down, was reset, or
//! panicked.

use std::fs;
use std::path::Path;
use std::process::Command;

use postprocess::event::number::MARK_A;

use crate::guest::{self, Run};
use crate::trace::Recording;

/// Ends of kernels, one after the other: a shutdown, a reset, a panic. In the gate only a panic.
const ENDS: &[&str] = guest::by_form(&["panic"], &["told", "reset", "panic"], &["told", "reset", "panic"]);
/// Megabytes that are reserved.
const RESERVED: u32 = guest::by_form(2, 8, 8);

/// Every boot takes the trace that the previous one has left, records until older events are overwritten, and ends as
/// given in `ends`.
const BOOTS: &str = r#"
    boot=$(cat $SHARE/boot 2>/dev/null || echo 0)
    echo $((boot + 1)) >$SHARE/boot
    insmod $KUTRACE_MODULE
    kutrace_control status >$SHARE/status.$boot
    if [ $boot = 1 ]; then
        # Unloaded, the module has lost nothing of it, whatever it recorded meanwhile.
        kutrace_control gowrap
        rmmod kutrace
        insmod $KUTRACE_MODULE
    fi
    kutrace_control recover --boot -o $SHARE/$boot.trace 2>$SHARE/told.$boot || echo status=$? >>$SHARE/told.$boot
    kutrace_control recover --boot -o $SHARE/again.trace 2>$SHARE/again.$boot || echo status=$? >>$SHARE/again.$boot
    [ $boot = ${#ends[@]} ] && exit
    # Other memory, and back to this.
    kutrace_control record -b 2M -o $SHARE/other.$boot.trace -- ls / >/dev/null
    kutrace_control gowrap
    for n in 1 2; do
        (while :; do ls -R /etc >/dev/null; done) &
    done
    # Fills the memory soon. From the mark on there are fewer events, or it would be overwritten.
    dd if=/dev/zero of=/dev/null bs=1 2>/dev/null & filler=$!
    until kutrace_control status | grep 'older ones overwritten'; do sleep .2; done
    kill $filler
    kutrace_control snapshot $SHARE/snapshot.$boot.trace
    sync
    kutrace_control mark end$boot
    # Each CPU records after that.
    for cpu in 0 1; do taskset -c $cpu kutrace_control mark $cpu; done
    case ${ends[boot]} in
        told) perl -e 'syscall 169, 0xfee1dead, 672274793, 0x1234567' ;;
        reset) echo b >/proc/sysrq-trigger ;;
        panic) echo c >/proc/sysrq-trigger ;;
    esac
    sleep 600
"#;

fn text(run: &Run, name: &str) -> String {
    fs::read_to_string(run.file(name)).unwrap_or_else(|error| panic!("{name}: {error}\n{}\n{}", run.out, run.err))
}

fn check(trace: &Path) -> std::process::Output {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/release/checktrace");
    Command::new(tool).arg(trace).output().unwrap()
}

#[test]
fn the_next_kernel_has_the_trace_of_the_one_before_however_that_ended() {
    let reserve = format!("reserve_mem={RESERVED}M:65536:kutrace");
    let options = ["--no-load", "--cpus", "2", "--mem", "768", "--reboot", "--append", &reserve];
    let run = guest::succeed(&options, &format!("ends=({}){BOOTS}", ENDS.join(" ")));
    assert!(text(&run, "told.0").contains("no trace of an earlier kernel is kept"), "{}", text(&run, "told.0"));
    assert!(!text(&run, "status.0").contains("kept:"));
    for (boot, end) in (1..).zip(ENDS) {
        let (told, status) = (text(&run, &format!("told.{boot}")), text(&run, &format!("status.{boot}")));
        println!("{told}");
        assert!(status.contains(&format!("kept:   {RESERVED}.0 MB of the previous kernel")), "{boot}: {status}");
        assert!(text(&run, &format!("again.{boot}")).contains("no trace of an earlier kernel is kept"));
        let trace = Recording::read(&run.file(&format!("{boot}.trace")));
        let mark = |name: &str| {
            let mut marks = trace.of(MARK_A).filter(|e| trace.event_name(e) == format!("mark_a={name}"));
            marks.next().unwrap_or_else(|| panic!("{boot}: no mark {name}: {told}"))
        };
        let asked = mark(&format!("end{}", boot - 1));
        // Every thread that ran has a name, and all CPUs recorded to the end.
        assert!(!trace.pids_of("ls").is_empty(), "{boot}");
        assert_eq!(trace.events.meta.intervals.len(), 2);
        for interval in &trace.events.meta.intervals {
            let last = trace.events.events.iter().filter(|e| e.cpu == interval.cpu).map(|e| e.ts).max().unwrap();
            assert!(last > asked.ts, "{boot}: CPU {:?}", interval.cpu);
        }
        match *end {
            "reset" => {
                assert!(
                    told.contains("the machine was reset while it recorded") && told.contains("status=3"),
                    "{told}"
                );
            }
            _ => {
                assert!(!told.contains("status="), "{told}");
                // In a trace that wrapped a CPU begins inside of anything: some may be missing and supplied.
                assert!(trace.tally.repairs <= 3 * 2, "{:?}", trace.tally);
                let checked = check(&run.file(&format!("{boot}.trace")));
                let said = String::from_utf8_lossy(&checked.stdout);
                let is_supplied = said.contains("was missing") || said.contains("were missing");
                assert!(checked.status.success() || trace.tally.repairs > 0 && is_supplied, "{boot}: {said}");
            }
        }
        if *end == "panic" {
            assert!(told.contains("the kernel panicked at ") && mark("panic").ts > asked.ts, "{told}");
        }
    }
    for boot in 0..ENDS.len() {
        Recording::read_whole_alone(&run.file(&format!("other.{boot}.trace")));
        Recording::read_whole_alone(&run.file(&format!("snapshot.{boot}.trace")));
    }
}
