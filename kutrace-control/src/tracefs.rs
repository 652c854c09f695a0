// SPDX-License-Identifier: BSD-3-Clause
//! Recording without the module: the kernel's own tracepoints, in a private instance of tracefs.
//!
//! The instance has its own events, buffers and clock, so other users of ftrace notice nothing. [`file`] writes the
//! kernel's pages as trace-cmd does.
//!
//! Invariant: one process at a time has the instance; it is removed at the end, and what a killed process left is
//! removed at the next start.

mod file;

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kutrace_cli::Failure;
use kutrace_format::abi::command::Moment;
use postprocess::source::ftrace::COMMIT;
use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::names::tasks;
use crate::sys;

/// Where tracefs is mounted.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Name of the instance.
const INSTANCE: &str = "instances/kutrace";
/// Groups of tracepoints and those of them that are recorded; without names, all that begin or end something.
const EVENTS: [(&str, &[&str]); 8] = [
    ("sched", &["sched_switch", "sched_waking", "sched_wakeup_new", "sched_process_exec"]),
    ("task", &["task_newtask", "task_rename"]),
    ("raw_syscalls", &["sys_enter", "sys_exit"]),
    ("irq", &["irq_handler_entry", "irq_handler_exit", "softirq_entry", "softirq_exit"]),
    ("irq_vectors", &[]),
    ("exceptions", &["page_fault_user", "page_fault_kernel"]),
    ("ipi", &["ipi_send_cpu", "ipi_send_cpumask"]),
    ("power", &["cpu_frequency"]),
];
/// Bytes of memory for a CPU, unless asked otherwise.
const MEMORY: u64 = 32 << 20;
/// Largest page of a ring buffer.
const PAGE_MAX: usize = 1 << 16;

/// The private instance, recording or ready to.
#[derive(Debug)]
pub struct Instance {
    /// True if the newest events are kept, and the others on purpose not.
    wrap: bool,
    /// Folder of all instances' tracepoints.
    root: PathBuf,
    path: PathBuf,
    /// Locked as long as this process has the instance.
    _lock: File,
    /// Recorded tracepoints, as `GROUP/NAME`.
    events: Vec<String>,
    /// Pages of each CPU so far.
    cpus: Vec<Pages>,
    threads: Vec<tasks::Task>,
    moment: Moment,
}

/// Pages of a CPU.
#[derive(Debug)]
struct Pages {
    cpu: u32,
    from: File,
    /// A file without a name.
    to: File,
    bytes: u64,
}

impl Instance {
    /// Prepares a recording with `memory` bytes for all CPUs, 0 for the default. Pages are taken into files in `folder`,
    /// which have no names. Events that are not taken in time are replaced by newer ones: with `wrap` on purpose, else
    /// they are lost, and counted.
    ///
    /// # Errors
    /// There is no tracefs, or no right to use it; another process records in this way.
    pub fn new(memory: u64, wrap: bool, folder: &Path) -> Result<Instance> {
        let root = root()?;
        let path = root.join(INSTANCE);
        let lock = lock(&path)?;
        let mut instance = Instance {
            wrap,
            root,
            path,
            _lock: lock,
            events: Vec::new(),
            cpus: Vec::new(),
            threads: Vec::new(),
            moment: sys::moment(),
        };
        instance.prepare(memory, folder)?;
        Ok(instance)
    }

    fn prepare(&mut self, memory: u64, folder: &Path) -> Result<()> {
        self.set("tracing_on", "0")?;
        self.set("trace", "")?;
        self.set("trace_clock", "mono")?;
        self.set("options/overwrite", "1")?;
        let mut cpus: Vec<u32> = numbers_after(&self.path.join("per_cpu"), "cpu");
        cpus.sort_unstable();
        let each = if memory == 0 { MEMORY } else { memory / cpus.len().max(1) as u64 };
        self.set("buffer_size_kb", &(each >> 10).max(64).to_string())?;
        for (group, names) in EVENTS {
            let folder = self.path.join("events").join(group);
            let mut found: Vec<String> = entries(&folder);
            found.retain(|name| match names {
                [] => name.ends_with("_entry") || name.ends_with("_exit"),
                names => names.contains(&name.as_str()),
            });
            found.sort_unstable();
            for name in found {
                self.set(&format!("events/{group}/{name}/enable"), "1")?;
                self.events.push(format!("{group}/{name}"));
            }
        }
        for cpu in cpus {
            let pages = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let flags = OFlags::NONBLOCK.bits() as i32;
            let from = OpenOptions::new().read(true).custom_flags(flags).open(&pages);
            let from = from.with_context(|| pages.display().to_string())?;
            let to = tempfile::tempfile_in(folder).with_context(|| folder.display().to_string())?;
            self.cpus.push(Pages { cpu, from, to, bytes: 0 });
        }
        Ok(())
    }

    /// Begins to record.
    pub fn start(&mut self) -> Result<()> {
        self.threads = tasks::alive(Path::new("/proc"));
        self.moment = sys::moment();
        self.set("tracing_on", "1")
    }

    /// Takes the pages that are full so far.
    pub fn drain(&mut self) -> Result<()> {
        self.cpus.iter_mut().try_for_each(|pages| pages.drain(false))
    }

    /// Writes the recording, which has ended, in trace-cmd's format.
    ///
    /// # Errors
    /// Any error of tracefs or of `out`.
    pub fn write(&mut self, out: &mut dyn Write) -> Result<()> {
        file::write(self, out)
    }

    /// Number of events that were lost, by the kernel's count: those that could not be recorded, and, unless only the
    /// newest are kept, those that were not taken in time.
    ///
    /// # Errors
    /// Any error of tracefs.
    pub fn lost(&self) -> Result<u64> {
        let mut lost = 0;
        for pages in &self.cpus {
            let path = self.path.join(format!("per_cpu/cpu{}/stats", pages.cpu));
            let stats = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let count = |key: &str| stats.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
            let keys = ["overrun:", "commit overrun:", "dropped events:"];
            lost += keys.iter().skip(usize::from(self.wrap)).filter_map(|key| count(key)).sum::<u64>();
        }
        Ok(lost)
    }

    /// Ends the recording, and takes the pages that are left.
    pub fn stop(&mut self) -> Result<()> {
        self.set("tracing_on", "0")?;
        self.cpus.iter_mut().try_for_each(|pages| pages.drain(true))?;
        let known: HashSet<u32> = self.threads.iter().map(|thread| thread.pid).collect();
        let new = tasks::alive(Path::new("/proc")).into_iter().filter(|thread| !known.contains(&thread.pid));
        self.threads.extend(new);
        Ok(())
    }

    fn set(&self, name: &str, value: &str) -> Result<()> {
        let path = self.path.join(name);
        // Opened for writing only, and cut, as a shell does.
        let written = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut file| file.write_all(value.as_bytes()));
        written.with_context(|| path.display().to_string())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.cpus.clear();
        // Nothing can be done about a failure; the next start tries again.
        let _ = fs::remove_dir(&self.path);
    }
}

impl Pages {
    /// Takes pages: those that are full, or all.
    fn drain(&mut self, all: bool) -> Result<()> {
        let mut page = vec![0; PAGE_MAX];
        loop {
            match self.from.read(&mut page) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    self.to.write_all(&page[..read]).context("a file for the trace")?;
                    self.bytes += read as u64;
                    // Taking a page that has just begun makes events that are on the next.
                    if !all && used(&page) < read / 2 {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| format!("CPU {}: its pages", self.cpu)),
            }
        }
    }
}

/// Number of bytes of a page that are used.
fn used(page: &[u8]) -> usize {
    page[8..].first_chunk().map_or(0, |bytes| (u64::from_le_bytes(*bytes) & COMMIT) as usize)
}

/// Makes the instance, and takes it for this process.
fn lock(path: &Path) -> Result<File> {
    let named = || path.display().to_string();
    // What a killed process left.
    if path.exists() {
        let left = File::open(path).with_context(named)?;
        match flock(&left, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let hint = "wait until it has ended";
                return Err(Failure::new("another kutrace_control records by tracefs", hint).into());
            }
            locked => locked.with_context(named)?,
        }
        drop(left);
        fs::remove_dir(path).with_context(named)?;
    }
    fs::create_dir(path).with_context(named)?;
    let own = File::open(path).with_context(named)?;
    flock(&own, FlockOperation::NonBlockingLockExclusive).with_context(named)?;
    Ok(own)
}

/// Where tracefs is mounted.
///
/// # Errors
/// Nowhere, or this user may not read it.
pub fn root() -> Result<PathBuf, Failure> {
    let found = MOUNTS.iter().map(Path::new).find(|root| root.join("events").is_dir());
    found.map(Path::to_path_buf).ok_or_else(|| Failure::new("cannot read tracefs", hint()))
}

/// The remedy where tracefs cannot be read.
fn hint() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => "mount -t tracefs tracefs /sys/kernel/tracing, or load the module: modprobe kutrace",
        false => "run it as root, or load the module, which members of the group kutrace may use",
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Numbers in the names of a folder's entries, after `start`.
fn numbers_after(folder: &Path, start: &str) -> Vec<u32> {
    entries(folder).iter().filter_map(|name| name.strip_prefix(start)?.parse().ok()).collect()
}
