// SPDX-License-Identifier: BSD-3-Clause
// A short load with something for each hook of a machine at work: on every CPU a thread that computes, whose clock
// raises an interrupt of the CPU to itself each millisecond, forks, faults, a new name, calls to all CPUs, and wakes one that has to
// run at once.

#define _GNU_SOURCE
#include <err.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FORKS = 30, TURNS = 200, COMPUTING_MS = 400 };

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        err(1, "cpu %d", cpu);
    }
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Each sample wakes any reader of it, by work that the interrupt leaves for another one.
static void sample(void) {
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = 1000000,
        .sample_type = PERF_SAMPLE_IP,
        .wakeup_events = 1,
    };
    int event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    long page = sysconf(_SC_PAGESIZE);
    if (event < 0 || mmap(NULL, 9 * page, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0) == MAP_FAILED) {
        err(1, "perf_event_open");
    }
}

static void compute(int cpu) {
    stay_on(cpu);
    sample();
    for (long end = now_ms() + COMPUTING_MS; now_ms() < end;) {
        for (volatile int n = 0; n < 100000; n++) {
        }
    }
}

// Wakes a thread of the other CPU that goes before what computes there.
static void wake(void) {
    int turns[2];
    if (pipe(turns)) {
        err(1, "pipe");
    }
    char byte = 0;
    if (fork() == 0) {
        stay_on(1);
        struct sched_param first = { .sched_priority = 1 };
        sched_setscheduler(0, SCHED_FIFO, &first);
        for (int n = 0; n < TURNS && read(turns[0], &byte, 1) == 1; n++) {
        }
        _exit(0);
    }
    for (int n = 0; n < TURNS; n++) {
        struct timespec pause = { .tv_nsec = 500000 };
        nanosleep(&pause, NULL);
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
        if (write(turns[1], &byte, 1) != 1) {
            err(1, "write");
        }
    }
}

int main(void) {
    int cpus = sysconf(_SC_NPROCESSORS_ONLN);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
    for (int cpu = 0; cpu < cpus; cpu++) {
        if (fork() == 0) {
            compute(cpu);
            _exit(0);
        }
    }
    wake();
    for (int n = 0; n < FORKS; n++) {
        pid_t child = fork();
        if (child == 0) {
            if (n == 0) {
                prctl(PR_SET_NAME, "renamed");
            }
            _exit(n);
        }
        waitpid(child, NULL, 0);
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
