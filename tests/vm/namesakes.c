// SPDX-License-Identifier: BSD-3-Clause
// namesakes CHILDREN: forks one child after the other, whose pids soon come again, where none is above 400: those from 300
// on. Each calls itself by its number; every sixteenth of those pids goes to CPU 3 then, where little else happens, and
// marks that it ran there.
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(uint32_t number) {
    char name[16];
    snprintf(name, sizeof name, "n%u", number);
    prctl(PR_SET_NAME, name);
    if (getpid() >= 300 && getpid() % 16 == 0) {
        cpu_set_t there;
        CPU_ZERO(&there);
        CPU_SET(3, &there);
        if (sched_setaffinity(0, sizeof there, &there)) {
            _exit(1);
        }
        syscall(1023, 7, 0x20dL << 32 | number);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    for (uint32_t number = 1; number <= (uint32_t)atoi(argv[argc - 1]); number++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            child(number);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
            perror("namesakes");
            return 1;
        }
    }
    return 0;
}
