// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
// Records as many events as are written into /sys/module/said/parameters/times, on every CPU at once, while a timer
// interrupts each CPU and records its own. The numbers recorded by both are in .../tasks and .../interrupts. .../counts
// has the counts of the TSC that one of the smallest events took, averaged over the number written there.

#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#include <asm/tsc.h>

#define CREATE_TRACE_POINTS
#include "said.h"

static unsigned int times, tasks, interrupts, counts;
static atomic_t by_tasks, by_interrupts;
static DEFINE_PER_CPU(struct hrtimer, timer);
static DEFINE_PER_CPU(struct work_struct, work);

static enum hrtimer_restart interrupt(struct hrtimer *one)
{
	u16 pair[2] = { 3, 4 };

	trace_said(atomic_inc_return(&by_interrupts), smp_processor_id(), "irq", pair);
	hrtimer_forward_now(one, ns_to_ktime(200 * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

static void say(struct work_struct *unused)
{
	struct hrtimer *one = this_cpu_ptr(&timer);
	u16 pair[2] = { 1, 65535 };
	unsigned int n;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(one, interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(one, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	one->function = interrupt;
#endif
	hrtimer_start(one, ns_to_ktime(200 * NSEC_PER_USEC), HRTIMER_MODE_REL_PINNED_HARD);
	for (n = 0; n < times; n++) {
		trace_said(n, raw_smp_processor_id(), "task", pair);
		trace_said_briefly(n);
		atomic_inc(&by_tasks);
	}
	hrtimer_cancel(one);
}

static int set(const char *text, const struct kernel_param *param)
{
	int cpu, ret = param_set_uint(text, param);

	if (ret)
		return ret;
	for_each_online_cpu(cpu) {
		INIT_WORK(per_cpu_ptr(&work, cpu), say);
		schedule_work_on(cpu, per_cpu_ptr(&work, cpu));
	}
	for_each_online_cpu(cpu)
		flush_work(per_cpu_ptr(&work, cpu));
	tasks = atomic_read(&by_tasks);
	interrupts = atomic_read(&by_interrupts);
	return 0;
}

static int measure(const char *text, const struct kernel_param *param)
{
	int ret = param_set_uint(text, param);
	unsigned int n, all = counts;
	unsigned long flags;
	u64 begin;

	if (ret || !all)
		return ret ?: -EINVAL;
	local_irq_save(flags);
	begin = rdtsc();
	for (n = 0; n < all; n++)
		trace_said_briefly(n);
	counts = div_u64(rdtsc() - begin, all);
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops ops = {
	.set = set,
	.get = param_get_uint,
};
static const struct kernel_param_ops measured = {
	.set = measure,
	.get = param_get_uint,
};
module_param_cb(times, &ops, &times, 0600);
module_param_cb(counts, &measured, &counts, 0600);
module_param(tasks, uint, 0400);
module_param(interrupts, uint, 0400);

static int __init load(void)
{
	return 0;
}

static void __exit unload(void)
{
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("Typed events of its own");
MODULE_LICENSE("Dual BSD/GPL");
