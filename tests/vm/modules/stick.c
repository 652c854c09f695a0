// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
// Keeps CPU 1 with interrupts off for as many seconds as are written into /sys/module/stick/parameters/seconds.

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/smp.h>

static unsigned int seconds;

static void stick(void *unused)
{
	for (unsigned int ms = 0; ms < seconds * 1000; ms++)
		mdelay(1);
}

static int set(const char *text, const struct kernel_param *param)
{
	int ret = param_set_uint(text, param);

	return ret ?: smp_call_function_single(1, stick, NULL, false);
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

/* Returns when the CPU has answered, and so has left the function. */
static void __exit stick_exit(void)
{
	kick_all_cpus_sync();
}

module_init(stick_init);
module_exit(stick_exit);
MODULE_DESCRIPTION("A stuck CPU for KUtrace's tests");
MODULE_LICENSE("Dual BSD/GPL");
