// SPDX-License-Identifier: BSD-3-Clause
// Prints the ticks of the time stamp counter per getppid: instructions, where the guest counts them (xtask vm --icount).
// The fewest of many rounds: the others were interrupted.

#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

enum { ROUNDS = 200, CALLS = 1000 };

int main(void) {
    uint64_t fewest = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin = __rdtsc();
        for (int call = 0; call < CALLS; call++) {
            syscall(SYS_getppid);
        }
        uint64_t ticks = __rdtsc() - begin;
        if (ticks < fewest) {
            fewest = ticks;
        }
    }
    printf("%llu\n", (unsigned long long)((fewest + CALLS / 2) / CALLS));
    return 0;
}
