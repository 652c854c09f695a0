// SPDX-License-Identifier: BSD-3-Clause
// Makes a thread wait against its will, and makes work on a thread's way out of the kernel. The first argument selects
// the case:
//   spin SECONDS    computes for this long
//   stop SECONDS    stops itself, and when it continues computes for this long
//   eat MIB         writes to this much memory
//   write MIB FILE  writes this much to a file
//   signals N       sends itself N signals, and puts as many files in the places of others

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void spin(double seconds) {
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - end.tv_sec + (now.tv_nsec - end.tv_nsec) / 1e9 < seconds);
}

static void write_all(long mib, const char *path) {
    static char page[1 << 20];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (long n = 0; n < mib; n++) {
        if (write(file, page, sizeof page) != sizeof page) {
            err(1, "%s", path);
        }
    }
    close(file);
}

static volatile long handled;

static void on_signal(int signal) {
    (void)signal;
    handled++;
}

static void get_signals(long times) {
    signal(SIGUSR1, on_signal);
    for (long n = 0; n < times; n++) {
        syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
        int file = open("/dev/null", O_RDONLY);
        dup2(STDIN_FILENO, file);
        close(file);
    }
    if (handled != times) {
        errx(1, "%ld signals", handled);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        errx(2, "WHAT HOW-MUCH");
    }
    prctl(PR_SET_NAME, argv[1], 0, 0, 0);
    if (!strcmp(argv[1], "stop")) {
        syscall(SYS_kill, getpid(), SIGSTOP);
        spin(atof(argv[2]));
    } else if (!strcmp(argv[1], "spin")) {
        spin(atof(argv[2]));
    } else if (!strcmp(argv[1], "eat")) {
        size_t bytes = (size_t)atol(argv[2]) << 20;
        char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 1, bytes);
    } else if (!strcmp(argv[1], "write")) {
        write_all(atol(argv[2]), argv[3]);
    } else {
        get_signals(atol(argv[2]));
    }
    return 0;
}
