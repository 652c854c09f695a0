// SPDX-License-Identifier: BSD-3-Clause
// Raises each exception that a program can raise the given number of times, and continues after each by a signal
// handler.

#define _GNU_SOURCE
#include <err.h>
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static sigjmp_buf behind;

static void handler(int signal) {
    siglongjmp(behind, signal);
}

static void divide(void) {
    __asm__ volatile("idivl %2" : : "a"(1), "d"(0), "r"(0));
}

// The trap flag raises a debug exception after the next instruction.
static void step(void) {
    __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq; nop" : : : "cc", "memory");
}

static void breakpoint(void) {
    __asm__ volatile("int3");
}

static void invalid_opcode(void) {
    __asm__ volatile("ud2");
}

static void privileged(void) {
    __asm__ volatile("hlt");
}

static void unmapped(void) {
    *(volatile char *)8 = 0;
}

// An x87 exception that is not masked is raised by the instruction after it.
static void floating_point(void) {
    feenableexcept(FE_DIVBYZERO);
    volatile long double zero = 0, one = 1;
    volatile long double quotient = one / zero;
    (void)quotient;
    __asm__ volatile("fwait");
}

static const struct {
    const char *name;
    void (*raise)(void);
    int signal;
} FAULTS[] = {
    { "divide", divide, SIGFPE },         { "debug", step, SIGTRAP },        { "breakpoint", breakpoint, SIGTRAP },
    { "opcode", invalid_opcode, SIGILL }, { "protection", privileged, SIGSEGV }, { "page", unmapped, SIGSEGV },
    { "x87", floating_point, SIGFPE },
};

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    struct sigaction action = { .sa_handler = handler };
    for (int n = 0; n < 32; n++) {
        sigaction(n, &action, NULL);
    }
    for (size_t kind = 0; kind < sizeof FAULTS / sizeof *FAULTS; kind++) {
        volatile int raised = 0;
        for (volatile int n = 0; n < rounds; n++) {
            int signal = sigsetjmp(behind, 1);
            if (signal == 0) {
                FAULTS[kind].raise();
            } else if (signal == FAULTS[kind].signal) {
                raised++;
            }
            fesetenv(FE_DFL_ENV);
        }
        printf("%s=%d\n", FAULTS[kind].name, raised);
    }
    return 0;
}
