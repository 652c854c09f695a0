// SPDX-License-Identifier: BSD-3-Clause
//! Event numbers in the text and in spans: the original's map, and the few that are ours.
//!
//! ```text
//! 001..1ff names     200..282 points       400 trap   500 irq   5ff softirq   800 c00 system call   9ff dff scheduler
//!                                          600        700       7ff           a00 e00              bff fff   returns
//! ```
//!
//! Ours: 0x220 to 0x22b are the end of a thread, quotas of control groups, reasons to wait and work on the way out to user
//! mode, 0x107 says that a thread is inside a system call whose start is not in the trace, 0x108 which control group it
//! is in, 0x109 that it is one of the kernel, 0x10a what is
//! special about a CPU, 0xbfe is the return from a call whose number is not known, 0x9fd is work on
//! the way out in spans, 0x30000 is time of which nothing was recorded. The bit 0x200 tells a return from its call. The
//! middle digit of a name's number is its length in the original's files; here it is always 0.

/// Name of a thread: the argument is its pid.
pub const PID_NAME: u32 = 0x002;
/// Name of an RPC method.
pub const METHOD_NAME: u32 = 0x003;
/// Name of an interrupt.
pub const IRQ_NAME: u32 = 0x005;
/// Name of a lock.
pub const LOCK_NAME: u32 = 0x007;
/// Name of an error that calls return, by its positive number.
pub const ERRNO_NAME: u32 = 0x00e;
/// Name of a system call.
pub const SYSCALL_NAME: u32 = 0x008;
/// Release and version of the kernel.
pub const KERNEL_NAME: u32 = 0x102;
/// Model of the CPUs.
pub const MODEL_NAME: u32 = 0x103;
/// Name of the host.
pub const HOST_NAME: u32 = 0x104;
/// Name of a queue.
pub const QUEUE_NAME: u32 = 0x105;
/// Name of a resource.
pub const RESOURCE_NAME: u32 = 0x106;
/// Ours: the thread in the argument is inside the system call that the name gives, as `number/name`.
pub const OPEN_CALL: u32 = 0x107;
/// Ours: the thread in the argument belongs to the control group whose id the name gives; a thread of which nothing is
/// said is in the root group.
pub const GROUP: u32 = 0x108;
/// Ours: the thread in the argument is a thread of the kernel, or if the name is `program`, the next with its number is none.
pub const KERNEL_THREAD: u32 = 0x109;
/// Ours: the CPU in the argument was offline when the recording began, or may go without ticks while it runs a thread: the
/// name is [`CPU_OFFLINE`] or [`CPU_TICKLESS`].
pub const CPU: u32 = 0x10a;
/// Name of a CPU that was offline.
pub const CPU_OFFLINE: &str = "offline";
/// Name of a CPU that may go without ticks.
pub const CPU_TICKLESS: &str = "tickless";

/// The CPU switches to the thread in the argument. Duration 1: a statement of who runs, not a switch.
pub const SWITCH: u32 = 0x200;
/// An RPC request starts or, with 0, ends.
pub const RPC_REQUEST: u32 = 0x201;
/// An RPC response starts or, with 0, ends.
pub const RPC_RESPONSE: u32 = 0x202;
/// An RPC goes on.
pub const RPC_MIDDLE: u32 = 0x203;
/// A message of an RPC arrived, in spans only.
pub const RPC_RECEIVED: u32 = 0x204;
/// A message of an RPC left, in spans only.
pub const RPC_SENT: u32 = 0x205;
/// The thread in the argument is made runnable.
pub const RUNNABLE: u32 = 0x206;
/// An interrupt is sent to the CPU in the argument; the return value is its vector, 0 if unknown.
pub const IPI: u32 = 0x207;
/// Idle enters a low-power state.
pub const MWAIT: u32 = 0x208;
/// Frequency, MHz, of the time before.
pub const FREQUENCY: u32 = 0x209;
/// First of the marks a, b, c, d.
pub const MARK_A: u32 = 0x20a;
/// Last of the marks, with a number.
pub const MARK_D: u32 = 0x20d;
/// Row label, in spans only.
pub const ROW_LABEL: u32 = 0x20e;
/// A lock was not acquired.
pub const LOCK_TRY: u32 = 0x210;
/// A lock was acquired after a try.
pub const LOCK_ACQUIRED: u32 = 0x211;
/// A lock is given up.
pub const LOCK_RELEASED: u32 = 0x212;
/// A packet arrived in the kernel.
pub const RX_PACKET: u32 = 0x214;
/// A packet leaves the kernel.
pub const TX_PACKET: u32 = 0x215;
/// A program says it received a packet.
pub const RX_USER: u32 = 0x216;
/// A program says it sends a packet.
pub const TX_USER: u32 = 0x217;
/// A program uses the resource in the argument.
pub const RESOURCE: u32 = 0x219;
/// A thread puts its RPC into the queue in the argument.
pub const ENQUEUE: u32 = 0x21a;
/// A thread takes an RPC out of the queue in the argument.
pub const DEQUEUE: u32 = 0x21b;
/// Frequency, MHz, of the time after.
pub const FREQUENCY_SET: u32 = 0x21c;
/// A store to a word that another CPU waits on.
pub const MONITOR_STORE: u32 = 0x21e;
/// That wait ends.
pub const MONITOR_EXIT: u32 = 0x21f;
/// Ours: the thread ends, with the exit code in the argument.
pub const EXIT: u32 = 0x220;
/// Ours: a CPU's share of a control group is throttled; the argument is the group's id, the return value the CPU.
pub const THROTTLE: u32 = 0x223;
/// Ours: and may run again.
pub const UNTHROTTLE: u32 = 0x224;
/// Ours: the thread is about to wait, for the reason in the argument; the name says it.
pub const WAIT: u32 = 0x225;
/// Ours: this CPU is about to go offline.
pub const GOES_OFFLINE: u32 = 0x227;
/// Ours: and is online again.
pub const COMES_ONLINE: u32 = 0x228;
/// Ours: work on the way out to user mode begins; the argument has its kinds as bits.
pub const EXIT_WORK: u32 = 0x22a;
/// Ours: and ends.
pub const EXIT_WORK_RETURN: u32 = 0x22b;
/// Last of the points.
pub const POINT_LAST: u32 = 0x27f;
/// A sample of a program counter in a program.
pub const PC_SAMPLE: u32 = 0x280;
/// And in the kernel.
pub const PC_KERNEL: u32 = 0x281;
/// A lock is held, in spans only.
pub const LOCK_HELD: u32 = 0x282;
/// A lock is waited for, in spans only.
pub const LOCK_WAITED: u32 = 0x283;
/// Waiting for reason `a`; the letters follow, in spans only.
pub const WAIT_A: u32 = 0x300;
/// Waiting for reason `z`: not known.
pub const WAIT_Z: u32 = 0x319;

/// Traps.
pub const TRAP: u32 = 0x400;
/// Interrupts.
pub const IRQ: u32 = 0x500;
/// Softirqs; the argument says which.
pub const SOFTIRQ: u32 = 0x5ff;
/// The end of a softirq.
pub const SOFTIRQ_RETURN: u32 = 0x7ff;
/// System calls.
pub const SYSCALL: u32 = 0x800;
/// Ours: the kernel's work for a thread outside of any call, before it goes on with the program; in spans only.
pub const WAY_OUT: u32 = 0x9fd;
/// A system call whose number is not known.
pub const UNKNOWN_CALL: u32 = 0x9fe;
/// Ours: the return from a system call whose number is not known.
pub const UNKNOWN_RETURN: u32 = 0xbfe;
/// 32-bit system calls; in the original's traces 64-bit ones from 512 on.
pub const SYSCALL32: u32 = 0xc00;
/// The scheduler.
pub const SCHED: u32 = 0xdff;
/// The end of the scheduler.
pub const SCHED_RETURN: u32 = 0xfff;
/// The scheduler, in kernels before 6.
pub const SCHED_OLD: u32 = 0x9ff;
/// The bit that makes a call its return.
pub const RETURN_BIT: u32 = 0x200;

/// A thread in user mode: plus the low half of its pid, see [`user`]. Idle is this number itself.
pub const USER: u32 = 0x10000;
/// The first that is a thread's.
pub const USER_FIRST: u32 = 0x10001;
/// Leaving a low-power state, in spans only.
pub const IDLE_EXIT: u32 = 0x20000;
/// Ours: from here to the next switch statement nothing was recorded on this CPU.
pub const LOST: u32 = 0x30000;
/// Ours: the CPU is offline, in spans only.
pub const OFFLINE: u32 = 0x30001;
/// Ours: the CPU stood still, in spans only.
pub const STALLED: u32 = 0x30002;
/// Ours: a thread of the kernel outside of interrupts: plus the low half of its pid.
pub const KERNEL: u32 = 0x40000;
/// Arc from a wakeup to the run it leads to.
pub const WAKEUP_ARC: i32 = -3;
/// A note beside a span, by the original's viewer: the argument and the return value are its distance from the span.
pub const CALLOUT: i32 = -4;
/// Arc from an interrupt's sender to its arrival.
pub const IPI_ARC: i32 = -7;

/// How deep an activity nests; a call closes what cannot be below it.
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

/// What an event number says.
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

/// What `event` is.
pub const fn class(event: u32) -> Class {
    match event {
        0x001..=0x1ff => Class::Name,
        SWITCH => Class::Switch,
        0x201..=0x281 => Class::Point,
        0x400..=0xfff if event & RETURN_BIT == 0 => Class::Call(level(event)),
        0x400..=0xfff => Class::Return(level(event)),
        LOST => Class::Lost,
        _ => Class::Other,
    }
}

/// Whether `event` is one that happened, and that counts: every line of the text that is no name and no comment. A call
/// that carries its return is one. All tools count events by this.
pub const fn is_event(event: u32) -> bool {
    !matches!(class(event), Class::Name)
}

/// The level of a call or return.
pub const fn level(event: u32) -> Level {
    match event & !RETURN_BIT {
        SCHED | SCHED_OLD => Level::Sched,
        SOFTIRQ => Level::Softirq,
        0x400..=0x4ff => Level::Trap,
        0x500..=0x5ff => Level::Irq,
        0x800..=0xfff => Level::Syscall,
        _ => Level::User,
    }
}

/// The event number of `pid` in user mode. No thread but idle gets idle's number.
pub const fn user(pid: u32) -> u32 {
    match (pid, pid & 0xffff) {
        (0, _) => USER,
        (_, 0) => USER | 0xffff,
        (_, low) => USER | low,
    }
}

/// The event number of `pid`, a thread of the kernel.
pub const fn kernel(pid: u32) -> u32 {
    KERNEL | pid & 0xffff
}

/// Whether an event is what a thread is at the bottom: a program's user code, or a thread of the kernel. Such spans have
/// the thread's name.
pub const fn is_thread(event: i32) -> bool {
    matches!(event as u32, USER_FIRST..IDLE_EXIT | KERNEL..=0x4ffff)
}

/// Whose time an execution span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A program's.
    User,
    /// The kernel's.
    Kernel,
    /// Nobody's: idle, or leaving idle.
    Idle,
    /// Not known.
    Lost,
    /// None: the CPU is offline.
    Offline,
    /// Nobody's: the CPU stood still.
    Stalled,
}

/// Whose time a span of this event is.
pub const fn share(event: i32) -> Share {
    match event as u32 {
        USER | IDLE_EXIT => Share::Idle,
        LOST => Share::Lost,
        OFFLINE => Share::Offline,
        STALLED => Share::Stalled,
        KERNEL.. => Share::Kernel,
        USER_FIRST.. => Share::User,
        _ => Share::Kernel,
    }
}

/// The spans that together cover a CPU's time: everything but points, arcs, waits and other overlays.
pub const fn is_execution(event: i32) -> bool {
    matches!(event, 0x400..=0xfff | 0x10000..)
}
