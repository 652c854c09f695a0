// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The file around the blocks: header, sections, names.
//!
//! ```text
//! | header 256 | section NAME | section BLOK | ... |
//!
//! section:  0 tag [4]   4 crc32 u32   8 payload bytes u64   16 items u64   24 zero u64   32 payload
//! ```
//!
//! All numbers are little-endian. The header's checksum covers the header with the checksum field zero, a
//! section's covers its payload; the `BLOK` section has none (0), since each block carries its own. Sections
//! a reader does not know are skipped by their size.
//!
//! A stream has several `BLOK` sections, with `TIME` between, and others after them up to `STOP`.
//!
//! The payload of `NAME` is a run of records: kind u16, text bytes u16, number u32, second number u32, then
//! the text, UTF-8, not terminated.

use crate::abi::command::{Moment, NOTE_MUTE, NOTE_SLEEP, NOTE_UNSTABLE};
use crate::capability::Unseen;

/// First eight bytes of a raw file of format 5.
pub const MAGIC: [u8; 8] = *b"KUtrace5";
/// Bytes of the file header.
pub const HEADER_BYTES: usize = 256;
/// Bytes of a section's header.
pub const SECTION_BYTES: usize = 32;
/// Byte offset of the header's checksum.
pub const CRC_AT: usize = 12;
/// Section tag: names.
pub const NAMES: [u8; 4] = *b"NAME";
/// Section tag: readings of the kernel's counters; see [`crate::reading`].
pub const COUNTERS: [u8; 4] = *b"KCNT";
/// Section tag: events that one process recorded into memory of its own: see [`crate::abi::programs`] and
/// docs/format.md.
pub const PROGRAM: [u8; 4] = *b"PROG";
/// Section tag: programs that were refused, and how often, because they inserted faster than the recorder takes it: for
/// each [`REFUSED_BYTES`], those of [`crate::abi::programs::Refused`].
pub const REFUSED: [u8; 4] = *b"RATE";
/// Bytes of a record of [`REFUSED`].
pub const REFUSED_BYTES: usize = 32;
/// Section tag: blocks of [`crate::abi::block::BYTES`], ordered by begin time.
pub const BLOCKS: [u8; 4] = *b"BLOK";

/// Section tag, in a stream: one moment on three clocks, up to which blocks were written as far as they were full; and
/// a counter, u64: every event before that is in the blocks so far.
pub const MOMENT: [u8; 4] = *b"TIME";
/// Section tag, in a stream: its end, with the file header as it is known then.
pub const STOP: [u8; 4] = *b"STOP";

/// First eight bytes of a file with the traces of several machines.
pub const MACHINES_MAGIC: [u8; 8] = *b"KUtraceM";
/// Section tag, of such a file: the machines, as JSON.
pub const MACHINES: [u8; 4] = *b"MACH";
/// Section tag, of such a file: the whole trace of one machine.
pub const TRACE: [u8; 4] = *b"TRAC";

/// [`Header::flags`]: recorded in wrap mode.
pub const FLAG_WRAP: u32 = 1;
/// [`Header::flags`]: older blocks were overwritten.
pub const FLAG_WRAPPED: u32 = 2;
/// [`Header::flags`]: the blocks carry counter bytes, with IPC codes.
pub const FLAG_IPC: u32 = 4;
/// [`Header::flags`]: the blocks carry counter bytes, with LLC codes.
pub const FLAG_LLC: u32 = 8;

/// [`Header::flags`]: a stream, written while it was recorded: sections follow each other as they come.
pub const FLAG_STREAM: u32 = 128;
/// [`Header::flags`]: the trace continues that of the file before: no CPU is known before its first block.
pub const FLAG_CONTINUES: u32 = 256;
/// [`Header::flags`]: the next file continues it: no CPU is known after its last block.
pub const FLAG_CONTINUED: u32 = 512;

/// [`Header::flags`]: the kernel found after the start that the TSC is not stable, so times may be wrong.
pub const FLAG_UNSTABLE: u32 = NOTE_UNSTABLE;
/// [`Header::flags`]: the trace ended because the machine was about to sleep: suspend or hibernation.
pub const FLAG_SLEEP: u32 = NOTE_SLEEP;
/// [`Header::flags`]: a CPU took no interrupt when the trace was to end: its last block ends where it was last seen.
pub const FLAG_MUTE: u32 = NOTE_MUTE;

/// The file header, decoded. Field order is file order.
///
/// ```text
/// byte  0 magic [8]   8 bytes u32   12 crc32 u32
///      16 flags u32  20 shift u32   24 tsc_hz u64
///      32 cpus u32   36 block bytes u32   40 blocks u64   48 lost u64
///      56 start: tsc, realtime ns, monotonic ns   80 stop: the same
///     104 uuid [16] 120 boot id [16]  136 refused names u64  144 refused marks u64
///     152 unseen u64  160 zero to 256
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// `FLAG_*` bits.
    pub flags: u32,
    /// The counter is `TSC >> shift`.
    pub shift: u32,
    /// TSC rate as the kernel calibrated it, Hz.
    pub tsc_hz: u64,
    /// Number of possible CPUs.
    pub cpus: u32,
    /// Bytes of one block.
    pub block_bytes: u32,
    /// Blocks in the file.
    pub blocks: u64,
    /// Events lost, all CPUs.
    pub lost: u64,
    /// When tracing started.
    pub start: Moment,
    /// When tracing stopped.
    pub stop: Moment,
    /// Identity of this trace.
    pub uuid: [u8; 16],
    /// The kernel's boot id.
    pub boot_id: [u8; 16],
    /// Names that programs gave and that were refused, since there were too many.
    pub refused_names: u64,
    /// The same for their marks and other events.
    pub refused_marks: u64,
    /// The capabilities that the source of the events lacks.
    pub unseen: Unseen,
}

/// Bytes of a moment in a file.
pub const MOMENT_BYTES: usize = 24;

/// The bytes of a moment.
pub fn moment_to_bytes(moment: &Moment) -> [u8; MOMENT_BYTES] {
    let mut bytes = [0; MOMENT_BYTES];
    let mut out = Put { bytes: &mut bytes, at: 0 };
    out.moment(moment);
    bytes
}

/// The moment of these bytes.
pub fn moment_from_bytes(bytes: &[u8; MOMENT_BYTES]) -> Moment {
    moment_at(bytes, 0)
}

/// The header of a section, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The kind of payload.
    pub tag: [u8; 4],
    /// CRC-32 of the payload, 0 for [`BLOCKS`].
    pub crc32: u32,
    /// Bytes of the payload.
    pub bytes: u64,
    /// Records in the payload.
    pub items: u64,
}

/// Second number of a [`NameKind::Cpu`]: it was offline at the start.
pub const CPU_OFFLINE: u32 = 1;
/// It may go without its timer tick while it runs a thread (`nohz_full`).
pub const CPU_TICKLESS: u32 = 2;

/// Second number of a [`NameKind::File`]: the descriptor was this file when the recording began.
pub const FILE_AT_START: u32 = 1 << 30;
/// It was when the file was written.
pub const FILE_AT_END: u32 = 1 << 31;

/// The kind of a name record; `number` and `second` below are the record's two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum NameKind {
    /// A thread alive at the start: number is its id, second its thread group.
    Task = 2,
    /// A trap vector.
    Trap = 4,
    /// An interrupt vector; second is the CPU it is so named on plus one, 0 for every CPU.
    Irq = 5,
    /// A 64-bit system call number.
    Syscall = 8,
    /// A 32-bit system call number.
    Syscall32 = 12,
    /// This machine is a guest: the text is the hypervisor, `kvm` or `other`.
    Hypervisor = 9,
    /// A virtual CPU of a guest that this machine runs: number is its thread, second its number in the guest. The text
    /// is [`crate::vcpu::Vcpu`]'s.
    Vcpu = 10,
    /// An open file: number is the process, second its descriptor, with [`FILE_AT_START`] and [`FILE_AT_END`]; the text
    /// is its path.
    File = 11,
    /// An errno value, positive.
    Errno = 14,
    /// A softirq number.
    Softirq = 15,
    /// The kernel's release and version.
    Kernel = 0x102,
    /// The CPU model.
    CpuModel = 0x103,
    /// The host name.
    Host = 0x104,
    /// A CPU: second is [`CPU_OFFLINE`] and [`CPU_TICKLESS`].
    Cpu = 0x105,
    /// A function of the kernel: number is the low half of the address where it starts, second the high one. Of those
    /// that have none, every sample is of one before it.
    Symbol = 0x106,
    /// A part of a program's file that a process has in its memory and runs: number is the process, second only
    /// distinguishes its parts. docs/format.md describes the text.
    Map = 0x107,
    /// The control group of a process: number is its first thread; or of another thread that is in another one.
    Cgroup = 0x10c,
    /// The path of a control group: number is the low half of its id.
    CgroupPath = 0x10e,
    /// A tracepoint that was chosen: number is its place among these, the text its description (docs/format.md).
    Tracepoint = 0x10f,
}

impl NameKind {
    /// The kind of this number, if it is one.
    pub const fn from_number(number: u16) -> Option<NameKind> {
        Some(match number {
            2 => NameKind::Task,
            4 => NameKind::Trap,
            5 => NameKind::Irq,
            8 => NameKind::Syscall,
            9 => NameKind::Hypervisor,
            10 => NameKind::Vcpu,
            11 => NameKind::File,
            12 => NameKind::Syscall32,
            14 => NameKind::Errno,
            15 => NameKind::Softirq,
            0x102 => NameKind::Kernel,
            0x103 => NameKind::CpuModel,
            0x104 => NameKind::Host,
            0x105 => NameKind::Cpu,
            0x106 => NameKind::Symbol,
            0x107 => NameKind::Map,
            0x10c => NameKind::Cgroup,
            0x10e => NameKind::CgroupPath,
            0x10f => NameKind::Tracepoint,
            _ => return None,
        })
    }
}

/// Bytes before the text of a name record.
pub const NAME_BYTES: usize = 12;

/// One name record, borrowed from the section's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// Kind number; see [`NameKind::from_number`].
    pub kind: u16,
    /// The number of what is named.
    pub number: u32,
    /// A second number, by kind.
    pub second: u32,
    /// The text, as found.
    pub text: &'a [u8],
}

impl Header {
    /// The 256 bytes of this header, checksum field zero.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut out = Put { bytes: &mut bytes, at: 0 };
        out.put(&MAGIC);
        out.put(&(HEADER_BYTES as u32).to_le_bytes());
        out.put(&[0; 4]);
        out.put(&self.flags.to_le_bytes());
        out.put(&self.shift.to_le_bytes());
        out.put(&self.tsc_hz.to_le_bytes());
        out.put(&self.cpus.to_le_bytes());
        out.put(&self.block_bytes.to_le_bytes());
        out.put(&self.blocks.to_le_bytes());
        out.put(&self.lost.to_le_bytes());
        for moment in [self.start, self.stop] {
            out.moment(&moment);
        }
        out.put(&self.uuid);
        out.put(&self.boot_id);
        out.put(&self.refused_names.to_le_bytes());
        out.put(&self.refused_marks.to_le_bytes());
        out.put(&self.unseen.0.to_le_bytes());
        bytes
    }

    /// Reads a header; `None` if the magic or the size is another. The caller compares the checksum.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        if bytes[..8] != MAGIC || u32_at(bytes, 8) as usize != HEADER_BYTES {
            return None;
        }
        Some(Header {
            flags: u32_at(bytes, 16),
            shift: u32_at(bytes, 20),
            tsc_hz: u64_at(bytes, 24),
            cpus: u32_at(bytes, 32),
            block_bytes: u32_at(bytes, 36),
            blocks: u64_at(bytes, 40),
            lost: u64_at(bytes, 48),
            start: moment_at(bytes, 56),
            stop: moment_at(bytes, 80),
            uuid: array_at(bytes, 104),
            boot_id: array_at(bytes, 120),
            refused_names: u64_at(bytes, 136),
            refused_marks: u64_at(bytes, 144),
            unseen: Unseen(u64_at(bytes, 152)),
        })
    }
}

impl Section {
    /// The 32 bytes of this section header.
    pub fn to_bytes(&self) -> [u8; SECTION_BYTES] {
        let mut bytes = [0; SECTION_BYTES];
        let mut out = Put { bytes: &mut bytes, at: 0 };
        out.put(&self.tag);
        out.put(&self.crc32.to_le_bytes());
        out.put(&self.bytes.to_le_bytes());
        out.put(&self.items.to_le_bytes());
        bytes
    }

    /// Reads a section header. Every content is valid.
    pub fn from_bytes(bytes: &[u8; SECTION_BYTES]) -> Section {
        Section { tag: array_at(bytes, 0), crc32: u32_at(bytes, 4), bytes: u64_at(bytes, 8), items: u64_at(bytes, 16) }
    }
}

impl<'a> Name<'a> {
    /// The 12 bytes before the text. The caller cuts text of 64 KiB or more.
    pub fn to_bytes(&self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        let mut out = Put { bytes: &mut bytes, at: 0 };
        out.put(&self.kind.to_le_bytes());
        out.put(&(self.text.len() as u16).to_le_bytes());
        out.put(&self.number.to_le_bytes());
        out.put(&self.second.to_le_bytes());
        bytes
    }

    /// Reads the record at the start of `payload` and what follows it; `None` if it is cut short.
    pub fn split(payload: &'a [u8]) -> Option<(Name<'a>, &'a [u8])> {
        let head = payload.get(..NAME_BYTES)?;
        let len = u16::from_le_bytes([head[2], head[3]]) as usize;
        let text = payload.get(NAME_BYTES..NAME_BYTES + len)?;
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let name = Name { kind, number: u32_at(head, 4), second: u32_at(head, 8), text };
        Some((name, &payload[NAME_BYTES + len..]))
    }
}

struct Put<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Put<'_> {
    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    fn moment(&mut self, moment: &Moment) {
        self.put(&moment.tsc.to_le_bytes());
        self.put(&moment.realtime_ns.to_le_bytes());
        self.put(&moment.monotonic_ns.to_le_bytes());
    }
}

fn moment_at(bytes: &[u8], at: usize) -> Moment {
    Moment { tsc: u64_at(bytes, at), realtime_ns: u64_at(bytes, at + 8), monotonic_ns: u64_at(bytes, at + 16) }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
