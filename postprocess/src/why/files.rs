// SPDX-License-Identifier: BSD-3-Clause
//! The file that a descriptor of a process was at a moment, from the files that it had open when the recording began
//! and when it ended.
//!
//! Invariant: a descriptor that may have been another file meanwhile has no name.

use foldhash::HashMap;
use kutrace_format::flag;

use crate::event::fact::OpenFile;
use crate::id::Pid;
use crate::span::{Meta, Span, NONE};
use crate::time::Time;

/// Calls whose first argument is the descriptor of a file, in addition to those that send and receive.
const OF_FILES: [&str; 14] = [
    "fsync",
    "fdatasync",
    "sync_file_range",
    "syncfs",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "ftruncate",
    "fallocate",
    "flock",
    "getdents64",
];
/// Calls that may close any descriptor of a process: their first argument is not the one that they close.
const CLOSE_ANY: [&str; 7] = ["dup2", "dup3", "close_range", "execve", "execveat", "exit_group", "exit"];
/// The bits of a descriptor that a trace has.
const KNOWN: u32 = 0xffff;

/// Times at which the descriptors of processes may have become other files.
#[derive(Debug, Default)]
pub struct Files {
    /// By process and descriptor.
    closed: HashMap<(Pid, u32), Vec<Time>>,
    /// By process, for all of its descriptors.
    closed_any: HashMap<Pid, Vec<Time>>,
}

impl Files {
    /// Returns true if a call works on the file of a descriptor.
    pub fn is_call(name: &str) -> bool {
        OF_FILES.contains(&name)
    }

    /// Takes the system calls of a trace, each with its name, in the order of their times.
    pub fn of<'a>(meta: &Meta, calls: impl Iterator<Item = (Span, &'a str)>) -> Files {
        let mut files = Files::default();
        if !is_usable(meta) {
            return files;
        }
        for (call, name) in calls {
            let Some(thread) = call.thread() else { continue };
            let process = meta.process_of(thread);
            if name == "close" && call.arg != NONE {
                files.closed.entry((process, call.arg as u32 & KNOWN)).or_default().push(call.start);
            } else if CLOSE_ANY.contains(&name) {
                files.closed_any.entry(process).or_default().push(call.start);
            }
        }
        files
    }

    /// Returns the path of the file that a descriptor of a process was at a moment, if that is certain.
    pub fn path<'a>(&self, meta: &'a Meta, process: Pid, descriptor: u32, at: Time) -> Option<&'a str> {
        let open = meta.files.get(&process.number()).filter(|_| is_usable(meta))?;
        let none = Vec::new();
        let closed = self.closed.get(&(process, descriptor)).unwrap_or(&none);
        let times = || closed.iter().chain(self.closed_any.get(&process).unwrap_or(&none));
        // The events of a flight recorder begin later than its recording.
        let was_kept = meta.flags & flag::WRAPPED == 0 && times().all(|time| *time > at);
        let is_kept = times().all(|time| *time < at);
        let is_it = |file: &OpenFile| {
            file.descriptor() & KNOWN == descriptor && (file.is_at_start() && was_kept || file.is_at_end() && is_kept)
        };
        open.iter().find(|(file, _)| is_it(file)).map(|(_, path)| path.as_str())
    }
}

/// True if there are names, and no close from the first event on is missing.
fn is_usable(meta: &Meta) -> bool {
    !meta.files.is_empty() && meta.lost == 0
}
