// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that go offline and come back.
 *
 * A tracepoint calls no probe on a CPU that is not online. What the kernel
 * calls when a CPU starts and when it dies, with interrupts off, comes before
 * it is online, and when it is no more: so it is the first and the last. When
 * it dies a thread of the kernel runs still, to be followed by idle, for good:
 * that is told then.
 */
#include <linux/cpuhotplug.h>
#include <linux/sched/task.h>

#include "probe.h"

/* That of a driver which no x86 machine has. */
#define STATE CPUHP_AP_TEGRA_TIMER_STARTING

static int kutrace_cpu_starting(unsigned int cpu)
{
	kutrace_told->ops.cpu(KUTRACE_ONLINE);
	return 0;
}

static int kutrace_cpu_dying(unsigned int cpu)
{
	kutrace_faults_forget();
	/* All idle tasks have the same number. */
	kutrace_tell(switch_to)(&init_task);
	kutrace_told->ops.cpu(KUTRACE_OFFLINE);
	return 0;
}

/* Another module may have it. */
static bool kutrace_has_state;

int kutrace_cpus_begin(void)
{
	int ret = cpuhp_setup_state_nocalls(STATE, "kutrace:starting",
					    kutrace_cpu_starting, kutrace_cpu_dying);

	kutrace_has_state = !ret;
	return ret;
}

void kutrace_cpus_end(void)
{
	if (kutrace_has_state)
		cpuhp_remove_state_nocalls(STATE);
	kutrace_has_state = false;
}
