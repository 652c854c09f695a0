// SPDX-License-Identifier: BSD-3-Clause
// Gives an emulated machine a counter of our own: QEMU, started with this library in LD_PRELOAD, shows its guest the
// host's counter times FACTOR, plus OFFSET, in place of what it has counted since it began.
//
// QEMU reads the host's counter by the instruction `rdtsc` and adds a constant that it notes as it starts. This replaces
// QEMU reads the host's counter by the instruction `rdtsc` and adds a constant that it notes as it starts. This
// replaces each of these instructions by a jump to code that computes the new value, and the one that notes the
// constant by one that returns 0. FACTOR, in parts of 2^63, and OFFSET are two numbers of 64 bits in the file that
// KUTRACE_COUNTER names; a program that changes OFFSET there later sets the guest's counter at that moment.
// Other programs that inherit the variables remain as they are.
//
// As a program, `truth FILE OFFSET` writes OFFSET into FILE, and prints the host's counter before and after.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FACTOR = 0, OFFSET = 8 };

// rdtsc; shl $32,%rdx; mov %eax,%eax: a compiler's code for it, before it joins both halves.
static const uint8_t READ[] = { 0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x89, 0xc0 };

// One page that can be executed, and after it the file's.
static uint8_t *code, *numbers;
static size_t used;

static void put(const void *bytes, size_t count) {
    if (used + count > PAGE) {
        errx(1, "truth: too many instructions");
    }
    memcpy(code + used, bytes, count);
    used += count;
}

// An instruction that ends with the distance to its operand.
static void put_to(const void *bytes, size_t count, const uint8_t *to) {
    put(bytes, count);
    int32_t distance = (int32_t)(to - (code + used + sizeof distance));
    put(&distance, sizeof distance);
}

#define CODE(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof(const uint8_t[]){ __VA_ARGS__ }

// Leaves in %rdx and %rax what READ would, of the counter that is wanted, and in no other register anything.
static void put_counter(void) {
    put(CODE(0x0f, 0x31));                          // rdtsc
    put(CODE(0x48, 0xc1, 0xe2, 0x20));              // shl $32,%rdx
    put(CODE(0x48, 0x09, 0xd0));                    // or %rdx,%rax
    put_to(CODE(0x48, 0xf7, 0x25), numbers + FACTOR); // mulq FACTOR(%rip)
    put(CODE(0x48, 0x0f, 0xa4, 0xc2, 0x01));        // shld $1,%rax,%rdx
    put_to(CODE(0x48, 0x03, 0x15), numbers + OFFSET); // add OFFSET(%rip),%rdx
    put(CODE(0x89, 0xd0));                          // mov %edx,%eax
    put(CODE(0x48, 0xc1, 0xea, 0x20));              // shr $32,%rdx
    put(CODE(0x48, 0xc1, 0xe2, 0x20));              // shl $32,%rdx
}

// Whether an instruction is of one of the functions that note from when on, or until when, there is something to count.
static int notes_constant(const uint8_t *at) {
    Dl_info function;
    return dladdr(at, &function) && function.dli_sname &&
           (!strcmp(function.dli_sname, "cpu_enable_ticks") || !strcmp(function.dli_sname, "cpu_disable_ticks"));
}

static void replace(uint8_t *read, int notes) {
    const uint8_t *begin = code + used;
    if (notes) {
        put(CODE(0x31, 0xd2, 0x31, 0xc0));          // xor %edx,%edx; xor %eax,%eax
    } else {
        put_counter();
    }
    put_to(CODE(0xe9), read + sizeof READ);         // jmp
    int32_t distance = (int32_t)(begin - (read + 5));
    read[0] = 0xe9;
    memcpy(read + 1, &distance, sizeof distance);
    memset(read + 5, 0x90, sizeof READ - 5);
}

// The program's own instructions, by its list of mappings.
static void text_of(const char *program, uint8_t **begin, uint8_t **end) {
    char line[PAGE + 256];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *from, *to, kind[5] = "";
        line[strcspn(line, "\n")] = 0;
        const char *path = strchr(line, '/');
        if (path && !strcmp(path, program) && sscanf(line, "%p-%p %4s", (void **)&from, (void **)&to, kind) == 3 &&
            !strcmp(kind, "r-xp")) {
            *begin = (uint8_t *)from;
            *end = (uint8_t *)to;
            fclose(maps);
            return;
        }
    }
    errx(1, "truth: %s: no instructions", program);
}

static void map(const char *file, uint8_t *near) {
    int numbers_of = open(file, O_RDONLY);
    if (numbers_of < 0) {
        err(1, "truth: %s", file);
    }
    // Below the program, as near as there is room: a jump reaches 2 GiB.
    for (uintptr_t at = ((uintptr_t)near & -PAGE) - 16 * PAGE; (uintptr_t)near - at < 1u << 30; at -= 16 * PAGE) {
        code = mmap((void *)at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (code != MAP_FAILED) {
            break;
        }
        if (errno != EEXIST) {
            err(1, "truth: mmap");
        }
    }
    numbers = code + PAGE;
    if (code == MAP_FAILED || mmap(numbers, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, numbers_of, 0) == MAP_FAILED) {
        err(1, "truth: %s: mmap", file);
    }
    close(numbers_of);
}

__attribute__((constructor)) static void start(void) {
    char program[PAGE] = "";
    uint8_t *begin, *end;
    const char *file = getenv("KUTRACE_COUNTER");
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0 || !strstr(program, "/qemu-system-") || !file) {
        return;
    }
    text_of(program, &begin, &end);
    map(file, begin);
    if (mprotect(begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        err(1, "truth: mprotect");
    }
    int noted = 0, counted = 0;
    for (uint8_t *at = begin; (at = memmem(at, end - at, READ, sizeof READ)); at += sizeof READ) {
        int notes = notes_constant(at);
        replace(at, notes);
        noted += notes;
        counted += !notes;
    }
    if (noted == 0 || counted == 0) {
        errx(1, "truth: %s: %d and %d instructions that read the counter", program, noted, counted);
    }
    if (mprotect(begin, end - begin, PROT_READ | PROT_EXEC) || mprotect(code, PAGE, PROT_READ | PROT_EXEC)) {
        err(1, "truth: mprotect");
    }
}

int main(int argc, char **argv) {
    int file = argc == 3 ? open(argv[1], O_RDWR) : -1;
    uint8_t *page = file < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        err(2, "truth FILE OFFSET");
    }
    unsigned long long before = __builtin_ia32_rdtsc();
    __atomic_store_n((uint64_t *)(page + OFFSET), strtoull(argv[2], NULL, 10), __ATOMIC_SEQ_CST);
    unsigned long long after = __builtin_ia32_rdtsc();
    printf("%llu %llu\n", before, after);
    return 0;
}
