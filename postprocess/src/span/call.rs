// SPDX-License-Identifier: BSD-3-Clause
//! Work of system calls, by name, as far as it shows what a thread waits for in them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Kind of work that a system call does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallKind {
    /// Takes and releases locks.
    Lock,
    /// Moves bytes of a pipe, a file or a message queue; or opens or closes one.
    Bytes,
    /// Moves bytes of a socket, or sets one up.
    Socket,
    /// Waits for any of several files.
    Poll,
    /// Starts, ends or signals threads, or waits for that.
    Task,
    /// Sleeps.
    Sleep,
    /// Changes the address space.
    Memory,
    /// Writes back to a disk.
    Sync,
    /// Works on names and properties of files.
    Files,
    /// Anything else.
    #[default]
    Other,
}

/// A system call that differs from others of its kind in what a thread waits for in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Waits only for locks of files and for semaphores.
    FileLock,
    /// Waits only for other tasks or a signal, for any length of time.
    Wait,
    /// Closes files.
    Close,
    /// Opens files.
    Open,
    /// Writes; in a file system that is a program (FUSE), the reply to a thread that opens a file.
    Write,
    /// Names a peer, which may be a file.
    Connect,
    /// Waits for work that was handed to the kernel.
    Ring,
    /// Loads a program.
    Exec,
    /// Starts a thread, and returns its id.
    Fork,
    /// Ends threads, and does not return.
    End,
    /// Traces another thread.
    Ptrace,
    /// Sends a signal.
    Signal,
}

/// Description of a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Kind of work.
    pub work: CallKind,
    /// Difference from other calls of that kind.
    pub special: Option<Special>,
}

impl Call {
    /// The system call of this name on any machine: names mean the same on all.
    pub fn named(name: &str) -> Call {
        CALLS.get(name).copied().unwrap_or_default()
    }
}

static CALLS: LazyLock<HashMap<&str, Call>> = LazyLock::new(|| {
    let mut calls: HashMap<&str, Call> = HashMap::new();
    for (work, names) in WORK {
        names.split_whitespace().for_each(|name| calls.entry(name).or_default().work = *work);
    }
    for (special, names) in SPECIAL {
        names.split_whitespace().for_each(|name| calls.entry(name).or_default().special = Some(*special));
    }
    calls
});

/// Calls by kind of work, including those of 32-bit programs and of systems other than Linux.
const WORK: &[(CallKind, &str)] = &[
    (
        CallKind::Lock,
        "fcntl fcntl64 flock futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake semop semtimedop
         semtimedop_time64 _umtx_op",
    ),
    (
        CallKind::Bytes,
        "close close_range copy_file_range dup2 dup3 ioctl mq_timedreceive mq_timedreceive_time64 mq_timedsend
         mq_timedsend_time64 msgrcv msgsnd open openat openat2 pread pread64 preadv preadv2 pwrite pwrite64 pwritev
         pwritev2 read readv sendfile sendfile64 splice tee vmsplice write writev",
    ),
    (
        CallKind::Socket,
        "accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64
         recvmsg send sendmmsg sendmsg sendto setsockopt shutdown socket socketcall socketpair",
    ),
    (
        CallKind::Poll,
        "_newselect epoll_pwait epoll_pwait2 epoll_wait io_getevents io_pgetevents io_pgetevents_time64 io_uring_enter
         kevent poll ppoll ppoll_time64 pselect6 pselect6_time64 select",
    ),
    (
        CallKind::Task,
        "clone clone3 execve execveat exit exit_group fork kill pause pidfd_send_signal ptrace rt_sigqueueinfo
         rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigsuspend tgkill tkill vfork wait4 wait6
         waitid waitpid",
    ),
    (CallKind::Sleep, "clock_nanosleep clock_nanosleep_time64 nanosleep"),
    (
        CallKind::Memory,
        "brk madvise mlock mlock2 mlockall mmap mmap2 mprotect mremap munlock munlockall munmap process_madvise",
    ),
    (CallKind::Sync, "fdatasync fsync msync sync sync_file_range sync_file_range2 syncfs"),
    (
        CallKind::Files,
        "access chdir chmod creat faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchmod fchmodat fchmodat2 fstat
         fstat64 fstatat fstatat64 ftruncate ftruncate64 getdents getdents64 link linkat lstat lstat64 mkdir mkdirat
         newfstatat oldlstat oldstat readahead readdir readlink readlinkat rename renameat renameat2 rmdir stat stat64
         statfs statfs64 statx symlink symlinkat truncate truncate64 unlink unlinkat",
    ),
];

/// Calls that differ from others of their kind.
const SPECIAL: &[(Special, &str)] = &[
    (Special::FileLock, "fcntl fcntl64 flock semop semtimedop semtimedop_time64"),
    (Special::Wait, "pause rt_sigsuspend sigsuspend wait4 wait6 waitid waitpid"),
    (Special::Close, "close close_range dup2 dup3"),
    (Special::Open, "creat open openat openat2"),
    (Special::Write, "splice write writev"),
    (Special::Connect, "bind connect"),
    (Special::Ring, "io_getevents io_pgetevents io_pgetevents_time64 io_uring_enter"),
    (Special::Exec, "execve execveat"),
    (Special::Fork, "clone clone3 fork vfork"),
    (Special::End, "exit exit_group"),
    (Special::Ptrace, "ptrace"),
    (Special::Signal, "kill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo tgkill tkill"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_call_is_in_one_line_of_each_table() {
        let work: Vec<&str> = WORK.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
        let special: Vec<&str> = SPECIAL.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
        for names in [work, special] {
            let once: HashSet<&str> = names.iter().copied().collect();
            assert_eq!(once.len(), names.len());
        }
    }
}
