// SPDX-License-Identifier: BSD-3-Clause
// What takes its time, and what does not. `slow fast` does everything ten times, quickly; `slow slow` once, slowly: it
// sleeps in a call, passes two marks by system call and two without, is in a span and in an async one, works on an RPC,
// computes, and asks for the moment to be kept.

#include <kutrace.h>
#include <kutrace_original.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void nap(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void compute(long ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

static void work(long ms) {
    nap(ms);
    KUTRACE_SPAN("a slow thing");
    KUTRACE_ASYNC_SPAN_BEGIN("an upload", 7);
    KUTRACE_MARK("before the nap");
    kutrace_mark_a("begin");
    nap(ms);
    kutrace_mark_b("end");
    KUTRACE_MARK("after the nap");
    KUTRACE_ASYNC_SPAN_END("an upload", 7);
    kutrace_rpc_request("get", 79, 0);
    nap(ms);
    kutrace_rpc_response("get", 79, 0);
    kutrace_rpc_end();
    compute(ms);
}

int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "fast")) {
        for (int n = 0; n < 10; n++)
            work(5);
    } else {
        prctl(PR_SET_NAME, "hog");
        // What keeps the moments before needs a CPU as well: by turns, no run would be long.
        sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
        work(700);
        kutrace_keep("it was slow");
    }
    return 0;
}
