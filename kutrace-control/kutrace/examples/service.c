// SPDX-License-Identifier: BSD-3-Clause
// Parts, fields, values and a part that another thread ends, in C, without a system call for any.
//
// cc -Iinclude service.c -pthread -lkutrace -o service
// kutrace_control go; ./service; kutrace_control stop t.trace

#include <kutrace.h>
#include <pthread.h>
#include <string.h>

static long reply(unsigned status, double ratio, const char *path) {
    struct kutrace_fields fields = KUTRACE_FIELDS;
    uint64_t word;

    // What is computed for a mark only.
    if (!kutrace_is_on())
        return 0;
    memcpy(&word, &ratio, sizeof(word));
    kutrace_fields_word(&fields, status);
    kutrace_fields_word(&fields, word);
    kutrace_fields_text(&fields, path);
    return KUTRACE_EVENT("c.reply\0ustatus\0fratio\0spath", &fields);
}

static long handle(const char *path) {
    KUTRACE_SCOPE("c.handle");
    KUTRACE_BEGIN("c.find");
    KUTRACE_VALUE("c.queued", -3);
    KUTRACE_END("c.find");
    KUTRACE_MARK("c.found");
    return reply(200, 0.5, path);
}

static void *upload(void *none) {
    (void)none;
    KUTRACE_ASYNC_END("c.upload", 7);
    return NULL;
}

int main(void) {
    pthread_t other;
    struct kutrace_fields fields = KUTRACE_FIELDS;
    long replied = handle("/index");

    kutrace_fields_word(&fields, 4096);
    KUTRACE_ASYNC_BEGIN("c.upload\0usize", 7, &fields);
    if (pthread_create(&other, NULL, upload, NULL) != 0)
        return 1;
    pthread_join(other, NULL);
    KUTRACE_LOG("disk full");
    // While nothing is traced, nothing is recorded, and the program does the same.
    return replied != kutrace_is_on();
}
