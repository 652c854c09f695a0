// SPDX-License-Identifier: GPL-2.0
// The cost of a mark in C while nothing is traced: `cargo xtask bench marks` counts the instructions of counted().

#include <kutrace.h>
#include <stdlib.h>

#define CALLS 500

// With a mark in it, or not; apart from that the loops are the same.
static __attribute__((noinline)) void counted_nothing(void) {
    for (int i = 0; i < CALLS; i++)
        __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void counted_mark(void) {
    for (int i = 0; i < CALLS; i++) {
        KUTRACE_MARK("mark");
        __asm__ volatile("" ::: "memory");
    }
}

int main(int argc, char **argv) {
    (void)argv;
    // The first looks whether anything is traced.
    KUTRACE_MARK("first");
    if (argc > 1)
        counted_mark();
    else
        counted_nothing();
}
