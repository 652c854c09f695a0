#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the folder in which it runs one that runc runs: container.py DEVICES PROGRAM ARGUMENTS...

The program runs as an ordinary user, with nothing of the machine but the devices given, such as /dev/kutrace_programs,
and a filter like Docker's: what is not on its list is answered with EPERM.
"""
import json
import os
import shutil
import subprocess
import sys

CALLS = """
    access arch_prctl brk capget capset chdir clock_gettime clone clone3 close dup3 epoll_ctl epoll_pwait execve exit
    exit_group faccessat2 fchdir fchown fcntl fstat fstatfs futex getcwd getdents64 getegid geteuid getgid getpid getppid
    getrandom gettid getuid ioctl lseek madvise mmap mprotect munmap nanosleep newfstatat open openat prctl pread64
    prlimit64 read readlink readlinkat rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_getaffinity set_robust_list
    set_tid_address setgid setgroups setuid sigaltstack statfs tgkill uname unlinkat write
""".split()


def device(path):
    number = os.stat(path).st_rdev
    return {"path": path, "type": "c", "major": os.major(number), "minor": os.minor(number), "fileMode": 0o666}


devices = [device(path) for path in sys.argv[1].split()]
program = sys.argv[2]
os.makedirs("rootfs/bin", exist_ok=True)
shutil.copy(program, "rootfs/bin")
subprocess.run(["runc", "spec"], check=True)
with open("config.json") as file:
    config = json.load(file)
config["process"].update(
    terminal=False, args=["/bin/" + os.path.basename(program)] + sys.argv[3:], user={"uid": 1000, "gid": 1000}
)
config["linux"]["devices"] = devices
config["linux"]["resources"]["devices"] += [
    {"allow": True, "type": "c", "major": one["major"], "minor": one["minor"], "access": "rw"} for one in devices
]
config["linux"]["seccomp"] = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "architectures": ["SCMP_ARCH_X86_64"],
    "syscalls": [{"names": CALLS, "action": "SCMP_ACT_ALLOW"}],
}
with open("config.json", "w") as file:
    json.dump(config, file)
