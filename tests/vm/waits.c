// SPDX-License-Identifier: BSD-3-Clause
// Ways to wait, each with the reason that a trace must give. `waits DIR [NAME...]` runs them one after the other, all
// or those named, each in a process of its own of the same name; DIR is on a disk. For each it prints a line
// `NAME REASON THREAD`, or `NAME - WHY` if this kernel cannot; REASON may be one of several.
//
// The time examined is that of one thread between two marks: calls of sched_get_priority_max whose argument no other
// program uses. The thread that ends the wait sleeps first, so that it is long compared with anything else.

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/loop.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BEGIN = 21000, END = 21001, LONG = 40 };

static const char *dir;
static struct shared {
    int subject;
    uint32_t word, other;
    pthread_mutex_t inherit;
} *shared;
static int fds[2];

static void nap(int ms) {
    struct timespec time = { ms / 1000, ms % 1000 * 1000000L };
    while (nanosleep(&time, &time)) {
    }
}

static void begin(void) {
    shared->subject = syscall(SYS_gettid);
    syscall(SYS_sched_get_priority_max, BEGIN);
}

static void end(void) {
    syscall(SYS_sched_get_priority_max, END);
}

// The call between two marks.
#define WAIT(call) ({ begin(); long result = (long)(call); int error = errno; end(); errno = error; result; })
// What another process does, after a while.
#define LATER(...) do { if (fork() == 0) { prctl(PR_SET_NAME, "waker"); nap(LONG); __VA_ARGS__; _exit(0); } } while (0)
// A scenario that this kernel cannot run.
#define NEED(condition) do { if (!(condition)) { return errno ? errno : ENOSYS; } } while (0)

static void must(long result, const char *what) {
    if (result < 0) {
        err(1, "%s", what);
    }
}

// The kernel drops its cache of files.
static void forget(void) {
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
    must(write(fd, "3", 1), "drop_caches");
    close(fd);
}

static const char *place(const char *name) {
    static char path[4][256];
    static int next;
    char *made = path[next++ % 4];
    snprintf(made, sizeof path[0], "%s/%s", dir, name);
    return made;
}

static int new_file(const char *path, size_t size) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
    must(fd, path);
    static char bytes[65536];
    for (size_t done = 0; done < size; done += sizeof bytes) {
        must(write(fd, bytes, sizeof bytes), "write");
    }
    return fd;
}

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    int done = fd < 0 ? -1 : (int)write(fd, text, strlen(text));
    close(fd);
    return done;
}

static void one_cpu(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(1, &set);
    must(sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

static void spin(int ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

static char byte[1 << 16];

// Pipes and their like.
static int pipe_read(void) {
    must(pipe(fds), "pipe");
    LATER(write(fds[1], "x", 1));
    return WAIT(read(fds[0], byte, 1)) != 1;
}

static int pipe_write(void) {
    must(pipe(fds), "pipe");
    must(write(fds[1], byte, sizeof byte), "write");
    LATER(read(fds[0], byte, sizeof byte));
    return WAIT(write(fds[1], byte, sizeof byte)) != sizeof byte;
}

static int pipe_closed(void) {
    must(pipe(fds), "pipe");
    LATER();
    close(fds[1]);
    return WAIT(read(fds[0], byte, 1)) != 0;
}

static int fifo_read(void) {
    must(mkfifo("/tmp/waits.fifo", 0600), "mkfifo");
    int fd = open("/tmp/waits.fifo", O_RDWR);
    unlink("/tmp/waits.fifo");
    LATER(write(fd, "x", 1));
    return WAIT(read(fd, byte, 1)) != 1;
}

static int fifo_open(void) {
    must(mkfifo("/tmp/waits.open", 0600), "mkfifo");
    LATER(open("/tmp/waits.open", O_WRONLY));
    int fd = WAIT(open("/tmp/waits.open", O_RDONLY));
    unlink("/tmp/waits.open");
    return fd < 0;
}

static int splice_pipe(void) {
    int out[2];
    must(pipe(fds), "pipe");
    must(pipe(out), "pipe");
    LATER(write(fds[1], "x", 1));
    return WAIT(splice(fds[0], NULL, out[1], NULL, 1, 0)) != 1;
}

static int tee_pipe(void) {
    int out[2];
    must(pipe(fds), "pipe");
    must(pipe(out), "pipe");
    LATER(write(fds[1], "x", 1));
    return WAIT(tee(fds[0], out[1], 1, 0)) != 1;
}

static int pseudo_terminal(void) {
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    must(fd, "posix_openpt");
    must(grantpt(fd), "grantpt");
    must(unlockpt(fd), "unlockpt");
    int other = open(ptsname(fd), O_RDWR | O_NOCTTY);
    NEED(other >= 0);
    LATER(write(fd, "x\n", 2));
    return WAIT(read(other, byte, 2)) != 2;
}

// Sockets.
static int local_stream(void) {
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
    LATER(write(fds[1], "x", 1));
    return WAIT(read(fds[0], byte, 1)) != 1;
}

static int local_datagram(void) {
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), "socketpair");
    LATER(send(fds[1], "x", 1, 0));
    return WAIT(recv(fds[0], byte, 1, 0)) != 1;
}

static int local_full(void) {
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
    while (send(fds[1], byte, 4096, MSG_DONTWAIT) > 0) {
    }
    LATER(while (recv(fds[0], byte, sizeof byte, MSG_DONTWAIT) > 0) {});
    return WAIT(send(fds[1], byte, 4096, 0)) != 4096;
}

static int local_listen(struct sockaddr_un *address) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    *address = (struct sockaddr_un){ AF_UNIX, "" };
    sprintf(address->sun_path + 1, "waits%d", getpid());
    must(bind(fd, (struct sockaddr *)address, sizeof *address), "bind");
    must(listen(fd, 0), "listen");
    return fd;
}

static int local_accept(void) {
    struct sockaddr_un address;
    int fd = local_listen(&address);
    LATER(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
    return WAIT(accept(fd, NULL, NULL)) < 0;
}

static int local_connect(void) {
    struct sockaddr_un address;
    int fd = local_listen(&address);
    must(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address), "connect");
    LATER(accept(fd, NULL, NULL));
    return WAIT(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
}

static int net_socket(int type, struct sockaddr_in *address) {
    int fd = socket(AF_INET, type, 0);
    must(fd, "socket");
    socklen_t size = sizeof *address;
    *address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    must(bind(fd, (struct sockaddr *)address, size), "bind");
    must(getsockname(fd, (struct sockaddr *)address, &size), "getsockname");
    if (type == SOCK_STREAM) {
        must(listen(fd, 4), "listen");
    }
    return fd;
}

static int udp_receive(void) {
    struct sockaddr_in address;
    int fd = net_socket(SOCK_DGRAM, &address);
    LATER(sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (struct sockaddr *)&address, sizeof address));
    return WAIT(recv(fd, byte, 1, 0)) != 1;
}

static int tcp_accept(void) {
    struct sockaddr_in address;
    int fd = net_socket(SOCK_STREAM, &address);
    LATER(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
    return WAIT(accept(fd, NULL, NULL)) < 0;
}

static void tcp_pair(void) {
    struct sockaddr_in address;
    int fd = net_socket(SOCK_STREAM, &address);
    fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fds[1], (struct sockaddr *)&address, sizeof address), "connect");
    fds[0] = accept(fd, NULL, NULL);
    must(fds[0], "accept");
}

static int tcp_receive(void) {
    tcp_pair();
    LATER(send(fds[1], "x", 1, 0));
    return WAIT(recv(fds[0], byte, 1, 0)) != 1;
}

static int tcp_read(void) {
    tcp_pair();
    LATER(write(fds[1], "x", 1));
    return WAIT(read(fds[0], byte, 1)) != 1;
}

static int tcp_full(void) {
    tcp_pair();
    while (send(fds[1], byte, sizeof byte, MSG_DONTWAIT) > 0) {
    }
    LATER(for (int n = 0; n < 400; n++) { recv(fds[0], byte, sizeof byte, MSG_DONTWAIT); });
    return WAIT(send(fds[1], byte, 4096, 0)) != 4096;
}

// Waiting for one of several.
static int poll_socket(void) {
    tcp_pair();
    LATER(send(fds[1], "x", 1, 0));
    struct pollfd one = { fds[0], POLLIN, 0 };
    return WAIT(poll(&one, 1, -1)) != 1;
}

static int poll_pipe(void) {
    must(pipe(fds), "pipe");
    LATER(write(fds[1], "x", 1));
    struct pollfd one = { fds[0], POLLIN, 0 };
    return WAIT(poll(&one, 1, -1)) != 1;
}

static int poll_time(void) {
    return WAIT(poll(NULL, 0, LONG)) != 0;
}

static int ppoll_pipe(void) {
    must(pipe(fds), "pipe");
    LATER(write(fds[1], "x", 1));
    struct pollfd one = { fds[0], POLLIN, 0 };
    struct timespec limit = { 5, 0 };
    return WAIT(ppoll(&one, 1, &limit, NULL)) != 1;
}

static int select_pipe(void) {
    must(pipe(fds), "pipe");
    LATER(write(fds[1], "x", 1));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    return WAIT(select(fds[0] + 1, &set, NULL, NULL, NULL)) != 1;
}

static int select_time(void) {
    struct timeval limit = { 0, LONG * 1000 };
    return WAIT(select(0, NULL, NULL, NULL, &limit)) != 0;
}

static int epoll_of(int fd) {
    int set = epoll_create1(0);
    struct epoll_event wanted = { .events = EPOLLIN };
    must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted), "epoll_ctl");
    return set;
}

static int epoll_pipe(void) {
    must(pipe(fds), "pipe");
    int set = epoll_of(fds[0]);
    LATER(write(fds[1], "x", 1));
    struct epoll_event got;
    return WAIT(epoll_wait(set, &got, 1, -1)) != 1;
}

static int epoll_socket(void) {
    tcp_pair();
    int set = epoll_of(fds[0]);
    LATER(write(fds[1], "x", 1));
    struct epoll_event got;
    return WAIT(epoll_wait(set, &got, 1, -1)) != 1;
}

static int epoll_time(void) {
    must(pipe(fds), "pipe");
    int set = epoll_of(fds[0]);
    struct epoll_event got;
    return WAIT(epoll_wait(set, &got, 1, LONG)) != 0;
}

static int event_fd(void) {
    int fd = eventfd(0, 0);
    LATER(write(fd, "\1\0\0\0\0\0\0", 8));
    return WAIT(read(fd, byte, 8)) != 8;
}

static int timer_fd(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec in = { .it_value.tv_nsec = LONG * 1000000L };
    must(timerfd_settime(fd, 0, &in, NULL), "timerfd_settime");
    return WAIT(read(fd, byte, 8)) != 8;
}

static int block(int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    must(sigprocmask(SIG_BLOCK, &set, NULL), "sigprocmask");
    return signalfd(-1, &set, 0);
}

static int signal_fd(void) {
    int fd = block(SIGUSR1), me = getpid();
    LATER(kill(me, SIGUSR1));
    return WAIT(read(fd, byte, sizeof(struct signalfd_siginfo))) < 0;
}

static int inotify(void) {
    int fd = inotify_init();
    NEED(fd >= 0 && inotify_add_watch(fd, "/tmp", IN_CREATE) >= 0);
    LATER(close(open("/tmp/waits.seen", O_CREAT | O_RDWR, 0600)); unlink("/tmp/waits.seen"));
    return WAIT(read(fd, byte, sizeof byte)) < 0;
}

static int queue_receive(void) {
    struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
    mqd_t queue = mq_open("/waits", O_CREAT | O_RDWR, 0600, &attr);
    NEED(queue >= 0);
    mq_unlink("/waits");
    LATER(mq_send(queue, "x", 1, 0));
    return WAIT(mq_receive(queue, byte, 8, NULL)) != 1;
}

static int queue_send(void) {
    struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
    mqd_t queue = mq_open("/waits2", O_CREAT | O_RDWR, 0600, &attr);
    NEED(queue >= 0);
    mq_unlink("/waits2");
    must(mq_send(queue, "x", 1, 0), "mq_send");
    LATER(mq_receive(queue, byte, 8, NULL));
    return WAIT(mq_send(queue, "x", 1, 0));
}

static int message_receive(void) {
    int queue = msgget(IPC_PRIVATE, 0600);
    NEED(queue >= 0);
    struct { long type; char text[8]; } message = { 1, "x" };
    LATER(msgsnd(queue, &message, 1, 0));
    int failed = WAIT(msgrcv(queue, &message, 8, 0, 0)) != 1;
    msgctl(queue, IPC_RMID, NULL);
    return failed;
}

// Locks.
static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *limit) {
    return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

static int futex_plain(void) {
    LATER(futex(&shared->word, FUTEX_WAKE, 1, NULL));
    return WAIT(futex(&shared->word, FUTEX_WAIT, 0, NULL));
}

static int futex_woken_in_time(void) {
    struct timespec limit = { 5, 0 };
    LATER(futex(&shared->word, FUTEX_WAKE, 1, NULL));
    return WAIT(futex(&shared->word, FUTEX_WAIT, 0, &limit));
}

static int futex_time(void) {
    struct timespec limit = { 0, LONG * 1000000L };
    return WAIT(futex(&shared->word, FUTEX_WAIT, 0, &limit)) != -1;
}

static int futex_inherit(void) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    NEED(pthread_mutex_init(&shared->inherit, &attr) == 0);
    if (fork() == 0) {
        pthread_mutex_lock(&shared->inherit);
        nap(2 * LONG);
        pthread_mutex_unlock(&shared->inherit);
        _exit(0);
    }
    nap(LONG);
    return WAIT(pthread_mutex_lock(&shared->inherit));
}

static int futex_several(void) {
    struct futex_waitv two[2] = {
        { .uaddr = (uintptr_t)&shared->word, .flags = FUTEX_32 },
        { .uaddr = (uintptr_t)&shared->other, .flags = FUTEX_32 },
    };
    LATER(futex(&shared->other, FUTEX_WAKE, 1, NULL));
    return WAIT(syscall(SYS_futex_waitv, two, 2, 0, NULL, CLOCK_MONOTONIC)) != 1;
}

static int file_lock(void) {
    int fd = open("/tmp/waits.lock", O_CREAT | O_RDWR, 0600);
    if (fork() == 0) {
        int own = open("/tmp/waits.lock", O_RDWR);
        flock(own, LOCK_EX);
        nap(2 * LONG);
        flock(own, LOCK_UN);
        _exit(0);
    }
    nap(LONG);
    return WAIT(flock(fd, LOCK_EX));
}

static int record_lock_with(int lock_command, int let_exit) {
    int fd = open("/tmp/waits.record", O_CREAT | O_RDWR, 0600);
    struct flock all = { .l_type = F_WRLCK };
    if (fork() == 0) {
        int own = open("/tmp/waits.record", O_RDWR);
        fcntl(own, lock_command, &all);
        nap(2 * LONG);
        if (!let_exit) {
            all.l_type = F_UNLCK;
            fcntl(own, lock_command, &all);
            nap(LONG);
        }
        _exit(0);
    }
    nap(LONG);
    return WAIT(fcntl(fd, lock_command, &all));
}

static int record_lock(void) {
    return record_lock_with(F_SETLKW, 0);
}

static int record_lock_exit(void) {
    return record_lock_with(F_SETLKW, 1);
}

static int open_file_lock(void) {
    return record_lock_with(F_OFD_SETLKW, 0);
}

static int semaphore_with(const struct timespec *limit) {
    int set = semget(IPC_PRIVATE, 1, 0600);
    NEED(set >= 0);
    struct sembuf down = { 0, -1, 0 }, up = { 0, 1, 0 };
    if (!limit) {
        LATER(semop(set, &up, 1));
    }
    int failed = WAIT(semtimedop(set, &down, 1, limit)) != (limit ? -1 : 0);
    semctl(set, 0, IPC_RMID);
    return failed;
}

static int semaphore(void) {
    return semaphore_with(NULL);
}

static int semaphore_time(void) {
    struct timespec limit = { 0, LONG * 1000000L };
    return semaphore_with(&limit);
}

// Time.
static int sleep_relative(void) {
    struct timespec time = { 0, LONG * 1000000L };
    return WAIT(nanosleep(&time, NULL));
}

static int sleep_until(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec++;
    return WAIT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL));
}

static void nothing(int number) {
    (void)number;
}

static void handle(int number, int flags) {
    struct sigaction action = { .sa_handler = nothing, .sa_flags = flags };
    must(sigaction(number, &action, NULL), "sigaction");
}

static int sleep_broken(void) {
    handle(SIGUSR1, 0);
    int me = getpid();
    LATER(kill(me, SIGUSR1));
    struct timespec time = { 5, 0 };
    return WAIT(nanosleep(&time, NULL)) != -1;
}

// Other tasks.
static int wait_child(void) {
    int child = fork();
    if (child == 0) {
        nap(LONG);
        _exit(0);
    }
    return WAIT(waitpid(child, NULL, 0)) != child;
}

static int wait_id(void) {
    int child = fork();
    if (child == 0) {
        nap(LONG);
        _exit(0);
    }
    siginfo_t info;
    return WAIT(waitid(P_PID, child, &info, WEXITED));
}

static int killed_child(void) {
    int child = fork();
    if (child == 0) {
        spin(10000);
        _exit(0);
    }
    LATER(kill(child, SIGKILL));
    return WAIT(waitpid(child, NULL, 0)) != child;
}

static int poll_process_with(int by_signal) {
    int child = fork();
    if (child == 0) {
        nap(LONG);
        if (by_signal) {
            kill(getpid(), SIGKILL);
        }
        _exit(0);
    }
    struct pollfd one = { syscall(SYS_pidfd_open, child, 0), POLLIN, 0 };
    NEED(one.fd >= 0);
    return WAIT(poll(&one, 1, -1)) != 1;
}

static int poll_process(void) {
    return poll_process_with(0);
}

static int poll_killed_process(void) {
    return poll_process_with(1);
}

static int vfork_child(void) {
    begin();
    int child = vfork();
    if (child == 0) {
        struct timespec time = { 0, LONG * 1000000L };
        syscall(SYS_nanosleep, &time, NULL);
        _exit(0);
    }
    end();
    return child < 0;
}

static int spawn_child(void) {
    extern char **environ;
    char *words[] = { "true", NULL };
    forget();
    int child;
    return WAIT(posix_spawn(&child, "/bin/true", NULL, NULL, words, environ));
}

static void *sleeper(void *arg) {
    nap(LONG);
    return arg;
}

static int join_thread(void) {
    pthread_t thread;
    must(-pthread_create(&thread, NULL, sleeper, NULL), "pthread_create");
    return WAIT(pthread_join(thread, NULL));
}

static int pause_signal(void) {
    handle(SIGUSR1, 0);
    int me = getpid();
    LATER(kill(me, SIGUSR1));
    return WAIT(pause()) != -1;
}

static int suspend_signal(void) {
    handle(SIGUSR1, 0);
    int me = getpid();
    block(SIGUSR1);
    LATER(kill(me, SIGUSR1));
    sigset_t none;
    sigemptyset(&none);
    return WAIT(sigsuspend(&none)) != -1;
}

static int take_signal_with(const struct timespec *limit) {
    int me = getpid();
    sigset_t set;
    block(SIGUSR1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (!limit) {
        LATER(kill(me, SIGUSR1));
    }
    return WAIT(sigtimedwait(&set, NULL, limit)) != (limit ? -1 : SIGUSR1);
}

static int take_signal(void) {
    return take_signal_with(NULL);
}

static int take_signal_time(void) {
    struct timespec limit = { 0, LONG * 1000000L };
    return take_signal_with(&limit);
}

static int read_broken(void) {
    must(pipe(fds), "pipe");
    handle(SIGUSR1, 0);
    int me = getpid();
    LATER(kill(me, SIGUSR1));
    return WAIT(read(fds[0], byte, 1)) != -1;
}

static int read_restarted(void) {
    must(pipe(fds), "pipe");
    handle(SIGUSR1, SA_RESTART);
    int me = getpid();
    LATER(kill(me, SIGUSR1); nap(2 * LONG); write(fds[1], "x", 1));
    return WAIT(read(fds[0], byte, 1)) != 1;
}

static int stopped(void) {
    int me = getpid();
    LATER(kill(me, SIGSTOP); nap(2 * LONG); shared->word = 1; kill(me, SIGCONT));
    begin();
    while (!*(volatile uint32_t *)&shared->word) {
        spin(1);
    }
    end();
    return 0;
}

static int traced(void) {
    int child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        begin();
        raise(SIGUSR1);
        end();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    nap(LONG);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    waitpid(child, NULL, 0);
    return 0;
}

// The memory.
static int fault_file(void) {
    int fd = new_file(place("mapped"), 1 << 16);
    forget();
    char *at = mmap(NULL, 1 << 16, PROT_READ, MAP_SHARED, fd, 0);
    must(at == MAP_FAILED ? -1 : 0, "mmap");
    return WAIT(at[5]) != 0;
}

static size_t big = 96 << 20;
static char *area;

static void *populate(void *arg) {
    nap(LONG / 4);
    madvise(area, big, MADV_POPULATE_WRITE);
    return arg;
}

static int address_space(void) {
    area = mmap(NULL, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(area == MAP_FAILED ? -1 : 0, "mmap");
    pthread_t thread;
    must(-pthread_create(&thread, NULL, populate, NULL), "pthread_create");
    nap(LONG / 2);
    return WAIT(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) == -1;
}

// Who has the CPU.
static int preempted(void) {
    one_cpu();
    if (fork() == 0) {
        spin(3 * LONG);
        _exit(0);
    }
    begin();
    spin(3 * LONG);
    end();
    return 0;
}

static int yields(void) {
    one_cpu();
    int other = fork();
    if (other == 0) {
        for (;;) {
            spin(1);
            sched_yield();
        }
    }
    nap(LONG / 4);
    begin();
    for (int n = 0; n < 20; n++) {
        sched_yield();
    }
    end();
    kill(other, SIGKILL);
    return 0;
}

static int below_real_time(void) {
    one_cpu();
    LATER(struct sched_param one = { 1 }; sched_setscheduler(0, SCHED_FIFO, &one); spin(LONG));
    begin();
    spin(3 * LONG);
    end();
    return 0;
}

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;

static void *lock_and_spin(void *arg) {
    one_cpu();
    pthread_mutex_lock(&taken);
    shared->word = 1;
    spin(4 * LONG);
    pthread_mutex_unlock(&taken);
    return arg;
}

static int lock_of_a_preempted(void) {
    pthread_t thread;
    must(-pthread_create(&thread, NULL, lock_and_spin, NULL), "pthread_create");
    while (!*(volatile uint32_t *)&shared->word) {
        nap(1);
    }
    if (fork() == 0) {
        one_cpu();
        spin(3 * LONG);
        _exit(0);
    }
    return WAIT(pthread_mutex_lock(&taken));
}

// The disk.
static int sync_file(void) {
    int fd = new_file(place("synced"), 1 << 20);
    return WAIT(fsync(fd));
}

static int sync_data(void) {
    int fd = new_file(place("data"), 1 << 20);
    return WAIT(fdatasync(fd));
}

static int sync_all(void) {
    new_file(place("all"), 1 << 20);
    begin();
    sync();
    end();
    return 0;
}

static int sync_map(void) {
    int fd = new_file(place("map"), 1 << 16);
    char *at = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(at == MAP_FAILED ? -1 : 0, "mmap");
    memset(at, 1, 1 << 16);
    return WAIT(msync(at, 1 << 16, MS_SYNC));
}

static int read_cold(void) {
    int fd = new_file(place("cold"), 1 << 16);
    forget();
    lseek(fd, 0, SEEK_SET);
    return WAIT(read(fd, byte, sizeof byte)) != sizeof byte;
}

static int read_direct(void) {
    close(new_file(place("direct"), 1 << 16));
    int fd = open(place("direct"), O_RDONLY | O_DIRECT);
    NEED(fd >= 0);
    void *page = NULL;
    must(-posix_memalign(&page, 4096, 4096), "posix_memalign");
    return WAIT(read(fd, page, 4096)) != 4096;
}

static int open_cold(void) {
    mkdir(place("deep"), 0700);
    close(new_file(place("deep/file"), 1));
    forget();
    return WAIT(open(place("deep/file"), O_RDONLY)) < 0;
}

static int stat_cold(void) {
    struct stat about;
    mkdir(place("deep"), 0700);
    close(new_file(place("deep/other"), 1));
    forget();
    return WAIT(stat(place("deep/other"), &about));
}

static int list_cold(void) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    forget();
    return WAIT(syscall(SYS_getdents64, fd, byte, sizeof byte)) <= 0;
}

static int remove_cold(void) {
    close(new_file(place("removed"), 1));
    forget();
    return WAIT(unlink(place("removed")));
}

static int connect_cold(void) {
    struct sockaddr_un address = { AF_UNIX, "" };
    mkdir(place("deep"), 0700);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", place("deep/socket"));
    forget();
    return WAIT(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address)) != -1;
}

static int exec_cold(void) {
    int in = open("/proc/self/exe", O_RDONLY), out = new_file(place("program"), 0);
    for (ssize_t size; (size = read(in, byte, sizeof byte)) > 0;) {
        must(write(out, byte, size), "write");
    }
    close(out);
    forget();
    begin();
    // The program it becomes marks its end.
    execl(place("program"), "waits", NULL);
    return errno;
}

static int close_dirty(void) {
    int fd = new_file(place("closed"), 1 << 20);
    unlink(place("closed"));
    return WAIT(close(fd));
}

static int exit_dirty(void) {
    new_file(place("left"), 1 << 20);
    begin();
    _exit(0);
}

// Rings.
struct ring {
    int fd;
    struct io_uring_params params;
    unsigned *tail, *array, *flags;
    struct io_uring_sqe *entries;
};

static int ring_open(struct ring *ring, unsigned flags) {
    ring->params = (struct io_uring_params){ .flags = flags, .sq_thread_idle = 2000 };
    ring->fd = syscall(SYS_io_uring_setup, 4, &ring->params);
    if (ring->fd < 0) {
        return -1;
    }
    size_t size = ring->params.sq_off.array + 64;
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
    ring->entries = mmap(NULL, 4 * sizeof *ring->entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQES);
    ring->tail = (unsigned *)(at + ring->params.sq_off.tail);
    ring->array = (unsigned *)(at + ring->params.sq_off.array);
    ring->flags = (unsigned *)(at + ring->params.sq_off.flags);
    return 0;
}

static long ring_wait(struct ring *ring, struct io_uring_sqe entry) {
    ring->entries[0] = entry;
    ring->array[0] = 0;
    __atomic_store_n(ring->tail, 1, __ATOMIC_RELEASE);
    unsigned flags = IORING_ENTER_GETEVENTS | (ring->params.flags & IORING_SETUP_SQPOLL ? IORING_ENTER_SQ_WAKEUP : 0);
    return WAIT(syscall(SYS_io_uring_enter, ring->fd, 1, 1, flags, NULL, 0));
}

static int ring_file_with(unsigned flags) {
    struct ring ring;
    NEED(ring_open(&ring, flags) == 0);
    int fd = new_file(place("ring"), 1 << 16);
    forget();
    nap(10);
    return ring_wait(&ring, (struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)byte, .len = sizeof byte }) < 0;
}

static int ring_file(void) {
    return ring_file_with(0);
}

static int ring_thread(void) {
    return ring_file_with(IORING_SETUP_SQPOLL);
}

static int ring_pipe(void) {
    struct ring ring;
    NEED(ring_open(&ring, 0) == 0);
    must(pipe(fds), "pipe");
    LATER(write(fds[1], "x", 1));
    return ring_wait(&ring, (struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = fds[0], .addr = (uintptr_t)byte, .len = 1 }) < 0;
}

static int ring_poll(void) {
    struct ring ring;
    NEED(ring_open(&ring, 0) == 0);
    tcp_pair();
    LATER(send(fds[1], "x", 1, 0));
    return ring_wait(&ring, (struct io_uring_sqe){ .opcode = IORING_OP_POLL_ADD, .fd = fds[0], .poll32_events = POLLIN }) < 0;
}

static int ring_time(void) {
    struct ring ring;
    NEED(ring_open(&ring, 0) == 0);
    struct { int64_t sec, nsec; } in = { 0, LONG * 1000000L };
    return ring_wait(&ring, (struct io_uring_sqe){ .opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&in, .len = 1 }) < 0;
}

// Control groups, version 2.
static const char *group_file(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "/sys/fs/cgroup/waits/%s", name);
    return path;
}

static int group(const char *controller) {
    if (access("/sys/fs/cgroup/cgroup.procs", F_OK)) {
        mount("none", "/sys/fs/cgroup", "cgroup2", 0, NULL);
    }
    if (put("/sys/fs/cgroup/cgroup.subtree_control", controller) < 0) {
        return -1;
    }
    mkdir("/sys/fs/cgroup/waits", 0755);
    return access(group_file("cgroup.procs"), W_OK);
}

static int quota(void) {
    NEED(group("+cpu") == 0);
    NEED(put(group_file("cpu.max"), "10000 200000") > 0);
    NEED(put(group_file("cgroup.procs"), "0") > 0);
    begin();
    spin(300);
    end();
    put("/sys/fs/cgroup/cgroup.procs", "0");
    put(group_file("cpu.max"), "max");
    return 0;
}

static int frozen_with(int sleeps) {
    NEED(group("+pids") == 0);
    NEED(put(group_file("cgroup.procs"), "0") > 0);
    if (fork() == 0) {
        put("/sys/fs/cgroup/cgroup.procs", "0");
        nap(LONG);
        put(group_file("cgroup.freeze"), "1");
        nap(6 * LONG);
        put(group_file("cgroup.freeze"), "0");
        _exit(0);
    }
    struct timespec time = { 0, LONG * 2000000L };
    begin();
    if (sleeps) {
        nanosleep(&time, NULL);
    } else {
        spin(7 * LONG);
    }
    end();
    put("/sys/fs/cgroup/cgroup.procs", "0");
    return 0;
}

static int frozen(void) {
    return frozen_with(0);
}

static int frozen_asleep(void) {
    return frozen_with(1);
}

static int memory_limit(void) {
    NEED(group("+memory") == 0);
    NEED(put(group_file("memory.high"), "4M") > 0);
    NEED(put(group_file("cgroup.procs"), "0") > 0);
    begin();
    for (int n = 0; n < 5; n++) {
        char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(at, 1, 1 << 20);
    }
    end();
    put(group_file("memory.high"), "max");
    put("/sys/fs/cgroup/cgroup.procs", "0");
    return 0;
}

// Those who decide for others.
static int supervised(void) {
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), "socketpair");
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    NEED(listener >= 0);
    if (fork() == 0) {
        struct seccomp_notif asked = { 0 };
        ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked);
        nap(LONG);
        struct seccomp_notif_resp answer = { .id = asked.id, .val = 7 };
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        _exit(0);
    }
    return WAIT(syscall(SYS_getppid)) != 7;
}

static void *serve_fault(void *arg) {
    int fd = *(int *)arg;
    struct uffd_msg fault;
    if (read(fd, &fault, sizeof fault) == sizeof fault) {
        nap(LONG);
        static char page[4096];
        struct uffdio_copy copy = { .dst = fault.arg.pagefault.address & ~4095ULL, .src = (uintptr_t)page, .len = 4096 };
        ioctl(fd, UFFDIO_COPY, &copy);
    }
    return NULL;
}

static int fault_served(void) {
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
    NEED(fd >= 0);
    struct uffdio_api api = { .api = UFFD_API };
    must(ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = { { (uintptr_t)at, 4096 }, UFFDIO_REGISTER_MODE_MISSING, 0 };
    must(ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
    pthread_t thread;
    must(-pthread_create(&thread, NULL, serve_fault, &fd), "pthread_create");
    return WAIT(at[7]) != 0;
}

// A file system in a file.
static int loop_mount(void) {
    int control = open("/dev/loop-control", O_RDWR);
    NEED(control >= 0);
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    char path[64];
    snprintf(path, sizeof path, "/dev/loop%d", number);
    char command[512];
    snprintf(command, sizeof command,
        "dd if=/dev/zero of=%s/image bs=1M count=16 status=none && mkfs.ext4 -q -O ^has_journal %s/image && mkdir -p /tmp/loop && mount -o loop %s/image /tmp/loop",
        dir, dir, dir);
    NEED(system(command) == 0);
    return 0;
}

static int loop_sync(void) {
    int why = loop_mount();
    if (why) {
        return why;
    }
    int fd = new_file("/tmp/loop/file", 1 << 20);
    int failed = WAIT(fsync(fd));
    close(fd);
    return failed | (system("umount /tmp/loop") != 0 ? EBUSY : 0);
}

static int loop_read(void) {
    int why = loop_mount();
    if (why) {
        return why;
    }
    int fd = new_file("/tmp/loop/file", 1 << 16);
    fsync(fd);
    forget();
    lseek(fd, 0, SEEK_SET);
    int failed = WAIT(read(fd, byte, sizeof byte)) != sizeof byte;
    close(fd);
    return failed | (system("umount /tmp/loop") != 0 ? EBUSY : 0);
}

static int core_dump(void) {
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    must(setrlimit(RLIMIT_CORE, &all), "setrlimit");
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/core", dir);
    NEED(put("/proc/sys/kernel/core_pattern", pattern) > 0);
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigaction(SIGSEGV, &action, NULL);
    begin();
    *(volatile int *)NULL = 1;
    return 1;
}

static int cpu_goes(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(2, &set);
    NEED(access("/sys/devices/system/cpu/cpu2/online", W_OK) == 0);
    must(sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
    LATER(put("/sys/devices/system/cpu/cpu2/online", "0"); nap(LONG); put("/sys/devices/system/cpu/cpu2/online", "1"));
    struct timespec time = { 0, 5 * LONG * 1000000L };
    return WAIT(nanosleep(&time, NULL));
}

#define CASE(name, reason) { #name, #reason, name }
static const struct { const char *name, *reason; int (*run)(void); } CASES[] = {
    CASE(pipe_read, pipe), CASE(pipe_write, pipe), CASE(pipe_closed, pipe|task), CASE(fifo_read, pipe),
    CASE(fifo_open, pipe), CASE(splice_pipe, pipe), CASE(tee_pipe, pipe), CASE(pseudo_terminal, pipe),
    CASE(local_stream, pipe), CASE(local_datagram, pipe), CASE(local_full, pipe), CASE(local_accept, pipe),
    CASE(local_connect, pipe), CASE(udp_receive, net), CASE(tcp_accept, net), CASE(tcp_receive, net),
    CASE(tcp_read, net), CASE(tcp_full, net), CASE(poll_socket, net), CASE(poll_pipe, pipe), CASE(poll_time, time),
    CASE(ppoll_pipe, pipe), CASE(select_pipe, pipe), CASE(select_time, time), CASE(epoll_pipe, pipe),
    CASE(epoll_socket, net), CASE(epoll_time, time), CASE(event_fd, pipe), CASE(timer_fd, time), CASE(signal_fd, pipe|task),
    CASE(inotify, pipe), CASE(queue_receive, pipe), CASE(queue_send, pipe), CASE(message_receive, pipe),
    CASE(futex_plain, lock), CASE(futex_woken_in_time, lock), CASE(futex_time, lock|time), CASE(futex_inherit, lock),
    CASE(futex_several, lock), CASE(file_lock, lock), CASE(record_lock, lock), CASE(record_lock_exit, lock),
    CASE(open_file_lock, lock), CASE(semaphore, lock), CASE(semaphore_time, lock|time), CASE(sleep_relative, time),
    CASE(sleep_until, time), CASE(sleep_broken, time), CASE(wait_child, task), CASE(wait_id, task),
    CASE(killed_child, task), CASE(poll_process, task), CASE(poll_killed_process, task), CASE(vfork_child, task),
    CASE(spawn_child, task), CASE(join_thread, task), CASE(pause_signal, task), CASE(suspend_signal, task),
    CASE(take_signal, task), CASE(take_signal_time, time), CASE(read_broken, pipe), CASE(read_restarted, pipe),
    CASE(stopped, stopped), CASE(traced, traced), CASE(fault_file, disk), CASE(address_space, lock|mem), CASE(preempted, cpu),
    CASE(yields, cpu), CASE(below_real_time, cpu), CASE(lock_of_a_preempted, lock), CASE(sync_file, disk),
    CASE(sync_data, disk), CASE(sync_all, disk), CASE(sync_map, disk), CASE(read_cold, disk), CASE(read_direct, disk),
    CASE(open_cold, disk), CASE(stat_cold, disk), CASE(list_cold, disk), CASE(remove_cold, disk),
    CASE(connect_cold, disk), CASE(exec_cold, disk), CASE(close_dirty, disk), CASE(exit_dirty, disk),
    CASE(ring_file, disk), CASE(ring_thread, disk), CASE(ring_pipe, pipe), CASE(ring_poll, net), CASE(ring_time, time),
    CASE(quota, quota), CASE(frozen, frozen), CASE(frozen_asleep, frozen), CASE(memory_limit, mem),
    CASE(supervised, task), CASE(fault_served, task|mem), CASE(loop_sync, disk), CASE(loop_read, disk),
    CASE(core_dump, disk), CASE(cpu_goes, time),
};

// Runs a case in a process of its own, which leads a group; the rest of the group ends with it.
static void run(int n) {
    *shared = (struct shared){ 0 };
    errno = 0;
    int child = fork();
    must(child, "fork");
    if (child == 0) {
        setpgid(0, 0);
        prctl(PR_SET_NAME, CASES[n].name);
        alarm(20);
        int why = CASES[n].run();
        if (why && !shared->subject) {
            shared->other = why;
        }
        _exit(why != 0);
    }
    int status;
    must(waitpid(child, &status, 0), "waitpid");
    kill(-child, SIGKILL);
    while (waitpid(-child, NULL, WNOHANG) > 0) {
    }
    int dumped = WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && CASES[n].run == core_dump;
    if (shared->subject && (status == 0 || dumped)) {
        printf("%s %s %d\n", CASES[n].name, CASES[n].reason, shared->subject);
    } else if (shared->subject) {
        printf("%s ! status %#x\n", CASES[n].name, status);
    } else {
        printf("%s - %s\n", CASES[n].name, status ? strerror(shared->other) : "nothing waited");
    }
    fflush(stdout);
}

int main(int count, char **words) {
    if (count < 2) {
        end();
        return 0;
    }
    dir = words[1];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int n = 0; n < (int)(sizeof CASES / sizeof *CASES); n++) {
        int wanted = count == 2;
        for (int word = 2; word < count; word++) {
            wanted |= strcmp(words[word], CASES[n].name) == 0;
        }
        if (wanted) {
            run(n);
        }
    }
    return 0;
}
