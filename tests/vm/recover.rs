// SPDX-License-Identifier: BSD-3-Clause
//! Traces of kernels that have crashed, from the image of their memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use postprocess::event::number::{MARK_A, PROGRAM_MARK, PROGRAM_VALUE, SYSCALL};
use postprocess::time::Time;

use crate::guest::{self, Run};
use crate::marks::TAKE;
use crate::trace::Recording;

/// Two programs record themselves: one that ends, all that it does, and one that does not.
const RECORD: &str = "
    ./programs counting >/tmp/counted &
    until grep -q 1000 /tmp/counted; do sleep .1; done
    ./programs calls 5000
    tail -n 1 /tmp/counted >$SHARE/counted
    ";
/// Marks of the first.
const MARKS: usize = 10_000;

/// All CPUs are busy, with more than the buffer holds, when the kernel crashes.
const CRASH: &str = r#"
    insmod $KUTRACE_MODULE tracemb=8
    kutrace_control gowrap
    for n in 1 2 3 4; do
        (while :; do ls -R /etc >/dev/null; done) &
    done
    until kutrace_control status | grep 'older ones overwritten'; do sleep .2; done
    record
    kutrace_control mark crash
    echo c >/proc/sysrq-trigger
"#;

/// Forms in which a kernel of kdump keeps the memory that are tried: that of Debian's kdump-tools, or all.
const FORMS: &[&str] = guest::by_form(&["compressed"], ALL, ALL);
const ALL: &[&str] = &["compressed", "plain", "flattened"];
/// The same as [`CRASH`] with such a kernel.
const KDUMP: &str = r#"
    if [ -e /proc/vmcore ]; then
        makedumpfile -c -d 31 /proc/vmcore $SHARE/compressed
        if [ $FORMS = 1 ]; then exit; fi
        cp /proc/vmcore $SHARE/plain
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
    perl -e 'getppid while 1' &
    await eval "kutrace_control status | grep 'older ones overwritten'"
    kill $!
    record
    kutrace_control mark crash
    echo c >/proc/sysrq-trigger
"#;

fn tool(name: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/release").join(name))
}

/// A script in which `record` runs [`RECORD`].
fn script(script: &str) -> String {
    format!(
        "[ -e /proc/vmcore ] || {{ {TAKE}
 take programs; }}\nrecord() {{ {RECORD} }}\n{script}"
    )
}

/// Everything that the programs reported as recorded is there, as far back as the trace reaches.
fn has_what_programs_recorded(trace: &Recording, run: &Run) {
    let said: u64 = fs::read_to_string(run.file("counted")).unwrap().trim().parse().unwrap();
    assert_eq!(trace.of(PROGRAM_MARK).count(), MARKS);
    let values: Vec<u64> =
        trace.of(PROGRAM_VALUE).filter(|e| trace.event_name(e) == "counted").map(|e| e.value() as u64).collect();
    let (first, last) = (values[0], values[values.len() - 1]);
    println!("values {first} to {last}, of which {said} had been printed");
    assert!(values.iter().copied().eq(first..=last) && (said..said + 1_000_000).contains(&last));
    assert_eq!(trace.of(PROGRAM_VALUE).filter(|e| e.value() == -5_000_000_000).count(), 1);
}

/// Crashes a guest; its memory is in these files of the folder.
fn crash(folder: &Path, files: &[&str], options: &[&str]) -> Run {
    let files: Vec<String> = files.iter().map(|file| folder.join(file).display().to_string()).collect();
    let dumps = files.iter().flat_map(|file| ["--dump", file]);
    let usual = [guest::AT_ONCE, "--no-load", "--cpus", "4", "--mem", "768"];
    let options: Vec<&str> = usual.into_iter().chain(dumps).chain(options.iter().copied()).collect();
    let run = guest::run(&options, &script(CRASH));
    assert!(run.err.contains("Kernel panic - not syncing: sysrq triggered crash"), "{}\n{}", run.out, run.err);
    run
}

fn recover(image: &Path, trace: &Path) -> Output {
    tool("kutrace_control").arg("recover").arg(image).arg("-o").arg(trace).output().unwrap()
}

/// Of the night: the gate has the kernel of kdump, and the trace that a panic leaves in memory for the next kernel.
#[cfg(feature = "night")]
#[test]
fn the_trace_of_a_crashed_kernel_is_in_its_memory_up_to_the_crash() {
    let folder = tempfile::tempdir().unwrap();
    let [core, kdump, trace] = ["core", "core.kdump", "t.trace"].map(|name| folder.path().join(name));
    let run = crash(folder.path(), &["core", "core.kdump"], &[]);
    let recovered = recover(&core, &trace);
    let said = String::from_utf8_lossy(&recovered.stderr);
    println!("{said}");
    assert_eq!(recovered.status.code(), Some(0), "{said}");
    assert!(said.contains("the kernel panicked at "), "{said}");
    // In a trace that wrapped a CPU begins inside anything; that may be a call of which only the end is there.
    let checked = tool("checktrace").arg(&trace).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() || said.contains("warn  1 call, return or switch was missing"), "{said}");

    let recording = Recording::read_whole_alone(&trace);
    let mark = |name: &str| {
        let mut marks = recording.of(MARK_A).filter(|e| recording.event_name(e) == format!("mark_a={name}"));
        (marks.next().unwrap_or_else(|| panic!("no mark {name}")), marks.count()).0
    };
    let (asked, panic) = (mark("crash"), mark("panic"));
    // The shell writes to /proc/sysrq-trigger, and comes no further.
    let call = recording.of(SYSCALL + 1).filter(|e| e.cpu == panic.cpu && e.ts < panic.ts).last().unwrap();
    assert_eq!((call.pid, call.dur), (panic.pid, Time::ZERO));
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
    has_what_programs_recorded(&recording, &run);
    // As makedumpfile compresses it, it is the same.
    let again = folder.path().join("kdump.trace");
    let compressed = recover(&kdump, &again);
    assert_eq!(compressed.status.code(), Some(0), "{}", String::from_utf8_lossy(&compressed.stderr));
    assert_eq!(Recording::read_whole_alone(&again).events.events, recording.events.events);
    // Cut in the midst of the memory.
    let bytes = fs::metadata(&core).unwrap().len();
    fs::OpenOptions::new().write(true).open(&core).unwrap().set_len(bytes * 9 / 10).unwrap();
    let cut = recover(&core, &folder.path().join("cut.trace"));
    let said = String::from_utf8_lossy(&cut.stderr);
    assert!(matches!(cut.status.code(), Some(1 | 3)) && said.lines().count() > 0, "{said}");
}

#[test]
fn the_kernel_of_kdump_keeps_it_whole() {
    let run = guest::succeed(
        &[guest::AT_ONCE, "--kernel", "stock", "--no-load", "--cpus", "2", "--mem", "640", "--second"],
        &format!("FORMS={}\n{}", FORMS.len(), script(KDUMP)),
    );
    let traces = FORMS.iter().map(|form| {
        let trace = run.file(&format!("{form}.trace"));
        let recovered = recover(&run.file(form), &trace);
        let said = String::from_utf8_lossy(&recovered.stderr);
        println!("{form}: {said}");
        assert_eq!(recovered.status.code(), Some(0), "{form}: {said}");
        Recording::read_whole(&trace)
    });
    let traces: Vec<Recording> = traces.collect();
    has_what_programs_recorded(&traces[0], &run);
    let marked = traces[0].of(MARK_A).filter(|e| traces[0].event_name(e) == "mark_a=crash");
    let asked = marked.last().unwrap();
    let writes = traces[0].of(SYSCALL + 1).filter(|e| e.ts > asked.ts && e.dur == Time::ZERO);
    assert!(writes.count() > 0, "the shell writes to /proc/sysrq-trigger");
    for trace in &traces[1..] {
        assert_eq!(trace.events.events, traces[0].events.events);
    }
}
