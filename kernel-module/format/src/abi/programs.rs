// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events that programs record into memory of their own, and how that memory is granted and collected.
//!
//! ```text
//! area of a process:   | 0 lost u64, names end|next u64, serial u32, zero to 64, names ... | units of a page | runs |
//! word:                bits 0-31 low TSC | 32-34 kind | 35 open | 36-39 payload words | 40-63 name
//! name, at 8 * number: 0 bytes of text u16, bit 15 set while it is written | 2 text ...   padded to 8 bytes
//! text of a name:      name, at most 119 bytes | for each field: 0, type, name
//! payload:             the number of an async part, if the kind has one | the fields, each from a word on
//! grant in a file:     0 offset u32  4 bytes u32  8 tid u32  12 kind u32  16 sequence u64  24 tsc u64
//! ```
//!
//! A process maps its area once, and has it until it ends; a child of a fork gets one of its own in that place. While a
//! trace is recorded, a thread that reads an address of it is granted the unit of that address: a page below
//! [`RUNS_AT`], else [`RUN_BYTES`]. The first page is that of the process: a thread that reads it attaches the process
//! to the trace, and finds the number of the attachment there. Where nothing is granted, [`NO_ROOM`] or [`LATER`] is
//! read. Pages are zero at first, and stay until the trace is gone, or they are taken away by [`TAKEN`] or in wrap
//! mode.
//!
//! A thread writes words into a grant from its start to its end; a word is never 0. The first and each word that comes
//! 2^31 counts or more after the last full time follows a [`FULL_TIME`] with the whole TSC as payload. A word with
//! payload is written open, then the payload, then closed. The grants, their threads and their times come from the
//! kernel; everything else comes from the program.

/// The device that any process may open. Mapped shared from 0 on, [`AREA_BYTES`] long, it is the area of the process;
/// from there on, a page whose first word is 0 while nothing is recorded, else the number of the trace: ENODEV on a kernel
/// with hooks that the recorder uses, which has a page of its own, and system call 1023.
pub const DEVICE: &core::ffi::CStr = c"/dev/kutrace_programs";

/// On /dev/kutrace: sets how much memory programs may have in the trace that the next reset begins.
/// `_IOW(TYPE, 0x43, Quota)`. EBUSY while another holds the recorder, EINVAL for more than [`QUOTA_MAX`] each, E2BIG
/// for more in all than the caller may have.
pub const QUOTA: u8 = 0x43;
/// On /dev/kutrace: returns the process that attached next after the caller's [`Program::serial`], and last, if there
/// are any, those that got nothing: process 0 with [`OTHERS`], whose `refused` is the number of times.
/// `_IOWR(TYPE, 0x44, Program)`.
pub const PROGRAM: u8 = 0x44;
/// On /dev/kutrace: returns the process that was refused something and comes next after the caller's
/// [`Refused::place`], and last, if there are any, those whose number is no longer known: process 0.
/// `_IOWR(TYPE, 0x45, Refused)`.
pub const REFUSED: u8 = 0x45;
/// On /dev/kutrace, for a stream: frees memory whose content is in the file, so that it can be granted again.
/// `_IOW(TYPE, 0x46, Taken)`. EINVAL if the trace is not a stream, ESTALE if the memory is no longer there, EBUSY while
/// a thread may write there, or another holds the recorder.
pub const TAKEN: u8 = 0x46;

/// On /dev/kutrace: copies bytes of a grant. `_IOW(TYPE, 0x48, Copy)`. ESTALE if the grant is no longer there.
pub const COPY: u8 = 0x48;
/// Does what system call 1023 does, if the recorder uses no hooks. ENOTTY if it does. `_IOWR(TYPE, 0x47, Call)`.
pub const CALL: u8 = 0x47;

/// [`Program::serial`] of those that got nothing.
pub const OTHERS: u32 = u32::MAX;

/// [`Granted::kind`]: words of a thread.
pub const KIND_WORDS: u32 = 0;
/// [`Granted::kind`]: names, of all threads of the process.
pub const KIND_NAMES: u32 = 1;
/// In [`Granted::kind`]: words into which nothing writes any more.
pub const KIND_DONE: u32 = 1 << 31;

/// A call of a program: as in [`super::user`], except that all words are here.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The command, from the caller.
    pub command: u64,
    /// The answer: a value, or a negative errno.
    pub answer: i64,
    /// From the caller.
    pub words: [u64; super::user::WORDS],
}

/// The memory that programs may have, bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Each process, up to [`QUOTA_MAX`].
    pub process: u64,
    /// All together.
    pub all: u64,
}

/// A process that attached.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The number of its attachment: from the caller, that of the one before; 0 if there is no other.
    pub serial: u32,
    /// The process, by the number it has for the kernel.
    pub tgid: u32,
    /// The number of [`Granted`] records: from the caller, how many have room; then how many there are.
    pub grants: u32,
    /// 1 once it has ended: nothing more is written.
    pub ended: u32,
    /// From the caller: the address to write these to.
    pub address: u64,
    /// The number of grants that it was refused.
    pub refused: u64,
    /// Its name when it attached, NUL-padded.
    pub comm: [u8; 16],
}

/// The bytes to copy.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    /// The [`Program::serial`].
    pub serial: u32,
    /// Their start in the area.
    pub offset: u32,
    /// [`Granted::sequence`].
    pub sequence: u64,
    /// The address to write them to.
    pub address: u64,
    /// Their number, no more than the grant has from there on.
    pub bytes: u64,
}

/// The part of a process that was read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Its [`Program::serial`].
    pub serial: u32,
    /// [`Granted::offset`].
    pub offset: u32,
    /// [`Granted::sequence`] of a grant that was [`KIND_DONE`], 0 for all that an ended process had.
    pub sequence: u64,
}

/// A process whose marks, names or memory for marks were refused, because it asked for them faster than it or all
/// programs of a CPU may.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Its place in the list: 0 from the caller at first, and 0 to the caller if there is no other.
    pub place: u32,
    /// The process, by the number it has for the kernel.
    pub tgid: u32,
    /// The number of times.
    pub times: u64,
    /// Its name when that began, NUL-padded.
    pub comm: [u8; 16],
}

/// A grant as the kernel knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Its start in the area.
    pub offset: u32,
    /// Bytes.
    pub bytes: u32,
    /// The thread, by the number it has for the kernel.
    pub tid: u32,
    /// `KIND_*`, with [`KIND_DONE`] where it applies.
    pub kind: u32,
    /// Its number among all of the process; a unit that is granted again gets another.
    pub sequence: u64,
    /// TSC when it was granted.
    pub tsc: u64,
}

/// Bytes of addresses that an area takes: for each sort of units twice as many as a process can be granted, so that
/// units that were taken away are reused late.
pub const AREA_BYTES: u64 = 64 << 20;
/// Most bytes that a process can be granted.
pub const QUOTA_MAX: u64 = 16 << 20;
/// Bytes of a page.
pub const PAGE_BYTES: u32 = 4096;
/// Start of the units of words: below are pages of names.
pub const WORDS_AT: u32 = 4 << 20;
/// Start of the runs: below are units of a page.
pub const RUNS_AT: u32 = 32 << 20;
/// Bytes of a run.
pub const RUN_BYTES: u32 = 64 << 10;

/// Read where nothing is granted, nor will be in this trace.
pub const NO_ROOM: u64 = u64::MAX;
/// Read where nothing is granted, but may be some time later, at another address.
pub const LATER: u64 = u64::MAX - 1;

/// Byte offset in an area of the number of words that the program could not record.
pub const LOST_AT: u32 = 0;
/// Byte offset of the place of the next name (low half) and the end of its page (high half).
pub const NEXT_NAME_AT: u32 = 8;
/// Byte offset of the number of the attachment, u32, 0 if there is none.
pub const SERIAL_AT: u32 = 16;
/// Byte offset of the first name.
pub const NAMES_AT: u32 = 64;
/// Most bytes of a name without its fields.
pub const NAME_MAX: usize = 119;
/// Most bytes of a name with its fields.
pub const TEXT_MAX: usize = 1022;
/// In the first two bytes of a name: it is being written.
pub const NAME_OPEN: u16 = 1 << 15;

/// A moment, with the fields of its name.
pub const MARK: u32 = 1;
/// A part of the program begins, with the fields of its name.
pub const BEGIN: u32 = 2;
/// The innermost part with that name ends.
pub const END: u32 = 3;
/// A value: its payload, signed.
pub const VALUE: u32 = 4;
/// A part that may end in another thread begins: its number, then the fields of its name.
pub const ASYNC_BEGIN: u32 = 5;
/// The part with that name and number ends.
pub const ASYNC_END: u32 = 6;
/// The whole TSC is its payload; without a name.
pub const FULL_TIME: u32 = 7;

/// Most words of payload.
pub const PAYLOAD_MAX: usize = 15;
/// A field: an unsigned number, in a word.
pub const UNSIGNED: u8 = b'u';
/// A field: a signed number, in a word.
pub const SIGNED: u8 = b'i';
/// A field: a double, in a word.
pub const FLOAT: u8 = b'f';
/// A field: 0 or 1, in a word.
pub const BOOL: u8 = b'b';
/// A field: a number to be shown in base 16, in a word.
pub const HEX: u8 = b'x';
/// A field: a text. Its first byte is the number of bytes that follow, with [`TEXT_CUT`]; the rest of the last word is
/// zero.
pub const TEXT: u8 = b's';
/// A field that is always the same: its name is `name=value`, and it has no payload.
pub const CONSTANT: u8 = b'=';
/// In the first byte of a text: it was longer.
pub const TEXT_CUT: u8 = 0x80;

/// A word whose payload is being written.
pub const OPEN: u64 = 1 << 35;
/// Counts after which a word needs a new full time before it.
pub const SPAN: u64 = 1 << 31;

/// A word without its time: kind, payload words, name.
#[inline(always)]
pub const fn word(kind: u32, payload: usize, name: u32) -> u64 {
    (kind as u64) << 32 | (payload as u64) << 36 | (name as u64) << 40
}

/// The kind in a word.
pub const fn kind(word: u64) -> u32 {
    (word >> 32) as u32 & 7
}

/// Words of payload that follow a word.
pub const fn payload(word: u64) -> usize {
    (word >> 36) as usize & 15
}

/// The name's number in a word.
pub const fn name(word: u64) -> u32 {
    (word >> 40) as u32
}

/// The number of [`CALL`].
pub const IOCTL_CALL: u32 = both(CALL, core::mem::size_of::<Call>());
/// The number of [`COPY`].
pub const IOCTL_COPY: u32 = super::command::write_number(COPY, core::mem::size_of::<Copy>());
/// The number of [`QUOTA`].
pub const IOCTL_QUOTA: u32 = super::command::write_number(QUOTA, core::mem::size_of::<Quota>());
/// The number of [`PROGRAM`].
pub const IOCTL_PROGRAM: u32 = both(PROGRAM, core::mem::size_of::<Program>());
/// The number of [`REFUSED`].
pub const IOCTL_REFUSED: u32 = both(REFUSED, core::mem::size_of::<Refused>());
/// The number of [`TAKEN`].
pub const IOCTL_TAKEN: u32 = super::command::write_number(TAKEN, core::mem::size_of::<Taken>());

const fn both(command: u8, size: usize) -> u32 {
    super::command::exchange_number(command, size)
}
