// SPDX-License-Identifier: BSD-3-Clause
// Spans, fields, a counter and a span that another thread ends, in C, without a system call for any.
//
// cc service.c -pthread $(pkg-config --cflags --libs kutrace) -o service
// kutrace_control go; ./service; kutrace_control stop t.trace

#include <kutrace.h>
#include <pthread.h>
#include <stdbool.h>

static long handle(const char *path) {
    bool cached = false;
    KUTRACE_SPAN("c.handle");
    {
        KUTRACE_SPAN("c.find", "path", path, "cached", cached);
        KUTRACE_COUNTER("c.queued", -3);
    }
    KUTRACE_MARK("c.found");
    return KUTRACE_MARK("c.reply", "status", 200, "ratio", 0.5, "path", path);
}

static void *upload(void *none) {
    KUTRACE_ASYNC_SPAN_END("c.upload", 7);
    return none;
}

int main(void) {
    pthread_t other;
    long replied = handle("/index");

    KUTRACE_ASYNC_SPAN_BEGIN("c.upload", 7, "size", 4096);
    if (pthread_create(&other, NULL, upload, NULL) != 0)
        return 1;
    pthread_join(other, NULL);
    KUTRACE_LOG("disk full");
    // While nothing is traced, nothing is recorded, and the program does the same.
    return replied != kutrace_is_on();
}
