// SPDX-License-Identifier: BSD-3-Clause
//! What numbers mean on the machine that was traced: told by the trace's own tables of names, x86-64 Linux until then.
//!
//! Invariant: where the numbers of system calls are not known nothing is read from them.

use crate::event::number;

/// What a system call does, as far as it tells what a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Takes and gives locks.
    Lock,
    /// Moves bytes: of a pipe, a file, a queue of messages; or opens and closes one.
    Bytes,
    /// Moves bytes of a socket.
    Socket,
    /// Waits for any of several files.
    Poll,
    /// Begins, ends, signals threads, or waits for that.
    Task,
    /// Sleeps.
    Sleep,
    /// Changes the address space.
    Memory,
    /// Writes back to a disk.
    Sync,
    /// Works on names and properties of files.
    Files,
    /// Nothing of these.
    Other,
}

/// A system call that is told from others which do such work, for what a thread waits for in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Waits for locks of files and for semaphores only: semop, fcntl, flock.
    FileLock,
    /// Waits for other tasks or a signal only, however long: wait4, waitid, pause, rt_sigsuspend.
    Wait,
    /// Closes files: close, dup2, close_range.
    Close,
    /// Opens files: open, openat.
    Open,
    /// Names a peer, that may be a file: connect, bind.
    Connect,
    /// Waits for what was given to the kernel to do: io_uring_enter, io_getevents.
    Ring,
    /// Loads a program: execve.
    Exec,
    /// Begins a thread: clone, fork, vfork.
    Fork,
    /// Ends threads: exit, exit_group.
    End,
    /// Traces another.
    Ptrace,
    /// Sends a signal.
    Signal,
}

/// Whose system calls they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Calls {
    #[default]
    X86,
    /// Linux on arm64 and RISC-V.
    Generic,
    /// Of another system.
    Other,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    calls: Calls,
    /// Interrupts of timers.
    timers: Vec<u32>,
    /// Interrupts of disks.
    disks: Vec<u32>,
    /// Interrupts by which one CPU makes another do something.
    remote: Vec<u32>,
    /// The event number of softirqs.
    softirq: u32,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            calls: Calls::X86,
            timers: vec![number::IRQ + 0xec],
            disks: Vec::new(),
            remote: [0xf6, 0xfb, 0xfc, 0xfd].map(|vector| number::IRQ + vector).into(),
            softirq: number::SOFTIRQ,
        }
    }
}

impl Machine {
    /// Learns from a name: the number of the call that locks are made of tells whose system calls they are.
    pub fn learn(&mut self, kind: u32, n: u32, text: &str) {
        let irq = number::IRQ + (n & 0xff);
        let starts = |with: &[&str]| with.iter().any(|w| text.starts_with(w));
        match (kind, text) {
            (number::SYSCALL_NAME, "futex" | "_umtx_op") => {
                self.calls = match n {
                    202 => Calls::X86,
                    98 => Calls::Generic,
                    _ => Calls::Other,
                }
            }
            (number::IRQ_NAME, "BH") => self.softirq = irq,
            (number::IRQ_NAME, _) if starts(&["local_timer", "arch_timer", "riscv-timer", "timer_ipi"]) => {
                self.timers.push(irq);
            }
            (number::IRQ_NAME, _) if starts(&["reschedule_ipi", "call_func", "irq_work_ipi", "wakeup_ipi"]) => {
                self.remote.push(irq);
            }
            (number::IRQ_NAME, _) if starts(&["nvme", "ahci", "ata_", "mmc"]) || text.contains("-req") => {
                self.disks.push(irq);
            }
            _ => {}
        }
    }

    /// The number of an event where softirqs have the one they have on x86-64.
    pub fn number(&self, event: u32) -> u32 {
        match event & !number::RETURN_BIT == self.softirq {
            true => number::SOFTIRQ | event & number::RETURN_BIT,
            false => event,
        }
    }

    /// Whether this interrupt is a timer's.
    pub fn is_timer(&self, irq: u32) -> bool {
        self.timers.contains(&irq)
    }

    /// Whether this interrupt is a disk's.
    pub fn is_disk(&self, irq: u32) -> bool {
        self.disks.contains(&irq)
    }

    /// Whether what is done in this interrupt was asked for by the CPU that sent it.
    pub fn is_remote(&self, irq: u32) -> bool {
        self.remote.contains(&irq)
    }

    /// Whether this trap is a page fault.
    pub fn is_page_fault(&self, trap: u32) -> bool {
        match self.calls {
            Calls::Generic => (number::TRAP + 4..number::TRAP + 16).contains(&trap),
            _ => trap == number::TRAP + 14,
        }
    }

    /// Whether this call never returns: exit, exit_group.
    pub fn is_exit(&self, call: u32) -> bool {
        self.special(call) == Some(Special::End)
    }

    /// What sets this call apart.
    pub fn special(&self, call: u32) -> Option<Special> {
        match (self.calls, call.wrapping_sub(number::SYSCALL)) {
            (Calls::X86, nr @ 0..512) => special_x86(nr),
            (Calls::X86, _) if call >= number::SYSCALL32 => special_i386(call - number::SYSCALL32),
            (Calls::Generic, nr @ 0..512) => special_generic(nr),
            _ => None,
        }
    }

    /// Whether this call returns the id of a new thread: clone, fork, vfork, clone3.
    pub fn is_birth(&self, call: u32) -> bool {
        match self.calls {
            Calls::X86 => matches!(call.wrapping_sub(number::SYSCALL), 56..=58 | 435),
            Calls::Generic => matches!(call.wrapping_sub(number::SYSCALL), 220 | 435),
            Calls::Other => false,
        }
    }

    /// What this call does.
    pub fn work(&self, call: u32) -> Work {
        match (self.calls, call.wrapping_sub(number::SYSCALL)) {
            (Calls::X86, nr @ 0..512) => x86(nr),
            (Calls::X86, _) if call >= number::SYSCALL32 => i386(call - number::SYSCALL32),
            (Calls::Generic, nr @ 0..512) => generic(nr),
            _ => Work::Other,
        }
    }
}

/// System calls of x86-64, `asm/unistd_64.h`.
fn special_x86(nr: u32) -> Option<Special> {
    Some(match nr {
        65 | 72 | 73 | 220 => Special::FileLock,
        34 | 61 | 130 | 247 => Special::Wait,
        3 | 33 | 292 | 436 => Special::Close,
        2 | 85 | 257 | 437 => Special::Open,
        42 | 49 => Special::Connect,
        208 | 333 | 426 => Special::Ring,
        59 | 322 => Special::Exec,
        56..=58 | 435 => Special::Fork,
        60 | 231 => Special::End,
        101 => Special::Ptrace,
        62 | 129 | 200 | 234 | 297 | 424 => Special::Signal,
        _ => return None,
    })
}

/// System calls of 32-bit programs, `asm/unistd_32.h`.
fn special_i386(nr: u32) -> Option<Special> {
    Some(match nr {
        55 | 143 | 221 | 420 => Special::FileLock,
        7 | 29 | 72 | 114 | 179 | 284 => Special::Wait,
        6 | 63 | 330 | 436 => Special::Close,
        5 | 8 | 295 | 437 => Special::Open,
        361 | 362 => Special::Connect,
        247 | 416 | 426 => Special::Ring,
        11 | 358 => Special::Exec,
        2 | 120 | 190 | 435 => Special::Fork,
        1 | 252 => Special::End,
        26 => Special::Ptrace,
        37 | 178 | 238 | 270 | 335 | 424 => Special::Signal,
        _ => return None,
    })
}

/// System calls of Linux on newer machines, `asm-generic/unistd.h`.
fn special_generic(nr: u32) -> Option<Special> {
    Some(match nr {
        25 | 32 | 192 | 193 => Special::FileLock,
        95 | 133 | 260 => Special::Wait,
        24 | 57 | 436 => Special::Close,
        56 | 437 => Special::Open,
        200 | 203 => Special::Connect,
        4 | 292 | 426 => Special::Ring,
        221 | 281 => Special::Exec,
        220 | 435 => Special::Fork,
        93 | 94 => Special::End,
        117 => Special::Ptrace,
        129..=131 | 138 | 240 | 424 => Special::Signal,
        _ => return None,
    })
}

/// System calls of x86-64, `asm/unistd_64.h`.
fn x86(nr: u32) -> Work {
    match nr {
        // semop, fcntl, flock, futex, semtimedop, futex_waitv, futex_wake, futex_wait, futex_requeue
        65 | 72 | 73 | 202 | 220 | 449 | 454..=456 => Work::Lock,
        // read, write, open, close, ioctl to writev, dup2, sendfile, msgsnd, msgrcv, mq_timed*
        0..=3 | 16..=20 | 33 | 40 | 69 | 70 | 242 | 243 => Work::Bytes,
        // openat, splice, tee, vmsplice, dup3, preadv*, pwritev*, copy_file_range, close_range, openat2
        257 | 275 | 276 | 278 | 292 | 295 | 296 | 326..=328 | 436 | 437 => Work::Bytes,
        // connect to shutdown, accept4, recvmmsg, sendmmsg
        42..=48 | 288 | 299 | 307 => Work::Socket,
        // poll, select, io_getevents, epoll_wait, pselect6, ppoll, epoll_pwait*, io_pgetevents, io_uring_enter
        7 | 23 | 208 | 232 | 270 | 271 | 281 | 333 | 426 | 441 => Work::Poll,
        // pause, clone to kill, ptrace, rt_sig*wait*, rt_sigqueueinfo, tkill, exit_group, tgkill, waitid
        34 | 56..=62 | 101 | 128..=130 | 200 | 231 | 234 | 247 => Work::Task,
        // rt_tgsigqueueinfo, execveat, pidfd_send_signal, clone3
        297 | 322 | 424 | 435 => Work::Task,
        // nanosleep, clock_nanosleep
        35 | 230 => Work::Sleep,
        // mmap to brk, mremap, madvise, mlock to mlockall, mlock2, process_madvise
        9..=12 | 25 | 28 | 149..=151 | 325 | 440 => Work::Memory,
        // msync, fsync, fdatasync, sync, sync_file_range, syncfs
        26 | 74 | 75 | 162 | 277 | 306 => Work::Sync,
        // stat to lstat, access, truncate to getdents, chdir, rename to chmod, statfs, readahead, getdents64, fadvise64
        4..=6 | 21 | 76..=78 | 80 | 82..=90 | 137 | 187 | 217 | 221 => Work::Files,
        // mkdirat, newfstatat to faccessat, fallocate, renameat2, statx, faccessat2
        258 | 262..=269 | 285 | 316 | 332 | 439 => Work::Files,
        _ => Work::Other,
    }
}

/// System calls of 32-bit programs, `asm/unistd_32.h`; those of [`x86`] where there are such.
fn i386(nr: u32) -> Work {
    match nr {
        55 | 143 | 221 | 240 | 420 | 422 | 449 | 454..=456 => Work::Lock,
        3..=6 | 54 | 63 | 145 | 146 | 187 | 239 | 295 | 313 | 315 | 316 | 330 => Work::Bytes,
        333 | 334 | 377..=379 | 437 => Work::Bytes,
        102 | 337 | 345 | 359..=373 | 417 => Work::Socket,
        82 | 142 | 168 | 247 | 256 | 308 | 309 | 319 | 413 | 414 | 416 | 426 | 441 => Work::Poll,
        1 | 2 | 7 | 26 | 29 | 37 | 72 | 114 | 120 | 177..=179 | 190 | 238 | 252 | 270 | 284 | 335 | 421 => Work::Task,
        358 | 424 | 435 => Work::Task,
        162 | 267 | 407 => Work::Sleep,
        45 | 90 | 91 | 125 | 150..=153 | 163 | 192 | 219 | 376 | 440 => Work::Memory,
        36 | 118 | 144 | 148 | 314 | 344 => Work::Sync,
        12 | 15 | 18 | 33 | 38..=40 | 83..=85 | 89 | 92..=94 | 99 | 106..=108 | 141 | 195..=197 | 220 => Work::Files,
        225 | 296 | 300..=307 | 324 | 353 | 383 | 439 => Work::Files,
        _ => Work::Other,
    }
}

/// System calls of Linux on newer machines, `asm-generic/unistd.h`; those of [`x86`] where there are such.
fn generic(nr: u32) -> Work {
    match nr {
        25 | 32 | 98 | 192 | 193 | 449 | 454..=456 => Work::Lock,
        24 | 29 | 56 | 57 | 63..=71 | 75..=77 | 182 | 183 | 188 | 189 | 285..=287 | 436 | 437 => Work::Bytes,
        202 | 203 | 206 | 207 | 210..=212 | 242 | 243 | 269 => Work::Socket,
        4 | 22 | 72 | 73 | 292 | 426 | 441 => Work::Poll,
        93..=95 | 117 | 129..=131 | 133 | 137 | 138 | 220 | 221 | 240 | 260 | 281 | 424 | 435 => Work::Task,
        101 | 115 => Work::Sleep,
        214..=216 | 222 | 226 | 228..=230 | 233 | 284 | 440 => Work::Memory,
        81..=84 | 227 | 267 => Work::Sync,
        34..=38 | 43 | 45..=49 | 53 | 61 | 78..=80 | 213 | 223 | 276 | 291 | 439 => Work::Files,
        _ => Work::Other,
    }
}
