// SPDX-License-Identifier: BSD-3-Clause
//! The recorder, reached through /dev/kutrace.

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

/// Where the module puts its device.
pub const PATH: &str = "/dev/kutrace";

/// Whether every CPU has ended its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlocksEnd {
    /// They have.
    All,
    /// One found no block free for its next.
    NoneFree,
    /// One takes no interrupts.
    Stuck,
}

/// A program as the recorder knows it now.
#[derive(Debug)]
pub struct Attached {
    /// The program.
    pub told: Program,
    /// What it was granted.
    pub grants: Vec<Granted>,
}

/// What a session drives: the device, or a stand-in where there is no module.
pub trait Recorder: Sized {
    /// The words of the block pool, which the recorder may be writing.
    type Pool: Deref<Target = [AtomicU32]>;

    /// Opens it.
    fn open() -> Result<Self>;
    /// Its state.
    fn info(&self) -> Result<Info>;
    /// Empties the pool and sets the mode; refused while tracing.
    fn reset(&self, setup: Setup) -> Result<()>;
    /// Chooses whose packets the next trace has; of an empty recorder only.
    fn choose(&self, ports: &Ports) -> Result<()>;
    /// Chooses which tracepoints the next trace has; of an empty recorder only.
    fn choose_tracepoints(&self, tracepoints: &Tracepoints) -> Result<()>;
    /// How much memory programs may have in the trace that the next reset begins.
    fn allow(&self, quota: Quota) -> Result<()>;
    /// Starts tracing.
    fn start(&self) -> Result<()>;
    /// Stops tracing and closes every block.
    fn stop(&self) -> Result<()>;
    /// Ends every block that is being filled, while tracing in wrap mode continues; the moment up to which it did.
    fn snapshot(&self) -> Result<Moment>;
    /// Keeps the recorder for this process: nobody else empties, starts or stops it. If the process ends while tracing,
    /// so does the trace.
    fn acquire(&self) -> Result<()>;
    /// Ends [`Recorder::acquire`].
    fn release(&self) -> Result<()>;
    /// What is known of a CPU; nothing for an impossible one.
    fn cpu(&self, cpu: u32) -> Result<Cpu>;
    /// The vectors that are for devices now.
    fn vectors(&self) -> Result<Vec<Vector>>;
    /// Takes full blocks of a stream, to be read.
    fn full(&self) -> Result<Blocks>;
    /// Gives back what [`Recorder::full`] took.
    fn free(&self, blocks: &Blocks) -> Result<()>;
    /// Ends the blocks of a stream that began before the counter `before`; false if a CPU takes no interrupts.
    fn flush(&self, before: u64) -> Result<bool>;
    /// Ends all blocks of a stream.
    fn end_blocks(&self) -> Result<BlocksEnd>;
    /// Has every block that is being filled say how far it is filled; the counter up to which that is all. None if a CPU
    /// takes no interrupts, or lets no other thread run.
    fn look(&self) -> Result<Option<u64>>;
    /// Leaves something with the trace, after what was left before, until the next reset.
    fn leave(&self, bytes: &[u8]) -> Result<()>;
    /// All that was left with the trace.
    fn left(&self) -> Result<Vec<u8>>;
    /// The program that attached after the one with this number, and what it was granted.
    fn program_after(&self, serial: u32) -> Result<Option<Attached>>;
    /// Copies what a grant of a program has from its offset on; false if it is not there any more.
    fn copy(&self, serial: u32, grant: &Granted, to: &mut [u8]) -> Result<bool>;
    /// What was read of a program, of a stream, is in the file; false if it cannot be given back yet, or is not there any
    /// more.
    fn take_back(&self, taken: Taken) -> Result<bool>;
    /// Which programs were refused how often, as the section of a file has it.
    fn refused(&self) -> Result<Vec<u8>>;
    /// Bytes that are kept of what an earlier kernel left in memory that outlives a reboot.
    fn kept(&self) -> Result<u64>;
    /// The `blocks` blocks of the pool.
    fn pool(&self, blocks: u32) -> Result<Self::Pool>;
}

/// /dev/kutrace, open, of a module that speaks our version.
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
    /// Has the module forget what an earlier kernel left.
    ///
    /// # Errors
    /// As the module answers; the same below.
    pub fn forget(&self) -> Result<()> {
        sys::forget(self.file.as_fd()).map_err(refusal).context(PATH)
    }

    /// Itself, to be read.
    pub fn file(&self) -> Result<File> {
        Ok(File::from(self.file.try_clone().context(PATH)?))
    }

    /// Like [`refusal`], and says who holds the recorder.
    fn refusal(&self, errno: Errno) -> Failure {
        match sys::info(self.file.as_fd()) {
            Ok(info) if errno == Errno::BUSY && info.holder != 0 => held_by(info.holder),
            _ => refusal(errno),
        }
    }

    /// Why there can be no snapshot. The memory of a stream has only what is not in its file yet, and whoever else took a
    /// block would take it from that.
    fn no_snapshot(&self) -> Failure {
        match sys::info(self.file.as_fd()) {
            Ok(info) if info.state == STATE_TRACING && info.flags & STREAM != 0 => Failure::new(
                format_args!("the trace is a stream, which {} writes to its file", process_name(info.holder)),
                "read or copy that file: it has all but the last second, also while it is written",
            ),
            _ => Failure::new("no trace is running in wrap mode", "start one: kutrace_control gowrap"),
        }
    }
}

/// That another process holds the recorder.
pub fn held_by(process: u32) -> Failure {
    let fact = format_args!("in use by {}", process_name(process)).to_string();
    Failure::new(fact, format_args!("wait for it to finish, or stop it: kill {process}"))
}

/// What to call a process: its number, and its name if it is there.
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
    let fact = format!("the loaded module speaks version {version}, this program version {VERSION}");
    Err(Failure::new(fact, "install module and tools from the same release"))
}

/// Whether the kernel keeps its addresses from root too.
fn is_locked_down() -> bool {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown");
    lockdown.is_ok_and(|levels| levels.contains("[confidentiality]"))
}

/// What an errno of the device means to the user.
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
            "this kernel is locked down: it shows no addresses of its own, and a trace has them",
            "see /sys/kernel/security/lockdown; only a kernel that is not locked down to confidentiality can be traced",
        ),
        Errno::PERM => {
            let fact = "no permission: root, or CAP_PERFMON or CAP_SYS_ADMIN, is needed";
            Failure::new(fact, "sudo kutrace_control ..., or see PERMISSIONS in: man 7 kutrace")
        }
        Errno::TOOBIG => Failure::new(
            "more memory than you may have",
            "ask for less, or as root: insmod kutrace.ko maxmb=...; the buffer is as it was, and so is the trace in it",
        ),
        Errno::TIMEDOUT => Failure::new(
            "a CPU takes no interrupts: it is stuck",
            "the kernel's log may say where: dmesg; what was recorded can be written all the same: kutrace_control stop",
        ),
        Errno::BUSY => Failure::new("in use", "another kutrace_control got there first: see `kutrace_control status`"),
        Errno::IO => Failure::new(
            "the TSC of this machine is not stable: times would be wrong",
            "the kernel's log says why: dmesg | grep -i tsc",
        ),
        Errno::OPNOTSUPP => Failure::new(
            "this machine has no counters of instructions or cache misses",
            "virtual machines mostly have none; use go or gowrap",
        ),
        Errno::NOSPC => Failure::new(
            "another program uses the counters of this machine",
            "end it (perf, another profiler), or use go or gowrap",
        ),
        Errno::NODATA => Failure::new(
            "the kernel makes no records of a tracepoint that was chosen",
            "leave out one after the other: those of ftrace itself have none; see docs/hooks.md",
        ),
        Errno::NOTTY => {
            let fact = format!("not a recorder of version {VERSION}");
            Failure::new(fact, "install module and tools from the same release")
        }
        Errno::NOMEM => Failure::new(
            "not enough memory for a buffer of this size",
            "see `free -m`; the buffer is as it was, and so is the trace in it",
        ),
        other => Failure::new(std::io::Error::from(other), "the kernel's log may say more: dmesg | grep kutrace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_of_the_module_is_refused() {
        assert!(check_version(VERSION).is_ok());
        let fact = check_version(4).unwrap_err().to_string();
        assert_eq!(fact, "the loaded module speaks version 4, this program version 16");
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
