// SPDX-License-Identifier: BSD-3-Clause
//! Checks whether this machine can record, with a fix if it cannot: one line for each requirement.

use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};

use kutrace_cli::Failure;
use kutrace_format::abi::command::{Info, SOURCE_TRACEPOINTS};
use kutrace_format::capability::Unseen;

use crate::device::{Recorder, PATH};
use crate::names::machine;
use crate::status;
use crate::tracefs;

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The requirement.
    pub what: &'static str,
    /// Its grade.
    pub grade: Grade,
    /// The finding.
    pub fact: String,
    /// The fix; empty if nothing is to be done.
    pub advice: String,
}

/// Grade of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Fulfilled.
    Right,
    /// Missing, and only needed by some modes.
    Missing,
    /// Nothing can be recorded.
    Wrong,
}

/// All lines. The checks change nothing.
pub fn lines<R: Recorder>() -> Vec<Line> {
    let info = R::open().and_then(|recorder| recorder.info());
    let root = Path::new("/");
    let mut lines = vec![
        kernel(root, info.as_ref().ok()),
        module(root),
        permission(&info),
        clock(root),
        counters(root),
        buffer(info.as_ref().ok()),
        tracefs(tracefs::root()),
    ];
    // Without the module there is a way that sees less.
    if lines.last().is_some_and(|line| line.grade == Grade::Right) {
        lines.iter_mut().for_each(|line| line.grade = line.grade.min(Grade::Missing));
    }
    lines
}

/// The lines as a table, each followed by its advice.
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

/// A kernel with the hooks, or any other that has tracepoints; for the latter, a loaded module reports what they do not
/// show.
fn kernel(root: &Path, info: Option<&Info>) -> Line {
    let release = machine::release();
    let symbols = fs::read_to_string(root.join("proc/kallsyms")).unwrap_or_default();
    let has = |name: &str| symbols.lines().any(|line| line.rsplit(' ').next() == Some(name));
    let by_tracepoints = info.is_some_and(|info| info.source == SOURCE_TRACEPOINTS);
    let kind = match has("kutrace_register") {
        true if !by_tracepoints => return right("kernel", format!("{release}, with the hooks of KUtrace")),
        true => "with the hooks of KUtrace",
        false => "stock",
    };
    if !by_tracepoints && !has("for_each_kernel_tracepoint") {
        let advice =
            "boot one that has either: all Linux distributions have tracepoints; for hooks see patches/README.md";
        let fact = format!("{release}, without the hooks of KUtrace and without tracepoints");
        return not(Grade::Wrong, "kernel", fact, advice);
    }
    let unseen: Vec<&str> = Unseen(info.map_or(0, |info| info.unseen)).texts().collect();
    let advice = if unseen.is_empty() { String::new() } else { format!("not seen: {}", unseen.join("; ")) };
    Line { advice, ..right("kernel", format!("{release}, {kind}: recorded by tracepoints")) }
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
            let advice = "times may be wrong; see: dmesg | grep -i tsc. A virtual machine may need the host's TSC";
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
        Some(info) => right("buffer", format!("{:.1} MB; record -b SIZE changes it", status::megabytes(info.blocks))),
        None => not(Grade::Wrong, "buffer", "unknown until the module is loaded", ""),
    }
}

fn tracefs(root: Result<PathBuf, Failure>) -> Line {
    match root {
        Ok(_) => right("tracefs", "record works without the module, at ten times its cost, and sees less"),
        Err(failure) => not(Grade::Missing, "tracefs", "not mounted, or not for this user", failure.hint()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_anything_is_told_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let root_path = root.path();
        let found = [kernel(root_path, None), module(root_path), clock(root_path), counters(root_path), buffer(None)];
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
        let found = [kernel(root.path(), None), module(root.path()), clock(root.path()), counters(root.path())];
        assert!(found.iter().all(|line| line.grade == Grade::Right && line.advice.is_empty()), "{found:?}");
    }

    #[test]
    fn a_stock_kernel_is_right_and_says_what_is_not_seen() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/kallsyms"), "0000 T for_each_kernel_tracepoint\n").unwrap();
        let before = kernel(root.path(), None);
        assert!(
            before.grade == Grade::Right && before.fact.ends_with(", stock: recorded by tracepoints"),
            "{before:?}"
        );
        assert_eq!(before.advice, "");

        let info = Info { source: SOURCE_TRACEPOINTS, unseen: 1 << 11 | 1 << 18, ..Info::default() };
        let loaded = kernel(root.path(), Some(&info));
        assert_eq!((loaded.fact, loaded.grade), (before.fact, Grade::Right));
        assert_eq!(loaded.advice, "not seen: time in the scheduler; network packets");
    }
}
