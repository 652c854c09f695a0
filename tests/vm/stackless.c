// SPDX-License-Identifier: BSD-3-Clause
// A 32-bit program without a library that makes a system call with no stack, where the kernel looks for its sixth
// argument: by SYSENTER in one child, by SYSCALL in another, since a processor has only one of them. Both children die.
// Build: gcc -m32 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pic

enum { EXIT = 1, FORK = 2, WAITPID = 7, GETPPID = 64 };

static int by_int(int nr, int a, int b, int c) {
    int value;
    __asm__ volatile("int $0x80" : "=a"(value) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
    return value;
}

void _start(void) {
    int child = by_int(FORK, 0, 0, 0);
    if (child == 0) {
        __asm__ volatile("xor %%esp, %%esp; xor %%ebp, %%ebp; sysenter" ::"a"(GETPPID));
    }
    by_int(WAITPID, child, 0, 0);
    child = by_int(FORK, 0, 0, 0);
    if (child == 0) {
        __asm__ volatile("xor %%esp, %%esp; xor %%ebp, %%ebp; syscall" ::"a"(GETPPID));
    }
    by_int(WAITPID, child, 0, 0);
    by_int(EXIT, 0, 0, 0);
    for (;;) {
    }
}
