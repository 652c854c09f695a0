// SPDX-License-Identifier: BSD-3-Clause
// Record functions of libkutrace.so for kutrace.py, each of which prints its record, on any kernel.

#include <inttypes.h>
#include <kutrace.h>
#include <stdio.h>
#include <string.h>

int kutrace_is_on(void) {
    return 1;
}

const uint32_t *kutrace_word(const uint32_t *before) {
    return before;
}

void kutrace_fields_text(struct kutrace_fields *fields, const char *text) {
    fields->used += 1 + (strlen(text) + 1) / 8;
}

// Prints the name, and after a blank each field with its type.
static long say(const char *what, const struct kutrace_site *site, const struct kutrace_fields *fields) {
    uint64_t kinds = fields ? fields->kinds : 0;
    printf("%s ", what);
    for (size_t n = 0; n < site->bytes; n++) {
        putchar(site->name[n] ? site->name[n] : ' ');
        if (!site->name[n]) {
            putchar("?uifbxs"[kinds & 15]);
            kinds >>= 4;
        }
    }
    putchar('\n');
    fflush(stdout);
    return 1;
}

long kutrace_site_mark(struct kutrace_site *site) {
    return say("mark", site, NULL);
}

long kutrace_site_mark_with(struct kutrace_site *site, const struct kutrace_fields *fields) {
    return say("mark", site, fields);
}

long kutrace_site_begin(struct kutrace_site *site) {
    return say("begin", site, NULL);
}

long kutrace_site_begin_with(struct kutrace_site *site, const struct kutrace_fields *fields) {
    return say("begin", site, fields);
}

long kutrace_site_end(struct kutrace_site *site) {
    return say("end", site, NULL);
}

long kutrace_site_counter(struct kutrace_site *site, int64_t value) {
    (void)value;
    return say("counter", site, NULL);
}

long kutrace_site_async_begin(struct kutrace_site *site, uint64_t id, const struct kutrace_fields *fields) {
    printf("%" PRIu64 " ", id);
    return say("begin", site, fields);
}

long kutrace_site_async_end(struct kutrace_site *site, uint64_t id) {
    printf("%" PRIu64 " ", id);
    return say("end", site, NULL);
}

long kutrace_keep(const char *reason) {
    (void)reason;
    return 1;
}

long kutrace_trace_id(uint64_t high, uint64_t low, uint64_t span) {
    return high && low && span;
}
