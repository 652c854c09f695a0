// SPDX-License-Identifier: BSD-3-Clause
// Time slices: seven threads that compute and never wait, on fewer CPUs.
#include <pthread.h>
#include <time.h>

static void *compute(void *unused) {
    struct timespec used;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        for (volatile int n = 0; n < 10000; n++) {}
    } while (used.tv_sec == 0 && used.tv_nsec < 30 * 1000000);
    return unused;
}

int main(void) {
    pthread_t threads[7];
    for (int n = 0; n < 7; n++)
        pthread_create(&threads[n], NULL, compute, NULL);
    for (int n = 0; n < 7; n++)
        pthread_join(threads[n], NULL);
    return 0;
}
