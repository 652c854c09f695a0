// SPDX-License-Identifier: BSD-3-Clause
// Runs a command between two readings of /proc/stat, and marks both in the trace by a call of sched_get_priority_max.
// Prints the kernel's counts over that time. With a number it calls getppid that many times instead.

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long long counted(const char *what) {
    static char text[65536];
    FILE *stat = fopen("/proc/stat", "r");
    size_t size = stat ? fread(text, 1, sizeof text - 1, stat) : 0;
    text[size] = 0;
    char *line = strstr(text, what);
    if (!stat || !line) {
        perror("/proc/stat");
        exit(1);
    }
    fclose(stat);
    return strtoull(line + strlen(what), NULL, 10);
}

int main(int argc, char **argv) {
    if (argc == 2) {
        for (long calls = atol(argv[1]); calls > 0; calls--) {
            syscall(SYS_getppid);
        }
        return 0;
    }
    unsigned long long before = counted("\nctxt ");
    sched_get_priority_max(SCHED_OTHER);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    sched_get_priority_max(SCHED_OTHER);
    unsigned long long after = counted("\nctxt ");
    printf("ctxt=%llu\n", after - before);
    return status ? 1 : 0;
}
