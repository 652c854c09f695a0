// SPDX-License-Identifier: BSD-3-Clause
// A program that computes in a function with another put into it, then in one of a library, then in both again as a child
// that loads nothing: a second each, or as many as its argument. With -DLIBRARY, the library.

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

unsigned long turn(unsigned long rounds);

#ifdef LIBRARY
unsigned long turn(unsigned long rounds)
{
	unsigned long sum = 0;

	for (; rounds > 0; rounds--)
		__asm__ volatile("add $1, %0" : "+r"(sum));
	return sum;
}
#else
static inline __attribute__((always_inline)) unsigned long inner(unsigned long rounds)
{
	unsigned long sum = 0;

	for (; rounds > 0; rounds--)
		__asm__ volatile("add $3, %0" : "+r"(sum));
	return sum;
}

__attribute__((noinline)) unsigned long outer(unsigned long rounds)
{
	return inner(rounds) + 1;
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

static void both(double seconds)
{
	for (double end = now() + seconds; now() < end;)
		outer(1000000);
	for (double end = now() + seconds; now() < end;)
		turn(1000000);
}

int main(int count, char **words)
{
	double seconds = count > 1 ? atof(words[1]) : 1;
	int child;

	both(seconds);
	child = fork();
	if (child == 0) {
		both(seconds);
		_exit(0);
	}
	return waitpid(child, NULL, 0) != child;
}
#endif
