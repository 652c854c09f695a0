// SPDX-License-Identifier: GPL-2.0
/*
 * Loads and unloads the module, as the `kernel` crate does for the module of a
 * patched kernel. kernel.rs is the Rust side.
 */
#include <linux/module.h>
#include <linux/sched.h>

int kutrace_stock_load(void);
void kutrace_stock_unload(void);
struct task_struct *kutrace_stock_current(void);
void kutrace_stock_error(const char *text, int len);

struct task_struct *kutrace_stock_current(void)
{
	return current;
}

void kutrace_stock_error(const char *text, int len)
{
	pr_err("kutrace: %.*s", len, text);
}

static int __init kutrace_init(void)
{
	return kutrace_stock_load();
}

static void __exit kutrace_exit(void)
{
	kutrace_stock_unload();
}

module_init(kutrace_init);
module_exit(kutrace_exit);
MODULE_LICENSE("GPL");
