// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Event numbers and their arguments: all from the one table of `table.rs`, except the values of arguments.

/// The argument words of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// None.
    Nothing,
    /// The whole counter, low half first.
    Counter,
    /// pid, tgid, a [`TaskState`], 16 bytes of name.
    Task,
    /// The kind of name, the number of what is named, [`NAME_BYTES`] of text.
    Name,
    /// A number, by the event.
    Number,
    /// A pid.
    Thread,
    /// An [`Ipi`].
    Ipi,
    /// A [`Throttle`].
    Quota,
    /// A [`crate::abi::packet::FlowPacket`].
    Packet,
    /// pid, and the low 32 bits of the id of its control group.
    Member,
    /// An address, low half first.
    Address,
    /// A [`crate::abi::word::Call`].
    Call,
    /// The low 32 bits of a return value.
    Value,
    /// One word of a tracepoint's record, as its format describes it.
    Record1,
    /// Three words of it.
    Record3,
    /// Seven.
    Record7,
    /// Fifteen.
    Record15,
    /// Thirty-one, of a record that may be longer.
    Record31,
}

impl Shape {
    /// The number of words.
    pub const fn words(self) -> usize {
        match self {
            Shape::Nothing => 0,
            Shape::Number | Shape::Thread | Shape::Ipi | Shape::Quota | Shape::Call | Shape::Value => 1,
            Shape::Counter | Shape::Address | Shape::Member => 2,
            Shape::Packet => 4,
            Shape::Task => TASK_WORDS,
            Shape::Name => NAME_WORDS,
            Shape::Record1 => 1,
            Shape::Record3 => 3,
            Shape::Record7 => 7,
            Shape::Record15 => 15,
            Shape::Record31 => RECORD_WORDS_MAX,
        }
    }
}

/// The origin of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The recorder, on its own.
    Recorder,
    /// A hook of the kernel.
    Kernel,
    /// A program, by system call 1023.
    Program,
    /// The tools; no trace has it.
    Tools,
    /// The original KUtrace only.
    Original,
}

/// Makes the constants of the table, and the functions [`shape`], [`may_insert`] and [`may_name`].
macro_rules! constants {
    (block { $($block:tt)* } everywhere { $($everywhere:tt)* } line { $($line:tt)* }
        span { $($span:tt)* } arc { $($arc:tt)* } original { $($original:tt)* }) => {
        numbers! { u16 worded $($block)* $($everywhere)* }
        shapes! { $($block)* $($everywhere)* }
        names! { $($line)* }

        /// The numbers in the text and in spans; see docs/format.md.
        ///
        /// ```text
        /// 001..1ff names  200..281 points   400 trap  500 irq  5ff softirq  800 c00 system call  9ff dff scheduler
        ///                                   600       700      7ff          a00 e00              bff fff  returns
        /// ```
        pub mod line {
            numbers! { u32 worded $($everywhere)* }
            numbers! { u32 wordless $($line)* $($span)* }
            numbers! { i32 wordless $($arc)* }
        }

        /// The numbers that are in files of the original only.
        pub mod original {
            numbers! { u32 wordless $($original)* }
        }
    };
}

macro_rules! numbers {
    ($type:ident worded $($(#[$doc:meta])* $first:literal $name:ident $(to $last:literal $last_name:ident)?
        $text:literal $shape:ident $origin:ident $kind:ident;)*) => {
        numbers! { $type wordless $($(#[$doc])* $first $name $(to $last $last_name)? $text $origin $kind;)* }
    };
    ($type:ident wordless $($(#[$doc:meta])* $first:literal $name:ident $(to $last:literal $last_name:ident)?
        $text:literal $origin:ident $kind:ident;)*) => {
        $(
            $(#[$doc])*
            pub const $name: $type = $first;
            $(
                #[doc = concat!("The last that is [`", stringify!($name), "`].")]
                pub const $last_name: $type = $last;
            )?
        )*
    };
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $first:literal $name:ident $(to $last:literal $last_name:ident)?
        $text:literal $shape:ident $origin:ident $kind:ident;)*) => {
        /// The argument words of an entry of this event; `None` for a number no recorder writes.
        #[inline(always)]
        pub const fn shape(event: u16) -> Option<Shape> {
            match event {
                $($first $(..=$last)? => Some(Shape::$shape),)*
                _ => None,
            }
        }

        /// Returns whether a program may insert this event.
        pub const fn may_insert(event: u64) -> bool {
            match event {
                $($first $(..=$last)? => matches!(Origin::$origin, Origin::Program),)*
                _ => false,
            }
        }
    };
}

macro_rules! names {
    ($($(#[$doc:meta])* $first:literal $name:ident $(to $last:literal $last_name:ident)?
        $text:literal $origin:ident $kind:ident;)*) => {
        /// Returns whether a program may give names of this kind.
        pub const fn may_name(kind: u64) -> bool {
            match kind {
                $($first $(..=$last)? => matches!(Origin::$origin, Origin::Program),)*
                _ => false,
            }
        }
    };
}

event_table!(constants);

/// Makes constants of the values that an argument can have, and the list of them: constant, value, name.
macro_rules! values {
    ($(#[$list_doc:meta])* $list:ident $($(#[$doc:meta])* $value:literal $constant:ident $name:literal;)*) => {
        $($(#[$doc])* pub const $constant: u32 = $value;)*

        $(#[$list_doc])*
        pub const $list: &[(&str, u32, &str)] = &[$((stringify!($constant), $value, $name),)*];
    };
}

values! {
    /// The values of [`WAIT`].
    WAITS
    /// [`WAIT`]: frozen, by a control group or before the machine is suspended.
    1 WAIT_FROZEN "frozen";
    /// [`WAIT`]: stopped, by job control.
    2 WAIT_STOPPED "stopped";
    /// [`WAIT`]: stopped for its tracer.
    3 WAIT_TRACED "traced";
    /// [`WAIT`]: held back, because its control group is above its memory limit.
    4 WAIT_MEMORY "memory_limit";
    /// [`WAIT`]: memory is to be reclaimed first.
    5 WAIT_RECLAIM "reclaim";
    /// [`WAIT`]: held back, because too many pages are to be written.
    6 WAIT_DIRTY "dirty_pages";
    /// [`WAIT`]: a supervisor decides on its system call (seccomp).
    7 WAIT_SUPERVISOR "supervisor";
}

values! {
    /// The bits of [`EXIT_WORK`].
    WORKS
    /// [`EXIT_WORK`]: signals.
    1 WORK_SIGNAL "signals";
    /// [`EXIT_WORK`]: task work, as the last close of a file, and what control groups hold a thread back for.
    2 WORK_RESUME "task work";
    /// [`EXIT_WORK`]: user probes.
    4 WORK_PROBE "user probes";
}

values! {
    /// The values of [`MWAIT`] that are not hints of that instruction.
    IDLES
    /// [`MWAIT`] argument of an idle CPU that does not sleep: it polls for work.
    253 IDLE_POLL "polling";
    /// [`MWAIT`] argument of the `hlt` instruction.
    254 IDLE_HLT "hlt";
    /// [`MWAIT`] argument of idling through an I/O port.
    255 IDLE_IO "I/O port";
}

/// Number of system calls that [`SYSCALL`] can name.
pub const SYSCALLS: u16 = SYSCALL_LAST - SYSCALL + 1;
/// Argument words of [`TASK`].
pub const TASK_WORDS: usize = 7;
/// Argument words of [`NAME`].
pub const NAME_WORDS: usize = 2 + NAME_BYTES / 4;
/// Bytes of text in [`NAME`].
pub const NAME_BYTES: usize = 56;
/// Most words of a tracepoint's record.
pub const RECORD_WORDS_MAX: usize = 31;
/// Words of the longest entry, its own included.
pub const ENTRY_WORDS_MAX: usize = 1 + RECORD_WORDS_MAX;
/// Words a [`FULL_TIME`] entry takes, its own included.
pub const FULL_TIME_WORDS: usize = 3;

/// The bits of a name's number that are its length in eight-byte words, where programs insert it and in the original's
/// files.
pub const NAME_LENGTH: u32 = 0x0f0;
/// First argument word of a [`NAME`] that the kernel gave to a [`Vector`].
pub const NAME_VECTOR: u32 = line::IRQ_NAME;

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

/// The argument of [`RPC_REQUEST`] and the events of RPCs after it: the RPC's id in the low half, 0 for none, above it
/// the size of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rpc(pub u32);

impl Rpc {
    /// The RPC.
    pub const fn id(self) -> u32 {
        self.0 & 0xffff
    }

    /// Ten times the logarithm to base 2 of the bytes of its message.
    pub const fn size_code(self) -> u8 {
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
    /// Low half when the task is in no system call, or the kernel does not know.
    pub const NO_CALL: u16 = 0xffff;
    /// Low half when the task is a kernel thread.
    pub const KERNEL: u16 = 0xfffe;
    /// Added to the number of a 32-bit system call.
    pub const COMPAT: u16 = 0x400;
    /// The low half of the last 32-bit system call.
    pub const COMPAT_LAST: u16 = Self::COMPAT + (SYSCALL32_LAST - SYSCALL32);

    /// Returns whether the task is a kernel thread.
    pub const fn is_kernel(self) -> bool {
        self.0 as u16 == Self::KERNEL
    }

    /// The number of the system call the task is in, if any; plus [`TaskState::COMPAT`] for a 32-bit one.
    pub const fn open_call(self) -> Option<u16> {
        match self.0 as u16 {
            nr @ (0..SYSCALLS | Self::COMPAT..=Self::COMPAT_LAST) => Some(nr),
            _ => None,
        }
    }

    /// The control group.
    pub const fn group(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// The number of argument words that follow an entry of this event; `None` for a number no recorder writes.
#[inline(always)]
pub const fn argument_words(event: u16) -> Option<usize> {
    match shape(event) {
        Some(shape) => Some(shape.words()),
        None => None,
    }
}
