// SPDX-License-Identifier: BSD-3-Clause
// Fields of every type in C and C++, and all other features of kutrace.h. Linked with said.c it prints them.

#include <kutrace.h>
#include <stdbool.h>

static void numbers(void) {
    unsigned char u8 = 1;
    unsigned short u16 = 1;
    signed char i8 = 1;
    short i16 = 1;
    long i64 = 1;
    bool is_true = true;
    KUTRACE_MARK("unsigned", "a", u8, "b", u16, "c", 1u, "d", 1ul, "e", 1ull, "f", sizeof(u8));
    KUTRACE_MARK("signed", "a", i8, "b", i16, "c", -1, "d", i64, "e", 1ll, "f", 'c');
    KUTRACE_MARK("others", "a", 0.5, "b", 0.5f, "c", is_true, "d", &u8, "e.e", (void *)0);
}

static long texts(const char *text) {
    char array[8] = "array";
    KUTRACE_SPAN("texts", "a", text, "b", array, "c", "literal");
    KUTRACE_SPAN("inner");
    if (text)
        return KUTRACE_MARK("fifteen", "1", 1, "2", 2, "3", 3, "4", 4, "5", 5, "6", 6, "7", 7, "8", 8, "9", 9, "10", 10,
                            "11", 11, "12", 12, "13", 13, "14", 14, "15", text);
    return 0;
}

int main(void) {
    numbers();
    long marked = texts("text");
    KUTRACE_SPAN_BEGIN("begun", "a", 1);
    KUTRACE_COUNTER("counter", -7);
    KUTRACE_SPAN_END("begun");
    KUTRACE_ASYNC_SPAN_BEGIN("upload", 7, "size", 4096);
    KUTRACE_ASYNC_SPAN_END("upload", 7);
    KUTRACE_LOG("disk full");
    return marked != kutrace_is_on() || kutrace_keep("reason") != marked || kutrace_trace_id(1, 2, 3) != marked;
}
