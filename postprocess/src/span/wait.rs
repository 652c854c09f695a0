// SPDX-License-Identifier: BSD-3-Clause
//! Why a thread waited: what it blocked in decides, and who woke it where that leaves more than one answer; both by
//! event number. Of the original's traces, in which what a thread blocked in may be missing, it is the other way round.

use kutrace_format::abi::event as abi;

use super::abi::TracedAbi;
use super::call::{Call, CallKind, Special};
use super::stack::Frame;
use crate::event::number::{self, Level};
use crate::event::work::Work;

/// Makes [`Reason`], its names and the list of its values.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident $letter:literal $name:literal;)*) => {
        /// What a thread waited for; each has a letter, that of the original where it has one.
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
    /// A CPU: it could run, but other threads did.
    Cpu b'c' "wait_cpu";
    /// A disk.
    Disk b'd' "wait_disk";
    /// The end of a freeze of its control group.
    Frozen b'f' "wait_frozen";
    /// Its guest to have something to do: the virtual CPU is halted.
    Guest b'g' "wait_guest";
    /// To be continued: stopped by a signal.
    Stop b'h' "wait_stopped";
    /// A CPU that was idle: it could run, and the CPU took its time.
    Idle b'i' "wait_idle";
    /// Another task, or of a thread of the kernel, work.
    Task b'k' "wait_task";
    /// A lock.
    Lock b'l' "wait_lock";
    /// Memory.
    Memory b'm' "wait_mem";
    /// The network.
    Net b'n' "wait_net";
    /// A pipe, file or socket another thread uses.
    Pipe b'p' "wait_pipe";
    /// The CPU quota of its control group.
    Quota b'q' "wait_quota";
    /// An RCU grace period.
    Rcu b'r' "wait_rcu";
    /// The scheduler's own balancing.
    Sched b's' "wait_sche";
    /// Time to pass.
    Time b't' "wait_time";
    /// A CPU: it could run, and the CPU stood still.
    Stall b'v' "wait_stall";
    /// Its tracer.
    Trace b'x' "wait_traced";
    /// Not known.
    Unknown b'z' "wait_unk";
}

impl Reason {
    /// Whether the thread could run meanwhile: it waited for a CPU only.
    pub const fn could_run(self) -> bool {
        matches!(self, Reason::Cpu | Reason::Idle | Reason::Quota | Reason::Stall)
    }

    /// The event number of the wait.
    pub fn event(self) -> i32 {
        number::WAIT_A as i32 + i32::from(self.letter() - b'a')
    }

    /// The reason of this name; not known for any other.
    pub fn named(name: &str) -> Reason {
        Reason::ALL.iter().copied().find(|reason| reason.name() == name).unwrap_or(Reason::Unknown)
    }

    /// What the code of [`number::WAIT`] says.
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

/// What woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A timer.
    Timer,
    /// Packets.
    Net,
    /// A disk that was done.
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
    /// One that opens a file, and has waited for the disk.
    Lookup,
    /// A program on its way out of the kernel.
    Program,
    /// A thread of the kernel.
    Worker,
    /// One that was woken by a disk itself.
    DiskWorker,
    /// The scheduler, on behalf of whom it switches from.
    Scheduler,
    /// Not known.
    Unknown,
}

/// What a thread was inside of when it fell asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asleep {
    /// A thread of the kernel, that has a task of its own.
    Kernel,
    /// A thread of the kernel that does what others ask for.
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

/// Why a thread slept that was inside of this, and was woken by that.
pub fn why(abi: &TracedAbi, asleep: Asleep, by: By) -> Reason {
    match asleep {
        _ if by == By::Unknown => of_sleeper_alone(abi, asleep),
        Asleep::Kernel => of_kernel(by),
        Asleep::Worker => of_worker(by),
        Asleep::Out => on_the_way_out(abi, by),
        Asleep::Fault => in_memory(by),
        Asleep::Call(call) => in_call(abi, call, by),
        Asleep::Unknown => Reason::Unknown,
    }
}

/// What some are there for tells, whoever wakes.
fn of_sleeper_alone(abi: &TracedAbi, asleep: Asleep) -> Reason {
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

/// It waits for time, or its own disk, or work.
fn of_kernel(by: By) -> Reason {
    match by {
        By::Timer => Reason::Time,
        By::Disk | By::DiskWorker | By::Device => Reason::Disk,
        _ => Reason::Task,
    }
}

/// It waits for work, that a timer or a device may have; or for a disk.
fn of_worker(by: By) -> Reason {
    match by {
        By::Disk => Reason::Disk,
        _ => Reason::Task,
    }
}

/// The kernel had to wait before it could let the program go on: for what the last close of a file has to write, or
/// until somebody lets it. Nothing else there sleeps for a time but who is above its memory limit.
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

/// Pages are read, or others have the address space.
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
    // What any call may have to wait for on its way.
    match (by, special) {
        (By::Rcu, _) => return Reason::Rcu,
        // Whatever wakes it then, by a signal: it waited for that.
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
                // It opened the other end of a pipe, or is the file system.
                Some(Special::Open | Special::Write | Special::Ring) => Reason::Pipe,
                _ => Reason::Lock,
            },
            // Both looked for the same name, or a lock of the kernel was let go.
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
        // Who joins a thread waits for its end in futex.
        (CallKind::Lock, By::End) => Reason::Task,
        (CallKind::Lock, _) => Reason::Lock,
        (CallKind::Task, By::Call(call)) if abi.call(call).special == Some(Special::Ptrace) => Reason::Trace,
        (CallKind::Task, _) => Reason::Task,
        (CallKind::Memory, by) => in_memory(by),
        (CallKind::Files, By::Device | By::DiskWorker | By::Worker | By::Softirq | By::Scheduler) => Reason::Disk,
        // Another thread had the files.
        (CallKind::Files, _) => Reason::Lock,
        (CallKind::Bytes, By::Device | By::DiskWorker) => Reason::Disk,
        // The rest of a terminal's or a pipe's work is done by a worker.
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

/// Why the thread was waiting that is woken by a call that does this, if that tells.
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

/// Who woke a thread, in the original's traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A thread, in a system call or a fault.
    Thread,
    /// A thread of the kernel: no other wakes anyone outside of a call.
    Worker,
    /// An interrupt or softirq.
    Device,
}

/// Why the thread was waiting that is woken in this context of one of the original's traces, if the context tells.
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

/// Why a thread of one of the original's traces was waiting in what it blocked in, where its waker's context does not
/// tell. A thread of the kernel blocks in nothing that is known: it waits for another to give it work.
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
        // The rest of a terminal's or a pipe's work is done by a worker.
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
