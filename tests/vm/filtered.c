// SPDX-License-Identifier: BSD-3-Clause
// Makes system call 1023 under a filter that denies it, by an errno or, with an argument, by a signal: checks the
// program's return value, and the values that a handler of that signal finds.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define CALL 1023
#define MARK_D 0x20dL

static volatile long found;

static void handler(int number, siginfo_t *info, void *context) {
    greg_t *rax = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX];

    (void)number, (void)info;
    found = *rax;
    *rax = -EACCES;
}

int main(int argc, char **argv) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, argc > 1 ? SECCOMP_RET_TRAP : SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

    (void)argv;
    sigaction(SIGSYS, &action, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 1;
    long answer = syscall(CALL, 7, MARK_D << 32 | 4711);
    printf("%ld %d %ld\n", answer, errno, found);
    return 0;
}
