// SPDX-License-Identifier: BSD-3-Clause
//! All unsafe code of this crate: the ioctls of the device, the mapping of its block pool, the counter, the system
//! calls of marks and of perf.

#![allow(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use kutrace_format::abi::command::{
    Blocks, Cpu, Info, Moment, Ports, Setup, Tracepoints, Vector, IOCTL_ACQUIRE, IOCTL_CPU, IOCTL_FLUSH, IOCTL_FORGET,
    IOCTL_FREE, IOCTL_FULL, IOCTL_INFO, IOCTL_KEPT, IOCTL_LOOK, IOCTL_PORTS, IOCTL_RELEASE, IOCTL_RESET,
    IOCTL_SNAPSHOT, IOCTL_START, IOCTL_STOP, IOCTL_TRACEPOINTS, IOCTL_VECTOR,
};
use kutrace_format::abi::landmark::{Landmark, PAGE};
use kutrace_format::abi::programs::{
    Call, Copy, Granted, Program, Quota, Refused, Taken, DEVICE, IOCTL_CALL, IOCTL_COPY, IOCTL_PROGRAM, IOCTL_QUOTA,
    IOCTL_REFUSED, IOCTL_TAKEN,
};
use kutrace_format::abi::user;
use rustix::fs::{open, Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::ioctl::{ioctl, Getter, NoArg, Setter, Updater};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use rustix::time::{clock_gettime, ClockId};

/// Reads the state of the recorder.
pub fn info(device: BorrowedFd<'_>) -> Result<Info> {
    // SAFETY: the request number means that the kernel writes an `Info`, for which every bit pattern is valid.
    let command = unsafe { Getter::<{ IOCTL_INFO }, Info>::new() };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Empties the pool and sets the mode.
pub fn reset(device: BorrowedFd<'_>, setup: Setup) -> Result<()> {
    // SAFETY: the request number means that the kernel reads a `Setup`, which has no padding.
    let command = unsafe { Setter::<{ IOCTL_RESET }, Setup>::new(setup) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Chooses whose packets are recorded.
pub fn choose(device: BorrowedFd<'_>, ports: Ports) -> Result<()> {
    // SAFETY: the request number means that the kernel reads `Ports`, which have no padding.
    let command = unsafe { Setter::<{ IOCTL_PORTS }, Ports>::new(ports) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Chooses which tracepoints are recorded.
pub fn choose_tracepoints(device: BorrowedFd<'_>, tracepoints: Tracepoints) -> Result<()> {
    // SAFETY: the request number means that the kernel reads `Tracepoints`, which have no padding.
    let command = unsafe { Setter::<{ IOCTL_TRACEPOINTS }, Tracepoints>::new(tracepoints) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Starts tracing.
pub fn start(device: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the request number means that no argument is read or written.
    let command = unsafe { NoArg::<{ IOCTL_START }>::new() };
    // SAFETY: the command points to no memory.
    unsafe { ioctl(device, command) }
}

/// Stops tracing.
pub fn stop(device: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the request number means that no argument is read or written.
    let command = unsafe { NoArg::<{ IOCTL_STOP }>::new() };
    // SAFETY: the command points to no memory.
    unsafe { ioctl(device, command) }
}

/// Ends every block that is being filled, and continues in others.
pub fn snapshot(device: BorrowedFd<'_>) -> Result<Moment> {
    // SAFETY: the request number means that the kernel writes a `Moment`, for which every bit pattern is valid.
    let command = unsafe { Getter::<{ IOCTL_SNAPSHOT }, Moment>::new() };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Reserves the recorder for `device` until that is closed.
pub fn acquire(device: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the request number means that no argument is read or written.
    let command = unsafe { NoArg::<{ IOCTL_ACQUIRE }>::new() };
    // SAFETY: the command points to no memory.
    unsafe { ioctl(device, command) }
}

/// Ends [`acquire`].
pub fn release(device: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the request number means that no argument is read or written.
    let command = unsafe { NoArg::<{ IOCTL_RELEASE }>::new() };
    // SAFETY: the command points to no memory.
    unsafe { ioctl(device, command) }
}

/// Fills in the state of the CPU whose number is in `cpu`.
pub fn cpu(device: BorrowedFd<'_>, cpu: &mut Cpu) -> Result<()> {
    // SAFETY: the request number means that the kernel reads and writes a `Cpu`, for which every bit pattern is valid.
    let command = unsafe { Updater::<{ IOCTL_CPU }, Cpu>::new(cpu) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Replaces `vector` by the next vector that belongs to a device.
pub fn next_vector(device: BorrowedFd<'_>, vector: &mut Vector) -> Result<()> {
    // SAFETY: the request number means that the kernel reads and writes a `Vector`, for which every bit pattern is
    // valid.
    let command = unsafe { Updater::<{ IOCTL_VECTOR }, Vector>::new(vector) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// The counter that the recorder uses for its times.
pub fn tsc() -> u64 {
    // SAFETY: every processor that can run this has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The current time on the three clocks of a trace.
pub fn moment() -> Moment {
    let ns = |id| {
        let now = clock_gettime(id);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    Moment { tsc: tsc(), monotonic_ns: ns(ClockId::Monotonic), realtime_ns: ns(ClockId::Realtime) }
}

/// Takes full blocks of a stream.
pub fn full(device: BorrowedFd<'_>) -> Result<Blocks> {
    // SAFETY: the request number means that the kernel writes `Blocks`, for which every bit pattern is valid.
    let command = unsafe { Getter::<{ IOCTL_FULL }, Blocks>::new() };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Gives back the blocks that [`full`] took.
pub fn free(device: BorrowedFd<'_>, blocks: &Blocks) -> Result<()> {
    // SAFETY: the request number means that the kernel reads `Blocks`, which has no padding.
    let command = unsafe { Setter::<{ IOCTL_FREE }, Blocks>::new(*blocks) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Ends the blocks of a stream that began before the counter `before`.
pub fn flush(device: BorrowedFd<'_>, before: u64) -> Result<()> {
    // SAFETY: the request number means that the kernel reads a `u64`.
    let command = unsafe { Setter::<{ IOCTL_FLUSH }, u64>::new(before) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Has every CPU report how far its block is filled. Returns the counter before which all events are reported.
pub fn look(device: BorrowedFd<'_>) -> Result<u64> {
    // SAFETY: the request number means that the kernel writes a `u64`.
    let command = unsafe { Getter::<{ IOCTL_LOOK }, u64>::new() };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Number of preserved bytes that an earlier kernel left.
pub fn kept(device: BorrowedFd<'_>) -> Result<u64> {
    // SAFETY: the request number means that the kernel writes a `u64`.
    let command = unsafe { Getter::<{ IOCTL_KEPT }, u64>::new() };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// Discards the preserved bytes.
pub fn forget(device: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the request number means that no argument is read or written.
    let command = unsafe { NoArg::<{ IOCTL_FORGET }>::new() };
    // SAFETY: the command points to no memory.
    unsafe { ioctl(device, command) }
}

/// Sets how much memory programs may have in the trace that the next reset begins.
pub fn allow(device: BorrowedFd<'_>, quota: Quota) -> Result<()> {
    // SAFETY: the request number means that the kernel reads a `Quota`, which has no padding.
    let command = unsafe { Setter::<{ IOCTL_QUOTA }, Quota>::new(quota) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// State of the program that attached next after `program`, with serial 0 for none. Fills in at most `grants.len()` of
/// its grants.
pub fn next_program(device: BorrowedFd<'_>, program: &mut Program, grants: &mut [Granted]) -> Result<()> {
    (program.address, program.grants) = (grants.as_mut_ptr() as u64, grants.len() as u32);
    // SAFETY: the request number means that the kernel reads and writes a `Program`, for which every bit pattern is
    // valid.
    let command = unsafe { Updater::<{ IOCTL_PROGRAM }, Program>::new(program) };
    // SAFETY: apart from its own memory the command writes at most as many grants as fit into `grants`, which is
    // borrowed.
    unsafe { ioctl(device, command) }
}

/// Copies this grant of a program from the grant's offset on.
pub fn copy_grant(device: BorrowedFd<'_>, serial: u32, grant: &Granted, to: &mut [u8]) -> Result<()> {
    let (address, bytes) = (to.as_mut_ptr() as u64, to.len() as u64);
    let copy = Copy { serial, offset: grant.offset, sequence: grant.sequence, address, bytes };
    // SAFETY: the request number means that the kernel reads a `Copy`, which has no padding.
    let command = unsafe { Setter::<{ IOCTL_COPY }, Copy>::new(copy) };
    // SAFETY: the command writes no more bytes than fit into `to`, which is borrowed.
    unsafe { ioctl(device, command) }
}

/// Gives back memory of a program whose content is in the file.
pub fn taken(device: BorrowedFd<'_>, taken: Taken) -> Result<()> {
    // SAFETY: the request number means that the kernel reads a `Taken`, which has no padding.
    let command = unsafe { Setter::<{ IOCTL_TAKEN }, Taken>::new(taken) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }
}

/// The next program after `place` in the list of those that were refused something.
pub fn next_refused(device: BorrowedFd<'_>, place: u32) -> Result<Refused> {
    let mut refused = Refused { place, ..Refused::default() };
    // SAFETY: the request number means that the kernel reads and writes a `Refused`, for which every bit pattern is
    // valid.
    let command = unsafe { Updater::<{ IOCTL_REFUSED }, Refused>::new(&mut refused) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }?;
    Ok(refused)
}

/// Inserts an event into the trace as programs do, by their device or their system call. Returns the number of words
/// taken, 0 while nothing traces.
pub fn insert(word: u64) -> Result<u64> {
    match insert_by_device(word) {
        Ok(answer) => u64::try_from(answer).map_err(|_| Errno::from_raw_os_error(-answer as i32)),
        Err(_) => {
            // SAFETY: this command reads its two arguments and no memory.
            let taken = unsafe { libc::syscall(user::CALL.into(), user::INSERT, word) };
            u64::try_from(taken).map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::NOSYS))
        }
    }
}

/// The answer of a recorder that takes no system call.
fn insert_by_device(word: u64) -> Result<i64> {
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut call = Call { command: user::INSERT, ..Call::default() };
    call.words[0] = word;
    // SAFETY: the request number means that the kernel reads and writes a `Call`, for which every bit pattern is valid.
    let command = unsafe { Updater::<{ IOCTL_CALL }, Call>::new(&mut call) };
    // SAFETY: the command points only to its own memory.
    unsafe { ioctl(device, command) }?;
    Ok(call.answer)
}

/// Request to perf: the first 112 bytes of `struct perf_event_attr` in the kernel's include/uapi/linux/perf_event.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    configs: [u64; 2],
    branch: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    registers: u64,
    aux: u32,
    stack: u16,
    reserved: u16,
}

/// Opens a perf event that counts nothing and reports programs that are loaded on a CPU and files that are mapped there
/// for execution; it becomes readable once `watermark` bytes are available.
pub fn open_program_events(cpu: u32, watermark: u32) -> Result<OwnedFd> {
    /// PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.
    const NOTHING: (u32, u64) = (1, 9);
    /// PERF_SAMPLE_TID, PERF_SAMPLE_TIME.
    const THREAD_AND_TIME: u64 = 1 << 1 | 1 << 2;
    /// exclude_kernel, exclude_hv, mmap, comm, task, watermark, sample_id_all, mmap2, comm_exec, use_clockid, build_id.
    const FLAGS: u64 =
        1 << 5 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 13 | 1 << 14 | 1 << 18 | 1 << 23 | 1 << 24 | 1 << 25 | 1 << 34;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let (kind, config) = NOTHING;
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        sample: THREAD_AND_TIME,
        flags: FLAGS,
        wakeup: watermark,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let (all, none) = (-1, -1);
    let address = &raw const attributes;
    // SAFETY: the kernel reads as many bytes at this address as the attributes state.
    let opened = unsafe { libc::syscall(libc::SYS_perf_event_open, address, all, cpu, none, CLOSE_ON_EXEC) };
    match i32::try_from(opened) {
        // SAFETY: the kernel has opened this descriptor for us.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::NOSYS)),
    }
}

/// The landmark in a page of an image.
pub fn landmark(page: &[u8; PAGE]) -> Landmark {
    // SAFETY: a landmark is one page of numbers, for which every bit pattern is valid.
    unsafe { page.as_ptr().cast::<Landmark>().read_unaligned() }
}

/// The block pool, mapped read-only, or a buffer of perf, as words that the kernel may change at any time.
///
/// Invariant: `at` is the start of a mapping of `bytes` bytes that lives as long as this.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, and its words are atomic: any thread may read and unmap it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of the device.
    pub fn new(device: BorrowedFd<'_>, bytes: usize) -> Result<Mapping> {
        Mapping::with(device, bytes, ProtFlags::READ)
    }

    /// Maps the first `bytes` of a device that may be written too.
    pub fn writable(device: BorrowedFd<'_>, bytes: usize) -> Result<Mapping> {
        Mapping::with(device, bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn with(device: BorrowedFd<'_>, bytes: usize, rights: ProtFlags) -> Result<Mapping> {
        // SAFETY: the kernel chooses the place, so no mapping of this process is replaced.
        let at = unsafe { mmap(ptr::null_mut(), bytes, rights, MapFlags::SHARED, device, 0) }?;
        let at = NonNull::new(at.cast()).ok_or(Errno::NOMEM)?;
        Ok(Mapping { at, bytes })
    }
}

impl Deref for Mapping {
    type Target = [AtomicU32];

    fn deref(&self) -> &[AtomicU32] {
        // SAFETY: by the invariant `bytes` bytes at `at` are mapped, readable and borrowed no longer than `self`; a
        // mapping begins at a page, so its words are aligned; other writers do not matter, since the words are atomic
        // here.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.bytes / 4) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: by the invariant this is a whole mapping of ours, and nothing borrows it any more.
        let unmapped = unsafe { munmap(self.at.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_mapping_shows_the_words_of_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let mapping = Mapping::new(file.as_fd(), 8192).unwrap();
        assert_eq!(mapping.len(), 2048);
        assert!(mapping.iter().all(|word| word.load(Ordering::Relaxed) == 0x0707_0707));
    }

    #[test]
    fn a_file_that_is_no_recorder_refuses_every_ioctl() {
        let file = tempfile::tempfile().unwrap();
        let fd = file.as_fd();
        assert_eq!(info(fd), Err(Errno::NOTTY));
        assert_eq!(reset(fd, Setup::default()), Err(Errno::NOTTY));
        assert_eq!(start(fd), Err(Errno::NOTTY));
        assert_eq!(stop(fd), Err(Errno::NOTTY));
        assert_eq!(snapshot(fd), Err(Errno::NOTTY));
        assert_eq!(full(fd), Err(Errno::NOTTY));
        assert_eq!(free(fd, &Blocks::default()), Err(Errno::NOTTY));
        assert_eq!(flush(fd, 0), Err(Errno::NOTTY));
        assert_eq!(look(fd), Err(Errno::NOTTY));
        assert_eq!(kept(fd), Err(Errno::NOTTY));
        assert_eq!(forget(fd), Err(Errno::NOTTY));
        assert_eq!(acquire(fd), Err(Errno::NOTTY));
        assert_eq!(release(fd), Err(Errno::NOTTY));
        assert_eq!(allow(fd, Quota::default()), Err(Errno::NOTTY));
        assert!(matches!(next_program(fd, &mut Program::default(), &mut []), Err(Errno::NOTTY)));
        assert_eq!(next_refused(fd, 0), Err(Errno::NOTTY));
        assert_eq!(cpu(fd, &mut Cpu::default()), Err(Errno::NOTTY));
        assert_eq!(next_vector(fd, &mut Vector { which: 0, reserved: 0, name: [0; 56] }), Err(Errno::NOTTY));
    }
}
