// SPDX-License-Identifier: BSD-3-Clause
// Marks once for each line that it reads, and prints the mark's return value: a program that outlives traces and
// modules. Without a module the return value of the system call is not 0, so a 0 there shows that none was made. The
// line "memory" is for a mark in memory, and "attach" to look for the recorder once more.

#include <kutrace.h>
#include <kutrace_original.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    char line[64];
    while (fgets(line, sizeof(line), stdin)) {
        long answer = !strcmp(line, "attach\n")   ? kutrace_attach()
                      : !strcmp(line, "memory\n") ? KUTRACE_MARK("later")
                                                  : kutrace_mark_d(11);
        printf("%ld\n", answer);
        fflush(stdout);
    }
    return 0;
}
