// SPDX-License-Identifier: BSD-3-Clause
//! A line of a recording of tracepoints: thread, CPU, time, event, and its fields.
//!
//! ```text
//!             bash-180     [001] d.H1.    55.332910: irq_handler_entry: irq=25 name=virtio2     ftrace's own
//!             bash-180     (    180) [001] d.H1.    55.332910: ...                              with thread groups
//!             bash-180   [001]    55.332910123: irq_handler_entry:    irq=25 name=virtio2       trace-cmd report
//!             bash   180 [001]    55.332910123: irq:irq_handler_entry: irq=25 name=virtio2      perf script
//!             bash   180/181 [001] ...                                  with process and thread
//! ```
//!
//! A thread's name may contain anything, so a line is read from its CPU on: the first number in brackets that is
//! followed by a time.

use crate::time::Time;

/// The contents of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Name of the thread; empty if unknown.
    pub comm: &'a str,
    /// The thread that runs; unknown to perf once it has ended.
    pub pid: Option<u32>,
    /// Its process, if given.
    pub process: Option<u32>,
    /// The CPU.
    pub cpu: u32,
    /// Time since the recording's clock began.
    pub time: Time,
    /// Number of decimals of the seconds.
    pub decimals: usize,
    /// The event, without its group.
    pub event: &'a str,
    /// The text after it.
    pub fields: &'a str,
    /// True if perf wrote the line.
    pub perf: bool,
}

/// Maximum days that a clock may have run: 300 years.
const DAYS_MAX: i64 = 300 * 366;
/// The same in nanoseconds.
pub const NANOSECONDS_MAX: u64 = DAYS_MAX as u64 * 86_400 * 1_000_000_000;

/// Reads a line; `None` if it is not an event's.
pub fn read(text: &str) -> Option<Line<'_>> {
    let (mut from, length) = (0, text.len());
    while let Some(open) = text[from..].find(" [").map(|at| from + at) {
        from = open + 2;
        let number = leading_digits(&text[from..]);
        let after = from + number.len() + 2;
        if number.is_empty() || after > length || !text[from + number.len()..].starts_with("] ") {
            continue;
        }
        if let Some(line) = after_cpu(&text[..open], number.parse().ok()?, &text[after..]) {
            return Some(line);
        }
    }
    None
}

/// The CPU and the number of events of a line that reports them missing: `CPU:1 [LOST 12 EVENTS]`, or in trace-cmd's
/// form `CPU:1 [12 EVENTS DROPPED]`, where an unknown number is 0.
pub fn lost(text: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = text.trim().strip_prefix("CPU:")?.split_once(" [")?;
    let inside = rest.strip_suffix(']')?;
    if !inside.contains("EVENTS") || !(inside.starts_with("LOST") || inside.ends_with("DROPPED")) {
        return None;
    }
    let number = inside.split(' ').find_map(|word| word.parse().ok()).unwrap_or(0);
    Some((cpu.parse().ok()?, number))
}

/// Reads a line from after its CPU on: perhaps flags, then the time.
fn after_cpu<'a>(head: &'a str, cpu: u32, rest: &'a str) -> Option<Line<'a>> {
    let (first, mut after) = word(rest);
    let mut when = time(first);
    if when.is_none() {
        let (second, rest) = word(after);
        (when, after) = (time(second), rest);
    }
    let (time, decimals) = when?;
    let (comm, pid, process, perf) = who(head)?;
    let (mut event, mut fields) = word(after);
    // The number of events that a sample stands for.
    if perf && event.bytes().all(|c| c.is_ascii_digit()) {
        (event, fields) = word(fields);
    }
    // A system call in ftrace's form has no end of the event's name but its own: `sys_read(fd: 3)`, `sys_read -> 0x3`.
    match (event.split_once('('), fields.strip_prefix("->")) {
        (Some((call, _)), _) if event.starts_with("sys_") => {
            (event, fields) = (call, &after.trim_start()[call.len()..]);
        }
        (_, Some(_)) if event.starts_with("sys_") => {}
        _ if event == "PERF_RECORD_LOST" => {}
        _ => event = event.strip_suffix(':')?.rsplit(':').next()?,
    }
    Some(Line { comm, pid, process, cpu, time, decimals, event, fields: fields.trim_end(), perf })
}

/// The thread in the text before the CPU: name, number, process, and true if perf wrote it.
fn who(head: &str) -> Option<(&str, Option<u32>, Option<u32>, bool)> {
    let (mut head, mut process) = (head.trim_end(), None);
    if let Some((before, group)) = head.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        (head, process) = (before.trim_end(), group.trim().parse().ok());
    }
    let before = head.trim_end_matches(|c: char| c.is_ascii_digit());
    let pid = head[before.len()..].parse().ok()?;
    if let Some(comm) = before.strip_suffix('-') {
        return match comm.ends_with(' ') {
            true => Some(("", None, None, true)),
            false => Some((comm.trim_start(), Some(pid), process, false)),
        };
    }
    if let Some(rest) = before.strip_suffix('/') {
        let comm = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        return Some((comm.trim(), Some(pid), rest[comm.len()..].parse().ok(), true));
    }
    before.ends_with(' ').then(|| (before.trim(), Some(pid), None, true))
}

/// A time in seconds, with its colon, and its number of decimals.
fn time(word: &str) -> Option<(Time, usize)> {
    word.strip_suffix(':').and_then(seconds)
}

/// The same without a colon.
pub fn seconds(text: &str) -> Option<(Time, usize)> {
    let (seconds, part) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(seconds) || !digits(part) || part.len() > 9 {
        return None;
    }
    let whole = seconds.parse::<i64>().ok().filter(|&seconds| seconds < DAYS_MAX * 86_400)?;
    let units = format!("{part:0<9}").parse::<i64>().ok()? / 10;
    Some((Time(whole * Time::SECOND.0 + units), part.len()))
}

/// The first word of a text, and the rest.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    (word, rest.trim_start())
}

fn leading_digits(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_digit).count()]
}

/// The word after `key=`, such as ` pid=`.
pub fn field<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    let after = match fields.strip_prefix(key.trim_start()) {
        Some(after) => after,
        None => &fields[fields.find(key)? + key.len()..],
    };
    Some(word(after).0)
}

/// Name and number of a thread: `comm=a b pid=7 ...` with the given names of the fields, or in trace-cmd's form, `a b:7
/// [120] ...`.
pub fn thread<'a>(fields: &'a str, comm: &str, pid: &str) -> Option<(&'a str, u32)> {
    if let Some(rest) = fields.strip_prefix(comm) {
        let at = rest.rfind(pid)?;
        return Some((&rest[..at], leading_digits(&rest[at + pid.len()..]).parse().ok()?));
    }
    let (name, number) = fields[..fields.rfind(" [")?].rsplit_once(':')?;
    Some((name, number.parse().ok()?))
}

/// The letter of a thread's state when it loses its CPU, from the kernel's bits.
pub fn state(bits: i64) -> char {
    [(0x30, 'X'), (4, 'T'), (8, 't'), (2, 'D'), (1, 'S')]
        .into_iter()
        .find(|(bit, _)| bits & bit != 0)
        .map_or('R', |s| s.1)
}

/// A name as one word.
pub fn one_word(text: &str) -> String {
    text.trim().replace(char::is_whitespace, "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_writer_s_lines_say_the_same() {
        let expected = Line {
            comm: "a b",
            pid: Some(18),
            process: None,
            cpu: 1,
            time: Time(5_533_291_000),
            decimals: 6,
            event: "irq_handler_entry",
            fields: "irq=25 name=x [y] 1.0: z",
            perf: false,
        };
        let body = "irq_handler_entry: irq=25 name=x [y] 1.0: z";
        for (text, process, decimals, perf) in [
            (format!("  a b-18   [001] d.H1.    55.332910: {body}"), None, 6, false),
            (format!("  a b-18   (     7) [001] d.H1.    55.332910: {body}"), Some(7), 6, false),
            (format!("  a b-18   (-------) [001] d.H1.    55.332910: {body}"), None, 6, false),
            (format!("  a b-18   [001]    55.332910000: {body}"), None, 9, false),
            (format!("  a b    18 [001]    55.332910000: irq:{body}"), None, 9, true),
            (format!("  a b   7/18 [001]    55.332910: 1 irq:{body}"), Some(7), 6, true),
        ] {
            assert_eq!(read(&text), Some(Line { process, decimals, perf, ..expected }), "{text}");
        }
        let hostile = format!("  [2] 3.0: [x-18   [001] d.H1.    55.332910: {body}");
        assert_eq!(read(&hostile), Some(Line { comm: "[2] 3.0: [x", ..expected }));
        let ended = format!(":-1    -1 [001]    55.332910: {body}");
        assert_eq!(read(&ended), Some(Line { comm: "", pid: None, perf: true, ..expected }));
    }

    #[test]
    fn calls_as_ftrace_writes_them() {
        let of = |body: &'static str| read(body).map(|line| (line.event, line.fields));
        assert_eq!(of("a-1 [0] 1.0: sys_read(fd: 3, b: 7f)"), Some(("sys_read", "(fd: 3, b: 7f)")));
        assert_eq!(of("a-1 [0] 1.0: sys_read -> 0x3"), Some(("sys_read", "-> 0x3")));
        assert_eq!(of("a-1 [0] 1.0: sys_enter: NR 0 (3, 7)"), Some(("sys_enter", "NR 0 (3, 7)")));
    }

    #[test]
    fn what_is_no_event_is_none() {
        for text in
            ["", "cpus=2", "a-1 [0] 12345: x: y", "a [0] 1.0: x: y", "a-1 [0] 1.0: main <-start", "a-1 [0", "é [0] é"]
        {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("a-1 [0] 9999999999999999999.0: x: y"), None);
    }

    #[test]
    fn losses() {
        assert_eq!(lost("CPU:1 [LOST 12 EVENTS]"), Some((1, 12)));
        assert_eq!(lost("CPU:0 [12 EVENTS DROPPED]"), Some((0, 12)));
        assert_eq!(lost("CPU:0 [EVENTS DROPPED]"), Some((0, 0)));
        assert_eq!(lost("CPU:0 [x]"), None);
    }

    #[test]
    fn threads_by_their_fields_or_as_trace_cmd_says() {
        for text in ["comm=a b: pid=7 prio=120", "a b::7 [120] CPU:001", "a b::7 [120]<CPU:001>"] {
            assert_eq!(thread(text, "comm=", " pid="), Some(("a b:", 7)), "{text}");
        }
        assert_eq!(thread("x", "comm=", " pid="), None);
    }
}
