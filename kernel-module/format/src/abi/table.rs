// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Every event, declared once. [`super::event`] derives what the recorder needs, `kutrace_format::event` the rest.
//!
//! ```text
//! /// Its content.
//! number  constant [to number constant of the last]  name  shape of its words  who records it  what it is;
//! ```
//!
//! A number belongs to the first row that has it. The name is that of an event that nothing else names; in a range the
//! number's place in it is added. Shapes are [`super::event::Shape`]'s, origins [`super::event::Origin`]'s, kinds
//! `kutrace_format::event::Kind`'s. The numbers are the original KUtrace's wherever it has one; a few ranges that it
//! leaves free carry what four bytes need: softirqs by number, and returns of system calls by value.
//!
//! The groups are the places where a number has this meaning: `block`, in a block only; `everywhere`; `line`, in the
//! text and in spans only, so without words; `span`, in spans only; `arc`, the same, and these are negative;
//! `original`, in files of the original only, where the middle digit of a name's number is its length in words, so that
//! it is 0 in ours.

/// Hands the table to the macro `$then`.
#[rustfmt::skip]
macro_rules! event_table {
    ($then:ident) => {
        $then! {
block {
    /// Nothing; fills the end of a block.
    0x000 NOP                                   "nop"           Nothing Recorder Other;
    /// The whole counter, two words, low half first. Bridges a gap of 2^20 counts or more.
    0x001 FULL_TIME                             "full_time"     Counter Recorder Other;
    /// A task's identity: pid, tgid, state (see [`TaskState`]), then 16 bytes of name.
    0x002 TASK                                  "task"          Task    Recorder Other;
    /// A name: its kind, the number of what it names, then [`NAME_BYTES`] of text, NUL-padded. Programs give names (the
    /// first word is the original's number of a name, its length digit 0), and the kernel gives a [`Vector`] its name
    /// from here on: the first word is [`NAME_VECTOR`], and an empty text means that it is for no device any more.
    0x003 NAME                                  "name"          Name    Recorder Other;
    /// A packet of a flow is received, see [`crate::abi::packet::FlowPacket`].
    0x004 FLOW_RECEIVED                         "rx"            Packet  Recorder Packet;
    /// And sent.
    0x005 FLOW_SENT                             "tx"            Packet  Recorder Packet;
    /// A task that is new, renamed or moved is in this control group: pid, then the low 32 bits of the group's id, which is
    /// the inode of its directory.
    0x006 MEMBER                                "member"        Member  Recorder Other;
    /// The record of tracepoint n of those chosen, n below 16, in one word: `TRACEPOINT + n`.
    0x010 TRACEPOINT to 0x01f TRACEPOINT_LAST   "tracepoint"    Record1 Recorder Mark;
    /// The same in up to 3 words.
    0x020 TRACEPOINT3 to 0x02f TRACEPOINT3_LAST "tracepoint"    Record3 Recorder Mark;
    /// The same in up to 7.
    0x030 TRACEPOINT7 to 0x03f TRACEPOINT7_LAST "tracepoint"    Record7 Recorder Mark;
    /// The same in up to 15.
    0x040 TRACEPOINT15 to 0x04f TRACEPOINT15_LAST "tracepoint"  Record15 Recorder Mark;
    /// The same in up to 31, or the first 31 of more.
    0x050 TRACEPOINT31 to 0x05f TRACEPOINT31_LAST "tracepoint"  Record31 Recorder Mark;
    /// Softirq number n starts: `SOFTIRQ + n`, n below 16.
    0x300 SOFTIRQ to 0x30f SOFTIRQ_LAST         "BH:"           Nothing Kernel   Softirq;
    /// Softirq number n ends: `SOFTIRQ_RETURN + n`.
    0x310 SOFTIRQ_RETURN to 0x31f SOFTIRQ_RETURN_LAST "/BH:"    Nothing Kernel   Softirq;
    /// Return from the task's open system call, with the low 32 bits of its value: for `rt_sigreturn`, whose number the
    /// kernel has forgotten, and for 32-bit calls.
    0xbff OPEN_RETURN                           "/call"         Value   Kernel   Syscall;
    /// Return of a value v in -128..=127 from the task's open system call, no word: `SMALL_RETURN + 128 + v`.
    0xc00 SMALL_RETURN to 0xcff SMALL_RETURN_LAST "/call"       Nothing Kernel   Syscall;
    /// 32-bit system call n below 511, with one [`crate::abi::word::Call`] word: `SYSCALL32 + n`. Its return is
    /// [`OPEN_RETURN`] or [`SMALL_RETURN`].
    0xe00 SYSCALL32 to 0xffe SYSCALL32_LAST     "s32#"          Call    Kernel   Syscall;
}
everywhere {
    /// The CPU switches to this pid. In the text, duration 1: it states which thread runs, and is not a switch.
    0x200 SWITCH                                "switch"        Thread  Kernel   Switch;
    /// A thread begins with the request of an RPC: its id in the low half, the size code of its message above; 0 ends
    /// it.
    0x201 RPC_REQUEST                           "rpcreq"        Number  Program  Rpc;
    /// A thread begins with the response.
    0x202 RPC_RESPONSE                          "rpcresp"       Number  Program  Rpc;
    /// A thread continues with an RPC.
    0x203 RPC_MIDDLE                            "rpcmid"        Number  Program  Rpc;
    /// A message of an RPC arrived: made by the tools, in spans.
    0x204 RPC_RECEIVED                          "rxmsg"         Number  Tools    Message;
    /// A message of an RPC left: made by the tools, in spans.
    0x205 RPC_SENT                              "txmsg"         Number  Tools    Message;
    /// This pid is made runnable, by the running context.
    0x206 RUNNABLE                              "runnable"      Thread  Kernel   Point;
    /// An inter-processor interrupt is sent, see [`Ipi`]; in the text the value is its vector, 0 if unknown.
    0x207 IPI                                   "sendipi"       Ipi     Kernel   Point;
    /// The idle loop enters a low-power state: the mwait hint, or one of the `IDLE_*` values.
    0x208 MWAIT                                 "mwait"         Number  Kernel   Point;
    /// The CPU's frequency since the previous tick, MHz.
    0x209 FREQUENCY                             "-freq-"        Number  Kernel   Frequency;
    /// Mark a, the first: text in base 40.
    0x20a MARK_A                                "mark_a"        Number  Program  Mark;
    /// Mark b.
    0x20b MARK_B                                "mark_b"        Number  Program  Mark;
    /// Mark c.
    0x20c MARK_C                                "mark_c"        Number  Program  Mark;
    /// Mark d, with a number.
    0x20d MARK_D                                "mark_d"        Number  Program  Mark;
    /// The label of a row: made by tools, in spans.
    0x20e ROW_LABEL                             "-20e-"         Number  Tools    Label;
    /// The same, a second.
    0x20f ROW_LABEL_LAST                        "-20f-"         Number  Tools    Label;
    /// A lock was not free: its number.
    0x210 LOCK_TRY                              "try_"          Number  Program  Point;
    /// A lock was acquired after a try.
    0x211 LOCK_ACQUIRED                         "acq_"          Number  Program  Point;
    /// A lock is released.
    0x212 LOCK_RELEASED                         "rel_"          Number  Program  Point;
    /// The original's, used nowhere.
    0x213 UNUSED                                "-213-"         Number  Original Point;
    /// The original's, and of recorders that chose packets by their content: one is received, its
    /// [`crate::abi::packet::hash`].
    0x214 RX_PACKET                             "rx"            Number  Kernel   Packet;
    /// And sent.
    0x215 TX_PACKET                             "tx"            Number  Kernel   Packet;
    /// The program received a message: the exclusive or of its first eight words.
    0x216 RX_USER                               "urx"           Number  Program  Packet;
    /// The program sends a message: the same.
    0x217 TX_USER                               "utx"           Number  Program  Packet;
    /// The original's: megabits per second of a network.
    0x218 NETWORK_SPEED                         "mbs"           Number  Original Point;
    /// The program uses a resource: its number.
    0x219 RESOURCE                              "res"           Number  Program  Point;
    /// An RPC goes into a queue: the queue's number.
    0x21a ENQUEUE                               "enq"           Number  Program  Queue;
    /// An RPC comes out of a queue.
    0x21b DEQUEUE                               "deq"           Number  Program  Point;
    /// The original's: the frequency from here on, MHz.
    0x21c FREQUENCY_SET                         "-21c-"         Number  Original Frequency;
    /// The original's: counts since the previous entry, low 32 bits.
    0x21d TSDELTA                               "-21d-"         Number  Original Point;
    /// A store wakes the idle CPU in the argument, which watches that word.
    0x21e MONITOR_STORE                         "mon_st"        Number  Kernel   Point;
    /// Such a wait, by polling, ends.
    0x21f MONITOR_EXIT                          "mon_ex"        Number  Kernel   Point;
    /// The running task ends: its exit code, as `wait` reports it.
    0x220 EXIT                                  "exit"          Number  Kernel   Point;
    /// The running thread enters the guest of a virtual CPU: the CPU's number there.
    0x221 GUEST_ENTER                           "guest_enter"   Number  Recorder Point;
    /// The running thread leaves the guest: a [`crate::abi::guest::GuestExit`].
    0x222 GUEST_EXIT                            "guest_exit"    Number  Recorder Point;
    /// A CPU's share of a control group may not run for now, because the group used up its quota or that of a group
    /// above it; see [`Throttle`]. In the text the argument is the group's id, the value the CPU.
    0x223 THROTTLE                              "throttle"      Quota   Kernel   Point;
    /// The CPU's share may run again.
    0x224 UNTHROTTLE                            "unthrottle"    Quota   Kernel   Point;
    /// The running thread is about to wait, with the reason: one of `WAIT_*`. Recorded just before it enters the
    /// scheduler.
    0x225 WAIT                                  "wait"          Number  Kernel   Point;
    /// The running thread's virtual CPU was halted, and is not any more: the `WAKE_*` bits of [`crate::abi::guest`].
    0x226 GUEST_WAKE                            "guest_wake"    Number  Recorder Point;
    /// This CPU goes offline: the last that it records. Its number.
    0x227 OFFLINE                               "goes_offline"  Number  Kernel   Point;
    /// This CPU comes online: the first that it records. Its number.
    0x228 ONLINE                                "comes_online"  Number  Kernel   Point;
    /// While this CPU had work to do its host ran something else: for this many ns, since the previous such event. In
    /// spans, the time, as far as that is known, and the argument is how much earlier it may have been, in units of 10
    /// ns.
    0x229 STEAL                                 "steal"         Number  Recorder Steal;
    /// Work on the way out to user mode begins: the `WORK_*` bits of the work.
    0x22a EXIT_WORK                             "exit_work"     Number  Kernel   Point;
    /// And ends.
    0x22b EXIT_WORK_RETURN                      "/exit_work"    Number  Kernel   Point;
    /// The host of this machine does not run this CPU from here on; the name describes its activity instead. Made by
    /// the tools.
    0x22c STOLEN                                "stolen"        Number  Tools    Point;
    /// The host runs this CPU again. Made by the tools.
    0x22d STOLEN_RETURN                         "/stolen"       Number  Tools    Point;
    /// A program that records into memory of its own is at a moment that has a name: made by the tools.
    0x230 PROGRAM_MARK                          "pmark"         Number  Tools    Mark;
    /// A part of it begins: made by the tools; in spans, the part, from begin to end.
    0x231 PROGRAM_BEGIN                         "pbegin"        Number  Tools    Point;
    /// The innermost part with that name ends: made by the tools, in events.
    0x232 PROGRAM_END                           "pend"          Number  Tools    Point;
    /// It has a value, of 64 bits: the low half is the argument, the high half is in the place of the return value;
    /// made by the tools.
    0x233 PROGRAM_VALUE                         "pvalue"        Number  Tools    Mark;
    /// A part of it that may end in another thread begins: made by the tools; in spans, the part, from begin to end.
    0x234 PROGRAM_ASYNC_BEGIN                   "pabegin"       Number  Tools    Point;
    /// That part, by the number in the argument, ends: made by the tools, in events.
    0x235 PROGRAM_ASYNC_END                     "paend"         Number  Tools    Point;
    /// A tracepoint that was chosen, by its number among these: made by the tools.
    0x236 TRACEPOINT_MARK                       "tracepoint"    Number  Tools    Mark;
    /// The point events, all with one argument word, including those that a reader does not know.
    0x200 SPECIAL to 0x27f SPECIAL_LAST         "spl#"          Number  Kernel   Point;
    /// A tick interrupted a program at this address: two words, low half first.
    0x280 PC_USER                               "PC user"       Address Kernel   Sample;
    /// The same of the kernel.
    0x281 PC_KERNEL                             "PC kernel"     Address Kernel   Sample;
    /// Trap of vector n: `TRAP + n`.
    0x400 TRAP to 0x4ff TRAP_LAST               "trp#"          Nothing Kernel   Trap;
    /// Interrupt of vector n: `IRQ + n`.
    0x500 IRQ to 0x5ff IRQ_LAST                 "irq#"          Nothing Kernel   Irq;
    /// Return from trap n: `TRAP_RETURN + n`.
    0x600 TRAP_RETURN to 0x6ff TRAP_RETURN_LAST "/trp#"         Nothing Kernel   Trap;
    /// Return from interrupt n: `IRQ_RETURN + n`.
    0x700 IRQ_RETURN to 0x7ff IRQ_RETURN_LAST   "/irq#"         Nothing Kernel   Irq;
    /// A system call that is denied and whose number no call has; its return is [`OPEN_RETURN`] or [`SMALL_RETURN`].
    0x9fe UNKNOWN_CALL                          "syscall"       Call    Kernel   Syscall;
    /// 64-bit system call n below 512, with one [`crate::abi::word::Call`] word: `SYSCALL + n`.
    0x800 SYSCALL to 0x9ff SYSCALL_LAST         "sys#"          Call    Kernel   Syscall;
    /// Return from system call n with the low 32 bits of its value: `SYSCALL_RETURN + n`.
    0xa00 SYSCALL_RETURN to 0xbfe SYSCALL_RETURN_LAST "/sys#"   Value   Kernel   Syscall;
    /// The scheduler is entered.
    0xdff SCHED                                 "-sched-"       Nothing Kernel   Sched;
    /// The scheduler is left.
    0xfff SCHED_RETURN                          "/-sched-"      Nothing Kernel   Sched;
}
line {
    /// Name of a thread: the argument is its pid.
    0x002 PID_NAME                              ""              Kernel   Name;
    /// Name of an RPC method.
    0x003 METHOD_NAME                           ""              Program  Name;
    /// Name of an interrupt.
    0x005 IRQ_NAME                              ""              Kernel   Name;
    /// Name of a lock.
    0x007 LOCK_NAME                             ""              Program  Name;
    /// Name of a system call.
    0x008 SYSCALL_NAME                          ""              Tools    Name;
    /// Name of an error that calls return, by its positive number.
    0x00e ERRNO_NAME                            ""              Tools    Name;
    /// Release and version of the kernel.
    0x102 KERNEL_NAME                           ""              Tools    Name;
    /// Model of the CPUs.
    0x103 MODEL_NAME                            ""              Tools    Name;
    /// Name of the host.
    0x104 HOST_NAME                             ""              Tools    Name;
    /// Name of a queue.
    0x105 QUEUE_NAME                            ""              Program  Name;
    /// Name of a resource.
    0x106 RESOURCE_NAME                         ""              Program  Name;
    /// Ours: the thread in the argument is inside the system call that the name gives, as `number/name`.
    0x107 OPEN_CALL                             ""              Tools    Name;
    /// Ours: the thread in the argument belongs to the control group whose id the name gives; a thread without this
    /// name is in the root group.
    0x108 GROUP                                 ""              Tools    Name;
    /// Ours: the thread in the argument is a thread of the kernel, or if the name is `program`, the next with its
    /// number is none.
    0x109 KERNEL_THREAD                         ""              Tools    Name;
    /// Ours: the CPU in the argument was offline when the recording began, or may go without ticks while it runs a
    /// thread: the name is `offline` or `tickless`.
    0x10a CPU                                   ""              Tools    Name;
    /// Ours: the thread in the argument belongs to the process whose number, that of its first thread, the name gives;
    /// a thread without this name is the first of its own.
    0x10b PROCESS                               ""              Tools    Name;
    /// Ours: the process whose first thread is in the argument belongs to the control group whose path the name gives;
    /// or only that thread, where the argument is another thread.
    0x10c CGROUP                                ""              Tools    Name;
    /// Ours: from here on the thread in the argument is in the control group whose id the name gives.
    0x10d MEMBER_OF                             ""              Tools    Name;
    /// Ours: the control group whose id is in the argument has the path that the name gives.
    0x10e CGROUP_PATH                           ""              Tools    Name;
    /// Ours: the process in the argument has the open file that the name gives, as `descriptor:when:path`, where `when`
    /// is `start`, `end` or `both` of the recording.
    0x00b FILE                                  ""              Tools    Name;
    /// Ours: this machine is a guest of the hypervisor that the name gives.
    0x009 HYPERVISOR                            ""              Tools    Name;
    /// Ours: the thread in the argument runs the virtual CPU of a guest that the name describes, in the form of
    /// `vcpu.rs`.
    0x00a VCPU                                  ""              Tools    Name;
    /// Ours: a packet of a flow is received: the argument is TCP's sequence number, the value its bytes.
    0x22e RX_FLOW                               "rx"            Tools    Packet;
    /// And sent.
    0x22f TX_FLOW                               "tx"            Tools    Packet;
    /// Events that name something, are names or describe something that lasts.
    0x001 NAMES to 0x1ff NAMES_LAST             ""              Tools    Name;
    /// Softirqs; the argument is the number. The interrupt of vector 255 has this number, too.
    0x5ff SOFTIRQ                               "irq#255"       Tools    Softirq;
    /// The end of a softirq.
    0x7ff SOFTIRQ_RETURN                        "/irq#255"      Tools    Softirq;
    /// The scheduler, in kernels before 6.
    0x9ff SCHED_OLD                             "-sched-"       Original Sched;
    /// The end of it.
    0xbff SCHED_OLD_RETURN                      "/-sched-"      Original Sched;
    /// Ours: the return from a system call whose number is not known.
    0xbfe UNKNOWN_RETURN                        "/syscall"      Tools    Syscall;
    /// 32-bit system calls; in the original's traces 64-bit ones from 512 on.
    0xc00 SYSCALL32 to 0xdfe SYSCALL32_LAST     "s32#"          Tools    Syscall;
    /// Their returns.
    0xe00 SYSCALL32_RETURN to 0xffe SYSCALL32_RETURN_LAST "/s32#" Tools  Syscall;
    /// Ours: from here to the next switch statement nothing was recorded on this CPU.
    0x30000 LOST                                "-lost-"        Tools    Lost;
}
span {
    /// A lock is held.
    0x282 LOCK_HELD                             "="             Tools    Lock;
    /// A lock is waited for.
    0x283 LOCK_WAITED                           "~"             Tools    Lock;
    /// Events that the original may have in addition to these.
    0x284 OTHER_POINT to 0x2ff OTHER_POINT_LAST "spl#"          Original Point;
    /// Waiting for reason `a`; the letters follow, and `z` is not known.
    0x300 WAIT_A to 0x319 WAIT_Z                "wait_"         Tools    Wait;
    /// Ours: a virtual CPU runs its guest, between the kernel's work for it; the argument is its number, the value a
    /// [`crate::abi::guest::GuestExit`]. It nests as a trap does, and no trap has this vector.
    0x4fc GUEST                                 "-guest-"       Tools    Guest;
    /// Ours: the kernel's work for a thread outside of any call, before it continues with the program.
    0x9fd WAY_OUT                               "exit_work"     Tools    Kernel;
    /// Idle.
    0x10000 USER                                "-idle-"        Tools    Idle;
    /// A thread in user mode: [`USER`] plus the low half of its pid.
    0x10001 USER_FIRST to 0x1ffff USER_LAST     ""              Tools    User;
    /// Leaving a low-power state.
    0x20000 IDLE_EXIT                           "-c-exit-"      Tools    IdleExit;
    /// Ours: the CPU is offline.
    0x30001 OFFLINE_SPAN                        "-offline-"     Tools    Offline;
    /// Ours: the CPU stood still.
    0x30002 STALLED                             "-stalled-"     Tools    Stalled;
    /// Ours: a thread of the kernel outside of interrupts: plus the low half of its pid.
    0x40000 KERNEL to 0x4ffff KERNEL_LAST       ""              Tools    Kernel;
}
arc {
    /// From a wakeup to the run it leads to.
    -3 WAKEUP_ARC                               "-wakeup-"      Tools    Wakeup;
    /// A note next to a span, by the original's viewer: the argument and the value are its distance from the span.
    -4 CALLOUT                                  ""              Original Callout;
    /// From an interrupt's sender to its arrival.
    -7 IPI_ARC                                  "-ipi-"         Tools    Ipi;
}
original {
    /// Start and stop, once more.
    0x036 TIMEPAIR                              ""              Original Other;
    /// A sample of a program counter in some of its kernels, though the number is that of a name.
    0x101 PC_OLD                                ""              Original Sample;
    /// The names.
    0x010 NAMES to 0x1ff NAMES_LAST             ""              Original Name;
}
        }
    };
}
