// SPDX-License-Identifier: BSD-3-Clause
//! Reads a guest's kernel console line by line: keeps the lines to show, and sees when the kernel reports that something
//! broke.

use std::collections::VecDeque;

/// Bytes kept for a file.
const ALL: usize = 16 << 20;
/// Lines kept for showing.
const TAIL: usize = 40;
/// A WARNING's call trace follows within this many lines.
const TRACE_WITHIN: usize = 64;
/// The kernel's last line before the first program runs.
const INIT: &str = "Run /init as init process";
/// A line with one of these means that the guest cannot go on, or should not.
const FATAL: &[&str] = &["Kernel panic", "BUG: ", "Oops", "general protection fault"];

/// Output of a console so far.
#[derive(Default)]
pub struct Console {
    all: String,
    tail: VecDeque<String>,
    failure: Option<Failure>,
    /// A WARNING whose call trace has not come yet, and the lines since.
    warning: Option<(String, usize)>,
    /// The last line was a rule of `=`, which heads the reports of lockdep and RCU.
    ruled: bool,
    /// The kernel is to crash: nothing is a failure.
    may_crash: bool,
    /// Nothing of ours is in the kernel yet: its warnings at this point come from itself or from the emulator. Once,
    /// under QEMU 7.2, it was a trap for a single step that no program had requested.
    is_foreign: bool,
    foreign: Vec<String>,
}

/// The first line that reported a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing that comes after it means anything: the run ends here.
    Fatal(String),
    /// The kernel continues; the run counts as failed at its end.
    Warned(String),
}

impl Console {
    /// That of a machine without any output yet.
    pub fn new(may_crash: bool, is_stock: bool) -> Console {
        Console { may_crash, is_foreign: is_stock, ..Console::default() }
    }

    /// Takes the next line of the console.
    pub fn push(&mut self, line: &str) {
        let line = line.trim_end_matches('\r');
        if self.all.len() < ALL {
            self.all.push_str(line);
            self.all.push('\n');
        }
        if self.failure.is_none() && self.warning.is_none() {
            let before = self.tail.len().saturating_sub(TAIL - 1);
            self.tail.drain(..before);
        }
        // From the first failure on everything is kept, up to a bound: its trace is longer than the tail.
        if self.tail.len() < 4 * TAIL {
            self.tail.push_back(line.to_owned());
        }
        self.judge(line);
    }

    /// The lines since the beginning, up to a bound.
    pub fn all(&self) -> &str {
        &self.all
    }

    /// Failures so far.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Warnings that are no failure, since nothing of ours was in the kernel yet.
    pub fn foreign(&self) -> &[String] {
        &self.foreign
    }

    /// The last lines, oldest first, or those around the first failure.
    pub fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str)
    }

    fn has_died(&self) -> bool {
        matches!(self.failure, Some(Failure::Fatal(_)))
    }

    fn judge(&mut self, line: &str) {
        if self.may_crash || self.has_died() {
            return;
        }
        let fact = without_time(line).to_owned();
        self.is_foreign &= !fact.contains(INIT);
        let ruled = std::mem::replace(&mut self.ruled, fact.starts_with("====="));
        if FATAL.iter().any(|sign| fact.contains(sign)) || is_stall(&fact) {
            self.failure = Some(Failure::Fatal(fact));
            return;
        }
        if ruled && fact.starts_with("WARNING: ") {
            self.failure.get_or_insert(Failure::Warned(fact));
            return;
        }
        if fact.contains("WARNING: ") && self.is_foreign {
            self.foreign.push(fact);
            return;
        }
        if fact.contains("WARNING: ") {
            self.warning = Some((fact, 0));
            return;
        }
        self.warning = match self.warning.take() {
            Some((warning, _)) if fact.contains("Call Trace:") => {
                self.failure.get_or_insert(Failure::Warned(warning));
                None
            }
            Some((_, TRACE_WITHIN)) | None => None,
            Some((warning, lines)) => Some((warning, lines + 1)),
        };
    }
}

/// `rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:` and its kin, whichever RCU flavour speaks.
fn is_stall(fact: &str) -> bool {
    let detected = ["detected stalls", "detected expedited stalls", "self-detected stall"];
    fact.contains("rcu: INFO: rcu_") && detected.iter().any(|words| fact.contains(words))
}

/// A console line without the `[    1.234567] ` in front.
fn without_time(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    match rest {
        Some((time, fact)) if time.bytes().all(|byte| byte.is_ascii_digit() || b" .".contains(&byte)) => fact,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure_of(lines: &[&str]) -> Option<Failure> {
        let mut console = Console::default();
        lines.iter().for_each(|line| console.push(line));
        console.failure().cloned()
    }

    fn fatal(fact: &str) -> Option<Failure> {
        Some(Failure::Fatal(fact.to_owned()))
    }

    #[test]
    fn an_ordinary_boot_is_no_failure() {
        let boot = [
            "[    0.000000] Linux version 6.12.117 (kutrace@vm) (clang version 19.1.7) #1 SMP",
            "[    0.100000] rcu: Hierarchical RCU implementation.",
            "[    0.200000] Kernel command line: console=ttyS0 oops=panic panic=-1",
            "[    1.000000] kutrace: loading out-of-tree module taints kernel.",
        ];
        assert_eq!(failure_of(&boot), None);
    }

    #[test]
    fn the_first_sign_of_death_is_the_fact() {
        let lines = [
            "[    3.1] sysrq: Trigger a crash\r",
            "[    3.141593] Kernel panic - not syncing: sysrq triggered crash\r",
            "[    3.2] BUG: later",
        ];
        assert_eq!(failure_of(&lines), fatal("Kernel panic - not syncing: sysrq triggered crash"));
        let null = "BUG: kernel NULL pointer dereference, address: 0000000000000000";
        assert_eq!(failure_of(&[null, "Oops: Oops: 0002 [#1] SMP"]), fatal(null));
        assert!(failure_of(&["[ 1.0] Oops: general protection fault, probably for ..."]).is_some());
    }

    #[test]
    fn every_kind_of_stall_counts() {
        for line in [
            "[   21.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "[   21.0] rcu: INFO: rcu_sched self-detected stall on CPU",
            "[   21.0] rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-...D }",
        ] {
            assert!(matches!(failure_of(&[line]), Some(Failure::Fatal(_))), "{line}");
        }
    }

    #[test]
    fn a_warning_fails_the_run_only_with_its_call_trace() {
        let warning = "WARNING: CPU: 1 PID: 62 at kernel/kutrace.c:12 kutrace_on+0x1/0x2";
        assert_eq!(failure_of(&[warning]), None);
        let lines = [warning, "Modules linked in:", "Call Trace:"];
        assert_eq!(failure_of(&lines), Some(Failure::Warned(warning.to_owned())));
        let mut far = vec![warning];
        far.extend([""; 100]);
        far.push("Call Trace:");
        assert_eq!(failure_of(&far), None);
    }

    #[test]
    fn a_warning_of_a_stock_kernel_fails_no_run_before_its_first_program_runs() {
        let warning = "WARNING: CPU: 3 PID: 1 at arch/x86/kernel/traps.c:1120 exc_debug_kernel+0xca/0x160";
        let mut console = Console::new(false, true);
        [warning, "Call Trace:"].iter().for_each(|line| console.push(line));
        assert_eq!((console.failure(), console.foreign()), (None, &[warning.to_owned()][..]));
        ["Run /init as init process", warning, "Call Trace:"].iter().for_each(|line| console.push(line));
        assert_eq!(console.failure(), Some(&Failure::Warned(warning.to_owned())));
        let mut ours = Console::new(false, false);
        [warning, "Call Trace:"].iter().for_each(|line| ours.push(line));
        assert!(ours.failure().is_some());
    }

    #[test]
    fn a_report_of_lockdep_fails_the_run_however_far_its_call_trace_is() {
        let fact = "WARNING: possible circular locking dependency detected";
        let lines = ["[ 1.0] ======================================================", &format!("[ 1.0] {fact}")];
        assert_eq!(failure_of(&lines), Some(Failure::Warned(fact.to_owned())));
        assert_eq!(failure_of(&["[ 1.0] ordinary", lines[1]]), None);
    }

    #[test]
    fn the_tail_is_bounded_and_keeps_a_death_from_its_beginning() {
        let mut console = Console::default();
        (0..500).for_each(|line| console.push(&format!("line {line}")));
        assert_eq!(console.tail().next(), Some("line 460"));
        assert_eq!(console.tail().count(), TAIL);
        console.push("Kernel panic - not syncing: x");
        (0..500).for_each(|line| console.push(&format!("trace {line}")));
        assert!(console.tail().any(|line| line.starts_with("Kernel panic")));
        assert_eq!(console.tail().count(), 4 * TAIL);
    }

    #[test]
    fn the_tail_keeps_the_first_warning_however_much_comes_after_it() {
        let mut console = Console::default();
        (0..100).for_each(|line| console.push(&format!("line {line}")));
        console.push("WARNING: CPU: 3 PID: 1 at arch/x86/kernel/traps.c:1120 exc_debug_kernel+0xca/0x160");
        (0..50).for_each(|line| console.push(&format!("no trace {line}")));
        assert_eq!(console.tail().next(), Some("line 61"));
        (50..200).for_each(|line| console.push(&format!("no trace {line}")));
        assert_eq!(console.tail().next(), Some("no trace 160"));
        console.push("WARNING: CPU: 1 PID: 62 at kernel/kutrace.c:12 kutrace_on+0x1/0x2");
        console.push("Call Trace:");
        (0..500).for_each(|line| console.push(&format!("line {line}")));
        assert!(console.tail().any(|line| line.starts_with("WARNING: ")));
        assert_eq!(console.tail().count(), 4 * TAIL);
    }
}
