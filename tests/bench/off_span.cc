// SPDX-License-Identifier: GPL-2.0
// The cost of a span in C++ while nothing is traced; see off.c for a mark.

#include <kutrace.hpp>

static const int CALLS = 500;

// With a span in it, or not; apart from that the loops are the same.
static __attribute__((noinline)) void counted_nothing() {
    for (int i = 0; i < CALLS; i++)
        __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void counted_span() {
    for (int i = 0; i < CALLS; i++) {
        KUTRACE_SPAN("span");
        __asm__ volatile("" ::: "memory");
    }
}

int main(int argc, char **) {
    // The first looks whether anything is traced.
    KUTRACE_MARK("first");
    if (argc > 1)
        counted_span();
    else
        counted_nothing();
}
