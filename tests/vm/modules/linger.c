// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
// Keeps the kernel for long in states that are usually short.
//   probes      1 is as a probe of a tracepoint that has begun, 0 as the end of the first that has not ended. A wait
//               for probes is for those that had begun before: after the first, 1 waits until a task does that
//   sleepless   while it is 1 the machine does not get to sleep, and is not notified: the notice of sleep waits, as
//               `noticed` shows; then the machine does not go to sleep

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/suspend.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

static bool sleepless, noticed;
static unsigned int probes, ended;
static int begun[8];
module_param(sleepless, bool, 0644);
module_param(noticed, bool, 0444);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
/* A probe that begins once a task waits for the earlier ones has another index. */
static int linger_begin(void)
{
	int index = srcu_down_read(&tracepoint_srcu);

	while (probes > ended && index == begun[probes - 1]) {
		srcu_up_read(&tracepoint_srcu, index);
		if (msleep_interruptible(10))
			return -EINTR;
		index = srcu_down_read(&tracepoint_srcu);
	}
	begun[probes++] = index;
	return 0;
}
#endif

static int linger_set(const char *text, const struct kernel_param *param)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	if (*text == '1' && probes < ARRAY_SIZE(begun))
		return linger_begin();
	else if (*text == '0' && ended < probes)
		srcu_up_read(&tracepoint_srcu, begun[ended++]);
	else
		return -EINVAL;
	return 0;
#else
	return -EOPNOTSUPP;
#endif
}

static const struct kernel_param_ops ops = {
	.set = linger_set,
};
module_param_cb(probes, &ops, &probes, 0200);

static int notice(struct notifier_block *block, unsigned long action, void *data)
{
	if (action != PM_SUSPEND_PREPARE || !sleepless)
		return NOTIFY_DONE;
	noticed = true;
	while (READ_ONCE(sleepless))
		msleep(10);
	return NOTIFY_BAD;
}

/* After the recorder's. */
static struct notifier_block block = {
	.notifier_call = notice,
	.priority = -1,
};

static int __init linger_init(void)
{
	return register_pm_notifier(&block);
}

static void __exit linger_exit(void)
{
	unregister_pm_notifier(&block);
}

module_init(linger_init);
module_exit(linger_exit);
MODULE_DESCRIPTION("Long moments for KUtrace's tests");
MODULE_LICENSE("Dual BSD/GPL");
