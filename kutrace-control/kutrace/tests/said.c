// SPDX-License-Identifier: BSD-3-Clause
// What kutrace.py calls of libkutrace.so, each printed: what a program in Python would record, wherever it runs.

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

void kutrace_fields_word(struct kutrace_fields *fields, uint64_t word) {
    fields->words[fields->used++] = word;
}

void kutrace_fields_text(struct kutrace_fields *fields, const char *text) {
    fields->used += 1 + (strlen(text) + 1) / 8;
}

// The name with its fields: types and names, after a blank each.
static long say(const char *what, const struct kutrace_site *site) {
    printf("%s ", what);
    for (size_t n = 0; n < site->bytes; n++)
        putchar(site->name[n] ? site->name[n] : ' ');
    putchar('\n');
    fflush(stdout);
    return 1;
}

long kutrace_site_mark(struct kutrace_site *site) {
    return say("mark", site);
}

long kutrace_site_begin(struct kutrace_site *site) {
    return say("begin", site);
}

long kutrace_site_begin_with(struct kutrace_site *site, const struct kutrace_fields *fields) {
    (void)fields;
    return say("begin", site);
}

long kutrace_site_end(struct kutrace_site *site) {
    return say("end", site);
}

long kutrace_site_value(struct kutrace_site *site, int64_t value) {
    (void)value;
    return say("value", site);
}

long kutrace_site_event(struct kutrace_site *site, const struct kutrace_fields *fields) {
    (void)fields;
    return say("event", site);
}

long kutrace_site_async_begin(struct kutrace_site *site, uint64_t id, const struct kutrace_fields *fields) {
    (void)fields;
    printf("%" PRIu64 " ", id);
    return say("begin", site);
}

long kutrace_site_async_end(struct kutrace_site *site, uint64_t id) {
    printf("%" PRIu64 " ", id);
    return say("end", site);
}

long kutrace_keep(const char *reason) {
    (void)reason;
    return 1;
}
