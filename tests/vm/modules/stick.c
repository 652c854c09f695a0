// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
// Keeps CPU 1 busy with interrupts off for as many seconds as are written into /sys/module/stick/parameters/seconds,
// or until the module is removed; with interrupts=1 they are on, and only no other thread gets the CPU. A thread does,
// not an interrupt: a CPU that was interrupted while idle would be chosen for threads that wake.

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include <asm/tsc.h>

static unsigned int seconds;
static bool interrupts;
module_param(interrupts, bool, 0444);
static struct task_struct *thread;
static DECLARE_COMPLETION(stuck);

static int stick(void *unused)
{
	unsigned long flags;
	u64 begin;

	preempt_disable();
	local_irq_save(flags);
	complete(&stuck);
	if (interrupts)
		local_irq_restore(flags);
	begin = rdtsc();
	while (rdtsc() - begin < 1000ULL * tsc_khz * seconds && !kthread_should_stop())
		cpu_relax();
	if (!interrupts)
		local_irq_restore(flags);
	preempt_enable();
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ);
	return 0;
}

static int set(const char *text, const struct kernel_param *param)
{
	int ret = thread ? -EBUSY : param_set_uint(text, param);
	struct task_struct *new;

	if (ret)
		return ret;
	new = kthread_create_on_cpu(stick, NULL, 1, "stick/%u");
	if (IS_ERR(new))
		return PTR_ERR(new);
	sched_set_fifo(new);
	thread = new;
	wake_up_process(new);
	wait_for_completion(&stuck);
	return 0;
}

static const struct kernel_param_ops ops = {
	.set = set,
	.get = param_get_uint,
};
module_param_cb(seconds, &ops, &seconds, 0644);

static int __init stick_init(void)
{
	return 0;
}

static void __exit stick_exit(void)
{
	if (thread)
		kthread_stop(thread);
}

module_init(stick_init);
module_exit(stick_exit);
MODULE_DESCRIPTION("A stuck CPU for KUtrace's tests");
MODULE_LICENSE("Dual BSD/GPL");
