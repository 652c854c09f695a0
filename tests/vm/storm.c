// SPDX-License-Identifier: BSD-3-Clause
// Two threads that allocate memory and record, while a signal handler that records too interrupts them all the time.
// Fails if errno changes.

#include <errno.h>
#include <kutrace.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

enum { ROUNDS = 10000, ERRNO = 4711 };

static void handle(int signal) {
    kutrace_span span = kutrace_span_begin("handler");
    kutrace_mark_b("signal");
    kutrace_span_end(span);
}

static void *work(void *none) {
    for (int n = 0; n < ROUNDS; n++) {
        KUTRACE_SPAN("worker");
        void *memory = malloc(n);
        errno = ERRNO;
        kutrace_mark_d(n);
        if (errno != ERRNO) {
            fprintf(stderr, "storm: errno became %d\n", errno);
            exit(1);
        }
        free(memory);
    }
    return none;
}

int main(void) {
    struct itimerval often = { { 0, 100 }, { 0, 100 } };
    pthread_t other;
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_create(&other, NULL, work, NULL);
    work(NULL);
    pthread_join(other, NULL);
    return 0;
}
