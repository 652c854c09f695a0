// SPDX-License-Identifier: BSD-3-Clause
// Makes system calls that are denied, diverted or decided by another process, each kind in processes of its own name.
// In most kinds the call is getppid, CALLS times, and the program checks its return value.

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 100, NO_CALL = 900, MADE_UP = 4711, SLOW_US = 20000 };

static void check(int is_right, const char *what) {
    if (!is_right) {
        err(1, "%s", what);
    }
}

// Lets `action` decide on call `nr`; the listener, if there is to be one.
static int filter(int nr, unsigned action, unsigned flags) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
    int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    check(listener >= 0, "filter");
    return listener;
}

static void deny(void) {
    filter(SYS_getppid, SECCOMP_RET_ERRNO | EACCES, 0);
    for (int n = 0; n < CALLS; n++) {
        check(syscall(SYS_getppid) == -1 && errno == EACCES, "denied");
    }
}

static void deny_unknown(void) {
    filter(NO_CALL, SECCOMP_RET_ERRNO | EPERM, 0);
    for (int n = 0; n < CALLS; n++) {
        check(syscall(NO_CALL) == -1 && errno == EPERM, "denied");
    }
}

// Its entry in the page that programs called before there was a vDSO.
#define OLD_TIME ((long (*)(long *))0xffffffffff600400)

static void deny_old(void) {
    filter(SYS_time, SECCOMP_RET_ERRNO | EACCES, 0);
    for (int n = 0; n < CALLS; n++) {
        check(OLD_TIME(NULL) == -EACCES, "denied");
    }
}

static volatile int trapped;
static volatile char selector;

static void on_sigsys(int signal) {
    (void)signal;
    selector = 0;
    trapped++;
}

static void trap(void) {
    signal(SIGSYS, on_sigsys);
    filter(SYS_getppid, SECCOMP_RET_TRAP, 0);
    for (int n = 0; n < CALLS; n++) {
        syscall(SYS_getppid);
    }
    check(trapped == CALLS, "trapped");
}

static void divert(void) {
    signal(SIGSYS, on_sigsys);
    check(prctl(59, 1, 0, 0, &selector) == 0, "user dispatch");
    for (int n = 0; n < CALLS; n++) {
        selector = 1;
        syscall(SYS_getppid);
    }
    check(trapped == CALLS, "diverted");
}

static void *killed(void *unused) {
    filter(SYS_getppid, SECCOMP_RET_KILL_THREAD, 0);
    syscall(SYS_getppid);
    return unused;
}

static void kill_thread(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, killed, NULL) == 0, "thread");
    usleep(200000);
}

static void kill_process(void) {
    filter(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0);
    syscall(SYS_getppid);
}

static void strict(void) {
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, "strict");
    syscall(SYS_getppid);
}

static volatile int listener = -1;

// Answers each in turn with a value, an error, or permission to make the call.
static void *supervise(void *unused) {
    prctl(PR_SET_NAME, "supervisor", 0, 0, 0);
    while (listener < 0) {
        usleep(1000);
    }
    for (int n = 0; n < 3; n++) {
        struct seccomp_notif asked;
        memset(&asked, 0, sizeof asked);
        check(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0, "asked");
        usleep(SLOW_US);
        struct seccomp_notif_resp answer = {.id = asked.id};
        switch (n) {
        case 0:
            answer.val = MADE_UP;
            break;
        case 1:
            answer.error = -EPERM;
            break;
        default:
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        }
        check(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0, "answer");
    }
    return unused;
}

static void ask(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, supervise, NULL) == 0, "thread");
    listener = filter(SYS_getppid, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    check(syscall(SYS_getppid) == MADE_UP, "made up");
    check(syscall(SYS_getppid) == -1 && errno == EPERM, "error");
    check(syscall(SYS_getppid) > 1, "allowed");
}

static void traced(void) {
    ptrace(PTRACE_TRACEME);
    pid_t self = getpid();
    syscall(SYS_kill, self, SIGSTOP);
    for (int n = 0; n < CALLS; n++) {
        check(syscall(SYS_getppid) == MADE_UP, "traced");
    }
}

// Skips the calls of `child`, or emulates them.
static void decide(pid_t child, int request) {
    int status;
    check(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "stop");
    for (int n = 0; n < CALLS; n++) {
        struct user_regs_struct regs;
        ptrace(request, child, 0, 0);
        check(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "entry");
        ptrace(PTRACE_GETREGS, child, 0, &regs);
        if (regs.orig_rax != SYS_getppid) {
            // The stop at the end of kill().
            n--;
            continue;
        }
        regs.rax = MADE_UP;
        if (request == PTRACE_SYSCALL) {
            regs.orig_rax = -1;
        }
        ptrace(PTRACE_SETREGS, child, 0, &regs);
        if (request == PTRACE_SYSCALL) {
            ptrace(request, child, 0, 0);
            check(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "exit");
        }
    }
    ptrace(PTRACE_DETACH, child, 0, 0);
    check(waitpid(child, &status, 0) == child && status == 0, "traced");
}

static void untraced(void) {
    filter(SYS_getppid, SECCOMP_RET_TRACE, 0);
    for (int n = 0; n < CALLS; n++) {
        check(syscall(SYS_getppid) == -1 && errno == ENOSYS, "untraced");
    }
}

static void filtered(void) {
    ptrace(PTRACE_TRACEME);
    raise(SIGSTOP);
    filter(SYS_getppid, SECCOMP_RET_TRACE, 0);
    for (int n = 0; n < CALLS; n++) {
        check(syscall(SYS_getppid) == MADE_UP, "filtered");
    }
}

// Lets `child` go on to the next call that its filter leaves to its tracer.
static void next_asked(pid_t child) {
    int status;
    ptrace(PTRACE_CONT, child, 0, 0);
    check(waitpid(child, &status, 0) == child && status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8), "asked");
}

static pid_t asks(pid_t child) {
    int status;
    check(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "stop");
    ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESECCOMP);
    return child;
}

// Refuses the calls of `child` that its filter leaves to its tracer.
static void refuse(pid_t child) {
    int status;
    for (int n = 0; n < CALLS; n++) {
        struct user_regs_struct regs;
        next_asked(child);
        ptrace(PTRACE_GETREGS, child, 0, &regs);
        regs.orig_rax = -1;
        regs.rax = MADE_UP;
        ptrace(PTRACE_SETREGS, child, 0, &regs);
    }
    ptrace(PTRACE_DETACH, child, 0, 0);
    check(waitpid(child, &status, 0) == child && status == 0, "refused");
}

// Kills `child` while it waits for its tracer's decision.
static void kill_asking(pid_t child) {
    int status;
    next_asked(child);
    kill(child, SIGKILL);
    check(waitpid(child, &status, 0) == child && status == SIGKILL, "killed");
}

static pid_t start(const char *name, void (*act)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, name, 0, 0, 0);
        act();
        _exit(0);
    }
    return child;
}

static void run(const char *name, void (*act)(void), int expected) {
    int status;
    pid_t child = start(name, act);
    if (waitpid(child, &status, 0) != child || (status & 0x7f) != expected || status >> 8) {
        errx(1, "%s: status %x", name, status);
    }
}

int main(void) {
    run("deny", deny, 0);
    run("unknown", deny_unknown, 0);
    run("old", deny_old, 0);
    run("trap", trap, 0);
    run("divert", divert, 0);
    run("kill_thread", kill_thread, 0);
    run("kill_process", kill_process, SIGSYS);
    run("strict", strict, SIGKILL);
    run("ask", ask, 0);
    decide(start("skip", traced), PTRACE_SYSCALL);
    decide(start("emulate", traced), PTRACE_SYSEMU);
    run("untraced", untraced, 0);
    refuse(asks(start("refuse", filtered)));
    kill_asking(asks(start("kill_asking", filtered)));
    return 0;
}
