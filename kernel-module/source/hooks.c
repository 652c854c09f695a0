// SPDX-License-Identifier: GPL-2.0
/*
 * The hooks of a patched kernel, which see everything.
 */
#include "source.h"

static int kutrace_hooks_connect(const struct kutrace_table *table)
{
	return kutrace_register(&table->ops);
}

static int kutrace_hooks_enable(void)
{
	kutrace_enable();
	return 0;
}

const struct kutrace_source kutrace_hooks = {
	.name = "hooks",
	.kind = KUTRACE_HOOKS,
	.connect = kutrace_hooks_connect,
	.disconnect = kutrace_unregister,
	.enable = kutrace_hooks_enable,
	.disable = kutrace_disable,
	.each_vector = kutrace_each_vector,
};
