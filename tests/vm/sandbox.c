// SPDX-License-Identifier: BSD-3-Clause
// Programs in sandboxes that mark: one of each kind, which puts itself into its sandbox at once, or after its first mark.
// For each line that it reads it has all of them mark, and prints each kind with how many marks that were, or how it ended.
//   sandbox            all, from programs of their own
//   sandbox KIND WHEN  one of them

#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <kutrace.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 64 };

static const char *const kinds[] = {"none", "strict", "bare", "openssh", "systemd", "docker", "chroot",
                                    "rights", "limits", "fork", "thread"};
enum { KINDS = sizeof kinds / sizeof *kinds };

// Has `action` taken for all calls but those of the list, or with `these` for those alone.
static void filter(const int *calls, int n, unsigned action, int these) {
    struct sock_filter code[ROOM] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {(unsigned short)(n + 3), code};
    for (int i = 0; i < n; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], (unsigned char)(n - i), 0);
    code[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, these ? SECCOMP_RET_ALLOW : action);
    code[n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, these ? action : SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(10);
}
#define FILTER(calls, action, these) filter(calls, sizeof calls / sizeof *calls, action, these)

static const int bare[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group};
// Of its sandbox before it knows its user; what else it lets through a program that only marks has no use for.
static const int openssh[] = {
    SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_brk, SYS_clock_gettime, SYS_close, SYS_getpid, SYS_getrandom,
    SYS_gettimeofday, SYS_madvise, SYS_mremap, SYS_munmap, SYS_nanosleep, SYS_poll, SYS_pselect6, SYS_rt_sigprocmask,
    SYS_shutdown, SYS_time, SYS_futex,
};
// What opens, maps, asks devices, and calls that are in no list of systemd's or Docker's.
static const int devices[] = {SYS_open, SYS_openat, SYS_openat2, SYS_ioctl, SYS_mmap, SYS_prctl, SYS_tkill, SYS_gettid, 1023};
static const int unknown[] = {SYS_userfaultfd, SYS_perf_event_open, SYS_bpf, SYS_keyctl, SYS_mount, SYS_setns, 1023};
static const int opens[] = {SYS_open, SYS_openat, SYS_openat2, SYS_ioctl, SYS_tkill, 1023};

static void enter(const char *kind) {
    if (!strcmp(kind, "strict") && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        _exit(11);
    if (!strcmp(kind, "bare"))
        FILTER(bare, SECCOMP_RET_KILL_PROCESS, 0);
    if (!strcmp(kind, "openssh"))
        FILTER(openssh, SECCOMP_RET_KILL_PROCESS, 0);
    if (!strcmp(kind, "systemd")) {
        FILTER(unknown, SECCOMP_RET_KILL_PROCESS, 1);
        FILTER(devices, SECCOMP_RET_KILL_PROCESS, 1);
    }
    if (!strcmp(kind, "docker"))
        FILTER(unknown, SECCOMP_RET_ERRNO | EPERM, 1);
    if (!strcmp(kind, "fork") || !strcmp(kind, "thread"))
        FILTER(opens, SECCOMP_RET_KILL_PROCESS, 1);
    if (!strcmp(kind, "chroot") && (chroot("empty") || chdir("/")))
        _exit(12);
    if (!strcmp(kind, "rights") && (setgroups(0, NULL) || setgid(65534) || setuid(65534)))
        _exit(13);
    if (!strcmp(kind, "limits")) {
        struct rlimit none = {0, 0};
        if (setrlimit(RLIMIT_FSIZE, &none) || setrlimit(RLIMIT_NOFILE, &none) || setrlimit(RLIMIT_MEMLOCK, &none))
            _exit(14);
    }
}

static int mark(void) {
    int recorded = (int)KUTRACE_MARK("sandboxed") + (int)KUTRACE_COUNTER("number", -3);
    recorded += (int)KUTRACE_SPAN_BEGIN("part");
    return recorded + (int)KUTRACE_SPAN_END("part");
}

static void *mark_in_thread(void *recorded) {
    *(int *)recorded = mark();
    return NULL;
}

static int work(const char *kind) {
    int recorded = 0, status;
    pthread_t thread;
    if (!strcmp(kind, "fork")) {
        pid_t child = fork();
        if (!child)
            _exit(mark());
        return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    if (!strcmp(kind, "thread")) {
        if (pthread_create(&thread, NULL, mark_in_thread, &recorded) || pthread_join(thread, NULL))
            return -1;
        return recorded;
    }
    return mark();
}

static int be(const char *kind, const char *when) {
    char asked, answer;
    // The strict mode forbids a thread the clock, and a thread that has memory for entries already reads that.
    if (!strcmp(when, "later") && strcmp(kind, "strict"))
        mark();
    enter(kind);
    while (read(0, &asked, 1) == 1) {
        answer = (char)('0' + work(kind));
        if (write(1, &answer, 1) != 1)
            break;
    }
    // Of all ends the one that every sandbox allows.
    syscall(SYS_exit, 0);
    return 1;
}

static pid_t begin(char *self, const char *kind, const char *when, int *to, int *from) {
    int asks[2], answers[2];
    if (pipe2(asks, 02000000) || pipe2(answers, 02000000))
        exit(1);
    pid_t child = fork();
    if (!child) {
        dup2(asks[0], 0);
        dup2(answers[1], 1);
        execl(self, self, kind, when, NULL);
        _exit(1);
    }
    close(asks[0]), close(answers[1]);
    *to = asks[1], *from = answers[0];
    return child;
}

int main(int argc, char **argv) {
    static const char *const whens[] = {"first", "later"};
    int to[2 * KINDS], from[2 * KINDS], status;
    pid_t child[2 * KINDS];
    char line[64];

    if (argc > 2)
        return be(argv[1], argv[2]);
    signal(SIGPIPE, SIG_IGN);
    for (int n = 0; n < 2 * KINDS; n++)
        child[n] = begin(argv[0], kinds[n / 2], whens[n % 2], &to[n], &from[n]);
    while (fgets(line, sizeof line, stdin)) {
        for (int n = 0; n < 2 * KINDS; n++) {
            char answer = '-';
            if (write(to[n], "", 1) != 1 || read(from[n], &answer, 1) != 1)
                answer = 'x';
            printf("%s%s_%s=%c", n ? " " : "", kinds[n / 2], whens[n % 2], answer);
        }
        printf("\n");
        fflush(stdout);
    }
    for (int n = 0; n < 2 * KINDS; n++) {
        close(to[n]);
        if (waitpid(child[n], &status, 0) != child[n] || status)
            printf("%s_%s ended with %x\n", kinds[n / 2], whens[n % 2], status);
    }
    return 0;
}
