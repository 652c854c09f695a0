// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The ioctls of /dev/kutrace and the structures they carry.
//!
//! Every structure is fixed-size, little-endian and without implicit padding. `mmap` of the device, read-only, offset
//! 0, shows the block pool: [`Info::blocks`] blocks of [`crate::abi::block::BYTES`]. `write` leaves data with the trace
//! until the next reset, in the place of earlier data, 4 MiB at most (EFBIG); `read` returns it. Our tools leave the
//! section `KCNT` of the file.

/// Version of this interface; [`Info::version`] must match.
pub const VERSION: u32 = 16;
/// The ioctl type byte.
pub const TYPE: u8 = 0xb7;

/// Reads [`Info`]. `_IOR(TYPE, 0, Info)`.
pub const INFO: u8 = 0;
/// Empties the pool and sets mode and size; refused while tracing, with EOPNOTSUPP or ENOSPC if the machine has no such
/// counters or others use them all, and with ENOMEM if there is no memory: then the trace in the pool stays.
/// `_IOW(TYPE, 1, Setup)`.
pub const RESET: u8 = 1;
/// Starts tracing; refused like [`RESET`], and with EBUSY while the machine is about to sleep. `_IO(TYPE, 2)`.
pub const START: u8 = 2;
/// Stops tracing and closes every CPU's block; harmless when stopped. `_IO(TYPE, 3)`.
pub const STOP: u8 = 3;
/// Makes everything recorded so far readable while tracing in wrap mode continues: every CPU ends the block it is
/// filling and begins another. Returns the [`Moment`] at which the snapshot ends: the snapshot has the blocks that
/// began before. `_IOR(TYPE, 4, Moment)`.
pub const SNAPSHOT: u8 = 4;
/// Reserves the recorder for the caller's open file until that is closed: resets, starts and stops by others are
/// refused with EBUSY, as this is while another holds it. A trace that is running when the file is closed ends.
/// `_IO(TYPE, 5)`.
pub const ACQUIRE: u8 = 5;
/// Ends [`ACQUIRE`] and nothing else; harmless for a caller that does not hold it. `_IO(TYPE, 6)`.
pub const RELEASE: u8 = 6;
/// Returns the state of the CPU whose number is in the caller's [`Cpu`]. `_IOWR(TYPE, 7, Cpu)`.
pub const CPU: u8 = 7;
/// Returns the vector that is for a device now and comes after the caller's: the caller passes 0 at first, and gets 0
/// if there is no other. `_IOWR(TYPE, 8, Vector)`.
pub const VECTOR: u8 = 8;

/// Hands over full blocks of a trace that is a [`STREAM`], up to as many as a [`Blocks`] has room for: they stay as
/// they are until [`FREE`]. Only for the holder of the recorder (EBUSY), and for a stream (EINVAL); [`FREE`] and
/// [`FLUSH`] likewise. `_IOR(TYPE, 9, Blocks)`.
pub const FULL: u8 = 9;
/// Gives blocks back that were handed over; EINVAL for others. `_IOW(TYPE, 10, Blocks)`.
pub const FREE: u8 = 10;
/// While tracing, makes the CPUs whose blocks have entries and began before the caller's counter end these and continue
/// in others. For `u64::MAX` all CPUs end their blocks, even those without entries; EAGAIN if one finds no free block
/// for its next. `_IOW(TYPE, 11, u64)`.
pub const FLUSH: u8 = 11;
/// While tracing in any mode, writes into the header of each block that is being filled how far it is filled now: those
/// bytes, [`crate::abi::block::Header::for_now`], can be read and do not change any more, except for the last entry of
/// a system call, into which its return may still be folded. No CPU is disturbed, and no block is ended. Returns the
/// counter up to which the blocks are complete; a block in the middle of a claim keeps its earlier value.
/// `_IOR(TYPE, 12, u64)`.
pub const LOOK: u8 = 12;
/// Chooses the ports of TCP and UDP whose packets the next trace records; [`RESET`] chooses none. EBUSY unless the
/// recorder is empty, EOPNOTSUPP if the kernel has no TCP/IP. `_IOW(TYPE, 13, Ports)`.
pub const PORTS: u8 = 13;
/// Chooses the tracepoints that the next trace records; [`RESET`] chooses none. EBUSY unless the recorder is empty.
/// [`START`] fails with ENODATA if the kernel makes no records of one. `_IOW(TYPE, 14, Tracepoints)`.
pub const TRACEPOINTS: u8 = 14;

/// Returns the number of bytes kept of the data that an earlier kernel left in memory that outlives a reboot; 0 for
/// none. They are read at [`KEPT_AT`], and begin with a [`crate::abi::landmark::Landmark`]. `_IOR(TYPE, 15, u64)`.
pub const KEPT: u8 = 15;
/// Drops the kept data; harmless if there is none, EBUSY while another holds the recorder. `_IO(TYPE, 16)`.
pub const FORGET: u8 = 16;
/// Offset in the device at which the kept data is read.
pub const KEPT_AT: u64 = 1 << 40;

/// The number of an ioctl that carries `size` bytes both ways (`_IOWR`).
pub const fn exchange_number(command: u8, size: usize) -> u32 {
    1 << 30 | read_number(command, size)
}

/// The number of an ioctl that carries `size` bytes out of the kernel (`_IOR`).
pub const fn read_number(command: u8, size: usize) -> u32 {
    2 << 30 | (size as u32) << 16 | (TYPE as u32) << 8 | command as u32
}

/// The number of an ioctl that carries `size` bytes into the kernel (`_IOW`).
pub const fn write_number(command: u8, size: usize) -> u32 {
    1 << 30 | (size as u32) << 16 | (TYPE as u32) << 8 | command as u32
}

/// The number of an ioctl that carries nothing (`_IO`).
pub const fn plain_number(command: u8) -> u32 {
    (TYPE as u32) << 8 | command as u32
}

/// [`Setup::flags`]: when the pool is full, reuse the oldest block.
pub const WRAP: u32 = 1;
/// [`Setup::flags`]: count instructions per cycle.
pub const IPC: u32 = 2;
/// [`Setup::flags`]: count last-level cache misses.
pub const LLC: u32 = 4;

/// [`Setup::flags`]: the holder of the recorder reads while it records: a block is reused once it was read. Not with
/// [`WRAP`].
pub const STREAM: u32 = 8;

/// The mode and size of a trace.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Any of [`WRAP`], [`IPC`], [`LLC`], [`STREAM`].
    pub flags: u32,
    /// Blocks of the pool, up to [`BLOCKS_MAX`]; 0 for the size the module was loaded with.
    pub blocks: u32,
}

/// Most blocks a pool can have: 64 GiB.
pub const BLOCKS_MAX: u32 = 1 << 20;

/// The counter is `TSC >> SHIFT`: 6 ns at 2.6 GHz.
pub const SHIFT: u32 = 4;
/// The largest shift that a file may have.
pub const MAX_SHIFT: u32 = 12;

/// One moment on three clocks.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// TSC, unshifted.
    pub tsc: u64,
    /// CLOCK_REALTIME, ns.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC, ns.
    pub monotonic_ns: u64,
}

/// [`Info::state`]: nothing recorded since the module was loaded or reset.
pub const STATE_EMPTY: u32 = 0;
/// [`Info::state`]: tracing.
pub const STATE_TRACING: u32 = 1;
/// [`Info::state`]: stopped, with a trace in the pool.
pub const STATE_STOPPED: u32 = 2;

/// The state of the recorder.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// [`VERSION`].
    pub version: u32,
    /// `STATE_*`.
    pub state: u32,
    /// [`Setup::flags`] in force.
    pub flags: u32,
    /// [`SHIFT`].
    pub shift: u32,
    /// Number of possible CPUs.
    pub cpus: u32,
    /// Blocks in the pool.
    pub blocks: u32,
    /// TSC rate as the kernel calibrated it, kHz.
    pub tsc_khz: u32,
    /// Blocks taken from the pool since the reset; above `blocks` once a wrap trace has come round.
    pub blocks_taken: u32,
    /// Events lost since the reset, all CPUs.
    pub lost: u64,
    /// When tracing started.
    pub start: Moment,
    /// When tracing stopped; zero while tracing.
    pub stop: Moment,
    /// The process that holds the recorder, by the number it has for the caller; 0 for none.
    pub holder: u32,
    /// `NOTE_*` bits, which are those of the file's header.
    pub notes: u32,
    /// Names that programs gave and that were refused, since there were too many.
    pub refused_names: u64,
    /// The same of their marks and other events.
    pub refused_marks: u64,
    /// The capabilities that the source of the events lacks: bits of [`crate::capability::Unseen`].
    pub unseen: u64,
    /// `SOURCE_*`.
    pub source: u32,
    /// Zero.
    pub reserved: u32,
}

/// [`Info::source`]: the hooks of a patched kernel.
pub const SOURCE_HOOKS: u32 = 0;
/// [`Info::source`]: probes on the tracepoints of any kernel.
pub const SOURCE_TRACEPOINTS: u32 = 1;

/// [`Info::notes`]: the kernel has found that the TSC is not stable, after the start.
pub const NOTE_UNSTABLE: u32 = 16;
/// [`Info::notes`]: the trace ended because the machine was about to sleep: suspend or hibernation.
pub const NOTE_SLEEP: u32 = 32;
/// [`Info::notes`]: a CPU took no interrupt when it was to end its block; see [`Cpu::flags`].
pub const NOTE_MUTE: u32 = 64;

/// The state of a CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number, from the caller; EINVAL if no CPU can have it.
    pub cpu: u32,
    /// `CPU_*` bits.
    pub flags: u32,
}

/// [`Cpu::flags`]: the CPU is possible.
pub const CPU_POSSIBLE: u32 = 1;
/// [`Cpu::flags`]: it was offline when tracing started.
pub const CPU_OFFLINE: u32 = 2;
/// [`Cpu::flags`]: it took no interrupt at the stop, or at the last snapshot, so its last block ends at the last event
/// seen.
pub const CPU_MUTE: u32 = 4;

/// A vector of a CPU, and the device it is for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// [`crate::abi::event::Vector`], or 0 for none.
    pub which: u32,
    /// Zero.
    pub reserved: u32,
    /// The names of its handlers, as /proc/interrupts lists them, NUL-padded.
    pub name: [u8; crate::abi::event::NAME_BYTES],
}

/// Blocks of the pool, by their places in it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The number of entries in use.
    pub count: u32,
    /// Their places; 0 after the last.
    pub index: [u32; 31],
}

/// Most ports that can be chosen one by one.
pub const PORTS_MAX: usize = 62;
/// [`Ports::count`]: all ports.
pub const PORTS_ALL: u32 = u32::MAX;

/// Ports whose packets are recorded: of the sender, or of the receiver.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The number of ports, or [`PORTS_ALL`].
    pub count: u32,
    /// The ports; 0 after the last.
    pub port: [u16; PORTS_MAX],
}

impl Default for Ports {
    fn default() -> Ports {
        Ports { count: 0, port: [0; PORTS_MAX] }
    }
}

/// Most tracepoints that can be chosen.
pub const RECORDS_MAX: usize = 16;

/// Tracepoints whose records are recorded, by the numbers that the kernel gave them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracepoints {
    /// The number of entries in use.
    pub count: u32,
    /// The tracepoints, in the order of their events; 0 after the last.
    pub id: [u32; RECORDS_MAX],
}

/// The number of [`INFO`].
pub const IOCTL_INFO: u32 = read_number(INFO, core::mem::size_of::<Info>());
/// The number of [`RESET`].
pub const IOCTL_RESET: u32 = write_number(RESET, core::mem::size_of::<Setup>());
/// The number of [`START`].
pub const IOCTL_START: u32 = plain_number(START);
/// The number of [`STOP`].
pub const IOCTL_STOP: u32 = plain_number(STOP);
/// The number of [`SNAPSHOT`].
pub const IOCTL_SNAPSHOT: u32 = read_number(SNAPSHOT, core::mem::size_of::<Moment>());
/// The number of [`ACQUIRE`].
pub const IOCTL_ACQUIRE: u32 = plain_number(ACQUIRE);
/// The number of [`RELEASE`].
pub const IOCTL_RELEASE: u32 = plain_number(RELEASE);
/// The number of [`CPU`].
pub const IOCTL_CPU: u32 = exchange_number(CPU, core::mem::size_of::<Cpu>());
/// The number of [`VECTOR`].
pub const IOCTL_VECTOR: u32 = exchange_number(VECTOR, core::mem::size_of::<Vector>());
/// The number of [`FULL`].
pub const IOCTL_FULL: u32 = read_number(FULL, core::mem::size_of::<Blocks>());
/// The number of [`FREE`].
pub const IOCTL_FREE: u32 = write_number(FREE, core::mem::size_of::<Blocks>());
/// The number of [`FLUSH`].
pub const IOCTL_FLUSH: u32 = write_number(FLUSH, core::mem::size_of::<u64>());
/// The number of [`LOOK`].
pub const IOCTL_LOOK: u32 = read_number(LOOK, core::mem::size_of::<u64>());
/// The number of [`KEPT`].
pub const IOCTL_KEPT: u32 = read_number(KEPT, core::mem::size_of::<u64>());
/// The number of [`FORGET`].
pub const IOCTL_FORGET: u32 = plain_number(FORGET);
/// The number of [`PORTS`].
pub const IOCTL_PORTS: u32 = write_number(PORTS, core::mem::size_of::<Ports>());
/// The number of [`TRACEPOINTS`].
pub const IOCTL_TRACEPOINTS: u32 = write_number(TRACEPOINTS, core::mem::size_of::<Tracepoints>());
