// SPDX-License-Identifier: BSD-3-Clause
//! The recorder, accessed through /dev/kutrace.

use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU32;

use anyhow::{ensure, Context, Result};
use kutrace_cli::Failure;
use kutrace_format::abi::block;
use kutrace_format::abi::command::{
    Blocks, Cpu, Info, Moment, Ports, Setup, Tracepoints, Vector, STATE_TRACING, STREAM, VERSION,
};
use kutrace_format::abi::event::NAME_BYTES;
use kutrace_format::abi::programs::{Granted, Program, Quota, Taken};
use kutrace_format::reading::READINGS_MAX;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::sys;

/// Path of the module's device.
pub const PATH: &str = "/dev/kutrace";

/// Result of ending every CPU's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlocksEnd {
    /// All blocks ended.
    All,
    /// A CPU found no free block for its next one.
    NoneFree,
    /// A CPU takes no interrupts.
    Stuck,
}

/// Current state of a program in the recorder.
#[derive(Debug)]
pub struct Attached {
    /// The program.
    pub told: Program,
    /// Its grants.
    pub grants: Vec<Granted>,
}

/// Interface of a session to the device, or to a stand-in for tests without a module.
pub trait Recorder: Sized {
    /// The words of the block pool, which the recorder may be writing.
    type Pool: Deref<Target = [AtomicU32]>;

    /// Opens the recorder.
    fn open() -> Result<Self>;
    /// State of the recorder.
    fn info(&self) -> Result<Info>;
    /// Empties the pool and sets the mode; refused while tracing.
    fn reset(&self, setup: Setup) -> Result<()>;
    /// Selects the ports whose packets the next trace has; only for an empty recorder.
    fn choose(&self, ports: &Ports) -> Result<()>;
    /// Selects the tracepoints that the next trace has; only for an empty recorder.
    fn choose_tracepoints(&self, tracepoints: &Tracepoints) -> Result<()>;
    /// Sets how much memory programs may have in the trace that the next reset begins.
    fn allow(&self, quota: Quota) -> Result<()>;
    /// Starts tracing.
    fn start(&self) -> Result<()>;
    /// Stops tracing and closes every block.
    fn stop(&self) -> Result<()>;
    /// Ends every block that is being filled, while tracing in wrap mode continues. Returns the moment up to which all
    /// events are in ended blocks.
    fn snapshot(&self) -> Result<Moment>;
    /// Reserves the recorder for this process: no other process can empty, start or stop it. If the process ends while
    /// tracing, the trace ends too.
    fn acquire(&self) -> Result<()>;
    /// Ends [`Recorder::acquire`].
    fn release(&self) -> Result<()>;
    /// State of a CPU; empty for an impossible one.
    fn cpu(&self, cpu: u32) -> Result<Cpu>;
    /// The vectors in use by devices.
    fn vectors(&self) -> Result<Vec<Vector>>;
    /// Takes full blocks of a stream for reading.
    fn full(&self) -> Result<Blocks>;
    /// Gives back the blocks that [`Recorder::full`] took.
    fn free(&self, blocks: &Blocks) -> Result<()>;
    /// Ends the blocks of a stream that began before the counter `before`; false if a CPU takes no interrupts.
    fn flush(&self, before: u64) -> Result<bool>;
    /// Ends all blocks of a stream.
    fn end_blocks(&self) -> Result<BlocksEnd>;
    /// Has every CPU report how far its block is filled. Returns the counter before which all events are reported;
    /// `None` if a CPU takes no interrupts, or lets no other thread run.
    fn look(&self) -> Result<Option<u64>>;
    /// Appends bytes to those left with the trace, which stay until the next reset.
    fn leave(&self, bytes: &[u8]) -> Result<()>;
    /// All bytes left with the trace.
    fn left(&self) -> Result<Vec<u8>>;
    /// The next program by attachment number after this one, with its grants.
    fn program_after(&self, serial: u32) -> Result<Option<Attached>>;
    /// Copies a grant of a program from the grant's offset on; false if the grant no longer exists.
    fn copy(&self, serial: u32, grant: &Granted, to: &mut [u8]) -> Result<bool>;
    /// Gives back memory of a program whose content, in a stream, is in the file; false if it cannot be given back yet,
    /// or no longer exists.
    fn take_back(&self, taken: Taken) -> Result<bool>;
    /// Programs that were refused memory, with the number of refusals, in the format of the file's section.
    fn refused(&self) -> Result<Vec<u8>>;
    /// Number of preserved bytes that an earlier kernel left in memory that survives a reboot.
    fn kept(&self) -> Result<u64>;
    /// The first `blocks` blocks of the pool.
    fn pool(&self, blocks: u32) -> Result<Self::Pool>;
}

/// /dev/kutrace, open; the module's version matches ours.
#[derive(Debug)]
pub struct Device {
    file: OwnedFd,
}

impl Recorder for Device {
    type Pool = sys::Mapping;

    fn open() -> Result<Device> {
        let opened = rustix::fs::open(PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let device = Device { file: opened.map_err(refusal).context(PATH)? };
        check_version(device.info()?.version).context(PATH)?;
        Ok(device)
    }

    fn info(&self) -> Result<Info> {
        sys::info(self.file.as_fd()).map_err(refusal).context(PATH)
    }

    fn reset(&self, setup: Setup) -> Result<()> {
        sys::reset(self.file.as_fd(), setup).map_err(|errno| self.refusal(errno)).context("reset").context(PATH)
    }

    fn choose(&self, ports: &Ports) -> Result<()> {
        let refused = |errno| match errno {
            Errno::OPNOTSUPP => Failure::new("this kernel has no TCP/IP", "record without --packets"),
            errno => self.refusal(errno),
        };
        sys::choose(self.file.as_fd(), *ports).map_err(refused).context("ports").context(PATH)
    }

    fn choose_tracepoints(&self, tracepoints: &Tracepoints) -> Result<()> {
        sys::choose_tracepoints(self.file.as_fd(), *tracepoints)
            .map_err(|errno| self.refusal(errno))
            .context("tracepoints")
            .context(PATH)
    }

    fn allow(&self, quota: Quota) -> Result<()> {
        sys::allow(self.file.as_fd(), quota)
            .map_err(|errno| self.refusal(errno))
            .context("--marks-memory")
            .context(PATH)
    }

    fn start(&self) -> Result<()> {
        sys::start(self.file.as_fd()).map_err(|errno| self.refusal(errno)).context("start").context(PATH)
    }

    fn stop(&self) -> Result<()> {
        sys::stop(self.file.as_fd()).map_err(|errno| self.refusal(errno)).context("stop").context(PATH)
    }

    fn snapshot(&self) -> Result<Moment> {
        let refused = |errno| match errno {
            Errno::INVAL => self.no_snapshot(),
            Errno::AGAIN => Failure::new(
                "a CPU ran out of free blocks",
                "try again; a larger buffer makes this less likely: insmod kutrace.ko tracemb=...",
            ),
            errno => refusal(errno),
        };
        sys::snapshot(self.file.as_fd()).map_err(refused).context("snapshot").context(PATH)
    }

    fn acquire(&self) -> Result<()> {
        sys::acquire(self.file.as_fd()).map_err(|errno| self.refusal(errno)).context(PATH)
    }

    fn release(&self) -> Result<()> {
        sys::release(self.file.as_fd()).map_err(refusal).context("release").context(PATH)
    }

    fn cpu(&self, cpu: u32) -> Result<Cpu> {
        let mut cpu = Cpu { cpu, flags: 0 };
        sys::cpu(self.file.as_fd(), &mut cpu).map_err(refusal).context("cpu").context(PATH)?;
        Ok(cpu)
    }

    fn vectors(&self) -> Result<Vec<Vector>> {
        let mut all = Vec::new();
        let mut vector = Vector { which: 0, reserved: 0, name: [0; NAME_BYTES] };
        loop {
            sys::next_vector(self.file.as_fd(), &mut vector).map_err(refusal).context("vector").context(PATH)?;
            match vector.which {
                0 => return Ok(all),
                _ => all.push(vector),
            }
        }
    }

    fn full(&self) -> Result<Blocks> {
        sys::full(self.file.as_fd()).map_err(|errno| self.refusal(errno)).context(PATH)
    }

    fn free(&self, blocks: &Blocks) -> Result<()> {
        sys::free(self.file.as_fd(), blocks).map_err(|errno| self.refusal(errno)).context(PATH)
    }

    fn flush(&self, before: u64) -> Result<bool> {
        match sys::flush(self.file.as_fd(), before) {
            Ok(()) => Ok(true),
            Err(Errno::TIMEDOUT) => Ok(false),
            Err(errno) => Err(self.refusal(errno)).context(PATH),
        }
    }

    fn end_blocks(&self) -> Result<BlocksEnd> {
        match sys::flush(self.file.as_fd(), u64::MAX) {
            Ok(()) => Ok(BlocksEnd::All),
            Err(Errno::AGAIN) => Ok(BlocksEnd::NoneFree),
            Err(Errno::TIMEDOUT) => Ok(BlocksEnd::Stuck),
            Err(errno) => Err(self.refusal(errno)).context(PATH),
        }
    }

    fn look(&self) -> Result<Option<u64>> {
        match sys::look(self.file.as_fd()) {
            Ok(end) => Ok(Some(end)),
            Err(Errno::TIMEDOUT) => Ok(None),
            Err(Errno::INVAL) => {
                Err(Failure::new("no trace is running", "start one: kutrace_control gowrap")).context(PATH)
            }
            Err(errno) => Err(refusal(errno)).context(PATH),
        }
    }

    fn leave(&self, bytes: &[u8]) -> Result<()> {
        let all = [&self.left()?[..], bytes].concat();
        rustix::io::write(&self.file, &all).map_err(|errno| self.refusal(errno)).context("write").context(PATH)?;
        Ok(())
    }

    fn left(&self) -> Result<Vec<u8>> {
        let (mut bytes, mut read) = (vec![0; READINGS_MAX], 0);
        while read < bytes.len() {
            match rustix::io::pread(&self.file, &mut bytes[read..], read as u64).map_err(refusal).context(PATH)? {
                0 => break,
                more => read += more,
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    fn program_after(&self, serial: u32) -> Result<Option<Attached>> {
        let mut grants = Vec::new();
        loop {
            let mut told = Program { serial, ..Program::default() };
            sys::next_program(self.file.as_fd(), &mut told, &mut grants).context(PATH)?;
            if told.serial == 0 {
                return Ok(None);
            }
            if told.grants as usize <= grants.len() {
                grants.truncate(told.grants as usize);
                return Ok(Some(Attached { told, grants }));
            }
            grants.resize(told.grants as usize + 1024, Granted::default());
        }
    }

    fn copy(&self, serial: u32, grant: &Granted, to: &mut [u8]) -> Result<bool> {
        match sys::copy_grant(self.file.as_fd(), serial, grant, to) {
            Err(Errno::STALE) => Ok(false),
            copied => copied.map(|()| true).map_err(refusal).context(PATH),
        }
    }

    fn take_back(&self, taken: Taken) -> Result<bool> {
        match sys::taken(self.file.as_fd(), taken) {
            Err(Errno::BUSY | Errno::STALE) => Ok(false),
            given => given.map(|()| true).map_err(refusal).context(PATH),
        }
    }

    fn refused(&self) -> Result<Vec<u8>> {
        let (mut payload, mut place) = (Vec::new(), 0);
        loop {
            let next = sys::next_refused(self.file.as_fd(), place).context(PATH)?;
            if next.place == 0 {
                return Ok(payload);
            }
            place = next.place;
            payload.extend_from_slice(&next.tgid.to_le_bytes());
            payload.extend_from_slice(&[0; 4]);
            payload.extend_from_slice(&next.times.to_le_bytes());
            payload.extend_from_slice(&next.comm);
        }
    }

    fn kept(&self) -> Result<u64> {
        sys::kept(self.file.as_fd()).map_err(refusal).context(PATH)
    }

    fn pool(&self, blocks: u32) -> Result<sys::Mapping> {
        ensure!(blocks > 0, "{PATH}: the recorder has no memory");
        let bytes = blocks as usize * block::BYTES;
        sys::Mapping::new(self.file.as_fd(), bytes).map_err(refusal).context("mmap").context(PATH)
    }
}

impl Device {
    /// Makes the module discard what an earlier kernel left.
    ///
    /// # Errors
    /// The module's error; the same for the functions below.
    pub fn forget(&self) -> Result<()> {
        sys::forget(self.file.as_fd()).map_err(refusal).context(PATH)
    }

    /// A duplicate of the descriptor, for reading.
    pub fn file(&self) -> Result<File> {
        Ok(File::from(self.file.try_clone().context(PATH)?))
    }

    /// Like [`refusal`], and names the holder of the recorder.
    fn refusal(&self, errno: Errno) -> Failure {
        match sys::info(self.file.as_fd()) {
            Ok(info) if errno == Errno::BUSY && info.holder != 0 => held_by(info.holder),
            _ => refusal(errno),
        }
    }

    /// Reason why there is no snapshot. The memory of a stream has only blocks that are not in its file yet, and
    /// another process that took one would remove it from the file.
    fn no_snapshot(&self) -> Failure {
        match sys::info(self.file.as_fd()) {
            Ok(info) if info.state == STATE_TRACING && info.flags & STREAM != 0 => Failure::new(
                format_args!("the trace is a stream, which {} writes to its file", process_name(info.holder)),
                "read or copy that file: even while it is written, it has everything except the last second",
            ),
            _ => Failure::new("no trace is running in wrap mode", "start one: kutrace_control gowrap"),
        }
    }
}

/// Error: another process holds the recorder.
pub fn held_by(process: u32) -> Failure {
    let fact = format_args!("in use by {}", process_name(process)).to_string();
    Failure::new(fact, format_args!("wait for it to finish, or stop it: kill {process}"))
}

/// Text for a process: its number, and its name if it still runs.
pub fn process_name(process: u32) -> String {
    match std::fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(comm) => format!("process {process} ({})", comm.trim_end()),
        Err(_) => format!("process {process}"),
    }
}

fn check_version(version: u32) -> Result<(), Failure> {
    if version == VERSION {
        return Ok(());
    }
    let fact = format!("the loaded module has version {version}, this program version {VERSION}");
    Err(Failure::new(fact, "install module and tools from the same release"))
}

/// True if the kernel hides its addresses from root too.
fn is_locked_down() -> bool {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown");
    lockdown.is_ok_and(|levels| levels.contains("[confidentiality]"))
}

/// Error message for an errno of the device.
fn refusal(errno: Errno) -> Failure {
    match errno {
        Errno::NOENT | Errno::NXIO | Errno::NODEV => {
            Failure::new("no such device; is the module loaded?", "as root: insmod kutrace.ko")
        }
        Errno::ACCESS => {
            let fact = "no permission: root, or membership in the device's group, is needed";
            Failure::new(fact, "sudo kutrace_control ..., or see PERMISSIONS in: man 7 kutrace")
        }
        Errno::PERM if is_locked_down() => Failure::new(
            "this kernel is locked down: it hides its addresses, which a trace contains",
            "see /sys/kernel/security/lockdown; only a kernel that is not locked down to confidentiality can be traced",
        ),
        Errno::PERM => {
            let fact = "no permission: root, or CAP_PERFMON or CAP_SYS_ADMIN, is needed";
            Failure::new(fact, "sudo kutrace_control ..., or see PERMISSIONS in: man 7 kutrace")
        }
        Errno::TOOBIG => Failure::new(
            "more memory than you are allowed",
            "request less, or as root: insmod kutrace.ko maxmb=...; the buffer and the trace in it are unchanged",
        ),
        Errno::TIMEDOUT => Failure::new(
            "a CPU takes no interrupts: it is stuck",
            "the kernel's log may show where: dmesg; the trace can still be written: kutrace_control stop",
        ),
        Errno::BUSY => Failure::new("in use", "another kutrace_control got there first: see `kutrace_control status`"),
        Errno::IO => Failure::new(
            "the TSC of this machine is not stable: times would be wrong",
            "for the reason see the kernel's log: dmesg | grep -i tsc",
        ),
        Errno::OPNOTSUPP => Failure::new(
            "this machine has no counters of instructions or cache misses",
            "most virtual machines have none; use go or gowrap",
        ),
        Errno::NOSPC => Failure::new(
            "another program uses the counters of this machine",
            "end it (perf, another profiler), or use go or gowrap",
        ),
        Errno::NODATA => Failure::new(
            "the kernel makes no records of one of the chosen tracepoints",
            "omit one after the other: tracepoints of ftrace itself have no records; see docs/hooks.md",
        ),
        Errno::NOTTY => {
            let fact = format!("not a recorder of version {VERSION}");
            Failure::new(fact, "install module and tools from the same release")
        }
        Errno::NOMEM => Failure::new(
            "not enough memory for a buffer of this size",
            "see `free -m`; the buffer and the trace in it are unchanged",
        ),
        other => Failure::new(std::io::Error::from(other), "the kernel's log may have more: dmesg | grep kutrace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_the_module_is_refused() {
        assert!(check_version(VERSION).is_ok());
        let fact = check_version(4).unwrap_err().to_string();
        assert_eq!(fact, "the loaded module has version 4, this program version 16");
    }

    #[test]
    fn each_refusal_is_one_line() {
        let known = [
            Errno::NOENT,
            Errno::ACCESS,
            Errno::PERM,
            Errno::BUSY,
            Errno::IO,
            Errno::TIMEDOUT,
            Errno::TOOBIG,
            Errno::OPNOTSUPP,
            Errno::NOSPC,
            Errno::NOTTY,
        ];
        for errno in known.into_iter().chain([Errno::NOMEM, Errno::MFILE]) {
            assert!(!refusal(errno).to_string().contains('\n'));
        }
        assert_eq!(refusal(Errno::NOENT).to_string(), "no such device; is the module loaded?");
    }
}
