// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The table of `abi/table.rs` as data, for tools.

mod read;

pub use read::{Event, Work};

use crate::abi::event::{line, Origin, Shape, NAME_BYTES};

/// A row of the table: an event, or a range of them.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The place where its numbers have this meaning.
    pub place: Place,
    /// The number.
    pub first: i32,
    /// The last number, the same if there is one only.
    pub last: i32,
    /// The name of the constant.
    pub constant: &'static str,
    /// The name of the last number's constant, in a range.
    pub last_constant: Option<&'static str>,
    /// The name of an event that nothing else names; in a range followed by its place there.
    pub name: &'static str,
    /// Its argument words, if it has some.
    pub shape: Option<Shape>,
    /// Its origin.
    pub origin: Origin,
    /// Its kind.
    pub kind: Kind,
}

/// The places where a number has the meaning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In blocks only.
    Block,
    /// In blocks, event lines and spans.
    Everywhere,
    /// In event lines and spans.
    Line,
    /// In spans only.
    Span,
    /// In files of the original only.
    Original,
}

/// Makes [`Kind`] and the list of its values.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $constant:literal $name:literal;)*) => {
        /// The kind of an event or span, as the page sorts them: those up to [`Kind::Sched`] are execution, which never
        /// overlaps on a CPU.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds in their order: each with its name in the page's code, and that for people.
            pub const ALL: &[(Kind, &str, &str)] = &[$((Kind::$kind, $constant, $name),)*];
        }
    };
}

kinds! {
    /// Nothing runs.
    Idle "IDLE" "idle";
    /// Nothing runs, in a low-power state.
    LowPower "LOW_POWER" "idle, low power";
    /// The CPU leaves such a state.
    IdleExit "C_EXIT" "leaving idle";
    /// A thread in user mode.
    User "USER" "user";
    /// A virtual CPU runs its guest.
    Guest "GUEST" "guest";
    /// Time without a record.
    Lost "LOST" "lost";
    /// The CPU is offline.
    Offline "OFFLINE" "offline";
    /// The CPU stood still.
    Stalled "STALLED" "stood still";
    /// A system call.
    Syscall "SYSCALL" "system call";
    /// A trap.
    Trap "TRAP" "fault";
    /// An interrupt.
    Irq "IRQ" "interrupt";
    /// A softirq.
    Softirq "BH" "bottom half";
    /// A thread of the kernel, or work on the way out of it.
    Kernel "KERNEL" "kernel thread or exit work";
    /// The scheduler.
    Sched "SCHED" "scheduler";
    /// A thread waits.
    Wait "WAIT" "wait";
    /// From a wakeup to the run it leads to.
    Wakeup "WAKEUP" "wakeup";
    /// From an interrupt's sender to its arrival.
    Ipi "IPI" "IPI";
    /// A mark of a program.
    Mark "MARK" "mark";
    /// Something else at a point in time.
    Point "POINT" "event";
    /// A sample of a program counter.
    Sample "SAMPLE" "PC sample";
    /// A frequency.
    Frequency "FREQ" "frequency";
    /// Time that the host took.
    Steal "STEAL" "stolen";
    /// A lock that is held or waited for.
    Lock "LOCK" "lock";
    /// A thread turns to an RPC.
    Rpc "RPC" "RPC";
    /// A packet, or a message of a program.
    Packet "PACKET" "packet";
    /// A message of an RPC.
    Message "MESSAGE" "message";
    /// An RPC in a queue.
    Queue "QUEUE" "queue";
    /// The label of a row.
    Label "LABEL" "row label";
    /// A note of the original's viewer.
    Callout "CALLOUT" "callout";
    /// Nothing that is drawn.
    Other "OTHER" "annotation";
    /// The CPU runs another thread; the page takes it for an event.
    Switch "SWITCH" "switch";
    /// A name; the page does not see it.
    Name "NAME" "name";
}

/// The depth at which an activity nests; a call closes what cannot be below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// User code, and idle.
    User,
    /// A system call.
    Syscall,
    /// A trap.
    Trap,
    /// A softirq.
    Softirq,
    /// An interrupt.
    Irq,
    /// The scheduler.
    Sched,
}

/// The class of the number of an event line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A name.
    Name,
    /// The CPU runs another thread.
    Switch,
    /// Something happens at a point in time.
    Point,
    /// A call, or with a duration a call and its return.
    Call(Level),
    /// A return.
    Return(Level),
    /// Nothing recorded from here on.
    Lost,
    /// No event of a trace.
    Other,
}

/// The bit of a line's number that makes a call its return.
pub const RETURN_BIT: u32 = line::TRAP_RETURN - line::TRAP;

macro_rules! rows {
    (block { $($block:tt)* } everywhere { $($everywhere:tt)* } line { $($line:tt)* }
        span { $($span:tt)* } arc { $($arc:tt)* } original { $($original:tt)* }) => {
        const BLOCK: &[Row] = worded!(Block $($block)*);
        const EVERYWHERE: &[Row] = worded!(Everywhere $($everywhere)*);
        const LINE: &[Row] = wordless!(Line $($line)*);
        const SPAN: &[Row] = wordless!(Span $($span)*);
        const ARC: &[Row] = wordless!(Span $($arc)*);
        const ORIGINAL: &[Row] = wordless!(Original $($original)*);
        const TABLES: [&[Row]; 6] = [BLOCK, EVERYWHERE, LINE, SPAN, ARC, ORIGINAL];
    };
}

macro_rules! worded {
    ($place:ident $($(#[$doc:meta])* $first:literal $name:ident $(to $last:literal $last_name:ident)?
        $text:literal $shape:ident $origin:ident $kind:ident;)*) => {
        &[$(row!($place $first $name $(to $last $last_name)? $text (Some(Shape::$shape)) $origin $kind),)*]
    };
}

macro_rules! wordless {
    ($place:ident $($(#[$doc:meta])* $first:literal $name:ident $(to $last:literal $last_name:ident)?
        $text:literal $origin:ident $kind:ident;)*) => {
        &[$(row!($place $first $name $(to $last $last_name)? $text (None) $origin $kind),)*]
    };
}

macro_rules! row {
    ($place:ident $first:literal $name:ident $text:literal ($shape:expr) $origin:ident $kind:ident) => {
        Row {
            place: Place::$place,
            first: $first,
            last: $first,
            constant: stringify!($name),
            last_constant: None,
            name: $text,
            shape: $shape,
            origin: Origin::$origin,
            kind: Kind::$kind,
        }
    };
    ($place:ident $first:literal $name:ident to $last:literal $last_name:ident $text:literal ($shape:expr) $origin:ident
        $kind:ident) => {
        Row {
            last: $last,
            last_constant: Some(stringify!($last_name)),
            ..row!($place $first $name $text ($shape) $origin $kind)
        }
    };
}

event_table!(rows);

/// A field of the argument words of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Its form.
    pub form: Form,
}

/// The form of an argument. Numbers are little-endian; of those that share a word the first is lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number of this many bits.
    Unsigned(usize),
    /// A number of this many bits with a sign.
    Signed(usize),
    /// The whole counter.
    Counter,
    /// This many bytes of text, NUL-padded.
    Text(usize),
    /// A [`crate::abi::word::Call`].
    Call,
    /// This many words, which the trace itself describes.
    Words(usize),
}

impl Form {
    /// Its number of bits.
    pub const fn bits(self) -> usize {
        match self {
            Form::Unsigned(bits) | Form::Signed(bits) => bits,
            Form::Counter => 64,
            Form::Text(bytes) => 8 * bytes,
            Form::Call => 32,
            Form::Words(words) => 32 * words,
        }
    }
}

/// Makes a list of arguments: name, form.
macro_rules! arguments {
    ($($name:ident $form:ident $(($size:expr))?),*) => {
        &[$(Argument { name: stringify!($name), form: Form::$form $(($size))? }),*]
    };
}

impl Shape {
    /// The fields of the argument words, in order, without a gap.
    pub const fn arguments(self) -> &'static [Argument] {
        match self {
            Shape::Nothing => arguments![],
            Shape::Counter => arguments![now Counter],
            Shape::Task => {
                arguments![pid Unsigned(32), tgid Unsigned(32), call Unsigned(16), cgroup Unsigned(16), comm Text(16)]
            }
            Shape::Name => arguments![kind Unsigned(32), number Unsigned(32), called Text(NAME_BYTES)],
            Shape::Number => arguments![arg Unsigned(32)],
            Shape::Thread => arguments![pid Unsigned(32)],
            Shape::Ipi => arguments![cpu Unsigned(16), vector Unsigned(8), unused Unsigned(8)],
            Shape::Quota => arguments![cgroup Unsigned(20), cpu Unsigned(12)],
            Shape::Packet => arguments![
                flow Unsigned(32),
                to_port Unsigned(16),
                from_port Unsigned(16),
                bytes Unsigned(24),
                flags Unsigned(8),
                seq Unsigned(32)
            ],
            Shape::Member => arguments![pid Unsigned(32), cgroup Unsigned(32)],
            Shape::Address => arguments![pc Unsigned(64)],
            Shape::Call => arguments![call Call],
            Shape::Value => arguments![ret Signed(32)],
            Shape::Record1 => arguments![record Words(1)],
            Shape::Record3 => arguments![record Words(3)],
            Shape::Record7 => arguments![record Words(7)],
            Shape::Record15 => arguments![record Words(15)],
            Shape::Record31 => arguments![record Words(31)],
        }
    }
}

/// The arguments of every event fill its words.
const _: () = {
    let tables = [BLOCK, EVERYWHERE];
    let mut t = 0;
    while t < tables.len() {
        let mut n = 0;
        while n < tables[t].len() {
            if let Some(shape) = tables[t][n].shape {
                let (mut bits, mut a) = (0, 0);
                while a < shape.arguments().len() {
                    bits += shape.arguments()[a].form.bits();
                    a += 1;
                }
                assert!(bits == 32 * shape.words());
            }
            n += 1;
        }
        t += 1;
    }
};

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// Returns the row of an entry of a block.
pub fn of_entry(event: u16) -> Option<&'static Row> {
    find([BLOCK, EVERYWHERE], event.into())
}

/// Returns the row of an event line.
pub fn of_line(event: u32) -> Option<&'static Row> {
    find([LINE, EVERYWHERE], i32::try_from(event).ok()?)
}

fn find(tables: [&'static [Row]; 2], event: i32) -> Option<&'static Row> {
    tables.into_iter().flatten().find(|row| (row.first..=row.last).contains(&event))
}

/// Numbers of lines below this have their class in [`CLASSES`].
const CALLS_END: usize = line::SCHED_RETURN as usize + 1;
const CLASSES: &[Class; CALLS_END] = &classes();

/// The classes of all numbers of event lines, by the first row that has them: the last written.
const fn classes() -> [Class; CALLS_END] {
    let mut classes = [Class::Other; CALLS_END];
    let tables = [EVERYWHERE, LINE];
    let mut t = 0;
    while t < tables.len() {
        let mut n = tables[t].len();
        while n > 0 {
            n -= 1;
            let row = &tables[t][n];
            let mut event = row.first as usize;
            while event <= row.last as usize && event < CALLS_END {
                classes[event] = row.kind.class(event as u32);
                event += 1;
            }
        }
        t += 1;
    }
    classes
}

impl Kind {
    const fn class(self, event: u32) -> Class {
        let level = match self {
            Kind::Name => return Class::Name,
            Kind::Switch => return Class::Switch,
            Kind::Lost => return Class::Lost,
            Kind::Syscall => Level::Syscall,
            Kind::Trap => Level::Trap,
            Kind::Irq => Level::Irq,
            Kind::Softirq => Level::Softirq,
            Kind::Sched => Level::Sched,
            _ => return Class::Point,
        };
        match event & RETURN_BIT {
            0 => Class::Call(level),
            _ => Class::Return(level),
        }
    }
}

/// Returns the class of the event of a line.
#[inline]
pub const fn class(event: u32) -> Class {
    match event {
        line::LOST => Class::Lost,
        _ if (event as usize) < CALLS_END => CLASSES[event as usize],
        _ => Class::Other,
    }
}

/// The level of a call or return.
#[inline]
pub const fn level(event: u32) -> Level {
    match class(event) {
        Class::Call(level) | Class::Return(level) => level,
        _ => Level::User,
    }
}
