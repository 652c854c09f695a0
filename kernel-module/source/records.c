// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints that a user has chosen by name, of the kernel, of any module, and
 * of programs (uprobes): the record that the kernel makes of each for perf, as
 * the tracepoint's format file describes it. perf is asked for one event per
 * CPU and tracepoint and calls back with the record, in whatever context the
 * tracepoint is. While off there is no such event, so the tracepoint is the NOP
 * that it was.
 *
 * perf does not see the records that the kernel itself drops, because the
 * record of another tracepoint is being made in the same context.
 */
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "records.h"

static u32 kutrace_records_count;
static u32 kutrace_records_ids[KUTRACE_RECORDS_MAX];

void kutrace_records_choose(u32 count, const u32 *ids)
{
	kutrace_records_count = count;
	memcpy(kutrace_records_ids, ids, count * sizeof(*ids));
}

#ifdef CONFIG_PERF_EVENTS

static const struct kutrace_table *kutrace_records_told;

/* For each tracepoint and CPU: an event that was created while the CPU was online. */
static DEFINE_MUTEX(kutrace_records_lock);
static struct perf_event **kutrace_records;
static int kutrace_records_hotplug = -1;

static void kutrace_record(struct perf_event *event,
			   struct perf_sample_data *data, struct pt_regs *regs)
{
	u32 number = (unsigned long)event->overflow_handler_context;
	const struct perf_raw_frag *frag;

	if (!data->raw)
		return;
	/* After the head of all records: of which tracepoint, and whose. */
	frag = &data->raw->frag;
	if (frag->size <= sizeof(struct trace_entry))
		return;
	preempt_disable_notrace();
	kutrace_records_told->record(number, frag->data + sizeof(struct trace_entry),
				     frag->size - sizeof(struct trace_entry));
	preempt_enable_notrace();
}

/* A CPU that is offline has none, which is not an error. */
static int kutrace_record_open(u32 number, int cpu)
{
	struct perf_event **record = &kutrace_records[number * nr_cpu_ids + cpu];
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = kutrace_records_ids[number],
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
	};
	struct perf_event *event;

	lockdep_assert_held(&kutrace_records_lock);
	/* An event from before the CPU went offline no longer belongs to it. */
	if (*record)
		perf_event_release_kernel(*record);
	*record = NULL;
	event = perf_event_create_kernel_counter(&attr, cpu, NULL, kutrace_record,
						 (void *)(unsigned long)number);
	if (PTR_ERR_OR_ZERO(event) == -ENODEV)
		return 0;
	/* The kernel has no such tracepoint, or makes no records of it. */
	if (IS_ERR(event))
		return PTR_ERR(event) == -ENOMEM ? -ENOMEM : -ENODATA;
	*record = event;
	return 0;
}

static cpumask_t kutrace_records_late;

/*
 * Not called while a CPU comes online: to create the first event of a
 * tracepoint the kernel waits for the holder of the CPUs.
 */
static void kutrace_records_follow(struct work_struct *work)
{
	u32 number;
	int cpu;

	mutex_lock(&kutrace_records_lock);
	for_each_possible_cpu(cpu) {
		if (!cpumask_test_and_clear_cpu(cpu, &kutrace_records_late))
			continue;
		for (number = 0; number < kutrace_records_count; number++)
			if (kutrace_record_open(number, cpu))
				pr_warn("kutrace: tracepoint %u is not recorded on CPU %d, which came online\n",
					kutrace_records_ids[number], cpu);
	}
	mutex_unlock(&kutrace_records_lock);
}

static DECLARE_WORK(kutrace_records_work, kutrace_records_follow);

static int kutrace_records_online(unsigned int cpu)
{
	cpumask_set_cpu(cpu, &kutrace_records_late);
	schedule_work(&kutrace_records_work);
	return 0;
}

int kutrace_records_begin(const struct kutrace_table *table)
{
	u32 number;
	int cpu, ret;

	if (!kutrace_records_count)
		return 0;
	kutrace_records = kvcalloc(kutrace_records_count * nr_cpu_ids,
				   sizeof(*kutrace_records), GFP_KERNEL);
	if (!kutrace_records)
		return -ENOMEM;
	kutrace_records_told = table;
	cpumask_clear(&kutrace_records_late);
	ret = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "kutrace:records",
					kutrace_records_online, NULL);
	if (ret >= 0) {
		kutrace_records_hotplug = ret;
		ret = 0;
	}
	/* A CPU that comes online in the meantime is both handled here and marked as late. */
	mutex_lock(&kutrace_records_lock);
	for (number = 0; number < kutrace_records_count; number++)
		for_each_possible_cpu(cpu)
			ret = ret ?: kutrace_record_open(number, cpu);
	mutex_unlock(&kutrace_records_lock);
	if (ret)
		kutrace_records_end();
	return ret;
}

void kutrace_records_end(void)
{
	u32 n;

	if (!kutrace_records)
		return;
	if (kutrace_records_hotplug >= 0)
		cpuhp_remove_state_nocalls(kutrace_records_hotplug);
	kutrace_records_hotplug = -1;
	cancel_work_sync(&kutrace_records_work);
	for (n = 0; n < kutrace_records_count * nr_cpu_ids; n++)
		if (kutrace_records[n])
			perf_event_release_kernel(kutrace_records[n]);
	/* For CPUs that are in the middle of a record, as when probes are removed. */
	tracepoint_synchronize_unregister();
	synchronize_rcu();
	kick_all_cpus_sync();
	kvfree(kutrace_records);
	kutrace_records = NULL;
}

#else /* the kernel makes no records */

int kutrace_records_begin(const struct kutrace_table *table)
{
	return kutrace_records_count ? -ENODATA : 0;
}

void kutrace_records_end(void)
{
}
#endif
