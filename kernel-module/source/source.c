// SPDX-License-Identifier: GPL-2.0
/*
 * Chooses the recorder's source: hooks if the kernel has them, else
 * tracepoints; or the one that the parameter `source` names.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "guests.h"
#include "packets.h"
#include "records.h"
#include "source.h"
#include "steal.h"

/* Bits of ../format/src/capability.rs. */
enum { PACKETS = 18, STEAL = 27 };

static char *source = "";
module_param(source, charp, 0444);
MODULE_PARM_DESC(source, "Source of events: hooks, of a patched kernel, or tracepoints (default: hooks if the kernel has them)");

/* The first is the default. */
static const struct kutrace_source * const kutrace_sources[] = {
#ifdef CONFIG_KUTRACE
	&kutrace_hooks,
#endif
#ifdef CONFIG_TRACEPOINTS
	&kutrace_tracepoints,
#endif
};

static const struct kutrace_source *kutrace_chosen;
static const struct kutrace_table *kutrace_table;

/* Remove when: the module! macro takes strings. */
int kutrace_source_choose(void)
{
	size_t n;

	kutrace_steal_find();
	for (n = 0; n < ARRAY_SIZE(kutrace_sources); n++) {
		if (source[0] && strcmp(source, kutrace_sources[n]->name))
			continue;
		kutrace_chosen = kutrace_sources[n];
		return 0;
	}
	pr_err("kutrace: source=%s: this kernel has no such source\n", source);
	return -EINVAL;
}

int kutrace_source_connect(const struct kutrace_table *table)
{
	WRITE_ONCE(kutrace_table, table);
	/* No CPU is in a call of the previous table any more. */
	synchronize_rcu();
	return kutrace_chosen->connect(table);
}

/* The source is connected before there is a device. */
long kutrace_source_call(unsigned long command, const u64 *words)
{
	long answer;

	preempt_disable();
	answer = READ_ONCE(kutrace_table)->ops.user(command, words);
	preempt_enable();
	return answer;
}

void kutrace_source_disconnect(void)
{
	kutrace_guests_end();
	kutrace_records_end();
	kutrace_packets_end();
	kutrace_chosen->disconnect();
	kutrace_steal_end();
}

void kutrace_source_disable(void)
{
	kutrace_guests_end();
	kutrace_records_end();
	kutrace_packets_end();
	kutrace_chosen->disable();
	kutrace_steal_end();
}

int kutrace_source_enable(void)
{
	int ret = kutrace_steal_begin() ?: kutrace_chosen->enable() ?:
		  kutrace_packets_begin(kutrace_table) ?: kutrace_records_begin(kutrace_table) ?:
		  kutrace_guests_begin(kutrace_table);

	if (ret)
		kutrace_source_disable();
	return ret;
}

void kutrace_source_each_vector(kutrace_op_vector_t *each)
{
	kutrace_chosen->each_vector(each);
}

u32 kutrace_source_kind(void)
{
	return kutrace_chosen->kind;
}

u64 kutrace_source_unseen(void)
{
	return (kutrace_chosen->unseen ? kutrace_chosen->unseen() : 0) |
	       (kutrace_packets_wanted() ? 0 : BIT_ULL(PACKETS)) |
	       (kutrace_steal_is_seen() ? 0 : BIT_ULL(STEAL));
}
