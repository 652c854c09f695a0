// SPDX-License-Identifier: GPL-2.0
/*
 * The idle states of CPUs, and the wakers of a CPU that polls.
 */
#include <linux/cpuidle.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched/idle.h>
#include <linux/string.h>
#include <trace/events/power.h>

#include "probe.h"

/*
 * KUTRACE_MWAIT's value for each state of the cpuidle driver, as it was when
 * tracing began.
 */
static u8 kutrace_hints[CPUIDLE_STATE_MAX];
static DEFINE_PER_CPU(bool, kutrace_polls);

/*
 * intel_idle keeps the hint in the flags. The ACPI driver has it only in the
 * text that describes the state.
 */
static u8 kutrace_hint_of(const struct cpuidle_state *state)
{
	unsigned int address;

	if (state->flags & CPUIDLE_FLAG_POLLING)
		return KUTRACE_IDLE_POLL;
	if (sscanf(state->desc, "ACPI FFH MWAIT 0x%x", &address) == 1)
		return address;
	if (sscanf(state->desc, "ACPI IOPORT 0x%x", &address) == 1)
		return KUTRACE_IDLE_IO;
	if (strstr(state->desc, "MWAIT"))
		return state->flags >> 24;
	return KUTRACE_IDLE_HLT;
}

void kutrace_idle_begin(void)
{
	const struct cpuidle_driver *driver;
	int n;

	/*
	 * A driver that goes away, with its module, waits for every CPU that
	 * has preemption off.
	 */
	preempt_disable();
	driver = cpuidle_get_driver();
	/* Without a driver there are cpu_idle_poll() and default_idle_call(). */
	kutrace_hints[0] = KUTRACE_IDLE_POLL;
	kutrace_hints[1] = KUTRACE_IDLE_HLT;
	for (n = 0; driver && n < min(driver->state_count, CPUIDLE_STATE_MAX); n++)
		kutrace_hints[n] = kutrace_hint_of(&driver->states[n]);
	preempt_enable();
}

static void notrace kutrace_cpu_idle(void *data, unsigned int state,
				     unsigned int cpu)
{
	u8 hint;

	if (state < CPUIDLE_STATE_MAX) {
		hint = kutrace_hints[state];
		kutrace_guarded(__this_cpu_write(kutrace_polls, hint == KUTRACE_IDLE_POLL);
				kutrace_tell(value)(KUTRACE_MWAIT, hint));
	} else if (state == PWR_EVENT_EXIT) {
		kutrace_guarded(if (__this_cpu_read(kutrace_polls))
					kutrace_tell(value)(KUTRACE_MONITOR_EXIT, 0));
	}
}

static void notrace kutrace_without_ipi(void *data, int cpu)
{
	kutrace_guarded(kutrace_tell(value)(KUTRACE_MONITOR_STORE, cpu));
}

struct kutrace_probe kutrace_idle_probes[] = {
	{ "cpu_idle", kutrace_cpu_idle },
	{ "sched_wake_idle_without_ipi", kutrace_without_ipi },
	{ }
};
