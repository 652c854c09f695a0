// SPDX-License-Identifier: BSD-3-Clause
// A program that speaks to the recorder as one built against the original's library does: by system call 1023.
//
// `user` asks and inserts one of each and prints the answers. `user N` asks N times for nonsense, among it addresses
// of the kernel and of nothing, and fails if any of them is read.

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { INSERT = 7, INSERT_MANY = 8, TEST = 10, VERSION = 11 };
enum { METHOD_NAME = 0x003, LOCK_NAME = 0x007, QUEUE_NAME = 0x105, RESOURCE_NAME = 0x106 };
enum { RPC_REQUEST = 0x201, MARK_A = 0x20a, MARK_B, MARK_C, MARK_D, LOCK_TRY = 0x210, RESOURCE = 0x219, ENQUEUE };

static uint64_t ask(uint64_t command, uint64_t argument) {
    errno = 0;
    return syscall(1023, command, argument);
}

static uint64_t addevent(uint64_t event, uint32_t argument) {
    return ask(INSERT, event << 32 | argument);
}

// Six letters in base 40, the first one lowest.
static uint64_t mark(uint64_t event, const char *label) {
    uint32_t value = 0;
    for (int n = strlen(label) - 1; n >= 0; n--) {
        value = value * 40 + label[n] - 'a' + 1;
    }
    return addevent(event, value);
}

static uint64_t addname(uint64_t kind, uint32_t number, const char *name) {
    uint64_t block[8] = { 0 };
    uint64_t words = 1 + (strlen(name) + 7) / 8;
    block[0] = (kind | words << 4) << 32 | number;
    memcpy(block + 1, name, strlen(name));
    return ask(INSERT_MANY, (uint64_t)block);
}

static void print(const char *what, long answer) {
    printf("%s %ld errno %d\n", what, answer, errno);
}

static void once(void) {
    print("test", ask(TEST, 0));
    print("version", ask(VERSION, 0));
    print("mark_a", mark(MARK_A, "hello"));
    print("mark_b", mark(MARK_B, "there"));
    print("mark_c", mark(MARK_C, "folks"));
    print("mark_d", addevent(MARK_D, 123456));
    print("forced", ask(~(uint64_t)INSERT, (uint64_t)MARK_D << 32 | 654321));
    print("method", addname(METHOD_NAME, 4253, "get"));
    addevent(RPC_REQUEST, 65 << 16 | 4253);
    addevent(RPC_REQUEST, 0);
    print("lock", addname(LOCK_NAME, 99, "a name of fifty-five bytes, as long as the library can"));
    addevent(LOCK_TRY, 99);
    print("queue", addname(QUEUE_NAME, 3, "in"));
    addevent(ENQUEUE, 3);
    print("resource", addname(RESOURCE_NAME, 5, "pump"));
    addevent(RESOURCE, 5);
    print("off", ask(0, 0));
    print("reset", ask(3, 0));
    print("switch", addevent(0x200, 1));
    print("pidname", addname(0x002, 1, "forged"));
    print("kernel", ask(INSERT_MANY, 0xffffffff81000000));
    print("command", ask(15, 0));
}

// xorshift
static uint64_t any(void) {
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

// The program's own 64 bytes: a first word of any kind, and a text that differs from any other memory.
static uint64_t some_words(char *page) {
    static const uint64_t kinds[] = { METHOD_NAME, LOCK_NAME, QUEUE_NAME, RESOURCE_NAME };
    uint64_t *words = (uint64_t *)(page + any() % 4000);
    memset(words, 'k', 64);
    uint64_t name = (kinds[any() % 4] | any() % 16 << 4) << 32 | any() % 1000;
    words[0] = any() % 2 ? any() : name;
    return (uint64_t)words;
}

static void nonsense(char *page) {
    uint64_t bad[] = { any() | 1ull << 63, 0xffffffff81000000 + any() % (1 << 24), 0xffff888000000000 + any() % (1 << 30),
                       any() % 4096, (uint64_t)page + 4096 - any() % 64, (uint64_t)page + 4096 + any() % 4000 };
    uint64_t argument = any() % 2 ? some_words(page) : bad[any() % 6];
    uint64_t command = any() % 4 ? any() % 16 : any();
    command = any() % 4 ? command : INSERT_MANY;
    command = any() % 8 ? command : ~command;
    argument = command == INSERT && any() % 2 ? (any() & 0xfffffffffff) : argument;

    int is_bad = argument - (uint64_t)page > 4096 - 64;
    long answer = ask(command, argument);
    if ((command == INSERT_MANY || command == ~(uint64_t)INSERT_MANY) && is_bad && (answer != -1 || (errno != EFAULT && errno != ENOSYS))) {
        fprintf(stderr, "user: %lx was read: %ld\n", argument, answer);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc == 1) {
        once();
        return 0;
    }
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || munmap(page + 4096, 4096)) {
        perror("user");
        return 1;
    }
    for (long n = atol(argv[1]); n > 0; n--) {
        nonsense(page);
    }
    mark(MARK_A, "end");
    return 0;
}
