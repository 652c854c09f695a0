// SPDX-License-Identifier: BSD-3-Clause
// Who may read the memory of programs tries all that would change it, of each program there is. Prints what succeeded.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct program {
    uint32_t serial, tgid;
    int32_t fd;
    uint32_t grants;
    uint64_t address, refused;
    char comm[16];
    uint32_t ended, reserved;
};

static void tried(const char *what, int succeeded) {
    if (succeeded)
        printf("could %s\n", what);
}

static void intrude(int fd) {
    static const char junk[4096] = {[0 ... 4095] = 0x5a};
    char path[64], first;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tried("make it shorter", !ftruncate(fd, 0));
    tried("make it shorter by its path", !truncate(path, 0));
    tried("write", pwrite(fd, junk, sizeof junk, 0) > 0);
    tried("map it for writing", mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    void *map = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    tried("make a mapping one for writing", map != MAP_FAILED && !mprotect(map, 4096, PROT_READ | PROT_WRITE));
    tried("seal it", !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    fchmod(fd, 0777);
    int again = open(path, O_RDWR);
    if (again >= 0) {
        tried("make it shorter, opened anew", !ftruncate(again, 0));
        tried("make it longer, opened anew", !ftruncate(again, 1 << 30));
        tried("write, opened anew", pwrite(again, junk, sizeof junk, 0) > 0);
        tried("punch holes, opened anew", !fallocate(again, 3, 0, 4096));
        tried("map it for writing, opened anew",
              mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED);
    }
    tried("empty it", open(path, O_RDWR | O_TRUNC) >= 0 && pread(fd, &first, 1, 0) != 1);
}

int main(void) {
    int device = open("/dev/kutrace", O_RDWR), programs = 0;
    struct program program = {0};

    while (!ioctl(device, _IOWR(0xb7, 0x44, struct program), &program) && program.serial) {
        if (program.serial == UINT32_MAX)
            printf("others=%d\n", -program.fd);
        else
            programs++;
        if (program.fd >= 0)
            intrude(program.fd);
        program.grants = 0;
    }
    printf("programs=%d\n", programs);
    return 0;
}
