// SPDX-License-Identifier: BSD-3-Clause
/*
 * The same calls, faults, exceptions, switches and wakeups whenever it runs: two
 * processes of one fixed priority, on one CPU, which neither preempts. Between
 * two marks, after everything has been done once before.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096L
#define PAGES 64
#define TURNS 100

static char *mapped(void)
{
	char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE))
		err(1, "mmap");
	return pages;
}

/* ud2 and div have two bytes; int3 has been left behind. */
static void skip(int number, siginfo_t *info, void *context)
{
	if (number != SIGTRAP)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void calls(void)
{
	long value;

	for (int n = 0; n < 200; n++)
		syscall(SYS_getppid);
	for (int n = 0; n < 20; n++)
		asm volatile("int $0x80" : "=a"(value) : "a"(20) : "memory");
	/* In memory: another file system may answer before the thread sleeps, or after. */
	if (open("/tmp/none", O_RDONLY) >= 0)
		errx(1, "/tmp/none exists");
}

static void faults(int zero)
{
	char *pages = mapped();

	for (int n = 0; n < PAGES; n++)
		pages[n * PAGE] = 1;
	munmap(pages, PAGES * PAGE);
	pages = mapped();
	if (read(zero, pages, PAGES * PAGE) != PAGES * PAGE)
		err(1, "/dev/zero");
	munmap(pages, PAGES * PAGE);
	asm volatile("ud2");
	asm volatile("int3");
	asm volatile("xorl %%ecx, %%ecx; divl %%ecx" ::: "eax", "ecx", "edx");
}

static void turns(int from, int to, int first)
{
	char byte = 0;

	for (int n = 0; n < TURNS; n++) {
		if (first && write(to, &byte, 1) != 1)
			err(1, "write");
		if (read(from, &byte, 1) != 1)
			err(1, "read");
		if (!first && write(to, &byte, 1) != 1)
			err(1, "write");
	}
}

static void switches(void)
{
	struct timespec millisecond = { 0, 1000000 };
	int there[2], back[2], status;
	pid_t child;

	if (pipe(there) || pipe(back))
		err(1, "pipe");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		turns(there[0], back[1], 0);
		_exit(7);
	}
	turns(back[0], there[1], 1);
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
		err(1, "waitpid");
	close(there[0]), close(there[1]), close(back[0]), close(back[1]);
	for (int n = 0; n < 20; n++)
		sched_yield();
	nanosleep(&millisecond, NULL);
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };
	struct sched_param priority = { .sched_priority = 10 };
	int zero = open("/dev/zero", O_RDONLY);
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first) || sched_setscheduler(0, SCHED_FIFO, &priority))
		err(1, "sched");
	sigaction(SIGILL, &act, NULL);
	sigaction(SIGTRAP, &act, NULL);
	sigaction(SIGFPE, &act, NULL);
	for (int round = 0; round < 2; round++) {
		syscall(SYS_sched_get_priority_max, 40000 + round);
		calls();
		faults(zero);
		switches();
	}
	syscall(SYS_sched_get_priority_max, 40002);
	return 0;
}
