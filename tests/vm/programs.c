// SPDX-License-Identifier: BSD-3-Clause
// Programs that record into memory of their own. The first argument selects the work:
// calls N      N times a span with a mark, a system call and a mark; prints how many were recorded
// slowly N     as calls, with a pause after each hundred
// counting     values from 0 on, until it is killed; prints each once it is recorded
// kills N      N processes, one after the other, each of which records in two threads, and counts that in memory it shares
//              with the process that kills it after some time; prints each thread and its count
// fork N       N children, each with one mark
// threads N    N threads, one after the other, each with one mark
// crowd N M    M times N threads at a time, each with one mark
// throng N M   N threads that all live until each has made M marks; prints how many were recorded
// flood N      two threads, each with N marks by system call; prints how many were taken
// turns N      two processes that take turns, each with N marks by system call; prints how many were taken
// typed        a mark with each type of field, a span with fields, one that another thread ends, a line of a log
// brief N      N processes, one after the other, each with one mark; prints how many recorded it
// processes N  N processes at a time, each with one mark, that all live until the last has marked
// scribble N   marks, then fills what it was granted, and can be, with bytes that are not entries; if N is not 0, also its
//              names, and half of the words are nearly right

#define _GNU_SOURCE
#include <kutrace.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long calls(long n) {
    long recorded = 0;
    for (long i = 0; i < n; i++) {
        recorded += KUTRACE_MARK("before");
        syscall(SYS_getppid);
        recorded += KUTRACE_MARK("after");
    }
    return recorded;
}

static long slowly(long n) {
    long recorded = 0;
    for (; n > 0; n -= 100) {
        recorded += calls(100);
        usleep(1000);
    }
    return recorded;
}

static void counting(void) {
    for (long n = 0; KUTRACE_COUNTER("counted", n); n++) {
        printf("%ld\n", n);
        fflush(stdout);
        usleep(200);
    }
}

static volatile unsigned long handled;

// The handler records, too, wherever it comes.
static void handler(int signal) {
    (void)signal;
    if (KUTRACE_MARK("handler"))
        handled++;
}

// Counts of the two threads of a program.
static volatile unsigned long *both;

// Neither continues before the other has memory: one alone could take all that their process may have.
static void *record(void *argument) {
    volatile unsigned long *count = argument;
    count[1] = (unsigned long)syscall(SYS_gettid);
    for (;;) {
        if (!KUTRACE_COUNTER("counted", (long)*count))
            continue;
        ++*count;
        while (!(both[0] && both[8]))
            sched_yield();
    }
    return NULL;
}

static void until_killed(volatile unsigned long *counts) {
    pthread_t thread;
    both = counts;
    signal(SIGALRM, handler);
    ualarm(500, 500);
    pthread_create(&thread, NULL, record, (void *)(counts + 8));
    record((void *)counts);
}

// A third of them in the time in which their first marks are made, the others once both threads have recorded.
static void kills(long n) {
    volatile unsigned long *counts =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    srandom((unsigned)getpid());
    for (long i = 0; i < n; i++) {
        pid_t child;
        memset((void *)counts, 0, 128);
        child = fork();
        if (child < 0)
            exit(1);
        if (!child)
            until_killed(counts);
        while (i % 3 && !(counts[0] && counts[8]))
            usleep(100);
        usleep((useconds_t)(random() % (i % 3 ? 30000 : 3000)));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        printf("%lu %lu\n%lu %lu\n", counts[1], counts[0], counts[9], counts[8]);
    }
}

static void *mark(void *argument) {
    long *recorded = argument;
    *recorded += KUTRACE_MARK("thread");
    return NULL;
}

static pthread_barrier_t all_have_marked;

static void *mark_often(void *argument) {
    long *marks = argument, recorded = 0;
    for (long i = 0; i < *marks; i++)
        recorded += KUTRACE_MARK("throng");
    *marks = recorded;
    pthread_barrier_wait(&all_have_marked);
    return NULL;
}

static long throng(long n, long marks) {
    pthread_t *threads = calloc((size_t)n, sizeof(*threads));
    long *counts = calloc((size_t)n, sizeof(*counts)), recorded = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_have_marked, NULL, (unsigned)n);
    for (long i = 0; i < n; i++) {
        counts[i] = marks;
        if (pthread_create(&threads[i], &small, mark_often, &counts[i]))
            exit(3);
    }
    for (long i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        recorded += counts[i];
    }
    return recorded;
}

static void *flood(void *marks) {
    long taken = 0;
    for (long i = 0; i < *(long *)marks; i++)
        taken += syscall(1023, 7, 0x20dL << 32 | i) > 0;
    *(long *)marks = taken;
    return NULL;
}

static long turns(long n) {
    int to[2], from[2];
    long taken = 0, mark;
    if (pipe(to) || pipe(from))
        return -1;
    if (!fork()) {
        close(to[1]);
        while (read(to[0], &mark, sizeof(mark)) == sizeof(mark)) {
            flood(&mark);
            write(from[1], &mark, sizeof(mark));
        }
        _exit(0);
    }
    for (long i = 0; i < n; i++) {
        mark = 1;
        write(to[1], &mark, sizeof(mark));
        read(from[0], &mark, sizeof(mark));
        taken += mark;
        mark = 1;
        flood(&mark);
        taken += mark;
    }
    close(to[1]);
    wait(NULL);
    return taken;
}

static void *end(void *id) {
    KUTRACE_ASYNC_SPAN_END("upload", (uint64_t)(uintptr_t)id);
    return NULL;
}

static void typed(void) {
    pthread_t thread;
    KUTRACE_MARK("typed", "u", 17u, "i", -17, "f", 0.5, "b", (_Bool)1, "x", (void *)255, "path", "/a b");
    // Two at a time, the first ended last; both places of a name are the same name.
    KUTRACE_ASYNC_SPAN_BEGIN("upload", 7, "size", 4096u);
    KUTRACE_ASYNC_SPAN_BEGIN("upload", 8);
    {
        KUTRACE_SPAN("part", "number", 1);
    }
    for (uintptr_t id = 8; id > 6; id--) {
        pthread_create(&thread, NULL, end, (void *)id);
        pthread_join(thread, NULL);
    }
    KUTRACE_LOG("disk full");
    kutrace_trace_id(0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0xf067aa0ba902b7);
    KUTRACE_MARK("last");
}

static long brief(long n) {
    long recorded = 0;
    int status;
    for (long i = 0; i < n; i++) {
        if (!fork())
            _exit(KUTRACE_MARK("brief"));
        if (wait(&status) > 0 && WIFEXITED(status))
            recorded += WEXITSTATUS(status);
    }
    return recorded;
}

static long processes(long n) {
    long recorded = 0;
    char answer;
    int said[2], go[2];
    if (pipe(said) || pipe(go))
        exit(1);
    KUTRACE_MARK("parent");
    for (long i = 0; i < n; i++) {
        pid_t child = fork();
        if (child < 0)
            exit(2);
        if (child)
            continue;
        close(go[1]);
        answer = (char)KUTRACE_MARK("child");
        if (write(said[1], &answer, 1) == 1)
            (void)!read(go[0], &answer, 1); // Until the parent closes the other end.
        _exit(0);
    }
    for (long i = 0; i < n && read(said[0], &answer, 1) == 1; i++)
        recorded += answer;
    close(go[1]);
    while (wait(NULL) > 0)
        ;
    return recorded;
}

// Where the library has mapped its area.
static char *area(void) {
    char line[256], access[8];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, access) == 3 && end - start == 64 << 20 &&
            strstr(line, "kutrace_programs"))
            return (char *)start;
    exit(1);
}

static void scribble(unsigned long seed) {
    enum { PAGE = 4096, WORDS = 4 << 20, RUNS = 32 << 20, RUN = 65536 };
    static const struct { unsigned long at, bytes; } parts[] = {{WORDS, PAGE}, {RUNS, RUN}, {0, PAGE}};
    unsigned long bits = 88172645463325252 + seed;
    KUTRACE_MARK("scribbler");
    char *start = area();
    for (int part = 0; part < 2 + !!seed; part++) {
        volatile unsigned long *to = (void *)(start + parts[part].at);
        // To read is to ask.
        if (to[0] >= ~1UL)
            exit(2);
        // After its mark.
        for (unsigned long n = part ? 0 : 8; n < parts[part].bytes / 8; n++) {
            bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
            // The name that the mark above has, any kind, a time near now.
            unsigned long near = 8UL << 40 | (bits >> 8 & 7) << 32 | (uint32_t)(__builtin_ia32_rdtsc() + (bits & 0xffff));
            to[n] = seed && bits & 1 << 20 ? near : bits;
        }
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 0, recorded = 0;
    if (!strcmp(what, "calls")) {
        KUTRACE_SPAN_BEGIN("all");
        {
            KUTRACE_SPAN("loop");
            recorded = calls(n);
        }
        KUTRACE_COUNTER("total", -5000000000);
        KUTRACE_SPAN_END("all");
        printf("%ld\n", recorded);
    } else if (!strcmp(what, "slowly")) {
        printf("%ld\n", slowly(n));
    } else if (!strcmp(what, "counting")) {
        counting();
    } else if (!strcmp(what, "kills")) {
        kills(n);
    } else if (!strcmp(what, "fork")) {
        KUTRACE_MARK("parent");
        for (long i = 0; i < n; i++)
            if (!fork())
                _exit(!KUTRACE_MARK("child"));
        for (int status; wait(&status) > 0; recorded += status == 0)
            ;
        printf("%ld\n", recorded);
    } else if (!strcmp(what, "brief")) {
        printf("%ld\n", brief(n));
    } else if (!strcmp(what, "processes")) {
        printf("%ld\n", processes(n));
    } else if (!strcmp(what, "threads")) {
        for (long i = 0; i < n; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, mark, &recorded);
            pthread_join(thread, NULL);
        }
        printf("%ld\n", recorded);
    } else if (!strcmp(what, "flood")) {
        pthread_t thread;
        recorded = n;
        pthread_create(&thread, NULL, flood, &recorded);
        flood(&n);
        pthread_join(thread, NULL);
        printf("%ld\n", recorded + n);
    } else if (!strcmp(what, "turns")) {
        printf("%ld\n", turns(n));
    } else if (!strcmp(what, "throng")) {
        printf("%ld\n", throng(n, argc > 3 ? atol(argv[3]) : 1));
    } else if (!strcmp(what, "typed")) {
        typed();
    } else if (!strcmp(what, "crowd")) {
        pthread_t threads[1000];
        long marks[1000] = {0};
        n = n > 1000 ? 1000 : n;
        for (long round = 0, rounds = argc > 3 ? atol(argv[3]) : 1; round < rounds; round++) {
            for (long i = 0; i < n; i++)
                pthread_create(&threads[i], NULL, mark, &marks[i]);
            for (long i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
        }
        for (long i = 0; i < n; i++)
            recorded += marks[i];
        printf("%ld\n", recorded);
    } else {
        scribble((unsigned long)n);
    }
}
