// SPDX-License-Identifier: BSD-3-Clause
// Prints what five ways into the kernel cost, and four marks of a program, in ticks of the time stamp counter: instructions,
// where the guest counts them (xtask vm --icount). Of system calls, a page fault, a context switch and a mark the fewest
// of many rounds: the others were interrupted. Of an interrupt the median. With a number it calls getppid that often instead.

#define _GNU_SOURCE
#include <err.h>
#include <kutrace.h>
#include <kutrace_original.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { ROUNDS = 200, CALLS = 1000, OWN = 100, PAGES = 200, PAGE = 4096, INTERRUPTS = 251 };

static uint64_t fewest(void (*prepare)(void), void (*round)(void)) {
    uint64_t fewest = UINT64_MAX;
    for (int n = 0; n < ROUNDS; n++) {
        prepare();
        uint64_t begin = __rdtsc();
        round();
        uint64_t ticks = __rdtsc() - begin;
        if (ticks < fewest) {
            fewest = ticks;
        }
    }
    return fewest;
}

static void nothing(void) {
}

static void print(const char *what, uint64_t ticks, uint64_t times) {
    printf("%s %llu\n", what, (unsigned long long)((ticks + times / 2) / times));
}

static void call(void) {
    for (int n = 0; n < CALLS; n++) {
        syscall(SYS_getppid);
    }
}

static void wide_call(void) {
    for (int n = 0; n < CALLS; n++) {
        syscall(SYS_getuid);
    }
}

// Of a process whose parent has ended: it is the child of process 1 then, so the value takes one byte wherever this runs.
static uint64_t orphaned(void) {
    int ends[2];
    if (pipe(ends)) {
        err(1, "pipe");
    }
    pid_t child = fork();
    if (child < 0) {
        err(1, "fork");
    }
    if (child == 0) {
        pid_t parent = getpid();
        if (fork()) {
            _exit(0);
        }
        while (getppid() == parent) {
            sched_yield();
        }
        uint64_t ticks = fewest(nothing, call);
        _exit(write(ends[1], &ticks, sizeof ticks) != sizeof ticks);
    }
    waitpid(child, NULL, 0);
    uint64_t ticks;
    if (read(ends[0], &ticks, sizeof ticks) != sizeof ticks) {
        err(1, "read");
    }
    return ticks;
}

// As user 1000, a value that takes more than a byte.
static uint64_t wide(void) {
    if (setresuid(1000, -1, -1)) {
        err(1, "setresuid");
    }
    uint64_t ticks = fewest(nothing, wide_call);
    if (setresuid(0, -1, -1)) {
        err(1, "setresuid");
    }
    return ticks;
}

static void mark(void) {
    for (int n = 0; n < CALLS; n++) {
        kutrace_mark_d(n);
    }
}

// What goes into the program's own memory, without a system call; in all less than it can have.
static void own_mark(void) {
    for (int n = 0; n < OWN; n++) {
        KUTRACE_MARK("own");
    }
}

static void own_part(void) {
    for (int n = 0; n < OWN; n++) {
        KUTRACE_SPAN("part");
    }
}

static void own_value(void) {
    for (int n = 0; n < OWN; n++) {
        KUTRACE_COUNTER("value", n);
    }
}

static volatile char *pages;

static void forget(void) {
    if (madvise((void *)pages, PAGES * PAGE, MADV_DONTNEED)) {
        err(1, "madvise");
    }
}

static void touch(void) {
    for (int n = 0; n < PAGES; n++) {
        pages[n * PAGE] = 1;
    }
}

static uint64_t fault(void) {
    pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        err(1, "mmap");
    }
    return fewest(forget, touch);
}

static void yield(void) {
    for (int n = 0; n < CALLS / 2; n++) {
        sched_yield();
    }
}

// Two real-time processes of one CPU and one priority run in turn, so that each yield is a switch.
static uint64_t switching(void) {
    struct sched_param priority = { .sched_priority = 1 };
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (sched_setaffinity(0, sizeof one, &one) || sched_setscheduler(0, SCHED_FIFO, &priority)) {
        err(1, "sched_setscheduler");
    }
    pid_t child = fork();
    if (child < 0) {
        err(1, "fork");
    }
    while (child == 0) {
        sched_yield();
    }
    uint64_t ticks = fewest(nothing, yield);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    priority.sched_priority = 0;
    if (sched_setscheduler(0, SCHED_OTHER, &priority)) {
        err(1, "sched_setscheduler");
    }
    return ticks;
}

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Where one reading of the counter is far behind the one before, there was an interrupt.
static uint64_t interrupt(void) {
    enum { STEP = 100 };
    static uint64_t gaps[INTERRUPTS];
    uint64_t last = __rdtsc();
    for (int n = 0; n < INTERRUPTS;) {
        uint64_t now = __rdtsc();
        if (now - last > STEP) {
            gaps[n++] = now - last;
        }
        last = now;
    }
    qsort(gaps, INTERRUPTS, sizeof gaps[0], ascending);
    return gaps[INTERRUPTS / 2];
}

int main(int argc, char **argv) {
    if (argc == 2) {
        for (long calls = atol(argv[1]); calls > 0; calls--) {
            syscall(SYS_getppid);
        }
        return 0;
    }
    print("syscall", orphaned(), CALLS);
    print("wide", wide(), CALLS);
    print("fault", fault(), PAGES);
    print("switch", switching(), CALLS);
    print("interrupt", interrupt(), 1);
    print("mark", fewest(nothing, mark), CALLS);
    print("own_mark", fewest(nothing, own_mark), OWN);
    print("own_part", fewest(nothing, own_part), OWN);
    print("own_value", fewest(nothing, own_value), OWN);
    return 0;
}
