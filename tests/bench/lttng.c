// SPDX-License-Identifier: GPL-2.0
// Times an event of LTTng-UST as tests/bench/marks does a mark, and prints the same: for each way its name, ns and
// multiple of rdtsc back to back, then both with a wait after each call. A session that records kutrace_bench:mark and
// kutrace_bench:value runs already, or nothing is printed.

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define ROUNDS 1001
#define CALLS 500
#define WAYS 4

#define LOOPS(name, call)                                                                                              \
    static __attribute__((noinline)) void name##_together(void) {                                                      \
        for (int64_t n = 0; n < CALLS; n++) {                                                                          \
            call;                                                                                                      \
            __asm__ volatile("" : : "r"(n) : "memory");                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static __attribute__((noinline)) void name##_apart(void) {                                                         \
        for (int64_t n = 0; n < CALLS; n++) {                                                                          \
            call;                                                                                                      \
            __asm__ volatile("" : : "r"(n) : "memory");                                                                \
            _mm_lfence();                                                                                              \
        }                                                                                                              \
    }

static volatile uint64_t seen;

LOOPS(rdtsc, seen = __rdtsc())
LOOPS(mark, lttng_ust_tracepoint(kutrace_bench, mark))
LOOPS(value, lttng_ust_tracepoint(kutrace_bench, value, n))
LOOPS(off, lttng_ust_tracepoint(kutrace_bench, off))

static const struct {
    const char *name;
    void (*calls[2])(void);
} ways[WAYS] = {
    {"rdtsc", {rdtsc_together, rdtsc_apart}},
    {"lttng_mark", {mark_together, mark_apart}},
    {"lttng_value", {value_together, value_apart}},
    {"lttng_off", {off_together, off_apart}},
};

static double counts[2][WAYS][ROUNDS], ratios[2][WAYS][ROUNDS];

static double ticks(void (*work)(void)) {
    _mm_lfence();
    uint64_t begin = __rdtsc();
    _mm_lfence();
    work();
    _mm_lfence();
    return (double)(__rdtsc() - begin);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof(*values), by_size);
    return values[ROUNDS / 2];
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

// ns in a count of the time stamp counter.
static double tick(void) {
    double begin = seconds(), passed;
    uint64_t from = __rdtsc();

    do
        passed = seconds() - begin;
    while (passed < 0.1);
    return passed * 1e9 / (double)(__rdtsc() - from);
}

int main(void) {
    // The daemon enables events from a thread of the library's, some time after the start.
    for (int tries = 0; !lttng_ust_tracepoint_enabled(kutrace_bench, value); tries++) {
        if (tries == 500) {
            fputs("lttng: no session records kutrace_bench:value\n", stderr);
            return 1;
        }
        usleep(10000);
    }
    double ns = tick();
    for (int round = -1; round < ROUNDS; round++)
        for (int how = 0; how < 2; how++)
            for (int way = 0; way < WAYS; way++) {
                double count = ticks(ways[way].calls[how]) / CALLS;
                if (round < 0)
                    continue;
                counts[how][way][round] = count;
                ratios[how][way][round] = count / counts[how][0][round];
            }
    for (int way = 0; way < WAYS; way++)
        printf("%s %.2f %.3f %.2f %.3f\n", ways[way].name, ns * median(counts[0][way]), median(ratios[0][way]),
               ns * median(counts[1][way]), median(ratios[1][way]));
    return 0;
}
