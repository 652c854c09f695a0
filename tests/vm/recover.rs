// SPDX-License-Identifier: BSD-3-Clause
//! Traces of kernels that have crashed, from the image of their memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use postprocess::event::number::{MARK_A, SYSCALL};

use crate::guest::{self, Run};
use crate::trace::Recording;

/// All CPUs are busy, with more than the buffer holds, when the kernel crashes.
const CRASH: &str = r#"
    insmod $KUTRACE_MODULE tracemb=4
    kutrace_control gowrap
    for n in 1 2 3 4; do
        (while :; do ls -R /etc >/dev/null; done) &
    done
    until kutrace_control status | grep 'older ones overwritten'; do sleep .2; done
    kutrace_control mark crash
    echo c >/proc/sysrq-trigger
"#;

/// The same with a kernel of kdump, which keeps the memory in all forms.
const KDUMP: &str = r#"
    if [ -e /proc/vmcore ]; then
        cp /proc/vmcore $SHARE/plain
        makedumpfile -c -d 31 /proc/vmcore $SHARE/compressed
        makedumpfile -F -c -d 31 /proc/vmcore >$SHARE/flattened
        exit
    fi
    insmod $KUTRACE_MODULE tracemb=4
    kutrace_control gowrap
    perl -e '
        open my $kernel, "<", "$ARGV[0]/kernel" or die;
        open my $initramfs, "<", "$ARGV[0]/initramfs" or die;
        my $words = "console=ttyS0 panic=-1 nr_cpus=1 reset_devices tsc=reliable\0";
        # kexec_file_load(), of the kernel that a panic starts.
        syscall(320, fileno $kernel, fileno $initramfs, length $words, $words, 2) and die $!;
    ' $SHARE/second
    (while :; do ls -R /etc >/dev/null; done) &
    sleep 3
    kutrace_control mark crash
    echo c >/proc/sysrq-trigger
"#;

fn tool(name: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/release").join(name))
}

/// Crashes a guest; its memory is in these files of the folder.
fn crash(folder: &Path, files: &[&str], options: &[&str]) -> Run {
    let files: Vec<String> = files.iter().map(|file| folder.join(file).display().to_string()).collect();
    let dumps = files.iter().flat_map(|file| ["--dump", file]);
    let usual = ["--no-load", "--cpus", "4", "--mem", "768"];
    let options: Vec<&str> = usual.into_iter().chain(dumps).chain(options.iter().copied()).collect();
    let run = guest::run(&options, CRASH);
    assert!(run.err.contains("Kernel panic - not syncing: sysrq triggered crash"), "{}\n{}", run.out, run.err);
    run
}

fn recover(image: &Path, trace: &Path) -> Output {
    tool("kutrace_control").arg("recover").arg(image).arg("-o").arg(trace).output().unwrap()
}

#[test]
fn the_trace_of_a_crashed_kernel_is_in_its_memory_up_to_the_crash() {
    let folder = tempfile::tempdir().unwrap();
    let [core, kdump, trace] = ["core", "core.kdump", "t.trace"].map(|name| folder.path().join(name));
    crash(folder.path(), &["core", "core.kdump"], &[]);
    let recovered = recover(&core, &trace);
    let said = String::from_utf8_lossy(&recovered.stderr);
    println!("{said}");
    assert_eq!(recovered.status.code(), Some(0), "{said}");
    assert!(said.contains("the kernel panicked at "), "{said}");
    assert!(tool("checktrace").arg(&trace).status().unwrap().success());

    let recording = Recording::read_whole(&trace);
    let mark = |name: &str| {
        let mut marks = recording.of(MARK_A).filter(|e| recording.event_name(e) == format!("mark_a={name}"));
        (marks.next().unwrap_or_else(|| panic!("no mark {name}")), marks.count()).0
    };
    let (asked, panic) = (mark("crash"), mark("panic"));
    // The shell writes to /proc/sysrq-trigger, and comes no further.
    let call = recording.of(SYSCALL + 1).filter(|e| e.cpu == panic.cpu && e.ts < panic.ts).last().unwrap();
    assert_eq!((call.pid, call.dur), (panic.pid, postprocess::time::Time::ZERO));
    assert!(asked.ts < call.ts);
    // All CPUs recorded until the kernel stopped them, and the one that panics until its block is full.
    let cpus = &recording.events.meta.intervals;
    assert_eq!(cpus.len(), 4);
    let before = |cpu| recording.events.events.iter().filter(|e| e.cpu == cpu && e.ts < panic.ts).map(|e| e.ts).max();
    for cpu in cpus.iter().map(|interval| interval.cpu) {
        let last = before(cpu).unwrap();
        println!("CPU {cpu:?}: last event {} before the panic", panic.ts - last);
        assert!(last > asked.ts, "CPU {cpu:?}");
    }
    // As makedumpfile compresses it, it is the same.
    let again = folder.path().join("kdump.trace");
    let compressed = recover(&kdump, &again);
    assert_eq!(compressed.status.code(), Some(0), "{}", String::from_utf8_lossy(&compressed.stderr));
    assert_eq!(Recording::read_whole(&again).events.events, recording.events.events);
    // Cut in the midst of the memory.
    let bytes = fs::metadata(&core).unwrap().len();
    fs::OpenOptions::new().write(true).open(&core).unwrap().set_len(bytes * 9 / 10).unwrap();
    let cut = recover(&core, &folder.path().join("cut.trace"));
    let said = String::from_utf8_lossy(&cut.stderr);
    assert!(matches!(cut.status.code(), Some(1 | 3)) && said.lines().count() > 0, "{said}");
}

#[test]
fn the_kernel_of_kdump_keeps_it_whole_in_every_form() {
    let run = guest::succeed(&["--kernel", "stock", "--no-load", "--cpus", "2", "--mem", "1024", "--second"], KDUMP);
    let traces = ["plain", "compressed", "flattened"].map(|form| {
        let trace = run.file(&format!("{form}.trace"));
        let recovered = recover(&run.file(form), &trace);
        assert_eq!(recovered.status.code(), Some(0), "{form}: {}", String::from_utf8_lossy(&recovered.stderr));
        Recording::read_whole(&trace)
    });
    let marked = traces[0].of(MARK_A).filter(|e| traces[0].event_name(e) == "mark_a=crash");
    let asked = marked.last().unwrap();
    let writes = traces[0].of(SYSCALL + 1).filter(|e| e.ts > asked.ts && e.dur == postprocess::time::Time::ZERO);
    assert!(writes.count() > 0, "the shell writes to /proc/sysrq-trigger");
    assert!(traces.iter().all(|trace| trace.events.events == traces[0].events.events));
}
