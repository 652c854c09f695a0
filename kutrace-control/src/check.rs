// SPDX-License-Identifier: BSD-3-Clause
//! Whether this machine can record, and what to do where it cannot: one line for each thing that must be right.

use std::fmt::{self, Write};
use std::fs;
use std::path::Path;

use kutrace_cli::Failure;
use kutrace_format::abi::command::Info;

use crate::device::{Recorder, PATH};
use crate::names::machine;
use crate::status;

/// What is known about one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The thing.
    pub what: &'static str,
    /// Whether it is right.
    pub grade: Grade,
    /// What was found.
    pub fact: String,
    /// What to do about it; empty if nothing is to be done.
    pub advice: String,
}

/// Whether a thing is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It is.
    Right,
    /// It is missing, and only some modes need it.
    Missing,
    /// Nothing can be recorded.
    Wrong,
}

/// All lines. Nothing is changed by looking.
pub fn lines<R: Recorder>() -> Vec<Line> {
    let info = R::open().and_then(|recorder| recorder.info());
    let root = Path::new("/");
    vec![kernel(root), module(root), permission(&info), clock(root), counters(root), buffer(info.as_ref().ok())]
}

/// The lines as a table; their advice is below each.
pub fn table(lines: &[Line]) -> String {
    let mut text = String::new();
    for Line { what, grade, fact, advice } in lines {
        let _ = writeln!(text, "{what:11}{grade:8}{fact}");
        if !advice.is_empty() {
            let _ = writeln!(text, "{:11}{:8}{advice}", "", "->");
        }
    }
    text
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Grade::Right => "ok",
            Grade::Missing => "missing",
            Grade::Wrong => "wrong",
        })
    }
}

fn right(what: &'static str, fact: impl Into<String>) -> Line {
    Line { what, grade: Grade::Right, fact: fact.into(), advice: String::new() }
}

fn not(grade: Grade, what: &'static str, fact: impl Into<String>, advice: impl Into<String>) -> Line {
    Line { what, grade, fact: fact.into(), advice: advice.into() }
}

fn kernel(root: &Path) -> Line {
    let release = machine::release();
    let symbols = fs::read(root.join("proc/kallsyms")).unwrap_or_default();
    let name = b" kutrace_register\n";
    if symbols.windows(name.len()).any(|found| found == name) {
        return right("kernel", format!("{release}, with the hooks of KUtrace"));
    }
    let advice = "boot a kernel with the patches and CONFIG_KUTRACE=y: see patches/README.md";
    not(Grade::Wrong, "kernel", format!("{release}, without the hooks of KUtrace"), advice)
}

fn module(root: &Path) -> Line {
    match root.join("sys/module/kutrace").exists() {
        true => right("module", "loaded"),
        false => not(Grade::Wrong, "module", "not loaded", "as root: insmod kutrace.ko, or modprobe kutrace"),
    }
}

fn permission(info: &anyhow::Result<Info>) -> Line {
    match info {
        Ok(_) => right("permission", format!("{PATH} can be opened and controlled")),
        Err(error) => {
            let hint = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()).map(Failure::hint);
            not(Grade::Wrong, "permission", format!("{error:#}"), hint.unwrap_or_default())
        }
    }
}

fn clock(root: &Path) -> Line {
    let path = root.join("sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = fs::read_to_string(path).unwrap_or_default();
    let flags = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let steady = ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.split(' ').any(|word| word == *flag));
    let source = source.trim();
    match (source, steady) {
        ("tsc", _) => right("clock", "clocksource is tsc"),
        (_, true) => right("clock", format!("the TSC has a constant rate; clocksource is {source}")),
        _ => {
            let advice = "times may be wrong; dmesg | grep -i tsc says why. A virtual machine may need the host's TSC";
            not(Grade::Missing, "clock", format!("clocksource is {source}, not tsc"), advice)
        }
    }
}

fn counters(root: &Path) -> Line {
    let devices = root.join("sys/bus/event_source/devices");
    match ["cpu", "cpu_core"].iter().any(|name| devices.join(name).exists()) {
        true => right("counters", "hardware counters available: --ipc and --llc work"),
        false => {
            let advice = "record without --ipc and --llc; most virtual machines have none";
            not(Grade::Missing, "counters", "no hardware counters available", advice)
        }
    }
}

fn buffer(info: Option<&Info>) -> Line {
    match info {
        Some(info) => {
            right("buffer", format!("{:.1} MB; record -b SIZE takes another", status::megabytes(info.blocks)))
        }
        None => not(Grade::Wrong, "buffer", "unknown until the module is loaded", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_anything_is_told_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let found = [kernel(root.path()), module(root.path()), clock(root.path()), counters(root.path()), buffer(None)];
        let grades = found.each_ref().map(|line| line.grade);
        assert_eq!(grades, [Grade::Wrong, Grade::Wrong, Grade::Missing, Grade::Missing, Grade::Wrong]);
        assert!(found[..4].iter().all(|line| !line.advice.is_empty()), "{found:?}");
        let table = table(&found[1..2]);
        assert_eq!(
            table,
            "module     wrong   not loaded\n           ->      as root: insmod kutrace.ko, or modprobe kutrace\n"
        );
    }

    #[test]
    fn a_machine_with_everything_needs_no_advice() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/kallsyms", "0000 t other\n0000 T kutrace_register\n0000 d last\n");
        put("sys/module/kutrace/refcnt", "0\n");
        put("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n");
        put("proc/cpuinfo", "processor: 0\nflags\t\t: fpu constant_tsc nonstop_tsc\n");
        put("sys/bus/event_source/devices/cpu_core/type", "4\n");
        let found = [kernel(root.path()), module(root.path()), clock(root.path()), counters(root.path())];
        assert!(found.iter().all(|line| line.grade == Grade::Right && line.advice.is_empty()), "{found:?}");
    }
}
