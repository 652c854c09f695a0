// SPDX-License-Identifier: BSD-3-Clause
// Renames threads that have ended. In each round a process opens the name of its first thread, which then ends; another
// thread writes the name before, while and after that one becomes a zombie. In every fourth round this thread execs,
// which makes it the first thread, and the new program renames itself once more. Before that, a thread that is renamed
// ends meanwhile and is gone. Prints how many rounds there were.

#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int comm, round_number;
static volatile pid_t brief;
static volatile int renamed;

// The state of the first thread: the letter after the name, which is in brackets.
static char first_state(void) {
    static char line[512];
    int file = open("/proc/self/stat", O_RDONLY);
    long length = read(file, line, sizeof line - 1);
    close(file);
    const char *behind = length > 0 ? strrchr(line, ')') : NULL;
    return behind ? behind[2] : 0;
}

static void *live_briefly(void *unused) {
    brief = gettid();
    while (!renamed) {
    }
    return unused;
}

// Renames another thread until it is gone.
static void rename_brief(void) {
    pthread_t other;
    char path[64];
    if (pthread_create(&other, NULL, live_briefly, NULL)) {
        err(1, "setup");
    }
    while (!brief) {
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", brief);
    int file = open(path, O_WRONLY);
    for (renamed = 0; write(file, "brief", 5) == 5; renamed = 1) {
    }
    if (!renamed) {
        err(1, "a thread that lives");
    }
    close(file);
    pthread_join(other, NULL);
}

static void *rename_first(void *unused) {
    (void)unused;
    rename_brief();
    do {
        if (write(comm, "ending", 6) != 6) {
            err(1, "a thread that lives");
        }
    } while (first_state() != 'Z');
    for (int n = 0; n < 3; n++) {
        if (write(comm, "zombie", 6) != 6) {
            err(1, "a zombie");
        }
    }
    if (round_number % 4 == 0) {
        execl("/proc/thread-self/exe", "ending", NULL);
        err(1, "exec");
    }
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        return prctl(PR_SET_NAME, "fresh", 0, 0, 0);
    }
    int rounds = atoi(argv[1]);
    for (round_number = 1; round_number <= rounds; round_number++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t other;
            comm = open("/proc/self/comm", O_WRONLY);
            if (comm < 0 || pthread_create(&other, NULL, rename_first, NULL)) {
                err(1, "setup");
            }
            pthread_exit(NULL);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status) {
            errx(1, "round %d: status %x", round_number, status);
        }
    }
    printf("rounds=%d\nuid=%d\n", rounds, getuid());
    return 0;
}
