// SPDX-License-Identifier: BSD-3-Clause
// Numbers and names that the page shares with the tools.
// kernel-module/format/tests/page.rs makes this file of the crate's tables.

/** Sorts of spans. Those up to SCHED are execution: on one CPU they never overlap. LOST is time without a record,
 * OFFLINE and STALLED are time in which a CPU did nothing at all. */
export const Kind = Object.freeze({
  IDLE: 0, LOW_POWER: 1, C_EXIT: 2, USER: 3, GUEST: 4, LOST: 5, OFFLINE: 6, STALLED: 7, SYSCALL: 8, TRAP: 9, IRQ: 10,
  BH: 11, KERNEL: 12, SCHED: 13, WAIT: 14, WAKEUP: 15, IPI: 16, MARK: 17, POINT: 18, SAMPLE: 19, FREQ: 20, STEAL: 21,
  LOCK: 22, RPC: 23, PACKET: 24, MESSAGE: 25, QUEUE: 26, LABEL: 27, CALLOUT: 28, OTHER: 29,
});

/** What each kind is called, for people. */
export const KIND_NAMES = Object.freeze([
  "idle", "idle, low power", "leaving idle", "user", "guest", "lost", "offline", "stood still", "system call", "fault",
  "interrupt", "bottom half", "kernel thread or exit work", "scheduler", "wait", "wakeup", "IPI", "mark", "event",
  "PC sample", "frequency", "stolen", "lock", "RPC", "packet", "message", "queue", "row label", "callout", "annotation",
]);

/** Numbers of events. */
export const EVENT = Object.freeze({
  LOCK_HELD: 0x282, LOCK_WAITED: 0x283, OTHER_POINT: 0x284, OTHER_POINT_LAST: 0x2ff, WAIT_A: 0x300, WAIT_Z: 0x319,
  GUEST: 0x4fc, WAY_OUT: 0x9fd, USER: 0x10000, USER_FIRST: 0x10001, USER_LAST: 0x1ffff, IDLE_EXIT: 0x20000,
  OFFLINE_SPAN: 0x30001, STALLED: 0x30002, KERNEL: 0x40000, KERNEL_LAST: 0x4ffff, WAKEUP_ARC: -3, CALLOUT: -4,
  IPI_ARC: -7, PID_NAME: 0x002, METHOD_NAME: 0x003, IRQ_NAME: 0x005, LOCK_NAME: 0x007, SYSCALL_NAME: 0x008,
  ERRNO_NAME: 0x00e, KERNEL_NAME: 0x102, MODEL_NAME: 0x103, HOST_NAME: 0x104, QUEUE_NAME: 0x105, RESOURCE_NAME: 0x106,
  OPEN_CALL: 0x107, GROUP: 0x108, KERNEL_THREAD: 0x109, CPU: 0x10a, PROCESS: 0x10b, CGROUP: 0x10c, MEMBER_OF: 0x10d,
  CGROUP_PATH: 0x10e, FILE: 0x00b, HYPERVISOR: 0x009, VCPU: 0x00a, RX_FLOW: 0x22e, TX_FLOW: 0x22f, NAMES: 0x001,
  NAMES_LAST: 0x1ff, SOFTIRQ: 0x5ff, SOFTIRQ_RETURN: 0x7ff, SCHED_OLD: 0x9ff, SCHED_OLD_RETURN: 0xbff,
  UNKNOWN_RETURN: 0xbfe, SYSCALL32: 0xc00, SYSCALL32_LAST: 0xdfe, SYSCALL32_RETURN: 0xe00, SYSCALL32_RETURN_LAST: 0xffe,
  LOST: 0x30000, SWITCH: 0x200, RPC_REQUEST: 0x201, RPC_RESPONSE: 0x202, RPC_MIDDLE: 0x203, RPC_RECEIVED: 0x204,
  RPC_SENT: 0x205, RUNNABLE: 0x206, IPI: 0x207, MWAIT: 0x208, FREQUENCY: 0x209, MARK_A: 0x20a, MARK_B: 0x20b,
  MARK_C: 0x20c, MARK_D: 0x20d, ROW_LABEL: 0x20e, ROW_LABEL_LAST: 0x20f, LOCK_TRY: 0x210, LOCK_ACQUIRED: 0x211,
  LOCK_RELEASED: 0x212, UNUSED: 0x213, RX_PACKET: 0x214, TX_PACKET: 0x215, RX_USER: 0x216, TX_USER: 0x217,
  NETWORK_SPEED: 0x218, RESOURCE: 0x219, ENQUEUE: 0x21a, DEQUEUE: 0x21b, FREQUENCY_SET: 0x21c, TSDELTA: 0x21d,
  MONITOR_STORE: 0x21e, MONITOR_EXIT: 0x21f, EXIT: 0x220, GUEST_ENTER: 0x221, GUEST_EXIT: 0x222, THROTTLE: 0x223,
  UNTHROTTLE: 0x224, WAIT: 0x225, GUEST_WAKE: 0x226, OFFLINE: 0x227, ONLINE: 0x228, STEAL: 0x229, EXIT_WORK: 0x22a,
  EXIT_WORK_RETURN: 0x22b, STOLEN: 0x22c, STOLEN_RETURN: 0x22d, PROGRAM_MARK: 0x230, PROGRAM_BEGIN: 0x231,
  PROGRAM_END: 0x232, PROGRAM_VALUE: 0x233, PROGRAM_ASYNC_BEGIN: 0x234, PROGRAM_ASYNC_END: 0x235,
  TRACEPOINT_MARK: 0x236, SPECIAL: 0x200, SPECIAL_LAST: 0x27f, PC_USER: 0x280, PC_KERNEL: 0x281, TRAP: 0x400,
  TRAP_LAST: 0x4ff, IRQ: 0x500, IRQ_LAST: 0x5ff, TRAP_RETURN: 0x600, TRAP_RETURN_LAST: 0x6ff, IRQ_RETURN: 0x700,
  IRQ_RETURN_LAST: 0x7ff, UNKNOWN_CALL: 0x9fe, SYSCALL: 0x800, SYSCALL_LAST: 0x9ff, SYSCALL_RETURN: 0xa00,
  SYSCALL_RETURN_LAST: 0xbfe, SCHED: 0xdff, SCHED_RETURN: 0xfff,
});

/** The first and last number of each sort of event, and its kind; the first that has a number counts. */
export const KIND_RANGES = Object.freeze([
  [0x282, 0x282, Kind.LOCK], [0x283, 0x283, Kind.LOCK], [0x284, 0x2ff, Kind.POINT], [0x300, 0x319, Kind.WAIT],
  [0x4fc, 0x4fc, Kind.GUEST], [0x9fd, 0x9fd, Kind.KERNEL], [-3, -3, Kind.WAKEUP], [-4, -4, Kind.CALLOUT],
  [-7, -7, Kind.IPI], [0x002, 0x002, Kind.OTHER], [0x003, 0x003, Kind.OTHER], [0x005, 0x005, Kind.OTHER],
  [0x007, 0x007, Kind.OTHER], [0x008, 0x008, Kind.OTHER], [0x00e, 0x00e, Kind.OTHER], [0x102, 0x102, Kind.OTHER],
  [0x103, 0x103, Kind.OTHER], [0x104, 0x104, Kind.OTHER], [0x105, 0x105, Kind.OTHER], [0x106, 0x106, Kind.OTHER],
  [0x107, 0x107, Kind.OTHER], [0x108, 0x108, Kind.OTHER], [0x109, 0x109, Kind.OTHER], [0x10a, 0x10a, Kind.OTHER],
  [0x10b, 0x10b, Kind.OTHER], [0x10c, 0x10c, Kind.OTHER], [0x10d, 0x10d, Kind.OTHER], [0x10e, 0x10e, Kind.OTHER],
  [0x00b, 0x00b, Kind.OTHER], [0x009, 0x009, Kind.OTHER], [0x00a, 0x00a, Kind.OTHER], [0x22e, 0x22e, Kind.PACKET],
  [0x22f, 0x22f, Kind.PACKET], [0x001, 0x1ff, Kind.OTHER], [0x5ff, 0x5ff, Kind.BH], [0x7ff, 0x7ff, Kind.BH],
  [0x9ff, 0x9ff, Kind.SCHED], [0xbff, 0xbff, Kind.SCHED], [0xbfe, 0xbfe, Kind.SYSCALL], [0xc00, 0xdfe, Kind.SYSCALL],
  [0xe00, 0xffe, Kind.SYSCALL], [0x200, 0x200, Kind.POINT], [0x201, 0x201, Kind.RPC], [0x202, 0x202, Kind.RPC],
  [0x203, 0x203, Kind.RPC], [0x204, 0x204, Kind.MESSAGE], [0x205, 0x205, Kind.MESSAGE], [0x206, 0x206, Kind.POINT],
  [0x207, 0x207, Kind.POINT], [0x208, 0x208, Kind.POINT], [0x209, 0x209, Kind.FREQ], [0x20a, 0x20a, Kind.MARK],
  [0x20b, 0x20b, Kind.MARK], [0x20c, 0x20c, Kind.MARK], [0x20d, 0x20d, Kind.MARK], [0x20e, 0x20e, Kind.LABEL],
  [0x20f, 0x20f, Kind.LABEL], [0x210, 0x210, Kind.POINT], [0x211, 0x211, Kind.POINT], [0x212, 0x212, Kind.POINT],
  [0x213, 0x213, Kind.POINT], [0x214, 0x214, Kind.PACKET], [0x215, 0x215, Kind.PACKET], [0x216, 0x216, Kind.PACKET],
  [0x217, 0x217, Kind.PACKET], [0x218, 0x218, Kind.POINT], [0x219, 0x219, Kind.POINT], [0x21a, 0x21a, Kind.QUEUE],
  [0x21b, 0x21b, Kind.POINT], [0x21c, 0x21c, Kind.FREQ], [0x21d, 0x21d, Kind.POINT], [0x21e, 0x21e, Kind.POINT],
  [0x21f, 0x21f, Kind.POINT], [0x220, 0x220, Kind.POINT], [0x221, 0x221, Kind.POINT], [0x222, 0x222, Kind.POINT],
  [0x223, 0x223, Kind.POINT], [0x224, 0x224, Kind.POINT], [0x225, 0x225, Kind.POINT], [0x226, 0x226, Kind.POINT],
  [0x227, 0x227, Kind.POINT], [0x228, 0x228, Kind.POINT], [0x229, 0x229, Kind.STEAL], [0x22a, 0x22a, Kind.POINT],
  [0x22b, 0x22b, Kind.POINT], [0x22c, 0x22c, Kind.POINT], [0x22d, 0x22d, Kind.POINT], [0x230, 0x230, Kind.MARK],
  [0x231, 0x231, Kind.POINT], [0x232, 0x232, Kind.POINT], [0x233, 0x233, Kind.MARK], [0x234, 0x234, Kind.POINT],
  [0x235, 0x235, Kind.POINT], [0x236, 0x236, Kind.MARK], [0x200, 0x27f, Kind.POINT], [0x280, 0x280, Kind.SAMPLE],
  [0x281, 0x281, Kind.SAMPLE], [0x400, 0x4ff, Kind.TRAP], [0x500, 0x5ff, Kind.IRQ], [0x600, 0x6ff, Kind.TRAP],
  [0x700, 0x7ff, Kind.IRQ], [0x9fe, 0x9fe, Kind.SYSCALL], [0x800, 0x9ff, Kind.SYSCALL], [0xa00, 0xbfe, Kind.SYSCALL],
  [0xdff, 0xdff, Kind.SCHED], [0xfff, 0xfff, Kind.SCHED],
]);

/** Flags of a trace. */
export const FLAG = Object.freeze({
  LLC: 0x20, WRAPPED: 0x40, IPC: 0x80, COUNTERS: 0xa0,
});

/** Facts that a trace cannot show, by the capabilities that its source lacks. */
export const CANNOT_SHOW = Object.freeze({
  RETURNS: "the ends of some calls and interrupts", VALUES: "return values of more than 16 bits",
  LOSSES: "where events are missing",
  TASKS: "which threads are the kernel's, and in which call one is when it is first seen",
  BIRTHS: "the wakeups of new threads", EXITS: "the ends of threads",
  INTERRUPTS: "some interrupts, and so where a CPU stood still", QUOTAS: "waits for a CPU quota", WAKEUPS: "wakeups",
  IDLE: "when CPUs are idle", FAULTS: "faults", SCHEDULER: "time in the scheduler",
  EXCEPTIONS: "exceptions other than page faults, but those of which a signal comes, and no end of any",
  KERNEL_FAULTS: "how long page faults in the kernel take",
  ENTRY_CODE: "the kernel's entry and exit code, which counts as what was interrupted",
  SENDERS: "who sends interrupts to other CPUs", IDLE_STATES: "in which low-power states idle CPUs are",
  FREQUENCY: "the frequency of CPUs", PACKETS: "network packets",
  NMIS: "NMIs that no handler claims, and when an NMI begins", MACHINE_CHECKS: "machine checks",
  DENIED: "system calls that seccomp or a tracer denies",
  STOPS: "whether a thread that waits is stopped, frozen, traced or held up for memory",
  PROGRAM_FAULTS: "how long page faults of programs take", CALLS: "system calls", SOFTIRQS: "softirqs",
  MOMENTS: "what is shorter than a microsecond", STEAL: "time that the host takes from this machine's CPUs",
});

/** Names of errno values on Linux, by number, for traces that do not bring their machine's. */
export const ERRNO = Object.freeze([
  "", "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD", "EAGAIN", "ENOMEM",
  "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV", "ENOTDIR", "EISDIR", "EINVAL", "ENFILE",
  "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC", "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE", "EDEADLK",
  "ENAMETOOLONG", "ENOLCK", "ENOSYS", "ENOTEMPTY", "ELOOP", "", "ENOMSG", "EIDRM", "ECHRNG", "EL2NSYNC", "EL3HLT",
  "EL3RST", "ELNRNG", "EUNATCH", "ENOCSI", "EL2HLT", "EBADE", "EBADR", "EXFULL", "ENOANO", "EBADRQC", "EBADSLT", "",
  "EBFONT", "ENOSTR", "ENODATA", "ETIME", "ENOSR", "ENONET", "ENOPKG", "EREMOTE", "ENOLINK", "EADV", "ESRMNT", "ECOMM",
  "EPROTO", "EMULTIHOP", "EDOTDOT", "EBADMSG", "EOVERFLOW", "ENOTUNIQ", "EBADFD", "EREMCHG", "ELIBACC", "ELIBBAD",
  "ELIBSCN", "ELIBMAX", "ELIBEXEC", "EILSEQ", "ERESTART", "ESTRPIPE", "EUSERS", "ENOTSOCK", "EDESTADDRREQ", "EMSGSIZE",
  "EPROTOTYPE", "ENOPROTOOPT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP", "EPFNOSUPPORT", "EAFNOSUPPORT",
  "EADDRINUSE", "EADDRNOTAVAIL", "ENETDOWN", "ENETUNREACH", "ENETRESET", "ECONNABORTED", "ECONNRESET", "ENOBUFS",
  "EISCONN", "ENOTCONN", "ESHUTDOWN", "ETOOMANYREFS", "ETIMEDOUT", "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH",
  "EALREADY", "EINPROGRESS", "ESTALE", "EUCLEAN", "ENOTNAM", "ENAVAIL", "EISNAM", "EREMOTEIO", "EDQUOT", "ENOMEDIUM",
  "EMEDIUMTYPE", "ECANCELED", "ENOKEY", "EKEYEXPIRED", "EKEYREVOKED", "EKEYREJECTED", "EOWNERDEAD", "ENOTRECOVERABLE",
  "ERFKILL", "EHWPOISON",
]);
