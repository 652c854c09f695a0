// SPDX-License-Identifier: BSD-3-Clause
// A lock convoy: four threads need one mutex most of the time, so each finds it held and sleeps.
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void work(long us) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static void *thread(void *unused) {
    for (int n = 0; n < 100; n++) {
        pthread_mutex_lock(&lock);
        work(50);
        pthread_mutex_unlock(&lock);
        work(10);
    }
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int n = 0; n < 4; n++)
        pthread_create(&threads[n], NULL, thread, NULL);
    for (int n = 0; n < 4; n++)
        pthread_join(threads[n], NULL);
    return 0;
}
