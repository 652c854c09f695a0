// SPDX-License-Identifier: BSD-3-Clause
//! spantolttng, read back by babeltrace2 and compared with the events that the spans are made of.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kutrace_tests::{busy, skip};
use postprocess::event::number::{IRQ, IRQ_LAST, SOFTIRQ, SWITCH, SYSCALL, SYSCALL32, SYSCALL32_LAST, SYSCALL_LAST};

/// Nanoseconds of the minute that times count from.
const MINUTE: u64 = 60_000_000_000;

fn tool(name: &str, path: &Path) -> String {
    let output = Command::new(name).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Converts a raw file into a folder, which is returned with what the tool said.
fn convert(raw: &Path, name: &str) -> (PathBuf, String) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).unwrap();
    }
    let events = fs::File::create(dir.with_extension("events")).unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_rawtoevent")).arg(raw).stdout(events).stderr(Stdio::null()).status();
    assert!(made.unwrap().success());
    let spans = tool(env!("CARGO_BIN_EXE_eventtospan"), &dir.with_extension("events"));
    fs::write(dir.with_extension("json"), spans).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_spantolttng")).arg(dir.with_extension("json")).arg(&dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (dir, String::from_utf8(output.stderr).unwrap())
}

/// An event as babeltrace2 prints it: its CPU, nanoseconds in its minute, name, and fields.
type Printed = (u32, u64, String, BTreeMap<String, String>);

/// What babeltrace2 reads; nothing if that is not installed.
fn read(dir: &Path) -> Option<Vec<Printed>> {
    let Ok(read) = Command::new("babeltrace2").args(["--clock-seconds", "--no-delta"]).arg(dir).output() else {
        skip::skip("what spantolttng writes", "babeltrace2 is not installed");
        return None;
    };
    assert_eq!((read.status.success(), &*String::from_utf8_lossy(&read.stderr)), (true, ""));
    Some(String::from_utf8(read.stdout).unwrap().lines().map(printed).collect())
}

fn printed(line: &str) -> Printed {
    let (time, rest) = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).expect(line);
    let (name, rest) = rest.split_once(": { cpu_id = ").expect(line);
    let name = name.rsplit(' ').next().unwrap().to_string();
    let (cpu, rest) = rest.split_once(" }, { ").expect(line);
    let fields = rest.trim_end_matches('}').trim_end();
    let fields = fields.split(", ").filter_map(|field| field.split_once(" = "));
    let fields = fields.map(|(key, value)| (key.to_string(), value.trim_matches('"').to_string())).collect();
    (cpu.parse().unwrap(), time.replace('.', "").parse::<u64>().unwrap() % MINUTE, name, fields)
}

/// The lines of the event text that have a time: time, duration, event, CPU, thread, argument, value, name.
fn events(dir: &Path) -> Vec<(u64, u64, u32, u32, i64, i64, String)> {
    let text = fs::read_to_string(dir.with_extension("events")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with(['#', '-']));
    let columns = lines.map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|line| line.len() > 9);
    let number = |text: &str| text.parse::<i64>().unwrap();
    columns
        .map(|c| {
            let ns = |text: &str| number(text) as u64 * 10;
            (ns(c[0]), ns(c[1]), number(c[2]) as u32, number(c[3]) as u32, number(c[6]), number(c[7]), c[9].to_string())
        })
        .collect()
}

#[test]
fn babeltrace2_reads_every_call_interrupt_and_switch_of_the_sample() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/pipeline.trace");
    let (dir, said) = convert(&sample, "lttng_sample");
    assert!(said.contains("faults are left out\n"), "{said}");
    let Some(read) = read(&dir) else { return };
    let of = |is: &dyn Fn(&str) -> bool| read.iter().filter(|(_, _, name, _)| is(name)).count();
    let events = events(&dir);
    let between = |first: u32, last: u32| events.iter().filter(|e| (first..=last).contains(&e.2)).count();

    let interrupts = of(&|name| name == "irq_handler_entry" || name.starts_with("x86_irq") && name.ends_with("_entry"));
    // Softirqs are among the interrupts.
    let softirqs = between(SOFTIRQ, SOFTIRQ);
    assert_eq!(interrupts, between(IRQ, IRQ_LAST) - softirqs);
    assert_eq!(of(&|name| name == "irq_softirq_entry"), softirqs);
    assert_eq!(of(&|name| name == "irq_softirq_exit"), softirqs);
    // Those that had begun before the trace, and those that a new thread returns from, only end.
    let calls = between(SYSCALL, SYSCALL_LAST) + between(SYSCALL32, SYSCALL32_LAST);
    assert_eq!(of(&|name| name.starts_with("syscall_entry_")), calls);

    // Each call that is one event ends when it says, with its value.
    let ends = read.iter().filter_map(|(cpu, ns, name, fields)| {
        Some(((*cpu, *ns, name.strip_prefix("syscall_exit_")?), fields["ret"].parse::<i64>().unwrap()))
    });
    let ends: BTreeMap<_, _> = ends.collect();
    let whole: Vec<_> = events.iter().filter(|e| (SYSCALL..=SYSCALL_LAST).contains(&e.2) && e.1 > 10).collect();
    assert!(whole.len() > 300, "{}", whole.len());
    for (ts, dur, _, cpu, _, ret, name) in whole {
        let name = match name.as_str() {
            "stat" | "fstat" | "lstat" | "uname" => format!("new{name}"),
            _ => name.clone(),
        };
        assert_eq!(ends.get(&(*cpu, (ts + dur) % MINUTE, name.as_str())), Some(ret), "{name} at {ts} on CPU {cpu}");
    }

    let mut runs = BTreeMap::new();
    let switches = events.iter().filter(|e| e.2 == SWITCH && runs.insert(e.3, e.4).is_some_and(|before| before != e.4));
    let told: Vec<_> = read.iter().filter(|(_, _, name, _)| name == "sched_switch").collect();
    let switches = switches.count();
    assert!((switches..=switches + 4).contains(&told.len()), "{switches} {}", told.len());
    let mut runs = BTreeMap::new();
    for (cpu, ns, _, fields) in &told {
        let before = runs.insert(cpu, fields["next_tid"].clone()).unwrap_or("0".to_string());
        assert_eq!(fields["prev_tid"], before, "CPU {cpu} at {ns}");
    }
    let states = |state: &str| told.iter().filter(|(.., fields)| fields["prev_state"] == state).count();
    let found = ["0", "1", "2"].map(states);
    assert!(found[0] > 100 && found[1] > 50 && found[2] > 300, "{found:?}");
}

#[test]
fn packets_follow_one_another_and_states_are_told_in_those_that_are_written() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lttng_busy.raw");
    fs::write(&path, busy(2, 100_000, 5).bytes()).unwrap();
    let (dir, _) = convert(&path, "lttng_busy");
    assert!(fs::metadata(dir.join("cpu_0")).unwrap().len() > 3 * 256 * 1024);
    let Some(read) = read(&dir) else { return };
    let switches = read.iter().filter(|(_, _, name, _)| name == "sched_switch");
    assert!(switches.filter(|(.., fields)| fields["prev_state"] != "0").count() > 100);
}
