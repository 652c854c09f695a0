// SPDX-License-Identifier: BSD-3-Clause
// Sends commands to the recorder as a 32-bit program does: an int 0x80 is that of a 32-bit program, for any caller. The
// arguments are the numbers of the commands info, start and stop.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int ask(long device, long command, unsigned *argument) {
    long ret = 54;
    __asm__ volatile("int $0x80"
                     : "+a"(ret)
                     : "b"(device), "c"(command), "d"(argument)
                     : "memory", "r8", "r9", "r10", "r11");
    return -(int)ret;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        return 2;
    }
    long info = atol(argv[1]), start = atol(argv[2]), stop = atol(argv[3]);
    int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT;
    unsigned *answer = mmap(NULL, 4096, prot, flags, -1, 0);
    long device = open("/dev/kutrace", O_RDWR);
    printf("ret=%d\n", ask(device, info, answer));
    printf("version=%u\n", *answer);
    printf("nowhere=%d\n", ask(device, info, NULL));
    printf("start=%d\n", ask(device, start, NULL));
    printf("again=%d\n", ask(device, start, NULL));
    printf("stop=%d\n", ask(device, stop, NULL));
    printf("unknown=%d\n", ask(device, info | 99, answer));
    return 0;
}
