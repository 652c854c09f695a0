// SPDX-License-Identifier: BSD-3-Clause
// Threads that record and allocate memory, each interrupted by a timer of its own whose signal handler records too.
// Prints how many marks of each kind were recorded. Fails if a call changes errno.

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <kutrace_original.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, SIGNALS = 500, PERIOD_NS = 100000, ERRNO = 4711 };

struct counts {
    unsigned marks, signals;
};

static __thread volatile unsigned signals;

static void handle(int signal) {
    (void)signal;
    kutrace_span span = kutrace_span_begin("handler");
    signals += kutrace_mark_b("signal") > 0;
    kutrace_span_end(span);
}

static timer_t start_timer(void) {
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
    struct itimerspec often = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
    timer_t timer;
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL)) {
        err(1, "timer");
    }
    return timer;
}

static void *work(void *number) {
    uint32_t first = (uint32_t)(uintptr_t)number << 24;
    struct counts *counts = calloc(1, sizeof *counts);
    char name[] = { 'w', 'o', 'r', 'k', 'e', 'r', '0' + first / (1 << 24), 0 };
    timer_t timer = start_timer();
    for (unsigned n = 0; signals < SIGNALS; n++) {
        kutrace_span span = kutrace_span_begin(name);
        void *memory = malloc(n % 8192);
        errno = ERRNO;
        counts->marks += kutrace_mark_d(first | n) > 0;
        if (errno != ERRNO) {
            errx(1, "errno became %d", errno);
        }
        free(memory);
        kutrace_span_end(span);
    }
    // A signal that is pending comes before this is over.
    timer_delete(timer);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    counts->signals = signals;
    return counts;
}

int main(void) {
    pthread_t threads[THREADS];
    struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
    sigaction(SIGRTMIN, &action, NULL);
    for (uintptr_t n = 0; n < THREADS; n++) {
        if (pthread_create(&threads[n], NULL, work, (void *)n)) {
            errx(1, "pthread_create");
        }
    }
    for (int n = 0; n < THREADS; n++) {
        struct counts *counts;
        pthread_join(threads[n], (void **)&counts);
        printf("marks%d=%u\nsignals%d=%u\n", n, counts->marks, n, counts->signals);
    }
    return 0;
}
