// SPDX-License-Identifier: BSD-3-Clause
// A 32-bit program without a library: it makes known numbers of system calls by int 0x80 and by the vDSO, which uses
// SYSENTER or SYSCALL, raises the exceptions that only 32-bit code can, forks, and ends with 0 if all was as it should be.
// Build: gcc -m32 -static -nostdlib -ffreestanding -fno-stack-protector -fno-pic

enum { EXIT = 1, FORK = 2, WAITPID = 7, GETPID = 20, KILL = 37, DUP = 41, BRK = 45, SIGNAL = 48, GETPPID = 64 };
enum { AT_SYSINFO = 32, SIGSEGV = 11, CALLS = 1000, FAULTS = 10 };

static unsigned sysinfo;

static int by_int(int nr, int a, int b, int c) {
    int value;
    __asm__ volatile("int $0x80" : "=a"(value) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
    return value;
}

static int by_vdso(int nr, int a) {
    int value;
    __asm__ volatile("call *%1" : "=a"(value) : "m"(sysinfo), "a"(nr), "b"(a) : "ecx", "edx", "memory");
    return value;
}

static volatile int faulted;

// Steps over the instruction that faulted: its length is in esi. The stack holds the signal's number, then the old
// kind of signal frame, with eip after 14 registers.
static void on_fault(int signal, unsigned gs, unsigned fs, unsigned es, unsigned ds, unsigned edi, unsigned esi,
                     unsigned ebp, unsigned esp, unsigned ebx, unsigned edx, unsigned ecx, unsigned eax,
                     unsigned trapno, unsigned error, volatile unsigned eip) {
    faulted++;
    *(volatile unsigned *)&eip = eip + (trapno == 5 ? esi : 0);
}

__attribute__((used)) static int run(unsigned *stack) {
    unsigned *at = stack + 1 + stack[0] + 1;
    while (*at++) {
    }
    for (; at[0]; at += 2) {
        if (at[0] == AT_SYSINFO) {
            sysinfo = at[1];
        }
    }
    if (!sysinfo) {
        return 2;
    }
    int pid = by_int(GETPID, 0, 0, 0);
    for (int n = 0; n < CALLS; n++) {
        if (by_vdso(GETPID, 0) != pid || by_int(DUP, -1, 0, 0) != -9 || (unsigned)by_vdso(BRK, 0) < 4096) {
            return 3;
        }
    }
    // Overflow and bound range exceptions.
    by_int(SIGNAL, SIGSEGV, (int)on_fault, 0);
    for (int n = 0; n < FAULTS; n++) {
        int bounds[2] = { 1, 2 };
        by_int(SIGNAL, SIGSEGV, (int)on_fault, 0);
        __asm__ volatile("movb $0x7f, %%al; addb $1, %%al; into" : : "S"(0) : "eax", "cc", "memory");
        by_int(SIGNAL, SIGSEGV, (int)on_fault, 0);
        // bound %eax, (%edx): two bytes, to be stepped over.
        __asm__ volatile(".byte 0x62, 0x02" : : "a"(7), "d"(bounds), "S"(2) : "memory");
    }
    if (faulted != 2 * FAULTS) {
        return 4;
    }
    int child = by_int(FORK, 0, 0, 0);
    if (child == 0) {
        by_int(EXIT, 0, 0, 0);
    }
    int status;
    if (by_int(WAITPID, child, (int)&status, 0) != child || status != 0) {
        return 5;
    }
    return 0;
}

__attribute__((used)) static void finish(int status) {
    by_int(EXIT, status, 0, 0);
}

__asm__(".globl _start\n_start: movl %esp, %eax\n andl $-16, %esp\n subl $12, %esp\n push %eax\n call run\n"
        "push %eax\n call finish\n");
