// SPDX-License-Identifier: BSD-3-Clause
// Reads the kernel's own counters before and after a command, into files of a folder, and the figures of getrusage and
// the CPU clock for a thread's own work. Each reading lies between two marks in the trace: calls of
// sched_get_priority_max whose argument, which no other program uses, numbers them.

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BEFORE = 20000, AFTER = 20100, OWN = 20200, FAULTS = 20300, ROUNDS = 20, PAGES = 50, CALLS = 500 };

static const char *const FILES[] = { "interrupts", "softirqs", "stat" };

static void mark(int number) {
    syscall(SYS_sched_get_priority_max, number);
}

static void read_all(const char *folder, const char *when, int first) {
    for (int n = 0; n < 3; n++) {
        static char text[1 << 18];
        char path[256];
        snprintf(path, sizeof path, "/proc/%s", FILES[n]);
        FILE *in = fopen(path, "r");
        if (!in) {
            err(1, "%s", path);
        }
        mark(first + 2 * n);
        size_t size = fread(text, 1, sizeof text, in);
        mark(first + 2 * n + 1);
        fclose(in);
        snprintf(path, sizeof path, "%s/%s.%s", folder, FILES[n], when);
        FILE *out = fopen(path, "w");
        if (!out || fwrite(text, 1, size, out) != size || fclose(out)) {
            err(1, "%s", path);
        }
    }
}

static long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static long vmstat(const char *key) {
    FILE *in = fopen("/proc/vmstat", "r");
    char name[64];
    long value;
    while (in && fscanf(in, "%63s %ld", name, &value) == 2) {
        if (strcmp(name, key) == 0) {
            fclose(in);
            return value;
        }
    }
    errx(1, "/proc/vmstat: no %s", key);
}

// Touches pages that have to be read from a file.
static void read_pages(void) {
    int file = open("/usr/bin/perl", O_RDONLY);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    long page = sysconf(_SC_PAGESIZE);
    volatile char *pages = mmap(NULL, PAGES * page, PROT_READ, MAP_PRIVATE, file, 0);
    madvise((void *)pages, PAGES * page, MADV_RANDOM);
    for (int n = 0; n < PAGES; n++) {
        (void)pages[n * page];
    }
    munmap((void *)pages, PAGES * page);
    close(file);
}

// Faults, sleeps, calls and computing of this thread.
static void work(void) {
    for (int round = 0; round < ROUNDS; round++) {
        long page = sysconf(_SC_PAGESIZE);
        char *pages = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int n = 0; n < PAGES; n++) {
            pages[n * page] = 1;
        }
        munmap(pages, PAGES * page);
        for (int n = 0; n < CALLS; n++) {
            syscall(SYS_getppid);
            long value;
            __asm__ volatile("int $0x80" : "=a"(value) : "a"(20) : "memory");
        }
        for (volatile int n = 0; n < 1000000; n++) {
        }
        usleep(2000);
    }
}

static void own(void) {
    struct rusage before, after;
    mark(OWN);
    getrusage(RUSAGE_THREAD, &before);
    long ns = cpu_ns();
    mark(OWN + 1);
    work();
    mark(OWN + 2);
    ns = cpu_ns() - ns;
    getrusage(RUSAGE_THREAD, &after);
    mark(OWN + 3);
    printf("faults=%ld\n", after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt);
    printf("blocked=%ld\n", after.ru_nvcsw - before.ru_nvcsw);
    printf("switches=%ld\n", after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw);
    printf("ns=%ld\ncalls=%d\n", ns, ROUNDS * CALLS);
}

static void faults(void) {
    mark(FAULTS);
    long faults = vmstat("pgfault"), major = vmstat("pgmajfault");
    mark(FAULTS + 1);
    read_pages();
    mark(FAULTS + 2);
    printf("pgfault=%ld\n", vmstat("pgfault") - faults);
    printf("pgmajfault=%ld\n", vmstat("pgmajfault") - major);
    mark(FAULTS + 3);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        errx(2, "FOLDER COMMAND...");
    }
    own();
    faults();
    read_all(argv[1], "before", BEFORE);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    read_all(argv[1], "after", AFTER);
    return status != 0;
}
