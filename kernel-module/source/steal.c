// SPDX-License-Identifier: GPL-2.0
/*
 * Time in which a CPU of this machine wanted to run, and the host ran something
 * else: KVM counts it for each CPU of a guest, in memory that the guest's
 * kernel has registered. A register has its address, so this works in any
 * kernel, whichever the source.
 *
 * The host writes there while the CPU does not run, so the CPU never sees half
 * of a write. It is read with interrupts off, and not in an NMI.
 */
#include <linux/cc_platform.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/kvm_para.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/hypervisor.h>
#include <asm/msr.h>

#include "steal.h"

struct kutrace_steal {
	/* NULL unless a trace is recorded and this CPU's host counts. */
	const struct kvm_steal_time *clock;
	/* The part of it, in ns, that was reported, or was before the trace. */
	u64 told;
};

static DEFINE_PER_CPU(struct kutrace_steal, kutrace_steal);
static bool kutrace_steal_known;
static int kutrace_steal_hotplug = -1;

/* Returns the memory where the host counts for this CPU. */
static const struct kvm_steal_time *kutrace_steal_clock(void)
{
	u32 low, high;
	u64 at;

	if (rdmsr_safe(MSR_KVM_STEAL_TIME, &low, &high) || !(low & KVM_MSR_ENABLED))
		return NULL;
	at = ((u64)high << 32 | low) & KVM_STEAL_VALID_BITS;
	return pfn_valid(at >> PAGE_SHIFT) ? __va(at) : NULL;
}

/*
 * Memory that the processor encrypts is decrypted where the kernel uses it, which
 * is not known here.
 */
void kutrace_steal_find(void)
{
	if (!hypervisor_is_type(X86_HYPER_KVM) || cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		return;
	preempt_disable();
	kutrace_steal_known = kutrace_steal_clock();
	preempt_enable();
}

bool kutrace_steal_is_known(void)
{
	return kutrace_steal_known;
}

/* A machine without a host is known to lose no time to one. */
bool kutrace_steal_is_seen(void)
{
	return kutrace_steal_known || !boot_cpu_has(X86_FEATURE_HYPERVISOR);
}

u32 notrace kutrace_steal_taken(void)
{
	struct kutrace_steal *steal = raw_cpu_ptr(&kutrace_steal);
	const struct kvm_steal_time *clock = READ_ONCE(steal->clock);
	u64 now;
	u32 taken;

	if (!clock)
		return 0;
	now = READ_ONCE(clock->steal);
	if (likely(now == steal->told))
		return 0;
	/* The count of a CPU that was offline may start again. */
	taken = now > steal->told ? min_t(u64, now - steal->told, U32_MAX) : 0;
	steal->told = taken ? steal->told + taken : now;
	return taken;
}

static void kutrace_steal_look(void *unused)
{
	const struct kvm_steal_time *clock = kutrace_steal_clock();

	if (!clock)
		return;
	this_cpu_write(kutrace_steal.told, READ_ONCE(clock->steal));
	barrier();
	this_cpu_write(kutrace_steal.clock, clock);
}

/*
 * The kernel registers the memory with KVM before this, and unregisters it
 * after the CPU is offline for us.
 */
static int kutrace_steal_online(unsigned int cpu)
{
	kutrace_steal_look(NULL);
	return 0;
}

static int kutrace_steal_offline(unsigned int cpu)
{
	this_cpu_write(kutrace_steal.clock, NULL);
	return 0;
}

int kutrace_steal_begin(void)
{
	int ret;

	if (!kutrace_steal_known)
		return 0;
	ret = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "kutrace:steal",
					kutrace_steal_online, kutrace_steal_offline);
	if (ret < 0)
		return ret;
	kutrace_steal_hotplug = ret;
	on_each_cpu(kutrace_steal_look, NULL, true);
	return 0;
}

/* Called when no CPU reads the count any more. */
void kutrace_steal_end(void)
{
	int cpu;

	if (kutrace_steal_hotplug < 0)
		return;
	cpuhp_remove_state_nocalls(kutrace_steal_hotplug);
	kutrace_steal_hotplug = -1;
	for_each_possible_cpu(cpu)
		per_cpu(kutrace_steal.clock, cpu) = NULL;
}
