// SPDX-License-Identifier: BSD-3-Clause
//! Reasons of waits: what a thread blocked in decides, and its waker where that leaves more than one answer; both by
//! event number. In the original's traces, which may lack what a thread blocked in, the waker decides first.

use kutrace_format::abi::event as abi;

use super::abi::TracedAbi;
use super::call::{Call, CallKind, Special};
use super::stack::Frame;
use crate::event::number::{self, Level};
use crate::event::work::Work;

/// Makes [`Reason`], its names and the list of its values.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident $letter:literal $name:literal;)*) => {
        /// Reason of a wait; each has a letter, which is the original's where it has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $reason,)*
            /// Not known either: a letter that only files of others have.
            Other(u8),
        }

        impl Reason {
            /// All reasons, by letter.
            pub const ALL: &[Reason] = &[$(Reason::$reason,)*];

            /// The reason of this letter.
            pub const fn of(letter: u8) -> Reason {
                match letter {
                    $($letter => Reason::$reason,)*
                    letter => Reason::Other(letter),
                }
            }

            /// Its letter.
            pub const fn letter(self) -> u8 {
                match self {
                    $(Reason::$reason => $letter,)*
                    Reason::Other(letter) => letter,
                }
            }

            /// The name of the wait.
            pub fn name(self) -> &'static str {
                match self {
                    $(Reason::$reason => $name,)*
                    Reason::Other(_) => Reason::Unknown.name(),
                }
            }
        }
    };
}

reasons! {
    /// A CPU: the thread could run, but others did.
    Cpu b'c' "wait_cpu";
    /// A disk.
    Disk b'd' "wait_disk";
    /// The end of a freeze of its control group.
    Frozen b'f' "wait_frozen";
    /// Work for its guest: the virtual CPU is halted.
    Guest b'g' "wait_guest";
    /// The end of a stop by a signal.
    Stop b'h' "wait_stopped";
    /// A CPU that was idle: the thread could run, and the CPU took its time.
    Idle b'i' "wait_idle";
    /// Another task, or, for a thread of the kernel, work.
    Task b'k' "wait_task";
    /// A lock.
    Lock b'l' "wait_lock";
    /// Memory.
    Memory b'm' "wait_mem";
    /// The network.
    Net b'n' "wait_net";
    /// A pipe, file or socket that another thread uses.
    Pipe b'p' "wait_pipe";
    /// The CPU quota of its control group.
    Quota b'q' "wait_quota";
    /// An RCU grace period.
    Rcu b'r' "wait_rcu";
    /// The scheduler's own balancing.
    Sched b's' "wait_sche";
    /// Time to pass.
    Time b't' "wait_time";
    /// A CPU that stood still: the thread could run.
    Stall b'v' "wait_stall";
    /// Its tracer.
    Trace b'x' "wait_traced";
    /// Not known.
    Unknown b'z' "wait_unk";
}

impl Reason {
    /// True if the thread could run during the wait: it waited for a CPU only.
    pub const fn could_run(self) -> bool {
        matches!(self, Reason::Cpu | Reason::Idle | Reason::Quota | Reason::Stall)
    }

    /// The event number of the wait.
    pub fn event(self) -> i32 {
        number::WAIT_A as i32 + i32::from(self.letter() - b'a')
    }

    /// The reason with this name; unknown for any other name.
    pub fn named(name: &str) -> Reason {
        Reason::ALL.iter().copied().find(|reason| reason.name() == name).unwrap_or(Reason::Unknown)
    }

    /// The reason of a code of [`number::WAIT`].
    pub fn told(code: u32) -> Option<Reason> {
        Some(match code {
            abi::WAIT_FROZEN => Reason::Frozen,
            abi::WAIT_STOPPED => Reason::Stop,
            abi::WAIT_TRACED => Reason::Trace,
            abi::WAIT_MEMORY | abi::WAIT_RECLAIM => Reason::Memory,
            abi::WAIT_DIRTY => Reason::Disk,
            abi::WAIT_SUPERVISOR => Reason::Task,
            _ => return None,
        })
    }
}

/// Source of a wakeup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A timer.
    Timer,
    /// Packets.
    Net,
    /// A disk that finished.
    Disk,
    /// Another device.
    Device,
    /// The end of an RCU grace period.
    Rcu,
    /// Another softirq.
    Softirq,
    /// A thread that ends.
    End,
    /// A thread in a page fault.
    Fault,
    /// A thread in a system call.
    Call(Work),
    /// A thread that opens a file, and has waited for the disk.
    Lookup,
    /// A program on its way out of the kernel.
    Program,
    /// A thread of the kernel.
    Worker,
    /// A thread of the kernel that was itself woken by a disk.
    DiskWorker,
    /// The scheduler, on behalf of the thread that it switches from.
    Scheduler,
    /// Not known.
    Unknown,
}

/// State of a thread when it fell asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asleep {
    /// A thread of the kernel with a task of its own.
    Kernel,
    /// A thread of the kernel that does work for others.
    Worker,
    /// A program, on the way out of the kernel.
    Out,
    /// A page fault.
    Fault,
    /// A system call.
    Call(Work),
    /// Something else.
    Unknown,
}

/// Reason of the sleep of a thread in this state, ended by this source.
pub fn why(abi: &TracedAbi, asleep: Asleep, by: By) -> Reason {
    match asleep {
        _ if by == By::Unknown => reason_from_sleeper(abi, asleep),
        Asleep::Kernel => of_kernel(by),
        Asleep::Worker => of_worker(by),
        Asleep::Out => on_the_way_out(abi, by),
        Asleep::Fault => in_memory(by),
        Asleep::Call(call) => in_call(abi, call, by),
        Asleep::Unknown => Reason::Unknown,
    }
}

/// The reason that the purpose of a worker or call gives on its own, whatever the waker.
fn reason_from_sleeper(abi: &TracedAbi, asleep: Asleep) -> Reason {
    let call = match asleep {
        Asleep::Worker => return Reason::Task,
        Asleep::Call(call) => call,
        _ => return Reason::Unknown,
    };
    match abi.call(call).work {
        CallKind::Sleep => Reason::Time,
        CallKind::Sync => Reason::Disk,
        CallKind::Lock => Reason::Lock,
        CallKind::Task => Reason::Task,
        _ => Reason::Unknown,
    }
}

/// A thread of the kernel waits for time, its own disk, or work.
fn of_kernel(by: By) -> Reason {
    match by {
        By::Timer => Reason::Time,
        By::Disk | By::DiskWorker | By::Device => Reason::Disk,
        _ => Reason::Task,
    }
}

/// A worker waits for work, which a timer or a device may have, or for a disk.
fn of_worker(by: By) -> Reason {
    match by {
        By::Disk => Reason::Disk,
        _ => Reason::Task,
    }
}

/// The kernel had to wait before it could let the program continue: for what the last close of a file has to write, or
/// until another thread allows it. The only other timed sleep there is that of a thread above its memory limit.
fn on_the_way_out(abi: &TracedAbi, by: By) -> Reason {
    match by {
        By::Disk | By::Device | By::DiskWorker | By::Worker => Reason::Disk,
        By::Timer => Reason::Memory,
        By::Net => Reason::Net,
        By::Rcu => Reason::Rcu,
        By::End => Reason::Task,
        By::Call(call) => match abi.call(call) {
            Call { special: Some(Special::Signal), .. } => Reason::Stop,
            Call { special: Some(Special::Ptrace), .. } => Reason::Trace,
            Call { work: CallKind::Bytes, .. } => Reason::Frozen,
            _ => Reason::Unknown,
        },
        _ => Reason::Unknown,
    }
}

/// The thread waits for pages to be read, or for the address space, which others have.
fn in_memory(by: By) -> Reason {
    match by {
        By::Disk | By::Device | By::DiskWorker | By::Worker => Reason::Disk,
        By::Net => Reason::Net,
        By::Rcu => Reason::Rcu,
        _ => Reason::Memory,
    }
}

fn in_call(abi: &TracedAbi, call: Work, by: By) -> Reason {
    let Call { work, special } = abi.call(call);
    match work {
        CallKind::Sleep => return Reason::Time,
        CallKind::Sync => return Reason::Disk,
        _ => {}
    }
    // Waits that any call may have on its way.
    match (by, special) {
        (By::Rcu, _) => return Reason::Rcu,
        // Any source wakes it by a signal, and the call waited for that.
        (_, Some(Special::Wait)) => {}
        (By::Disk, _) => return Reason::Disk,
        (By::Timer, special) if special != Some(Special::FileLock) => return Reason::Time,
        (By::Net, special) if !matches!(special, Some(Special::FileLock | Special::Exec | Special::End)) => {
            return Reason::Net;
        }
        _ => {}
    }
    match special {
        Some(Special::FileLock) => Reason::Lock,
        Some(Special::Exec | Special::End | Special::Fork) => match by {
            By::Device | By::DiskWorker | By::Worker => Reason::Disk,
            _ => Reason::Task,
        },
        Some(Special::Close) => match by {
            By::Device | By::DiskWorker | By::Worker => Reason::Disk,
            By::End => Reason::Task,
            _ => Reason::Lock,
        },
        Some(Special::Open) => match by {
            By::Device | By::DiskWorker | By::Worker => Reason::Disk,
            By::Call(call) => match abi.call(call).special {
                // The waker opened the other end of a pipe, or is the file system.
                Some(Special::Open | Special::Write | Special::Ring) => Reason::Pipe,
                _ => Reason::Lock,
            },
            // Both looked for the same name, or the waker released a lock of the kernel.
            By::Lookup | By::Fault | By::Program => Reason::Lock,
            _ => Reason::Pipe,
        },
        Some(Special::Connect) if by == By::Device => Reason::Disk,
        Some(Special::Ring) => match by {
            By::Device | By::DiskWorker => Reason::Disk,
            By::Call(call) if matches!(abi.call(call).work, CallKind::Bytes | CallKind::Socket) => Reason::Pipe,
            _ => Reason::Task,
        },
        _ => by_work(abi, work, by),
    }
}

fn by_work(abi: &TracedAbi, work: CallKind, by: By) -> Reason {
    match (work, by) {
        // A thread that joins another waits for its end in futex.
        (CallKind::Lock, By::End) => Reason::Task,
        (CallKind::Lock, _) => Reason::Lock,
        (CallKind::Task, By::Call(call)) if abi.call(call).special == Some(Special::Ptrace) => Reason::Trace,
        (CallKind::Task, _) => Reason::Task,
        (CallKind::Memory, by) => in_memory(by),
        (CallKind::Files, By::Device | By::DiskWorker | By::Worker | By::Softirq | By::Scheduler) => Reason::Disk,
        // Another thread had the files.
        (CallKind::Files, _) => Reason::Lock,
        (CallKind::Bytes, By::Device | By::DiskWorker) => Reason::Disk,
        // A worker does the rest of a terminal's or a pipe's work.
        (CallKind::Bytes, _) => Reason::Pipe,
        (CallKind::Socket, By::Device | By::Worker | By::DiskWorker | By::Softirq) => Reason::Net,
        (CallKind::Socket, _) => Reason::Pipe,
        // A descriptor may stand for a task.
        (CallKind::Poll, By::End) => Reason::Task,
        (CallKind::Poll, By::Call(call)) if abi.call(call).work == CallKind::Task => Reason::Task,
        (CallKind::Poll, By::Call(_) | By::Lookup | By::Worker | By::DiskWorker) => Reason::Pipe,
        (CallKind::Other, By::Worker | By::DiskWorker | By::End) => Reason::Task,
        (CallKind::Other, By::Call(call)) => by_call(abi.call(call).work),
        (CallKind::Other, By::Fault) => Reason::Memory,
        _ => Reason::Unknown,
    }
}

/// Reason of a wait that a call of this kind ends, if the kind shows it.
fn by_call(work: CallKind) -> Reason {
    match work {
        CallKind::Lock => Reason::Lock,
        CallKind::Bytes | CallKind::Socket => Reason::Pipe,
        CallKind::Task => Reason::Task,
        CallKind::Memory => Reason::Memory,
        CallKind::Sync => Reason::Disk,
        CallKind::Poll | CallKind::Sleep | CallKind::Files | CallKind::Other => Reason::Unknown,
    }
}

/// Source of a wakeup in the original's traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A thread, in a system call or a fault.
    Thread,
    /// A thread of the kernel: no other thread wakes any outside of a call.
    Worker,
    /// An interrupt or softirq.
    Device,
}

/// Reason of a wait that ends in this context of one of the original's traces, if the context shows it.
pub fn of_waker(abi: &TracedAbi, waker: Frame) -> Reason {
    let Some(work) = waker.work() else { return Reason::Unknown };
    match (work.level(), work) {
        (Level::Softirq, _) => match waker.arg {
            0 | 6 => Reason::Task,
            1 | 8 | 9 => Reason::Time,
            2 | 3 => Reason::Net,
            4 | 5 => Reason::Disk,
            7 => Reason::Sched,
            _ => Reason::Unknown,
        },
        (Level::Irq, irq) if abi.is_timer(irq) => Reason::Time,
        (Level::Trap, trap) if abi.is_page_fault(trap) => Reason::Memory,
        (Level::Syscall, call) => by_call(abi.call(call).work),
        _ => Reason::Unknown,
    }
}

/// Reason of a wait in one of the original's traces, from what the thread blocked in, where its waker's context does
/// not show it. A thread of the kernel blocks in nothing known: it waits for another to give it work.
pub fn of_sleeper(abi: &TracedAbi, sleeper: Option<Frame>, waker: Waker) -> Reason {
    let Some(sleeper) = sleeper else {
        return if waker == Waker::Device { Reason::Unknown } else { Reason::Task };
    };
    let work = match sleeper.work() {
        Some(trap) if abi.is_page_fault(trap) => CallKind::Memory,
        Some(call) if call.level() == Level::Syscall => abi.call(call).work,
        _ => return Reason::Unknown,
    };
    match (work, waker) {
        (CallKind::Lock, _) => Reason::Lock,
        (CallKind::Sleep, _) => Reason::Time,
        (CallKind::Task, _) => Reason::Task,
        (CallKind::Sync, _) => Reason::Disk,
        (CallKind::Socket | CallKind::Bytes | CallKind::Poll, Waker::Thread) => Reason::Pipe,
        (CallKind::Socket, _) => Reason::Net,
        // A worker does the rest of a terminal's or a pipe's work.
        (CallKind::Bytes | CallKind::Poll, Waker::Worker) => Reason::Pipe,
        (CallKind::Bytes, Waker::Device) => Reason::Disk,
        // Another thread had the files, or the address space.
        (CallKind::Files, Waker::Thread) => Reason::Lock,
        (CallKind::Memory, Waker::Thread) => Reason::Memory,
        (CallKind::Files | CallKind::Memory, _) => Reason::Disk,
        (CallKind::Other, Waker::Worker) => Reason::Task,
        (CallKind::Poll | CallKind::Other, _) => Reason::Unknown,
    }
}
