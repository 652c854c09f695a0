// SPDX-License-Identifier: BSD-3-Clause
// Loads and the causes that make their requests slow. One program, whose work depends on the name it is started by;
// `make` below; `plant --names` prints them. MS is the duration of a planted cause, GAP (in ms) the time from it to the
// next one, EVERY selects the requests that have it: one of that number; all of them are varied by the seed in $SEED.
//
//   ask PORT MS GAP_US LINE [EVERY LINE]  a client, for MS: sends LINE, receives, and again after GAP_US; with $SPLIT, in
//                              two pieces now and then; with $DROP, it lets the kernel drop an answer now and then
//   teller HOW MS GAP_US LONG EVERY [PATH]  requests between the marks q and /q, for MS; HOW selects the cause in some
//   hog CPU MS GAP [PRIORITY]  computes, at a priority of SCHED_FIFO if there is one
//   tidy FILE MS GAP           writes and syncs a file
//   flood CPU PORT MS GAP      sends datagrams that no process reads
//   pester PID MS GAP          sends signals
//   halt PID MS GAP            stops a process and lets it go on
//   inspect PID MS GAP         the same, as a debugger does
//   drain MS GAP               reads its standard input, and does not for MS
//   backend PORT HOW MS EVERY  a server of lines and of HTTP, that is slow now and then: it sleeps or computes; with
//                              $DATAGRAMS, of datagrams
//   storm CPU MS GAP           lets timers interrupt a CPU as often as they may
//   crunch MS                  computes and ends
//   forget MS GAP FILE         drops the cached pages of a file

#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <kutrace_original.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void rest(double ms)
{
	struct timespec t = { ms / 1e3, (long)(ms * 1e6) % 1000000000 };
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static volatile unsigned sink;

/* So much work, however long it takes: about a millisecond for a hundred. */
static void work(int units)
{
	for (int n = 0; n < units * 3000; n++)
		sink += n * n;
}

/* For so long. */
static void burn(double ms)
{
	for (double end = now() + ms; now() < end;)
		work(1);
}

/* Three fifths to seven fifths of that. */
static double vary(double of)
{
	return of * (0.6 + 0.8 * drand48());
}

static int one_of(int every)
{
	return every > 0 && drand48() * every < 1;
}

static void on_cpu(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}

static struct sockaddr_in local(int port)
{
	struct sockaddr_in to = { AF_INET, htons(port), { htonl(INADDR_LOOPBACK) }, { 0 } };
	return to;
}

static void nodelay(int s)
{
	int one = 1;
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static char **arg;

static double number(int n)
{
	if (!arg[n])
		errx(2, "%s: argument %d is missing", arg[0], n);
	return atof(arg[n]);
}

/* A cause that comes and goes, until it is killed. */
static void bursts(void (*once)(double), double ms, double gap)
{
	for (;;) {
		rest(vary(gap));
		once(vary(ms));
	}
}

/* ---- clients and servers ---- */

static int open_to(int port)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = local(port);
	for (int n = 0; connect(s, (void *)&to, sizeof(to)); n++) {
		if (n > 1000)
			err(1, "port %d", port);
		rest(10);
	}
	return s;
}

/* The kernel drops what arrives, or no longer does. */
static void drop(int s, int on)
{
	struct sock_filter none = { BPF_RET | BPF_K, 0, 0, 0 };
	struct sock_fprog filter = { 1, &none };
	setsockopt(s, SOL_SOCKET, on ? SO_ATTACH_FILTER : SO_DETACH_FILTER, &filter, sizeof(filter));
}

static void *let_go(void *s)
{
	prctl(PR_SET_NAME, "letgo");
	rest(30);
	drop((intptr_t)s, 0);
	return NULL;
}

static void say(int s, const char *line)
{
	char text[256];
	int http = *line == '/';
	int len = snprintf(text, sizeof(text), http ? "GET %s HTTP/1.1\r\nHost: a\r\n\r\n" : "%s\r\n", line);
	const char *split = getenv("SPLIT");
	if (split && one_of(atoi(split))) {
		send(s, text, 3, 0);
		send(s, text + 3, len - 3, 0);
	} else {
		send(s, text, len, 0);
	}
}

/* Receives all of an answer: the kernel cannot drop pages of a file that are still being sent. */
static void hear(int s)
{
	static char text[1 << 16];
	size_t have = 0, whole = 0;
	do {
		size_t at = whole ? 0 : have;
		ssize_t more = recv(s, text + at, sizeof(text) - 1 - at, 0);
		if (more <= 0)
			err(1, "no answer");
		have += more;
		text[at + more] = 0;
		char *body = whole ? NULL : strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
		if (body && length && length < body)
			whole = body + 4 - text + atoi(length + 16);
	} while (have < whole || (!whole && !strncmp(text, "HTTP", 4)));
}

static void ask(void)
{
	int s = open_to(number(1)), every = arg[5] ? number(5) : 0;
	const char *dropped = getenv("DROP");
	if (!getenv("SPLIT"))
		nodelay(s);
	for (double end = now() + number(2); now() < end; rest(vary(number(3)) / 1e3)) {
		pthread_t thread;
		int lost = dropped && one_of(atoi(dropped));
		if (lost) {
			drop(s, 1);
			pthread_create(&thread, NULL, let_go, (void *)(intptr_t)s);
		}
		say(s, one_of(every) ? arg[6] : arg[4]);
		hear(s);
		if (lost)
			pthread_join(thread, NULL);
	}
}

/* A server of datagrams, as one for names. */
static void datagrams(void)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0), every = number(4);
	struct sockaddr_in at = local(number(1)), from;
	socklen_t len = sizeof(from);
	char text[512];
	if (bind(s, (void *)&at, sizeof(at)))
		err(1, "port %s", arg[1]);
	for (ssize_t n; (n = recvfrom(s, text, sizeof(text), 0, (void *)&from, &len)) >= 0; len = sizeof(from)) {
		work(5);
		if (one_of(every))
			rest(vary(number(3)));
		sendto(s, text, n, 0, (void *)&from, len);
	}
}

static void backend(void)
{
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1, every = number(4);
	struct sockaddr_in at = local(number(1));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (void *)&at, sizeof(at)) || listen(s, 8))
		err(1, "port %s", arg[1]);
	for (;;) {
		static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
		char text[4096];
		int c = accept(s, NULL, NULL);
		nodelay(c);
		while (recv(c, text, sizeof(text), 0) > 0) {
			work(10);
			if (one_of(every)) {
				if (*arg[2] == 's')
					rest(vary(number(3)));
				else
					burn(vary(number(3)));
			}
			send(c, answer, sizeof(answer) - 1, 0);
			if (strstr(text, "Connection: close") || strstr(text, "HTTP/1.0"))
				break;
		}
		close(c);
	}
}

/* ---- what comes and goes ---- */

static int target, file;

static void tidy(double ms)
{
	static char block[1 << 18];
	memset(block, rand(), sizeof(block));
	for (double end = now() + ms; now() < end;) {
		if (pwrite(file, block, sizeof(block), 0) < 0 || fdatasync(file))
			err(1, "%s", arg[1]);
	}
}

static void flood(double ms)
{
	struct sockaddr_in to = local(number(2));
	for (double end = now() + ms; now() < end;)
		for (int n = 0; n < 20; n++)
			sendto(file, "x", 1, MSG_DONTWAIT, (void *)&to, sizeof(to));
}

static void pester(double ms)
{
	for (double end = now() + ms; now() < end;)
		kill(target, SIGUSR1);
}

/* Timers of its own, each of which starts again in its interrupt. */
enum { TIMERS = 2, PERIOD_NS = 10000 };
static int timers[TIMERS];

static void all_timers(unsigned long what)
{
	for (int n = 0; n < TIMERS; n++)
		if (ioctl(timers[n], what, 0))
			err(1, "a timer");
}

static void storm(double ms)
{
	all_timers(PERF_EVENT_IOC_ENABLE);
	rest(ms);
	all_timers(PERF_EVENT_IOC_DISABLE);
}

static void open_timers(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK, .sample_period = PERIOD_NS, .disabled = 1,
	};
	for (int n = 0; n < TIMERS; n++)
		if ((timers[n] = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0)) < 0)
			err(1, "a timer of CPU %d", cpu);
}

static void halt(double ms)
{
	kill(target, SIGSTOP);
	rest(ms);
	kill(target, SIGCONT);
}

static void inspect(double ms)
{
	if (ptrace(PTRACE_SEIZE, target, 0, 0) || ptrace(PTRACE_INTERRUPT, target, 0, 0))
		err(1, "ptrace %d", target);
	waitpid(target, NULL, __WALL);
	rest(ms);
	ptrace(PTRACE_DETACH, target, 0, 0);
}

static void forget(double ms)
{
	int fd = open(arg[3], O_RDONLY);
	(void)ms;
	if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		err(1, "%s", arg[3]);
	close(fd);
}

static void drain(void)
{
	char text[512];
	fcntl(0, F_SETPIPE_SZ, 4096);
	double next = now() + vary(number(2));
	while (read(0, text, sizeof(text)) > 0) {
		if (now() > next) {
			rest(vary(number(1)));
			next = now() + vary(number(2));
		}
	}
}

/* ---- requests of a program of its own ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
enum { ARENA = 8 << 20 };

static void called(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static void held(double ms)
{
	pthread_mutex_lock(&lock);
	burn(ms);
	pthread_mutex_unlock(&lock);
}

static void *holder(void *cpu)
{
	called("holder");
	if (cpu)
		on_cpu(atoi(cpu));
	bursts(held, number(4), number(4) * 4);
	return NULL;
}

/* Holds it often and briefly, on a CPU on which others may come in between. */
static void *brief(void *cpu)
{
	called("brief");
	on_cpu(atoi(cpu));
	for (;;) {
		held(0.3);
		rest(0.3);
	}
	return NULL;
}

static void synced(double ms)
{
	(void)ms;
	pthread_mutex_lock(&lock);
	tidy(number(4));
	pthread_mutex_unlock(&lock);
}

static void *syncer(void *path)
{
	called("syncer");
	file = open(path, O_RDWR | O_CREAT, 0600);
	bursts(synced, 1, number(4) * 4);
	return NULL;
}

/* Threads that all want the lock at the same time, and again. */
static pthread_barrier_t together;

static void *crowd(void *first)
{
	called("crowd");
	for (;;) {
		if (first)
			rest(vary(number(4)) * 4);
		pthread_barrier_wait(&together);
		for (int n = 0; n < 4; n++) {
			held(number(4) / 24);
			sched_yield();
		}
	}
	return NULL;
}

static void unmapped(double ms)
{
	for (double end = now() + ms; now() < end;) {
		char *m = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*m = 1;
		munmap(m, 1 << 16);
	}
}

static void *unmapper(void *unused)
{
	(void)unused;
	called("unmapper");
	bursts(unmapped, number(4), number(4) * 4);
	return NULL;
}

/* Keeps all other threads of its process from changing the mappings. */
static void mapped(double ms)
{
	for (double end = now() + ms; now() < end;) {
		char *m = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		munmap(m, 16 << 20);
	}
}

static void *mapper(void *unused)
{
	(void)unused;
	called("mapper");
	bursts(mapped, number(4), number(4) * 4);
	return NULL;
}

/* As malloc and free do it with large pieces. */
static void allocated(void)
{
	char *m = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*m = 1;
	munmap(m, 1 << 16);
}

static void ran(const char *program, const char *ms)
{
	pid_t child = fork();
	if (!child) {
		execlp(program, program, ms, NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

static void listed(const char *path)
{
	static char text[1 << 15];
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	while (syscall(SYS_getdents64, fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

/* Asks which of a number of descriptors are ready. */
static void polled(int descriptors)
{
	static struct pollfd list[20000];
	for (int n = 0; n < descriptors; n++)
		list[n] = (struct pollfd){ file, POLLPRI, 0 };
	poll(list, descriptors, 0);
}

static void many(int calls)
{
	char byte;
	for (int n = 0; n < calls; n++)
		if (pread(file, &byte, 1, n) < 0)
			err(1, "pread");
}

static void handler(int sig)
{
	(void)sig;
	sink++;
}

static void start(void *(*what)(void *), const void *with)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, what, (void *)with))
		errx(1, "no thread");
}

static void teller(void)
{
	const char *how = arg[1], *path = arg[6];
	double ms = number(4);
	int every = number(5), waits[2];
	char length[32];
#define IS(name) (!strcmp(how, name))
	int locks = IS("holder") || IS("brief") || IS("syncer") || IS("crowd") || IS("locks");
	if (IS("holder"))
		start(holder, path);
	if (IS("brief"))
		start(brief, path);
	if (IS("syncer"))
		start(syncer, path);
	if (IS("unmapper"))
		start(unmapper, NULL);
	if (IS("mapper"))
		start(mapper, NULL);
	if (IS("crowd")) {
		pthread_barrier_init(&together, NULL, 6);
		for (int n = 0; n < 6; n++)
			start(crowd, n ? NULL : "first");
	}
	if (IS("fork"))
		signal(SIGCHLD, SIG_IGN);
	if (IS("descriptors"))
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 20000, 20000 });
	if (IS("calls") || IS("plain") || IS("descriptors"))
		file = open("/proc/self/exe", O_RDONLY);
	if (IS("flock") || IS("synced"))
		file = open(path, O_RDWR | O_CREAT, 0600);
	if (IS("signals")) {
		struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
		sigaction(SIGUSR1, &action, NULL);
	}
	arena = mmap(NULL, ARENA * (IS("fork") ? 8 : 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long n = 0; n < ARENA * (IS("fork") ? 8L : 1L) && (IS("fork") || IS("trim") || IS("swap")); n += 4096)
		arena[n] = 1;
	if (pipe(waits))
		err(1, "pipe");
	snprintf(length, sizeof(length), "%.0f", ms);
	for (double end = now() + number(2); now() < end; rest(vary(number(3)) / 1e3)) {
		int bad = one_of(every);
		if (IS("trim") && bad)
			madvise(arena, ARENA, MADV_DONTNEED);
		kutrace_mark_a("q");
		work(IS("unmapper") || IS("signals") || IS("stopped") ? 300 : 30);
		if (locks) {
			pthread_mutex_lock(&lock);
			work(2);
			pthread_mutex_unlock(&lock);
		}
		if (IS("flock")) {
			flock(file, LOCK_EX);
			work(2);
			flock(file, LOCK_UN);
		}
		if (IS("trim") || IS("swap"))
			for (long at = 0; at < (bad || IS("trim") ? ARENA : 1 << 20); at += 4096)
				arena[at] = 1;
		if (IS("calls"))
			many(bad ? ms * 300 : 10);
		if (IS("plain"))
			many(10);
		if (IS("descriptors"))
			polled(bad ? 20000 : 20);
		if (IS("mapper"))
			allocated();
		if (IS("write") && (file = open(path, O_WRONLY | O_CREAT, 0600)) >= 0) {
			for (int n = 0; n < (bad ? 64 : 1); n++)
				if (pwrite(file, arena, 1 << 17, n << 17) < 0)
					err(1, "%s", path);
			close(file);
		}
		if (IS("synced")) {
			if (pwrite(file, arena, 4096, 0) < 0 || fdatasync(file))
				err(1, "%s", path);
		}
		if (IS("pipe"))
			if (write(1, arena, 1000) < 0)
				err(1, "pipe");
		if (IS("work"))
			work(bad ? ms * 100 : 10);
		if (IS("sleep") && bad)
			rest(vary(ms));
		if (IS("poll") && bad)
			poll(&(struct pollfd){ waits[0], POLLIN, 0 }, 1, vary(ms));
		if (IS("rcu") && bad)
			syscall(SYS_membarrier, 1 << 0, 0, 0);
		if (IS("fork") && bad && !fork())
			_exit(0);
		if (IS("fork"))
			memset(arena, 1, 1 << 18);
		if (IS("child") && bad)
			ran(path, length);
		if (IS("directory"))
			listed(bad ? path : "/proc/self/fd");
		work(5);
		kutrace_mark_a("/q");
	}
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0], *seed = getenv("SEED");
	arg = argv;
	(void)argc;
	srand48(seed ? atol(seed) + *name : 0);
	if (!strcmp(name, "plant")) {
		puts("ask teller hog tidy flood storm pester halt inspect drain backend crunch forget");
	} else if (!strcmp(name, "ask")) {
		ask();
	} else if (!strcmp(name, "teller")) {
		teller();
	} else if (!strcmp(name, "backend")) {
		if (getenv("DATAGRAMS"))
			datagrams();
		else
			backend();
	} else if (!strcmp(name, "drain")) {
		drain();
	} else if (!strcmp(name, "crunch")) {
		burn(number(1));
	} else if (!strcmp(name, "hog")) {
		struct sched_param fifo = { arg[4] ? number(4) : 0 };
		on_cpu(number(1));
		if (arg[4] && sched_setscheduler(0, SCHED_FIFO, &fifo))
			err(1, "SCHED_FIFO");
		bursts(burn, number(2), number(3));
	} else if (!strcmp(name, "tidy")) {
		file = open(arg[1], O_RDWR | O_CREAT, 0600);
		bursts(tidy, number(2), number(3));
	} else if (!strcmp(name, "flood")) {
		on_cpu(number(1));
		file = socket(AF_INET, SOCK_DGRAM, 0);
		bursts(flood, number(3), number(4));
	} else if (!strcmp(name, "storm")) {
		open_timers(number(1));
		bursts(storm, number(2), number(3));
	} else if (!strcmp(name, "forget")) {
		bursts(forget, number(1), number(2));
	} else {
		target = number(1);
		if (!strcmp(name, "pester"))
			bursts(pester, number(2), number(3));
		if (!strcmp(name, "halt"))
			bursts(halt, number(2), number(3));
		if (!strcmp(name, "inspect"))
			bursts(inspect, number(2), number(3));
		errx(2, "%s: not a name of this program, see its source", name);
	}
	return 0;
}
