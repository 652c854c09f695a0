// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Event numbers, and how many argument words each takes.
//!
//! Numbers are the original KUtrace's wherever it has one; a few ranges it leaves free carry what four
//! bytes need: softirqs by number and system-call returns by value.

/// Nothing; fills the end of a block.
pub const NOP: u16 = 0x000;
/// The whole counter, two words, low half first. Bridges a gap of 2^20 counts or more.
pub const FULL_TIME: u16 = 0x001;
/// A task's identity: pid, tgid, state (see [`TaskState`]), then 16 bytes of name.
pub const TASK: u16 = 0x002;
/// A name: what it names, which one, then [`NAME_BYTES`] of text, NUL-padded. Programs give names (the first word is the
/// original's number of a name, its length digit 0), and the kernel tells what a [`Vector`] is called from here on: the
/// first word is [`NAME_VECTOR`], and an empty text means that it is for no device any more.
pub const NAME: u16 = 0x003;

/// First of the point events with one argument word.
pub const SPECIAL: u16 = 0x200;
/// The CPU switches to this pid.
pub const SWITCH: u16 = 0x200;
/// This pid is made runnable, by the running context.
pub const RUNNABLE: u16 = 0x206;
/// An inter-processor interrupt is sent, see [`Ipi`].
pub const IPI: u16 = 0x207;
/// The idle loop enters a low-power state: the mwait hint, or one of the `IDLE_*` values.
pub const MWAIT: u16 = 0x208;
/// The CPU's frequency since the tick before, MHz.
pub const FREQUENCY: u16 = 0x209;
/// First 32-bit user mark, text in base 40; `MARK_A + 1`, `+ 2` are marks b and c.
pub const MARK_A: u16 = 0x20a;
/// User mark with a number.
pub const MARK_D: u16 = 0x20d;
/// Last of the point events with one argument word.
pub const SPECIAL_LAST: u16 = 0x27f;

/// A packet that the filter takes is received: its [`crate::abi::packet::hash`].
pub const RX_PACKET: u16 = 0x214;
/// And sent.
pub const TX_PACKET: u16 = 0x215;
/// A store wakes the idle CPU in the argument, which watches that word.
pub const MONITOR_STORE: u16 = 0x21e;
/// Such a wait, by polling, ends.
pub const MONITOR_EXIT: u16 = 0x21f;
/// The running task ends: its exit code, as `wait` reports it.
pub const EXIT: u16 = 0x220;
/// A CPU's share of a control group may not run for now, because the group used up its quota or that of a group
/// above it; see [`Throttle`].
pub const THROTTLE: u16 = 0x223;
/// And may run again.
pub const UNTHROTTLE: u16 = 0x224;
/// The running thread is about to wait, and why: one of `WAIT_*`. It says so just before it enters the scheduler.
pub const WAIT: u16 = 0x225;
/// Work on the way out to user mode begins: the `WORK_*` bits of what there is to do.
pub const EXIT_WORK: u16 = 0x22a;
/// And ends.
pub const EXIT_WORK_RETURN: u16 = 0x22b;
/// This CPU goes offline: the last that it records. Its number.
pub const OFFLINE: u16 = 0x227;
/// This CPU comes online: the first that it records. Its number.
pub const ONLINE: u16 = 0x228;
/// A tick interrupted a program at this address: two words, low half first.
pub const PC_USER: u16 = 0x280;
/// The same of the kernel.
pub const PC_KERNEL: u16 = 0x281;

/// [`WAIT`]: frozen, by a control group or before the machine is suspended.
pub const WAIT_FROZEN: u32 = 1;
/// [`WAIT`]: stopped, by job control.
pub const WAIT_STOPPED: u32 = 2;
/// [`WAIT`]: stopped for who traces it.
pub const WAIT_TRACED: u32 = 3;
/// [`WAIT`]: held back, because its control group is above its memory limit.
pub const WAIT_MEMORY: u32 = 4;
/// [`WAIT`]: memory is to be reclaimed first.
pub const WAIT_RECLAIM: u32 = 5;
/// [`WAIT`]: held back, because too many pages are to be written.
pub const WAIT_DIRTY: u32 = 6;
/// [`WAIT`]: a supervisor decides on its system call (seccomp).
pub const WAIT_SUPERVISOR: u32 = 7;

/// [`EXIT_WORK`]: signals.
pub const WORK_SIGNAL: u32 = 1;
/// [`EXIT_WORK`]: task work, as the last close of a file, and what control groups hold a thread back for.
pub const WORK_RESUME: u32 = 2;
/// [`EXIT_WORK`]: user probes.
pub const WORK_PROBE: u32 = 4;

/// [`MWAIT`] argument of an idle CPU that does not sleep: it polls for work.
pub const IDLE_POLL: u32 = 253;
/// [`MWAIT`] argument of the `hlt` instruction.
pub const IDLE_HLT: u32 = 254;
/// [`MWAIT`] argument of idling through an I/O port.
pub const IDLE_IO: u32 = 255;

/// Softirq number n starts: `SOFTIRQ + n`, n below 16.
pub const SOFTIRQ: u16 = 0x300;
/// Softirq number n ends: `SOFTIRQ_RETURN + n`.
pub const SOFTIRQ_RETURN: u16 = 0x310;

/// Trap of vector n: `TRAP + n`.
pub const TRAP: u16 = 0x400;
/// Interrupt of vector n: `IRQ + n`.
pub const IRQ: u16 = 0x500;
/// Return from trap n: `TRAP_RETURN + n`.
pub const TRAP_RETURN: u16 = 0x600;
/// Return from interrupt n: `IRQ_RETURN + n`.
pub const IRQ_RETURN: u16 = 0x700;

/// 64-bit system call n below 512, with one [`crate::abi::word::Call`] word: `SYSCALL + n`.
pub const SYSCALL: u16 = 0x800;
/// A system call that is denied and whose number no call has; its return is [`OPEN_RETURN`] or [`SMALL_RETURN`].
pub const UNKNOWN_CALL: u16 = 0x9fe;
/// Return from system call n with the low 32 bits of its value: `SYSCALL_RETURN + n`.
pub const SYSCALL_RETURN: u16 = 0xa00;
/// Return from the task's open system call, with the low 32 bits of its value: of `rt_sigreturn`, whose number the
/// kernel has forgotten, and of 32-bit calls.
pub const OPEN_RETURN: u16 = 0xbff;
/// Return of a value v in -128..=127 from the task's open system call, no word: `SMALL_RETURN + 128 + v`.
pub const SMALL_RETURN: u16 = 0xc00;

/// The scheduler is entered.
pub const SCHED: u16 = 0xdff;
/// 32-bit system call n below 511, with one [`crate::abi::word::Call`] word: `SYSCALL32 + n`. Its return is
/// [`OPEN_RETURN`] or [`SMALL_RETURN`].
pub const SYSCALL32: u16 = 0xe00;
/// Last of the 32-bit system calls.
pub const SYSCALL32_LAST: u16 = 0xffe;
/// The scheduler is left.
pub const SCHED_RETURN: u16 = 0xfff;

/// Number of system calls that [`SYSCALL`] can name.
pub const SYSCALLS: u32 = 512;
/// Argument words of [`TASK`].
pub const TASK_WORDS: usize = 7;
/// Argument words of [`NAME`].
pub const NAME_WORDS: usize = 2 + NAME_BYTES / 4;
/// Bytes of text in [`NAME`].
pub const NAME_BYTES: usize = 56;
/// Words of the longest entry, its own included.
pub const ENTRY_WORDS_MAX: usize = 1 + NAME_WORDS;
/// Words a [`FULL_TIME`] entry takes, its own included.
pub const FULL_TIME_WORDS: usize = 3;

/// First argument word of a [`NAME`] that the kernel gave, of a [`Vector`].
pub const NAME_VECTOR: u32 = 5;

/// Second argument word of a [`NAME`] of a vector: the vector in the low half, the CPU that has it plus one above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector(pub u32);

impl Vector {
    /// The word of a vector of a CPU.
    pub const fn of(cpu: u32, vector: u32) -> Vector {
        Vector((cpu + 1) << 16 | vector & 0xffff)
    }

    /// The vector.
    pub const fn vector(self) -> u32 {
        self.0 & 0xffff
    }

    /// The CPU, if the word names one.
    pub const fn cpu(self) -> Option<u32> {
        (self.0 >> 16).checked_sub(1)
    }
}

/// The argument of [`IPI`]: the target CPU in the low half, above it the vector, 0 if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipi(pub u32);

impl Ipi {
    /// The CPU it is sent to.
    pub const fn cpu(self) -> u32 {
        self.0 & 0xffff
    }

    /// The vector it is sent with.
    pub const fn vector(self) -> u8 {
        (self.0 >> 16) as u8
    }
}

/// The argument of [`THROTTLE`] and [`UNTHROTTLE`]: the id of the control group (of its `cpu` controller) in the low
/// 20 bits, the CPU above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle(pub u32);

impl Throttle {
    /// The group; [`TaskState::group`] has the low 16 bits of it.
    pub const fn group(self) -> u32 {
        self.0 & 0xf_ffff
    }

    /// The CPU.
    pub const fn cpu(self) -> u32 {
        self.0 >> 20
    }
}

/// Third argument word of [`TASK`]: the open system call in the low half, above it the task's control group: the low 16
/// bits of the id of its `cpu` controller, 0 for the root, or where the kernel has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskState(pub u32);

impl TaskState {
    /// Low half when the task is in no system call, or the kernel cannot tell.
    pub const NO_CALL: u16 = 0xffff;
    /// Low half when the task is one of the kernel.
    pub const KERNEL: u16 = 0xfffe;
    /// What is added to the number of a 32-bit system call.
    pub const COMPAT: u16 = 0x400;

    /// Whether the task is one of the kernel.
    pub const fn is_kernel(self) -> bool {
        self.0 as u16 == Self::KERNEL
    }

    /// The number of the system call the task is in, if any; of a 32-bit one plus [`TaskState::COMPAT`].
    pub const fn open_call(self) -> Option<u16> {
        match self.0 as u16 {
            nr @ (0..0x200 | Self::COMPAT..0x5ff) => Some(nr),
            _ => None,
        }
    }

    /// The control group.
    pub const fn group(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// How many argument words follow an entry of this event; `None` for a number no recorder writes.
#[inline(always)]
pub const fn argument_words(event: u16) -> Option<usize> {
    match event {
        NOP => Some(0),
        FULL_TIME => Some(2),
        TASK => Some(TASK_WORDS),
        NAME => Some(NAME_WORDS),
        SPECIAL..=SPECIAL_LAST => Some(1),
        PC_USER | PC_KERNEL => Some(2),
        SOFTIRQ..=0x31f => Some(0),
        TRAP..=0x7ff => Some(0),
        SYSCALL..=0xbff => Some(1),
        SMALL_RETURN..=0xcff => Some(0),
        SYSCALL32..=SYSCALL32_LAST => Some(1),
        SCHED | SCHED_RETURN => Some(0),
        _ => None,
    }
}
