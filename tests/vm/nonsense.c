// SPDX-License-Identifier: BSD-3-Clause
// Sends invalid requests to both devices for SECONDS, in some threads at once: every command in any order, with sizes,
// pointers and contents that are right, nearly right and wrong; reads, writes, mappings and system call 1023. Prints
// how many of them succeeded and were refused. SEED decides the requests; a user who may open only one device uses that
// one.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, PAGE = 4096, NOTE = 5 << 20, AREA = 64 << 20 };

#define RESET _IOC(_IOC_WRITE, 0xb7, 1, 8)
#define TRACEPOINTS _IOC(_IOC_WRITE, 0xb7, 14, 68)
#define PROGRAM _IOC(3, 0xb7, 0x44, 48)
#define COPY _IOC(_IOC_WRITE, 0xb7, 0x48, 32)

// Those of kernel-module/format/src/abi/command.rs and programs.rs.
static const unsigned commands[] = {
    _IOC(_IOC_READ, 0xb7, 0, 128), RESET, _IOC(0, 0xb7, 2, 0), _IOC(0, 0xb7, 3, 0), _IOC(_IOC_READ, 0xb7, 4, 24),
    _IOC(0, 0xb7, 5, 0), _IOC(0, 0xb7, 6, 0), _IOC(3, 0xb7, 7, 8), _IOC(3, 0xb7, 8, 64), _IOC(_IOC_READ, 0xb7, 9, 128),
    _IOC(_IOC_WRITE, 0xb7, 10, 128), _IOC(_IOC_WRITE, 0xb7, 11, 8), _IOC(_IOC_READ, 0xb7, 12, 8),
    _IOC(_IOC_WRITE, 0xb7, 13, 128), TRACEPOINTS, _IOC(_IOC_READ, 0xb7, 15, 8), _IOC(0, 0xb7, 16, 0), COPY,
    _IOC(_IOC_WRITE, 0xb7, 0x43, 16), PROGRAM, _IOC(3, 0xb7, 0x45, 32), _IOC(_IOC_WRITE, 0xb7, 0x46, 16),
    _IOC(3, 0xb7, 0x47, 80),
};

static const char *const names[] = {"/dev/kutrace", "/dev/kutrace_programs"};
static time_t end;
static char *note, *readable;
static unsigned long succeeded, refused;

static uint64_t of(uint64_t *random, uint64_t n) {
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return (*random >> 11) % n;
}

// Values at which something changes, or any.
static uint32_t value(uint64_t *random) {
    static const uint32_t edges[] = {0, 1, 2, 3, 4, 8, 31, 32, 62, 63, 64, 4095, 4096, 8192, AREA, INT32_MAX, UINT32_MAX};

    return of(random, 8) ? edges[of(random, sizeof edges / sizeof *edges)] : of(random, 1ull << 32);
}

// Where an argument is: mostly in `own`, a page before one that is missing; its last bytes, so that it does not fit; in
// memory that can only be read, or is none.
static void *place(uint64_t *random, char *own) {
    switch (of(random, 20)) {
    case 0:
        return own + PAGE - of(random, 128);
    case 1:
        return readable;
    case 2:
        return (void *)(of(random, 2) ? 0xffff888000000000 : 0x800000000000 - 4);
    case 3:
        return (void *)of(random, 2);
    default:
        return own + 8 * of(random, 8);
    }
}

// Facts about a grant of some program.
struct grant {
    uint32_t serial, offset;
    uint64_t sequence;
};

static void ask(uint64_t *random, int fd, char *own, struct grant *grant) {
    unsigned command = commands[of(random, sizeof commands / sizeof *commands)];
    void *argument = place(random, own);

    for (int n = 0; n < 40; n++)
        ((uint32_t *)own)[n] = value(random);
    if (!of(random, 16))
        command ^= 1u << of(random, 32);
    // No more memory than there is, and tracepoints, some of which may exist.
    if (command == RESET)
        for (int n = 0; n < 40; n += 2) {
            static const uint32_t blocks[] = {0, 1, 2, 3, 16, 64, 1 << 19, UINT32_MAX};
            ((uint32_t *)own)[n] = of(random, 17), ((uint32_t *)own)[n + 1] = blocks[of(random, 8)];
        }
    if (command == TRACEPOINTS)
        for (int n = 0; n < 40; n++)
            ((uint32_t *)own)[n] = of(random, n ? 600 : 4);
    if (command == PROGRAM && of(random, 4))
        argument = own, ((uint32_t *)own)[2] = 8, ((uint64_t *)own)[2] = (uintptr_t)own + 2048;
    if (command == COPY && of(random, 4)) {
        // Mostly of existing things, and into memory that is there.
        memcpy(own, grant, sizeof *grant);
        ((uint64_t *)own)[2] = (uintptr_t)(of(random, 4) ? own + 64 : place(random, own));
        ((uint64_t *)own)[3] = of(random, 4) ? of(random, PAGE - 64) : value(random);
        argument = own;
    }
    int ret = ioctl(fd, command, argument);
    __atomic_add_fetch(ret ? &refused : &succeeded, 1, __ATOMIC_RELAXED);
    if (!ret && command == PROGRAM && argument == own && ((uint32_t *)own)[2]) {
        grant->serial = *(uint32_t *)own;
        memcpy(&grant->offset, own + 2048, 4);
        memcpy(&grant->sequence, own + 2048 + 16, 8);
    }
}

// Maps an area, and does with it what can be done; the last of it may be left.
static void map(uint64_t *random, int fd) {
    static const int advices[] = {MADV_DONTNEED, MADV_KEEPONFORK, MADV_WIPEONFORK, MADV_DONTFORK, MADV_DOFORK,
                                  MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_PAGEOUT, MADV_COLD, MADV_FREE, MADV_REMOVE};
    char *area = mmap(0, AREA, PROT_READ | PROT_WRITE, MAP_SHARED | (of(random, 2) ? MAP_POPULATE : 0), fd, 0), *moved;

    if (area == MAP_FAILED)
        return;
    __atomic_add_fetch(&succeeded, 1, __ATOMIC_RELAXED);
    for (int n = of(random, 64); n > 0; n--) {
        volatile uint64_t *at = (void *)(area + 8 * of(random, AREA / 8));
        uint64_t *start = (void *)(area + PAGE * of(random, AREA / PAGE));
        switch (of(random, 8)) {
        case 0:
            *at = of(random, 1ull << 32);
            break;
        case 1:
            madvise(start, of(random, 2) ? PAGE : area + AREA - (char *)start, advices[of(random, 11)]);
            break;
        case 2:
            mprotect(start, PAGE, PROT_READ);
            munmap(start, PAGE);
            break;
        case 3:
            moved = mremap(area, AREA, AREA * of(random, 3), of(random, 2));
            if (moved != MAP_FAILED)
                area = moved;
            break;
        case 4:
            pwrite(fd, start, PAGE, 0);
            break;
        case 5:
            mlock(start, PAGE);
            break;
        default:
            // Where something is granted it can be written.
            if (*at < UINT64_MAX - 1)
                *at = 1;
        }
    }
    if (of(random, 16))
        munmap(area, AREA);
}

static void *say(void *seed) {
    uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15 | 1;
    struct grant grant = {0};
    char *own = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fds[2] = {-1, -1};

    munmap(own + PAGE, PAGE);
    while (time(0) < end) {
        int which = of(&random, 2), fd = fds[which];
        uint64_t words[8], at = of(&random, 2) << 40 | (of(&random, 8) ? of(&random, 4096) : value(&random));
        size_t bytes = of(&random, 8) ? of(&random, 512) : of(&random, NOTE);
        void *some;

        switch (of(&random, 40)) {
        case 0:
            // Whatever it held, it holds no more.
            if (fd >= 0)
                close(fd);
            fds[which] = -1;
            break;
        case 1:
            pwrite(fd, of(&random, 8) ? note : place(&random, own), bytes, at);
            break;
        case 2:
            pread(fd, of(&random, 8) ? note : place(&random, own), bytes, at);
            break;
        case 3:
            bytes = 16 * (value(&random) % (1 << 20));
            some = mmap(0, bytes, of(&random, 8), of(&random, 2) ? MAP_SHARED : MAP_PRIVATE, fd,
                        (off_t)PAGE * (of(&random, 4) ? of(&random, 64) : value(&random)));
            if (some != MAP_FAILED) {
                mprotect(some, PAGE, PROT_READ | PROT_WRITE);
                munmap(some, bytes);
            }
            break;
        case 5:
            map(&random, fds[1]);
            break;
        case 4:
            for (int n = 0; n < 8; n++)
                words[n] = (uint64_t)value(&random) << 32 | value(&random);
            syscall(1023, of(&random, 2) ? value(&random) % 16 : ~(value(&random) % 16),
                    of(&random, 2) ? words : place(&random, own));
            break;
        default:
            if (fds[which] < 0)
                fds[which] = open(names[which], O_RDWR | O_CLOEXEC);
            ask(&random, fds[which], own, &grant);
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    struct rlimit files = {256, 256};
    pthread_t threads[THREADS];

    if (argc != 3)
        return 2;
    end = time(0) + atoi(argv[1]);
    note = mmap(0, NOTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    readable = mmap(0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    setrlimit(RLIMIT_NOFILE, &files);
    for (int n = 0; n < THREADS; n++)
        pthread_create(&threads[n], 0, say, (void *)(strtoul(argv[2], 0, 0) * THREADS + n + 1));
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], 0);
    printf("succeeded=%lu refused=%lu\n", succeeded, refused);
    return 0;
}
