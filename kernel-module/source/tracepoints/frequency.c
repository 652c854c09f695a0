// SPDX-License-Identifier: GPL-2.0
/*
 * The frequency of a CPU since the previous tick, from APERF and MPERF, as the
 * kernel measures it for itself at each tick. There is no tracepoint for it:
 * `cpu_frequency` has what a driver asked for.
 */
#include <linux/math64.h>
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "probe.h"

#ifndef rdmsrl
/* Its name since 6.16. */
#define rdmsrl rdmsrq
#endif

struct kutrace_cycles {
	/* The cycles it ran, and those it would have run at the TSC's frequency. */
	u64 actual, nominal;
};
/* For each CPU, at its last tick; while tracing, on CPUs that count them. */
static struct kutrace_cycles __percpu *kutrace_cycles;

bool kutrace_frequency_is_known(void)
{
	return boot_cpu_has(X86_FEATURE_APERFMPERF) && tsc_khz >= 1000;
}

int kutrace_frequency_begin(void)
{
	if (!kutrace_frequency_is_known())
		return 0;
	kutrace_cycles = alloc_percpu(struct kutrace_cycles);
	return kutrace_cycles ? 0 : -ENOMEM;
}

/* Called when no probe runs any more. */
void kutrace_frequency_end(void)
{
	free_percpu(kutrace_cycles);
	kutrace_cycles = NULL;
}

/* The first tick has no previous one, and counts of less than 1 us mean little. */
void notrace kutrace_frequency_tick(void)
{
	struct kutrace_cycles last, now;
	u64 us;

	if (!kutrace_cycles)
		return;
	rdmsrl(MSR_IA32_APERF, now.actual);
	rdmsrl(MSR_IA32_MPERF, now.nominal);
	last = *this_cpu_ptr(kutrace_cycles);
	*this_cpu_ptr(kutrace_cycles) = now;
	us = div_u64(now.nominal - last.nominal, tsc_khz / 1000);
	if (last.nominal && us)
		kutrace_guarded(kutrace_tell(value)(KUTRACE_FREQUENCY,
						    div64_u64(now.actual - last.actual, us)));
}
