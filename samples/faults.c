// SPDX-License-Identifier: BSD-3-Clause
// The first touch of memory: each page of a fresh mapping faults once, and again after it was given back.
#include <sys/mman.h>

enum { PAGES = 256, PAGE = 4096 };

static void touch(volatile char *memory) {
    for (int n = 0; n < PAGES; n++)
        memory[n * PAGE] = 1;
}

int main(void) {
    char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    touch(memory);
    for (int n = 0; n < 1000; n++)
        touch(memory);
    if (madvise(memory, PAGES * PAGE, MADV_DONTNEED))
        return 1;
    touch(memory);
    return 0;
}
