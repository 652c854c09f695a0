// SPDX-License-Identifier: BSD-3-Clause
// Runs a command, follows it and all its children by ptrace, and writes to a file what calls they made: lines
// `call BITS NUMBER COUNT` and `pid PID`. The command's own counting begins with a call that marks its place in the
// trace: sched_get_priority_max(30000).

#define _GNU_SOURCE
#include <err.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARK = 30000, CALLS = 512, PIDS = 1 << 22 };

static const long FOLLOW = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;

static long counts[2][CALLS];
static char known[PIDS];

static void count(pid_t pid) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) < 0) {
        err(1, "call of %d", pid);
    }
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr < CALLS) {
        counts[info.arch == AUDIT_ARCH_I386][info.entry.nr]++;
    }
}

// The signal to go on with after a stop.
static int stopped(pid_t pid, int status) {
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
        count(pid);
        return 0;
    }
    int is_event = status >> 16 != 0 || signal == SIGTRAP;
    int is_birth = !known[pid] && signal == SIGSTOP;
    return is_event || is_birth ? 0 : signal;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        errx(2, "FILE COMMAND...");
    }
    pid_t first = fork();
    if (first == 0) {
        ptrace(PTRACE_TRACEME);
        raise(SIGSTOP);
        syscall(SYS_sched_get_priority_max, MARK);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status, result = 0;
    if (waitpid(first, &status, __WALL) != first || ptrace(PTRACE_SETOPTIONS, first, 0, FOLLOW) < 0) {
        err(1, "%s", argv[2]);
    }
    known[first] = 1;
    ptrace(PTRACE_SYSCALL, first, 0, 0);
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (WIFSTOPPED(status)) {
            int signal = stopped(pid, status);
            ptrace(PTRACE_SYSCALL, pid, 0, signal);
        } else if (pid == first) {
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
        known[pid] = 1;
    }
    FILE *out = fopen(argv[1], "w");
    if (!out) {
        err(1, "%s", argv[1]);
    }
    for (int is_32 = 0; is_32 < 2; is_32++) {
        for (int number = 0; number < CALLS; number++) {
            if (counts[is_32][number]) {
                fprintf(out, "call %d %d %ld\n", is_32 ? 32 : 64, number, counts[is_32][number]);
            }
        }
    }
    for (pid_t pid = 0; pid < PIDS; pid++) {
        if (known[pid]) {
            fprintf(out, "pid %d\n", pid);
        }
    }
    return fclose(out) == 0 ? result : 1;
}
