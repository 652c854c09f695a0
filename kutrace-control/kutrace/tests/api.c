// SPDX-License-Identifier: BSD-3-Clause
// Calls every function of kutrace_original.h, in the main thread, in a second thread and in a signal handler of the
// second, and prints the results, one per line. Fails if a function changes errno.

#include <errno.h>
#include <kutrace.h>
#include <kutrace_original.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static int changed;

// errno before a call.
enum { BEFORE = 4711 };

static void print(const char *what, long answer) {
    changed |= errno != BEFORE;
    printf("%s %ld\n", what, answer);
    errno = BEFORE;
}

static void record(void) {
    errno = BEFORE;
    print("is_on", kutrace_is_on());
    print("test", kutrace_test());
    print("version", kutrace_version());
    print("mark_a", kutrace_mark_a("label"));
    print("mark_b", kutrace_mark_b(""));
    print("mark_c", kutrace_mark_c(NULL));
    print("mark_d", kutrace_mark_d(4294967295));
    kutrace_span outer = kutrace_span_begin("a part with a name that is longer than what fits into the 56 bytes");
    kutrace_span_end(kutrace_span_begin("inner"));
    print("span", outer != 0);
    kutrace_span_end(outer);
    print("rpc_request", kutrace_rpc_request("method", 9, 100));
    print("enqueue", kutrace_enqueue("queue"));
    print("rpc_end", kutrace_rpc_end());
    print("dequeue", kutrace_dequeue("queue"));
    print("rpc_resume", kutrace_rpc_resume(NULL, 9));
    print("rpc_response", kutrace_rpc_response("method", 9, 0));
    print("lock_try", kutrace_lock_try("lock"));
    print("lock_acquired", kutrace_lock_acquired("lock"));
    print("lock_released", kutrace_lock_released("lock"));
    print("keep", kutrace_keep("reason"));
    print("addevent", kutrace_addevent(0x219, 5));
    print("addname", kutrace_addname(0x106, 5, "resource"));
    print("no_name", kutrace_addname(0x106, 5, ""));
    print("a_switch", kutrace_addevent(0x200, 1));
    print("a_pids_name", kutrace_addname(0x002, 1, "forged"));
}

static void handle(int signal) {
    record();
}

static void *thread(void *none) {
    record();
    raise(SIGUSR1);
    return none;
}

int main(void) {
    pthread_t other;
    record();
    signal(SIGUSR1, handle);
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    return changed;
}
