// SPDX-License-Identifier: BSD-3-Clause
//! Runs one command in a virtual machine of its own: first file system, machine, watch over it, outcome.
//!
//! The command's output and its status come through virtio ports, the kernel's messages through the serial port: they
//! cannot mix, binary output stays as it is, and a panic is seen although nothing in the guest can report it.

mod cpio;
mod initramfs;
mod console;
mod machine;
mod dump;
pub mod inside;
mod watch;
mod kvm;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use kvm::accelerator;
pub use watch::run;

/// The command, and its machine.
#[derive(Clone)]
pub struct Guest {
    /// The kernel to boot.
    pub image: PathBuf,
    /// Modules of the kernel without which it cannot reach the host, in the order in which they are loaded.
    pub first: Vec<PathBuf>,
    /// Method of executing the guest's instructions.
    pub accelerator: Accelerator,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory: u32,
    /// Words for the kernel's command line, in addition to those that every guest has.
    pub append: String,
    /// An ACPI table, in addition to the machine's own.
    pub acpi_table: Option<PathBuf>,
    /// A socket for QEMU's monitor.
    pub monitor: Option<PathBuf>,
    /// A file for the kernel's messages.
    pub console: Option<PathBuf>,
    /// File for its memory if its kernel panics.
    pub dump: Vec<PathBuf>,
    /// True if memory is reserved for a kernel that runs when its own panics: image and initramfs are in `second` of
    /// the share, and CMD runs there again.
    pub second: bool,
    /// True if it may boot again, with its memory as it was: CMD runs again then.
    pub reboot: bool,
    /// A guest of this one, which CMD boots by `inside/run` in the share; see [`inside`].
    pub inside: Option<Box<Guest>>,
    /// Its end of each cable to another guest, and that guest's: sockets.
    pub cables: Vec<(PathBuf, PathBuf)>,
    /// Bytes of a disk of the guest's own, /dev/vda, empty at the start; 0 for none.
    pub disk: u64,
    /// The host's folder at /mnt/share.
    pub share: PathBuf,
    /// The module to load before CMD.
    pub load: Option<PathBuf>,
    /// The module to load first of all, in the first file system, and its parameters.
    pub early: Option<(PathBuf, String)>,
    /// Variables of CMD's environment, in addition to the few that init sets.
    pub variables: Vec<(&'static str, OsString)>,
    /// CMD and its arguments.
    pub command: Vec<OsString>,
    /// CPU time of the host from the machine's start to CMD's end.
    pub timeout: Duration,
}

impl Guest {
    /// True if its kernel is a distribution's own: ours need no module for their first file system.
    fn is_stock(&self) -> bool {
        !self.first.is_empty()
    }
}

/// [`Accelerator::Paced`] by default: an instruction takes 2^3 ns, which is about its time on the host; so a second in
/// which the guest is busy takes about one.
pub const PACE: &str = "3";

/// Methods of executing the guest's instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accelerator {
    /// By the host's CPU.
    Kvm,
    /// Translated, a thread for each virtual CPU.
    Tcg,
    /// Translated, all virtual CPUs by one thread: for kernels without the patch by which QEMU's many threads see code
    /// that the kernel patches.
    Interleaved,
    /// Translated, and counted: the guest's clock advances by one nanosecond per instruction.
    Counted,
    /// The same with several CPUs in turn, 2 to the power of `shift` nanoseconds per instruction, and a clock that
    /// continues while all of them sleep.
    Paced {
        /// [`PACE`], or more, where the guest waits busily for its time to go by.
        shift: u8,
    },
}
