// SPDX-License-Identifier: BSD-3-Clause
// Marks in all places where a program may make them: before main, in libraries that come and go, around fork, vfork, clone
// and exec, and at the end. Compiled with -DPLUGIN it is such a library, with -DALONE a program without one.

#define _GNU_SOURCE
#include <kutrace.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef PLUGIN

static __attribute__((constructor)) void comes(void) { KUTRACE_MARK("plugin.comes"); }
static __attribute__((destructor)) void goes(void) { KUTRACE_MARK("plugin.goes"); }
void call(void) {
    KUTRACE_SPAN("plugin.part");
    KUTRACE_MARK("plugin.call");
}

#else

static __attribute__((constructor(101))) void before(void) { KUTRACE_MARK("before"); }
static __attribute__((destructor(101))) void after(void) { KUTRACE_MARK("after"); }
static void last(void) { KUTRACE_MARK("atexit"); }

#ifdef ALONE
static void plugin(void) {}
#else
#include <dlfcn.h>
// The second time its memory belongs to another process, if to any.
static void plugin(void) {
    for (int i = 0; i < 2; i++) {
        void *library = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);
        void (*call)(void);
        if (!library || !(call = (void (*)(void))dlsym(library, "call")))
            exit(3);
        call();
        if (dlclose(library) || dlopen("./plugin.so", RTLD_NOW | RTLD_NOLOAD))
            exit(4);
    }
}
#endif

static void child_of(pid_t child) {
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        exit(5);
}

int main(int argc, char **argv) {
    pid_t child;
    if (argc > 1) {
        KUTRACE_MARK("executed");
        return 0;
    }
    atexit(last);
    KUTRACE_MARK("main");
    plugin();
    child = fork();
    if (!child) {
        KUTRACE_MARK("fork");
        execl(argv[0], argv[0], "again", NULL);
        _exit(1);
    }
    child_of(child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
    if (!child) {
        KUTRACE_MARK("clone");
        _exit(0);
    }
    child_of(child);
    // It shares the memory of the parent, which waits: for any fate of its mark, the parent's are complete.
    child = vfork();
    if (!child) {
        KUTRACE_MARK("vfork");
        _exit(0);
    }
    child_of(child);
    KUTRACE_MARK("parent");
    return 0;
}

#endif
