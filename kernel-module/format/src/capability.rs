// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Capability: an ability of a source of events. Readers check for a capability, and never for a version.
//!
//! A file has what its source lacks, as bits of [`crate::file::Header::unseen`]; for formats without that field,
//! [`Unseen::of_format`] has it.

/// Declares the capabilities: bit, name, and what a trace without it cannot show.
macro_rules! capabilities {
    ($($(#[doc = $doc:literal])* $bit:literal $name:ident $unseen:literal;)*) => {
        /// An ability of a source; the number is the bit of [`Unseen`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Capability { $($(#[doc = $doc])* $name = $bit,)* }

        impl Capability {
            /// All, by bit.
            pub const ALL: &[Capability] = &[$(Capability::$name),*];

            /// Describes what a trace whose source lacks this cannot show.
            pub const fn unseen(self) -> &'static str {
                match self { $(Capability::$name => $unseen,)* }
            }
        }
    };
}

capabilities! {
    /// Every call, interrupt and scheduling has its end: nesting is certain.
    0 Returns "the ends of some calls and interrupts";
    /// Return values have 32 bits, with their sign; else 16, without.
    1 Values "return values of more than 16 bits";
    /// The trace shows where events of a CPU are missing, and since when each CPU was recorded.
    2 Losses "where events are missing";
    /// For a thread that is first seen: whether it is one of the kernel, and which call it is in.
    3 Tasks "which threads are the kernel's, and in which call one is when it is first seen";
    /// A new thread is woken by an event of its own.
    4 Births "the wakeups of new threads";
    /// The end of a thread is an event of its own.
    5 Exits "the ends of threads";
    /// Every interrupt, by its vector: so silence is meaningful.
    6 Interrupts "some interrupts, and so where a CPU stood still";
    /// The times when a control group has used up its CPU quota.
    7 Quotas "waits for a CPU quota";
    /// The waker of each thread.
    8 Wakeups "wakeups";
    /// The times when a CPU is idle.
    9 Idle "when CPUs are idle";
    /// Page faults and other exceptions.
    10 Faults "faults";
    /// The start and end of the scheduler; else only a switch is seen.
    11 Scheduler "time in the scheduler";
    /// The start and end of exceptions other than page faults; else those are points, if they result in a signal.
    12 Exceptions "exceptions other than page faults, but those of which a signal comes, and no end of any";
    /// The end of page faults in the kernel's own code; else those are points.
    13 KernelFaults "how long page faults in the kernel take";
    /// Entry and exit code counts as the kernel's; else it counts as the code that was interrupted, for interrupts as
    /// for calls that a tracer or seccomp checks first.
    14 EntryCode "the kernel's entry and exit code, which counts as what was interrupted";
    /// The sender of an interrupt to another CPU.
    15 Senders "who sends interrupts to other CPUs";
    /// The low-power state that a CPU is in.
    16 IdleStates "in which low-power states idle CPUs are";
    /// Measured frequencies.
    17 Frequency "the frequency of CPUs";
    /// Packets that the kernel sends and receives.
    18 Packets "network packets";
    /// Every NMI, from where it starts.
    19 Nmis "NMIs that no handler claims, and when an NMI begins";
    /// Machine checks.
    20 MachineChecks "machine checks";
    /// Calls that seccomp or a tracer denies.
    21 Denied "system calls that seccomp or a tracer denies";
    /// Stops of a waiting thread: stopped, frozen, traced, or held up for memory.
    22 Stops "whether a thread that waits is stopped, frozen, traced or held up for memory";
    /// The end of page faults of programs; else those are points.
    23 ProgramFaults "how long page faults of programs take";
    /// System calls.
    24 Calls "system calls";
    /// Softirqs.
    25 Softirqs "softirqs";
    /// The order of two events within a microsecond, and the time between them.
    26 Moments "what is shorter than a microsecond";
    /// The time that the host of this machine takes from its CPUs, if it has a host.
    27 Steal "time that the host takes from this machine's CPUs";
}

/// The capabilities that a source lacks. An unknown bit is that of a newer recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen(pub u64);

impl Unseen {
    /// The capabilities that the original's recorder, of formats 3 and 4, lacks.
    pub const ORIGINAL: Unseen = Unseen(0xff | 1 << Capability::Steal as u64);

    /// The capabilities that every source of tracepoints lacks, on kernels without the hooks.
    pub const TRACEPOINTS: Unseen = Unseen::of(&[
        Capability::Quotas,
        Capability::Exceptions,
        Capability::KernelFaults,
        Capability::EntryCode,
        Capability::Nmis,
        Capability::MachineChecks,
        Capability::Denied,
        Capability::Stops,
    ]);

    /// The capabilities that such a source lacks on some kernels and machines.
    pub const SOME_TRACEPOINTS: Unseen = Unseen::of(&[
        Capability::Interrupts,
        Capability::Scheduler,
        Capability::Senders,
        Capability::IdleStates,
        Capability::Frequency,
        Capability::Packets,
        Capability::ProgramFaults,
        Capability::Steal,
    ]);

    /// These capabilities.
    pub const fn of(lacking: &[Capability]) -> Unseen {
        let (mut bits, mut n) = (0, 0);
        while n < lacking.len() {
            bits |= 1 << lacking[n] as u64;
            n += 1;
        }
        Unseen(bits)
    }

    /// The capabilities that sources lack whose files cannot state it themselves.
    pub const fn of_format(format: u32) -> Unseen {
        match format {
            5.. => Unseen(0),
            _ => Unseen::ORIGINAL,
        }
    }

    /// Returns whether the text of events from such a file is in order of time; readers sort the original's.
    pub const fn orders_text(format: u32) -> bool {
        matches!(format, 5..)
    }

    /// These, and others.
    pub const fn and(self, others: Unseen) -> Unseen {
        Unseen(self.0 | others.0)
    }

    /// The capability that [`Capability::unseen`] describes by this text.
    pub fn from_text(text: &str) -> Option<Unseen> {
        let found = Capability::ALL.iter().find(|capability| capability.unseen() == text);
        found.map(|&capability| Unseen::of(&[capability]))
    }

    /// Returns whether this is among them.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u64 & 1 != 0
    }

    /// Returns what the trace cannot show for lack of them, in order of their bits.
    pub fn texts(self) -> impl Iterator<Item = &'static str> {
        Capability::ALL.iter().filter(move |&&one| self.has(one)).map(|one| one.unseen())
    }

    /// The bits of unknown capabilities.
    pub const fn unknown(self) -> u64 {
        self.0 >> Capability::ALL.len() << Capability::ALL.len()
    }
}
