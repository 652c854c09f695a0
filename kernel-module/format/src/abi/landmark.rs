// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Data that the module keeps in memory for the reader of a memory image of a crashed machine: the description of the
//! trace, and the addresses of its blocks.
//!
//! The landmark is one page, and begins with [`MAGIC`] and its own physical address. So a reader that knows nothing of
//! the kernel checks the start of every page, and does not mistake a copy of a landmark for one. All other addresses
//! are virtual. They can be followed, since the landmark has the upper half of the kernel's top page table; for the
//! memory of modules that half is the same in all processes and never changes.
//!
//! Memory that outlives a reboot has a landmark of its own at its start, which begins with [`RESERVED`] and leads only
//! to this memory: to the blocks, and to a [`Sighting`] of each CPU in place of its state.

use core::mem::offset_of;

use super::command::{Info, Moment};

/// First bytes of a landmark. The last is the version of its layout.
pub const MAGIC: [u8; 16] = *b"KUtraceLandmark2";

/// First bytes of the landmark of memory that outlives a reboot.
pub const RESERVED: [u8; 16] = *b"KUtraceReserved1";

/// Bytes of a page; a landmark is aligned to a page.
pub const PAGE: usize = 4096;

/// Mark a of a kernel that panics: `panic` in base 40.
pub const PANIC: u32 = 8_278_456;

/// The page.
#[repr(C, align(4096))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landmark {
    /// [`MAGIC`], or zero while there is no recorder.
    pub magic: [u8; 16],
    /// The machine, as the kernel knows it.
    pub machine: Machine,
    /// The state of the recorder after the last command that changed it. Values that change in between are zero:
    /// losses, refusals and blocks taken are where the addresses below lead.
    pub info: Info,
    /// When the kernel panicked; zero if it has not.
    pub panic: Moment,
    /// Address of the first block.
    pub blocks: u64,
    /// Address of the count of blocks taken since the reset: u64.
    pub blocks_taken: u64,
    /// The offsets of the fields of a CPU's state.
    pub fields: Fields,
    /// When the CPUs were sighted last; zero if they are not.
    pub sighted: Moment,
    /// Where the data that programs record is.
    pub programs: Programs,
}

/// The machine.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Physical address of the landmark.
    pub physical: u64,
    /// Levels of the page tables: 4 or 5; 0 if there are none, since all addresses are in one piece of memory, which
    /// begins with the landmark: at the address that is the first of `tables`.
    pub levels: u64,
    /// The bits of an entry of a page table that are a physical address.
    pub mask: u64,
    /// Entries 256 to 511 of the top table.
    pub tables: [u64; 256],
    /// Address of the table of each CPU's offset, u64 each.
    pub offsets: u64,
    /// The address to which a CPU's offset is added to get the address of its state.
    pub states: u64,
    /// The kernel's release and version, a blank between, NUL-padded.
    pub kernel: [u8; 136],
    /// The name of the host, NUL-padded.
    pub host: [u8; 72],
    /// The model of the first CPU, NUL-padded.
    pub model: [u8; 64],
}

/// Offsets of the fields of a CPU's state, in bytes from its start. The state of an impossible CPU has an address other
/// than its own in `this`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Its own address: u64.
    pub this: u32,
    /// Address of the next free word, in the block that is being filled; not a multiple of 4 if none is: u64.
    pub position: u32,
    /// Claims under way: u32.
    pub depth: u32,
    /// Events lost: u64.
    pub lost: u32,
    /// Nonzero if the CPU was offline when recording began: u8.
    pub gone_at_start: u32,
    /// Names that were refused: u64.
    pub refused_names: u32,
    /// Marks that were refused: u64.
    pub refused_marks: u32,
    /// The counter when the position was read: u64; 0 if it is the state itself, whose position is that of the end.
    pub seen: u32,
}

/// Where the data that programs record is. A list is doubly linked, and its head is one of its links: two addresses of
/// links, that of the next first. A process has a list of its grants.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// Address of the head of the list of processes, in the order of their serial numbers; 0 if nothing is known of
    /// programs, as in memory that outlives a reboot.
    pub processes: u64,
    /// Address of the [`Program`](super::programs::Program) of those that got nothing.
    pub others: u64,
    /// The offsets of the fields of a process.
    pub process: Process,
    /// The offsets of the fields of a grant.
    pub grant: Grant,
    /// 0.
    pub reserved: u32,
}

impl Programs {
    /// Nothing is known of programs.
    pub const NONE: Programs = Programs {
        processes: 0,
        others: 0,
        process: Process { list: 0, told: 0, count: 0, grants: 0 },
        grant: Grant { list: 0, offset: 0, bytes: 0, tid: 0, sequence: 0, tsc: 0, frames: 0 },
        reserved: 0,
    };
}

/// Offsets of the fields of a process, in bytes from its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its link in the list of processes.
    pub list: u32,
    /// Its [`Program`](super::programs::Program), of which serial number, process, name and refusals are valid.
    pub told: u32,
    /// Its number of grants: u32.
    pub count: u32,
    /// The head of the list of these.
    pub grants: u32,
}

/// Offsets of the fields of a grant, in bytes from its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Its link in the list of its process.
    pub list: u32,
    /// Its start in the area: u32. That also determines whether it has names or words.
    pub offset: u32,
    /// Bytes: u32.
    pub bytes: u32,
    /// The thread: u32.
    pub tid: u32,
    /// Its number among all of the process: u64.
    pub sequence: u32,
    /// TSC when it was granted: u64.
    pub tsc: u32,
    /// The physical address of each page, in pages: u64 each.
    pub frames: u32,
}

/// The last known position of a CPU, written periodically because its state does not outlive a reboot.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Its own address.
    pub this: u64,
    /// Address of the next free word; 0 while this is written.
    pub position: u64,
    /// The counter when that was read.
    pub seen: u64,
    /// Events lost.
    pub lost: u64,
    /// Names that were refused.
    pub refused_names: u64,
    /// Marks that were refused.
    pub refused_marks: u64,
    /// Claims under way.
    pub depth: u32,
    /// 1 if the CPU was offline when recording began, else 0.
    pub gone_at_start: u32,
    /// Zero.
    pub reserved: u64,
}

/// The offsets of the fields of a [`Sighting`].
pub const SIGHTING: Fields = Fields {
    this: offset_of!(Sighting, this) as u32,
    position: offset_of!(Sighting, position) as u32,
    depth: offset_of!(Sighting, depth) as u32,
    lost: offset_of!(Sighting, lost) as u32,
    gone_at_start: offset_of!(Sighting, gone_at_start) as u32,
    refused_names: offset_of!(Sighting, refused_names) as u32,
    refused_marks: offset_of!(Sighting, refused_marks) as u32,
    seen: offset_of!(Sighting, seen) as u32,
};

const _: () = assert!(core::mem::size_of::<Landmark>() == PAGE && core::mem::size_of::<Sighting>() == 64);
// The layout of user/area.h.
const _: () = assert!(core::mem::size_of::<Programs>() == 64);
