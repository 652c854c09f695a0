// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that go offline and come back.
 *
 * A tracepoint calls no probe on a CPU that is not online. The callbacks that
 * the kernel runs when a CPU starts and when it dies, with interrupts off, run
 * before it is online, and when it is no longer: so they are the first and the
 * last event. When the CPU dies a kernel thread still runs, to be followed by
 * idle, for good: the switch is recorded then.
 */
#include <linux/cpuhotplug.h>
#include <linux/sched/task.h>

#include "probe.h"

/* The state of a driver that no x86 machine has. */
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

/* False if another module has the state. */
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
