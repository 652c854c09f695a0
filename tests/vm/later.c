// SPDX-License-Identifier: BSD-3-Clause
// Marks once for each line that it reads, and prints what the mark answered: a program that outlives traces and
// modules. Without a module the answer of the system call is not 0, so a 0 there shows that none was made.

#include <kutrace_original.h>
#include <stdio.h>

int main(void) {
    char line[64];
    while (fgets(line, sizeof(line), stdin)) {
        printf("%ld\n", kutrace_mark_d(11));
        fflush(stdout);
    }
    return 0;
}
