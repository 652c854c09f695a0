// SPDX-License-Identifier: BSD-3-Clause
//! System calls in event text, read without the stages' help; and the spans' values, compared with them.

use std::collections::HashMap;

use postprocess::event::number::{class, Class, Level, RETURN_BIT, UNKNOWN_CALL, WAY_OUT};

/// A system call of a thread, from its start to its return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its event number.
    pub event: u32,
    /// Its name.
    pub name: String,
    /// Its start; `None` if that is not in the trace.
    pub from: Option<i64>,
    /// Its return, or the latest possible time of it, if that was lost; `None` if it had not returned at the end of the
    /// trace.
    pub to: Option<i64>,
    /// Its first argument, if it is known.
    pub arg: Option<i64>,
    /// Its return value, if any.
    pub ret: Option<i64>,
    /// True if one line has all of it; its end is rounded up then.
    pub folded: bool,
}

/// Attributes of a system call in one span.
#[derive(Clone, Debug)]
pub struct Said {
    /// The span's start.
    pub start: i64,
    /// Its end.
    pub end: i64,
    /// Its thread.
    pub pid: i64,
    /// Its event number.
    pub event: u32,
    /// Its text.
    pub text: String,
}

/// Returns whether an event number is a system call's: not the scheduler's, nor that of work which is not a call.
pub fn is_call(event: u32) -> bool {
    class(event) == Class::Call(Level::Syscall) && !matches!(event, WAY_OUT | UNKNOWN_CALL)
}

/// The calls of each thread in event text, in the order of their ends.
pub fn calls(text: &str) -> HashMap<i64, Vec<Call>> {
    let mut open: HashMap<i64, Call> = HashMap::new();
    let mut done: HashMap<i64, Vec<Call>> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[ts, dur, event, _, pid, _, arg, ret, _, name, _] = fields.as_slice() else { continue };
        let number = |text: &str| text.parse::<i64>().unwrap();
        let (ts, dur, event, pid) = (number(ts), number(dur), number(event) as u32, number(pid));
        let (arg, ret) = (Some(number(arg)), Some(number(ret)));
        if !is_call(event & !RETURN_BIT) {
            continue;
        }
        let name = name.trim_start_matches('/').to_string();
        let begun = Call { event, name, from: Some(ts), to: None, arg, ret: None, folded: false };
        if event & RETURN_BIT != 0 {
            let event = event & !RETURN_BIT;
            let before = open.remove(&pid).filter(|call| call.event == event);
            let call = before.unwrap_or(Call { event, from: None, arg: None, ..begun });
            done.entry(pid).or_default().push(Call { to: Some(ts), ret, ..call });
        } else if dur > 0 {
            done.entry(pid).or_default().push(Call { to: Some(ts + dur), ret, folded: true, ..begun });
        } else if let Some(lost) = open.insert(pid, begun) {
            // It was over by now.
            done.entry(pid).or_default().push(Call { to: Some(ts), ..lost });
        }
    }
    for (pid, call) in open {
        done.entry(pid).or_default().push(call);
    }
    done
}

/// Compares the spans' values of calls with the event text: each span has the text that `text_of` makes of its call,
/// with the return value if the span is the last piece and without it otherwise; and each call that returned has one
/// span with that value.
pub fn contradictions(text: &str, said: &[Said], text_of: impl Fn(&Call, bool) -> String) -> Vec<String> {
    let calls = calls(text);
    let mut told: HashMap<(i64, usize), u32> = HashMap::new();
    let mut found = Vec::new();
    for s in said {
        let list = calls.get(&s.pid).map_or(&[][..], Vec::as_slice);
        let first = list.partition_point(|call| call.to.is_some_and(|to| to < s.start));
        let pieces = (first..list.len())
            .take_while(|&n| n < first + 3 || list[n].from.is_none_or(|from| from <= s.end))
            .filter(|&n| {
                let Call { event, from, to, folded, .. } = list[n];
                let within = from.is_none_or(|from| from <= s.start) && to.is_none_or(|to| s.end <= to);
                event == s.event && within && (!folded || from == Some(s.start))
            });
        let fits = pieces.map(|n| {
            let call = &list[n];
            let ends = call.ret.is_some() && (call.folded || call.to == Some(s.end));
            (n, ends && text_of(call, true) == s.text, text_of(call, false) == s.text)
        });
        match fits.filter(|&(_, last, piece)| last || piece).max_by_key(|&(_, last, _)| last) {
            Some((n, true, _)) => *told.entry((s.pid, n)).or_default() += 1,
            Some(_) => {}
            None => found.push(format!("a wrong value: {s:?}")),
        }
    }
    for (&pid, list) in &calls {
        for (n, call) in list.iter().enumerate().filter(|(_, call)| call.ret.is_some()) {
            match told.get(&(pid, n)) {
                Some(1) => {}
                times => found.push(format!("listed {} times: thread {pid}, {call:?}", times.copied().unwrap_or(0))),
            }
        }
    }
    found.sort_unstable();
    found
}
