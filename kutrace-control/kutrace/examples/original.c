// SPDX-License-Identifier: BSD-3-Clause
// Marks, spans, an RPC, a queue and a lock of the original library:
//   cc original.c $(pkg-config --cflags --libs kutrace) -o marks
//   kutrace_control go; ./marks; kutrace_control stop t.trace

#include <kutrace_original.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void work(void) {
    for (volatile int n = 0; n < 100000; n++) {
    }
}

// A mark in a context that may not allocate or take a lock.
static void on_alarm(int signal) {
    kutrace_mark_b("alarm");
}

// A request that waits in a queue, is taken out, and answered.
static void serve(void) {
    kutrace_rpc_request("c_get", 78, 1000);
    work();
    kutrace_enqueue("c_queue");
    kutrace_rpc_end();
    usleep(1000);
    kutrace_dequeue("c_queue");
    kutrace_rpc_resume("c_get", 78);
    kutrace_lock_try("c_lock");
    work();
    kutrace_lock_acquired("c_lock");
    work();
    kutrace_lock_released("c_lock");
    kutrace_rpc_response("c_get", 78, 30);
    kutrace_rpc_end();
}

int main(void) {
    kutrace_mark_a("c");
    signal(SIGALRM, on_alarm);
    raise(SIGALRM);
    kutrace_mark_d(getpid());

    kutrace_span outer = kutrace_span_begin("c outer");
    usleep(1000);
    kutrace_span inner = kutrace_span_begin("c inner");
    usleep(1000);
    kutrace_span_end(inner);
    kutrace_span_end(outer);

    serve();
    kutrace_mark_a("/c");
    return 0;
}
