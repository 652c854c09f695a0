// SPDX-License-Identifier: BSD-3-Clause
// A service that the kernel kills as soon as it makes system call 1023, or asks by prctl for its filter. It sees no
// /dev/kutrace_programs, and with an argument no page of the recorder; if that is "blind" it can open no file, like
// the processes of OpenSSH before authentication. Prints the results.

#include <errno.h>
#include <kutrace.h>
#include <kutrace_original.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int seal(int is_blind) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1023, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, is_blind ? SYS_openat : 1023, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, is_blind ? SYS_open : 1023, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int argc, char **argv) {
    int is_blind = argc > 1 && !strcmp(argv[1], "blind");
    // A service that asks before it is sealed must not keep the answer forever.
    if (argc > 1 && !is_blind)
        kutrace_test();
    if (seal(is_blind))
        return 2;
    KUTRACE_SPAN("sealed");
    long marks = KUTRACE_MARK("mark") + kutrace_mark_a("a") + kutrace_mark_d(1);
    kutrace_span span = kutrace_span_begin("span");
    kutrace_span_end(span);
    printf("%ld %d\n", marks, kutrace_is_on());
    if (argc == 1 || is_blind)
        printf("%ld %ld\n", kutrace_test(), kutrace_version());
    return 0;
}
