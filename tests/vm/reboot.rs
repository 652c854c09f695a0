// SPDX-License-Identifier: BSD-3-Clause
//! A trace in memory that outlives a reboot: the next kernel has it, whether the machine was told to go down, was reset, or
//! panicked.

use std::fs;
use std::path::Path;
use std::process::Command;

use postprocess::event::number::MARK_A;

use crate::guest::{self, Run};
use crate::trace::Recording;

/// Every boot takes what the one before has left, records until older events are overwritten, and ends in another way.
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
    [ $boot = 3 ] && exit
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
    kutrace_control mark end$boot
    sync
    sleep .3
    case $boot in
        0) perl -e 'syscall 169, 0xfee1dead, 672274793, 0x1234567' ;;
        1) echo b >/proc/sysrq-trigger ;;
        2) echo c >/proc/sysrq-trigger ;;
    esac
    sleep 60
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
    let reserve = ["--append", "reserve_mem=8M:65536:kutrace"];
    let run =
        guest::succeed(&[&["--no-load", "--cpus", "2", "--mem", "768", "--reboot"][..], &reserve].concat(), BOOTS);
    assert!(text(&run, "told.0").contains("no trace of an earlier kernel is kept"), "{}", text(&run, "told.0"));
    assert!(!text(&run, "status.0").contains("kept:"));
    for boot in 1..=3 {
        let (told, status) = (text(&run, &format!("told.{boot}")), text(&run, &format!("status.{boot}")));
        println!("{told}");
        assert!(status.contains("kept:   8.0 MB of the kernel before"), "{boot}: {status}");
        assert!(text(&run, &format!("again.{boot}")).contains("no trace of an earlier kernel is kept"));
        let trace = Recording::read(&run.file(&format!("{boot}.trace")));
        let mark = |name: &str| {
            let mut marks = trace.of(MARK_A).filter(|e| trace.event_name(e) == format!("mark_a={name}"));
            marks.next().unwrap_or_else(|| panic!("{boot}: no mark {name}: {told}"))
        };
        let asked = mark(&format!("end{}", boot - 1));
        // Whoever ran has a name, and all CPUs recorded to the end.
        assert!(!trace.pids_of("ls").is_empty(), "{boot}");
        assert_eq!(trace.events.meta.intervals.len(), 2);
        for interval in &trace.events.meta.intervals {
            let last = trace.events.events.iter().filter(|e| e.cpu == interval.cpu).map(|e| e.ts).max().unwrap();
            assert!(last > asked.ts, "{boot}: CPU {:?}", interval.cpu);
        }
        match boot {
            2 => {
                assert!(
                    told.contains("the machine was reset while it recorded") && told.contains("status=3"),
                    "{told}"
                );
            }
            _ => {
                assert!(!told.contains("status="), "{told}");
                let checked = check(&run.file(&format!("{boot}.trace")));
                assert!(checked.status.success(), "{boot}: {}", String::from_utf8_lossy(&checked.stdout));
            }
        }
        if boot == 3 {
            assert!(told.contains("the kernel panicked at ") && mark("panic").ts > asked.ts, "{told}");
        }
    }
    for boot in 0..3 {
        Recording::read_whole_alone(&run.file(&format!("other.{boot}.trace")));
        Recording::read_whole_alone(&run.file(&format!("snapshot.{boot}.trace")));
    }
}
