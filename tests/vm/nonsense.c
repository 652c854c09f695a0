// SPDX-License-Identifier: BSD-3-Clause
// Says what makes no sense to both devices for SECONDS, in some threads at once: every command in any order, with sizes,
// pointers and contents that are right, nearly right and wrong; reads, writes, mappings and system call 1023. Prints how
// much of that succeeded and how much was refused. SEED decides what; who may open only one device speaks to that.

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

enum { THREADS = 3, PAGE = 4096, NOTE = 5 << 20, AREA = 16 << 20 };

#define RESET _IOC(_IOC_WRITE, 0xb7, 1, 8)
#define TRACEPOINTS _IOC(_IOC_WRITE, 0xb7, 14, 68)
#define ATTACH _IOC(3, 0xb7, 0x40, 24)
#define GRANT _IOC(3, 0xb7, 0x41, 24)
#define PAGE_OF_ALL _IOC(_IOC_READ, 0xb7, 0x42, 8)
#define PROGRAM _IOC(3, 0xb7, 0x44, 56)

// Those of kernel-module/format/src/abi/command.rs and programs.rs.
static const unsigned commands[] = {
    _IOC(_IOC_READ, 0xb7, 0, 128), RESET, _IOC(0, 0xb7, 2, 0), _IOC(0, 0xb7, 3, 0), _IOC(_IOC_READ, 0xb7, 4, 24),
    _IOC(0, 0xb7, 5, 0), _IOC(0, 0xb7, 6, 0), _IOC(3, 0xb7, 7, 8), _IOC(3, 0xb7, 8, 64), _IOC(_IOC_READ, 0xb7, 9, 128),
    _IOC(_IOC_WRITE, 0xb7, 10, 128), _IOC(_IOC_WRITE, 0xb7, 11, 8), _IOC(_IOC_READ, 0xb7, 12, 8),
    _IOC(_IOC_WRITE, 0xb7, 13, 128), TRACEPOINTS, _IOC(_IOC_READ, 0xb7, 15, 8), _IOC(0, 0xb7, 16, 0), ATTACH, GRANT,
    PAGE_OF_ALL, _IOC(_IOC_WRITE, 0xb7, 0x43, 16), PROGRAM, _IOC(3, 0xb7, 0x45, 32), _IOC(_IOC_WRITE, 0xb7, 0x46, 16),
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

// Where an argument is: mostly in `own`, a page before one that is not there; its last bytes, so that it does not fit; in
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

static void ask(uint64_t *random, int fd, char *own, uint32_t *serial) {
    unsigned command = commands[of(random, sizeof commands / sizeof *commands)];
    void *argument = place(random, own);

    for (int n = 0; n < 40; n++)
        ((uint32_t *)own)[n] = value(random);
    if (!of(random, 16))
        command ^= 1u << of(random, 32);
    // No more memory than there is, and tracepoints of which there may be some.
    if (command == RESET)
        for (int n = 0; n < 40; n += 2) {
            static const uint32_t blocks[] = {0, 1, 2, 3, 16, 64, 1 << 19, UINT32_MAX};
            ((uint32_t *)own)[n] = of(random, 17), ((uint32_t *)own)[n + 1] = blocks[of(random, 8)];
        }
    if (command == TRACEPOINTS)
        for (int n = 0; n < 40; n++)
            ((uint32_t *)own)[n] = of(random, n ? 600 : 4);
    if ((command == ATTACH || command == GRANT) && of(random, 4)) {
        argument = own;
        if (command == ATTACH)
            ((uint32_t *)own)[0] = 2;
        else
            ((uint32_t *)own)[0] = of(random, 3), ((uint32_t *)own)[3] = *serial;
    }
    int ret = ioctl(fd, command, argument);
    __atomic_add_fetch(ret ? &refused : &succeeded, 1, __ATOMIC_RELAXED);
    if (ret || (char *)argument < own || (char *)argument >= own + PAGE)
        return;
    if (command == ATTACH)
        memcpy(serial, (char *)argument + 4, 4);
    if (command == PROGRAM && ((int *)argument)[2] > 2) {
        // What the program has can be read by whoever was shown it.
        int area = ((int *)argument)[2];
        void *map = mmap(0, PAGE, PROT_READ, MAP_SHARED, area, PAGE * of(random, 4096));
        if (map != MAP_FAILED)
            munmap(map, PAGE);
        pread(area, own, PAGE, of(random, 2 * AREA));
        close(area);
    }
    if (command == PAGE_OF_ALL)
        munmap(*(void **)argument, PAGE);
}

static void *say(void *seed) {
    uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15 | 1;
    uint32_t serial = 0;
    char *own = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fds[2] = {-1, -1};

    munmap(own + PAGE, PAGE);
    while (time(0) < end) {
        int which = of(&random, 2), fd = fds[which];
        uint64_t words[8], at = of(&random, 2) << 40 | (of(&random, 8) ? of(&random, 4096) : value(&random));
        size_t bytes = of(&random, 8) ? of(&random, 512) : of(&random, NOTE);
        void *map;

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
            map = mmap(0, bytes, of(&random, 8), of(&random, 2) ? MAP_SHARED : MAP_PRIVATE, fd,
                       (off_t)PAGE * (of(&random, 4) ? of(&random, 64) : value(&random)));
            if (map != MAP_FAILED) {
                mprotect(map, PAGE, PROT_READ | PROT_WRITE);
                munmap(map, bytes);
            }
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
            ask(&random, fds[which], own, &serial);
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
