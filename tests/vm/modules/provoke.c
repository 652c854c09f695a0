// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
// Does things that a kernel does too seldom to wait for, when a word is written to its parameter `do`:
//   wake N      a thread that is about to sleep wakes itself, N times
//   share N     interrupt N gets another handler, which takes none
//   unshare N   and loses it
//   off N       interrupt N is off, and its events come later
//   on N        comes again when it is on
//   timer N     CPU N gets a timer from another CPU, which is to end its sleep
//   softirq N   a softirq takes N ms, on this CPU
//   irq N       an interrupt takes N ms, on this CPU
//   tsc N       the kernel no longer trusts the TSC, as if its watchdog had reported it
//   linger N    while N is not 0, whichever CPU goes or comes waits: then the parameter lingers is 1
// With watch=1 it lets CPUs idle in three ways, as a driver of cpuidle: polling, hlt, and a wait that a store ends, which
// looks like mwait with the hint 0x21.

#include <linux/cpuhotplug.h>
#include <linux/cpuidle.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/sched/idle.h>
#include <linux/timer.h>
#include <asm/tsc.h>

/* As in include/linux/kutrace.h: the flags' upper byte is the recorded value. */
#define HINT(hint)	((unsigned int)(hint) << 24)

static int watch;
module_param(watch, int, 0444);

static void wake_itself(int times)
{
	for (int n = 0; n < times; n++) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		wake_up_process(current);
		__set_current_state(TASK_RUNNING);
	}
}

static irqreturn_t not_mine(int irq, void *id)
{
	return IRQ_NONE;
}

static void nothing(struct timer_list *timer)
{
}

static DEFINE_TIMER(timer, nothing);

static int how_long;

static void long_softirq(struct timer_list *timer)
{
	mdelay(how_long);
}

static DEFINE_TIMER(long_timer, long_softirq);

static void long_irq(struct irq_work *work)
{
	mdelay(how_long);
}

static DEFINE_IRQ_WORK(long_work, long_irq);

static int shall_linger, lingering, lingers;
module_param(lingers, int, 0444);

static int linger(unsigned int cpu)
{
	while (READ_ONCE(shall_linger)) {
		lingers = 1;
		msleep(10);
	}
	lingers = 0;
	return 0;
}

static int provoke(const char *text, const struct kernel_param *param)
{
	char word[16];
	int n;

	if (sscanf(text, "%15s %d", word, &n) != 2)
		return -EINVAL;
	if (!strcmp(word, "wake")) {
		wake_itself(n);
	} else if (!strcmp(word, "share")) {
		return request_irq(n, not_mine, IRQF_SHARED, "provoked", &watch);
	} else if (!strcmp(word, "unshare")) {
		free_irq(n, &watch);
	} else if (!strcmp(word, "off")) {
		disable_irq(n);
	} else if (!strcmp(word, "on")) {
		enable_irq(n);
	} else if (!strcmp(word, "timer")) {
		timer_delete_sync(&timer);
		timer.expires = jiffies + 1;
		add_timer_on(&timer, n);
	} else if (!strcmp(word, "softirq")) {
		timer_delete_sync(&long_timer);
		how_long = n;
		mod_timer(&long_timer, jiffies + 1);
	} else if (!strcmp(word, "irq")) {
		irq_work_sync(&long_work);
		how_long = n;
		irq_work_queue(&long_work);
	} else if (!strcmp(word, "tsc")) {
		mark_tsc_unstable("as provoked");
	} else if (!strcmp(word, "linger") && lingering) {
		WRITE_ONCE(shall_linger, n);
	} else if (!strcmp(word, "linger")) {
		shall_linger = n;
		n = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "provoke",
					      linger, linger);
		if (n < 0)
			return n;
		lingering = n;
	} else {
		return -EINVAL;
	}
	return 0;
}

static const struct kernel_param_ops ops = { .set = provoke };
module_param_cb(do, &ops, NULL, 0200);

static int __cpuidle until_an_interrupt(struct cpuidle_device *dev,
			  struct cpuidle_driver *drv, int index)
{
	if (!current_clr_polling_and_test())
		raw_safe_halt();
	raw_local_irq_disable();
	__current_clr_polling();
	return index;
}

/* While the CPU has to poll, a CPU that wakes it stores and sends nothing. */
static int __cpuidle until_a_store(struct cpuidle_device *dev,
				   struct cpuidle_driver *drv, int index)
{
	if (!current_set_polling_and_test()) {
		raw_local_irq_enable();
		while (!need_resched())
			cpu_relax();
		raw_local_irq_disable();
	}
	__current_clr_polling();
	return index;
}

static struct cpuidle_driver driver = {
	.name = "provoke",
	.owner = THIS_MODULE,
	.states = {
		{ /* Polling, which the kernel has. */ },
		{
			.enter = until_an_interrupt,
			.exit_latency = 1,
			.target_residency = 10,
			.flags = HINT(254),
			.name = "HLT",
			.desc = "hlt",
		},
		{
			.enter = until_a_store,
			.exit_latency = 1,
			.target_residency = 1000,
			.flags = HINT(0x21),
			.name = "WATCH",
			.desc = "until a store",
		},
	},
	.state_count = 3,
};

static int __init provoke_init(void)
{
	if (!watch)
		return 0;
	cpuidle_poll_state_init(&driver);
	return cpuidle_register(&driver, NULL);
}

static void __exit provoke_exit(void)
{
	timer_delete_sync(&timer);
	timer_delete_sync(&long_timer);
	irq_work_sync(&long_work);
	if (lingering)
		cpuhp_remove_state_nocalls(lingering);
	if (watch)
		cpuidle_unregister(&driver);
}

module_init(provoke_init);
module_exit(provoke_exit);
MODULE_DESCRIPTION("Rare things for KUtrace's tests");
MODULE_LICENSE("Dual BSD/GPL");
