// SPDX-License-Identifier: BSD-3-Clause
// A program that marks, waits for a line, and marks again: at a place of the same name, and at places that are new.

#include <kutrace.h>
#include <stdio.h>
#include <stdlib.h>

#define NEW(digit) KUTRACE_MARK("a name of some length that was not there before " #digit)

int main(int argc, char **argv) {
    int more = argc > 1 ? atoi(argv[1]) : 0, marked = KUTRACE_MARK("victim");
    printf("began\n");
    fflush(stdout);
    getchar();
    marked += NEW(0) + NEW(1) + NEW(2) + NEW(3);
    for (int n = 0; n < more; n++)
        marked += KUTRACE_MARK("more");
    printf("marked=%d\n", marked);
    return 0;
}
