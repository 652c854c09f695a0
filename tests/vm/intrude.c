// SPDX-License-Identifier: BSD-3-Clause
// Who may read the memory of programs tries all that would change it, of each program there is. Prints what succeeded.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, AREA = 64 << 20 };

struct program {
    uint32_t serial, tgid, grants, ended;
    uint64_t address, refused;
    char comm[16];
};

struct granted {
    uint32_t offset, bytes, tid, kind;
    uint64_t sequence, tsc;
};

struct copy {
    uint32_t serial, offset;
    uint64_t sequence, address, bytes;
};

static void tried(const char *what, int succeeded) {
    if (succeeded)
        printf("could %s\n", what);
}

// Where the program has its area.
static unsigned long area(unsigned pid) {
    char path[64], line[256], access[8];
    unsigned long start, end;

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3 && end - start == AREA && strstr(line, "kutrace_programs")) {
            fclose(maps);
            return start;
        }
    return 0;
}

static unsigned intrude(int device, const struct program *program, const struct granted *grant) {
    static char page[2 * PAGE];
    struct copy copy = {program->serial, grant->offset, grant->sequence, (uintptr_t)page, PAGE};
    struct { uint32_t serial, offset; uint64_t sequence; } taken = {program->serial, grant->offset, grant->sequence};
    char path[64];

    if (ioctl(device, _IOW(0xb7, 0x48, struct copy), &copy))
        printf("could not copy what is there\n");
    copy.bytes++;
    tried("copy more than there is", !ioctl(device, _IOW(0xb7, 0x48, struct copy), &copy));
    copy.bytes--, copy.sequence += 1 << 20;
    tried("copy what never was", !ioctl(device, _IOW(0xb7, 0x48, struct copy), &copy));
    tried("take it away", !ioctl(device, _IOC(_IOC_WRITE, 0xb7, 0x46, sizeof taken), &taken));
    tried("map it", mmap(0, AREA, PROT_READ, MAP_SHARED, device, grant->offset) != MAP_FAILED);
    // Who may read the memory of the process at all finds nothing where nothing is granted, and has nothing granted there.
    unsigned long start = area(program->tgid);
    snprintf(path, sizeof path, "/proc/%u/mem", program->tgid);
    int memory = open(path, O_RDWR);
    if (start && memory >= 0) {
        tried("read more of it", pread(memory, page, PAGE, start + (32 << 20)) > 0);
        tried("write more of it", pwrite(memory, page, PAGE, start + (33 << 20)) > 0);
    }
    return start != 0;
}

int main(void) {
    int device = open("/dev/kutrace", O_RDWR), programs = 0, seen = 0;
    struct granted grants[64];
    struct program program = {.grants = 64, .address = (uintptr_t)grants};

    while (!ioctl(device, _IOWR(0xb7, 0x44, struct program), &program) && program.serial) {
        if (program.serial == UINT32_MAX) {
            printf("others=%u\n", program.grants + 1);
        } else {
            uint32_t count = program.grants;
            programs++;
            for (uint32_t n = 0; n < count && n < 64; n++)
                seen += intrude(device, &program, &grants[n]);
            struct program again = {.serial = program.serial - 1};
            if (ioctl(device, _IOWR(0xb7, 0x44, struct program), &again) || again.grants != count)
                printf("could have more granted\n");
        }
        program.grants = 64, program.address = (uintptr_t)grants;
    }
    printf("programs=%d\n%s", programs, seen ? "seen\n" : "");
    return 0;
}
