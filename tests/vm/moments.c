// SPDX-License-Identifier: BSD-3-Clause
// Marks the trace before and after gaps in which CPU 1 sleeps or spins (`sleep:SECONDS`, `spin:SECONDS`) and CPU 0 is
// idle. A mark on CPU 1 is a call of sched_get_priority_max, one on CPU 0 of sched_get_priority_min; there are MARKS of
// each at a time, some of which are not interrupted. Prints CLOCK_MONOTONIC right before and after each mark, in ns:
// `CPU BEFORE AFTER`.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MARKS = 5, GAPS_MAX = 15 };

static struct { int cpu; long long before, after; } marks[2 * MARKS * (GAPS_MAX + 1)];
static int count;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void move(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        exit(1);
    }
}

static void mark(int cpu) {
    move(cpu);
    for (int n = 0; n < MARKS; n++, count++) {
        marks[count].cpu = cpu;
        marks[count].before = now();
        syscall(cpu ? SYS_sched_get_priority_max : SYS_sched_get_priority_min, SCHED_OTHER);
        marks[count].after = now();
    }
}

static void pass(const char *gap) {
    int spin = !strncmp(gap, "spin:", 5);
    long long end = now() + atoll(strchr(gap, ':') + 1) * 1000000000LL;
    while (spin && now() < end) {
    }
    struct timespec until = { end / 1000000000, end % 1000000000 };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int main(int argc, char **argv) {
    mark(0);
    mark(1);
    for (int gap = 1; gap < argc && gap <= GAPS_MAX; gap++) {
        pass(argv[gap]);
        mark(1);
        mark(0);
        move(1);
    }
    for (int n = 0; n < count; n++) {
        printf("%d %lld %lld\n", marks[n].cpu, marks[n].before, marks[n].after);
    }
    return 0;
}
