// SPDX-License-Identifier: BSD-3-Clause
// Memory that never comes: its pages are requested from a userfaultfd that no process reads.
//   never write|read|grants   has the recorder's device copy from or to such memory, and so waits for good
//   never CPU                 touches it on that CPU

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct program {
    uint32_t serial, tgid, grants, ended;
    uint64_t address, refused;
    char comm[16];
};

static void *never(void) {
    int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register area = {.range = {(uintptr_t)at, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};

    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &area)) {
        perror("userfaultfd");
        exit(1);
    }
    return at;
}

int main(int argc, char **argv) {
    int device = open("/dev/kutrace", O_RDWR);
    char *at = never();
    const char *what = argc > 1 ? argv[1] : "";

    if (!strcmp(what, "write"))
        return write(device, at, 1) == 1;
    if (!strcmp(what, "read"))
        return pread(device, at, 1, 0) == 1;
    if (!strcmp(what, "grants")) {
        struct program program = {.grants = 1, .address = (uintptr_t)at};
        return ioctl(device, _IOWR(0xb7, 0x44, struct program), &program);
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(what), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return 1;
    *(volatile char *)at = 1;
    return 0;
}
