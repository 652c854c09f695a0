// SPDX-License-Identifier: BSD-3-Clause
//! Facts: things that do not happen but are known, about a thread, a CPU, a control group, or the machine.
//!
//! The subject of a fact is [`Event::arg`](super::Event::arg), and a name in it [`Event::name`](super::Event::name).
//! Text has a line with a number and a text for each, frames a number and a value.

use std::borrow::Cow;
use std::fmt;

use kutrace_format::file::{FILE_AT_END, FILE_AT_START};
use serde::{Deserialize, Serialize};

use super::number;
use super::work::Work;
use crate::id::Pid;

/// A fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A name of this kind: a number.
    Name(u32),
    /// The thread belongs to this process.
    Process(Pid),
    /// The thread is in this control group of those with quotas, by its number.
    Group(u32),
    /// The thread is in this control group, by its id.
    Member(u32),
    /// The thread is in this system call, which has the event's name, since before its CPU was seen.
    OpenCall(Work),
    /// The thread is one of the kernel (true), or one of a program (false).
    Kernel(bool),
    /// The process has an open file, whose path is the event's name.
    File(OpenFile),
    /// The CPU was offline when the trace began.
    Offline,
    /// The CPU may run without ticks.
    Tickless,
}

impl Fact {
    /// The number of its lines.
    #[inline]
    pub const fn number(self) -> u32 {
        match self {
            Fact::Name(kind) => kind,
            Fact::Process(_) => number::PROCESS,
            Fact::Group(_) => number::GROUP,
            Fact::Member(_) => number::MEMBER_OF,
            Fact::OpenCall(_) => number::OPEN_CALL,
            Fact::Kernel(_) => number::KERNEL_THREAD,
            Fact::File(_) => number::FILE,
            Fact::Offline | Fact::Tickless => number::CPU,
        }
    }

    /// True if facts of this number are names.
    pub const fn is_name(kind: u32) -> bool {
        !matches!(
            kind,
            number::PROCESS
                | number::GROUP
                | number::MEMBER_OF
                | number::OPEN_CALL
                | number::KERNEL_THREAD
                | number::FILE
                | number::CPU
        )
    }

    /// The value that frames have in addition to the number.
    pub const fn value(self) -> u32 {
        match self {
            Fact::Name(_) | Fact::Offline => 0,
            Fact::Process(pid) => pid.number(),
            Fact::Group(group) | Fact::Member(group) => group,
            Fact::OpenCall(call) => call.number(),
            Fact::Kernel(is_kernel) => is_kernel as u32,
            Fact::File(file) => file.0,
            Fact::Tickless => 1,
        }
    }

    /// The fact of a number and a value; `None` if there is none.
    pub fn of(kind: u32, value: u32) -> Option<Fact> {
        Some(match (kind, value) {
            (number::PROCESS, _) => Fact::Process(Pid::of_column(value.into())??),
            (number::GROUP, _) => Fact::Group(value),
            (number::MEMBER_OF, _) => Fact::Member(value),
            (number::OPEN_CALL, _) => Fact::OpenCall(Work::of(value).filter(may_be_open)?),
            (number::KERNEL_THREAD, 0 | 1) => Fact::Kernel(value == 1),
            (number::FILE, _) => Fact::File(OpenFile::new(value)?),
            (number::CPU, 0) => Fact::Offline,
            (number::CPU, 1) => Fact::Tickless,
            (number::KERNEL_THREAD | number::CPU, _) => return None,
            _ => Fact::Name(kind),
        })
    }

    /// The rest of its line after the number; `name` is that of the event.
    pub fn text(self, name: &str) -> Cow<'_, str> {
        match self {
            Fact::Name(_) => name.into(),
            Fact::Process(_) | Fact::Group(_) | Fact::Member(_) => self.value().to_string().into(),
            Fact::OpenCall(call) => format!("{}/{name}", call.number() - number::SYSCALL).into(),
            Fact::File(file) => format!("{file}:{name}").into(),
            Fact::Kernel(true) => "kernel".into(),
            Fact::Kernel(false) => "program".into(),
            Fact::Offline => "offline".into(),
            Fact::Tickless => "tickless".into(),
        }
    }

    /// The fact of a line, and the name in it; `None` if the line is invalid.
    pub fn read(kind: u32, text: &str) -> Option<(Fact, &str)> {
        let value = match kind {
            number::PROCESS | number::GROUP | number::MEMBER_OF => text.parse().ok()?,
            number::OPEN_CALL => {
                let (nr, name) = text.split_once('/')?;
                let call = number::SYSCALL.checked_add(nr.parse().ok()?)?;
                return Some((Fact::of(kind, call)?, name));
            }
            number::FILE => {
                let (file, path) = OpenFile::split(text)?;
                return Some((Fact::File(file), path));
            }
            number::KERNEL_THREAD | number::CPU => match text {
                "program" | "offline" => 0,
                "kernel" | "tickless" => 1,
                _ => return None,
            },
            _ => return Some((Fact::Name(kind), text)),
        };
        Some((Fact::of(kind, value)?, ""))
    }
}

/// A descriptor of a process that is an open file at the start of the recording, at its end, or at both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenFile(u32);

impl OpenFile {
    /// Takes the second number of a name record; `None` if that is of neither time.
    pub fn new(second: u32) -> Option<OpenFile> {
        (second >= FILE_AT_START).then_some(OpenFile(second))
    }

    /// The descriptor.
    pub const fn descriptor(self) -> u32 {
        self.0 & (FILE_AT_START - 1)
    }

    /// True if it was this file at the start.
    pub const fn is_at_start(self) -> bool {
        self.0 & FILE_AT_START != 0
    }

    /// True if it was this file at the end.
    pub const fn is_at_end(self) -> bool {
        self.0 & FILE_AT_END != 0
    }

    /// Reads `descriptor:when:path`; `None` if it is something else.
    pub fn split(text: &str) -> Option<(OpenFile, &str)> {
        let (descriptor, rest) = text.split_once(':')?;
        let (word, path) = rest.split_once(':')?;
        let descriptor: u32 = descriptor.parse().ok().filter(|descriptor| *descriptor < FILE_AT_START)?;
        let (_, when) = WHEN.into_iter().find(|(known, _)| *known == word)?;
        Some((OpenFile(descriptor | when), path))
    }
}

/// Words for the times at which a descriptor is a file.
const WHEN: [(&str, u32); 3] = [("start", FILE_AT_START), ("end", FILE_AT_END), ("both", FILE_AT_START | FILE_AT_END)];

impl fmt::Display for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let when = WHEN.into_iter().find(|(_, when)| self.0 & !(FILE_AT_START - 1) == *when);
        write!(f, "{}:{}", self.descriptor(), when.map_or("", |(word, _)| word))
    }
}

/// True if a thread can be in this call although its start was not seen.
fn may_be_open(call: &Work) -> bool {
    matches!(call, Work::Syscall(_) | Work::Syscall32(_) | Work::ExitWork)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_comes_back_from_text_and_frames() {
        let calls = [Work::Syscall(202), Work::Syscall32(240), Work::ExitWork].map(Fact::OpenCall);
        let others = [
            Fact::Name(number::PID_NAME),
            Fact::Name(number::CGROUP_PATH),
            Fact::Process(Pid::new(70_000).on(1)),
            Fact::Group(u32::MAX),
            Fact::Member(0),
            Fact::Kernel(true),
            Fact::Kernel(false),
            Fact::File(OpenFile(7 | FILE_AT_START)),
            Fact::File(OpenFile(FILE_AT_END)),
            Fact::File(OpenFile(u32::MAX)),
            Fact::Offline,
            Fact::Tickless,
        ];
        for fact in calls.into_iter().chain(others) {
            assert_eq!(Fact::of(fact.number(), fact.value()), Some(fact));
            assert_eq!(Fact::is_name(fact.number()), matches!(fact, Fact::Name(_)));
            let has_name = matches!(fact, Fact::Name(_) | Fact::OpenCall(_) | Fact::File(_));
            let name = if has_name { "a/name" } else { "" };
            assert_eq!(Fact::read(fact.number(), &fact.text(name)), Some((fact, name)));
        }
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        for (kind, text) in [
            (number::PROCESS, ""),
            (number::PROCESS, "-1"),
            (number::PROCESS, "4294967295"),
            (number::GROUP, "7 "),
            (number::GROUP, "4294967296"),
            (number::MEMBER_OF, "x"),
            (number::OPEN_CALL, "202"),
            (number::OPEN_CALL, "4294967295/futex"),
            (number::OPEN_CALL, "70000/futex"),
            (number::KERNEL_THREAD, "Kernel"),
            (number::CPU, "online"),
            (number::FILE, "7:now:/a"),
            (number::FILE, "7:both"),
            (number::FILE, "1073741824:end:/a"),
        ] {
            assert_eq!(Fact::read(kind, text), None, "{kind:x} {text}");
        }
        assert_eq!(Fact::of(number::KERNEL_THREAD, 2), None);
        assert_eq!(Fact::of(number::CPU, 2), None);
        assert_eq!(Fact::of(number::FILE, 7), None);
    }
}
