// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints of a kernel without hooks: probes on them, found by name,
 * call the recorder as hooks do. While off there is no probe, so there is no
 * cost.
 */
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <asm/ibt.h>

#include "tracepoints/probe.h"

/* Bits of ../format/src/capability.rs. */
enum {
	INTERRUPTS = 6, QUOTAS = 7, SCHEDULER = 11, EXCEPTIONS = 12,
	KERNEL_FAULTS = 13, ENTRY_CODE = 14, SENDERS = 15, FREQUENCY = 17,
	NMIS = 19, MACHINE_CHECKS = 20, DENIED = 21, STOPS = 22,
	PROGRAM_FAULTS = 23,
};

DEFINE_STATIC_CALL_NULL(kutrace_tell_event, kutrace_op_event_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_value, kutrace_op_value_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_address, kutrace_op_address_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_syscall, kutrace_op_syscall_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_syscall_return, kutrace_op_syscall_return_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_switch_to, kutrace_op_switch_to_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_task, kutrace_op_task_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_vector, kutrace_op_vector_t);
DEFINE_STATIC_CALL_NULL(kutrace_tell_point, kutrace_op_event_t);

const struct kutrace_table *kutrace_told;

static struct kutrace_probe * const kutrace_probes[] = {
	kutrace_call_probes,
	kutrace_interrupt_probes,
	kutrace_fault_probes,
	kutrace_task_probes,
	kutrace_idle_probes,
};

static bool kutrace_tracepoints_on;

#define for_each_probe(group, probe)					\
	for (group = 0; group < ARRAY_SIZE(kutrace_probes); group++)	\
		for (probe = kutrace_probes[group]; probe->name; probe++)

static void kutrace_found(struct tracepoint *tracepoint, void *unused)
{
	struct kutrace_probe *probe;
	size_t group;

	for_each_probe(group, probe)
		if (!strcmp(probe->name, tracepoint->name))
			probe->tracepoint = tracepoint;
}

static bool kutrace_has(const char *name)
{
	struct kutrace_probe *probe;
	size_t group;

	for_each_probe(group, probe)
		if (!strcmp(probe->name, name))
			return probe->tracepoint;
	return false;
}

/* A direct call need not run through the landing pad of an indirect one. */
static void *kutrace_past(void *function)
{
#ifdef CONFIG_X86_KERNEL_IBT
	if (*(u32 *)function == gen_endbr())
		return function + 4;
#endif
	return function;
}

#define kutrace_lead(what, function)					\
	static_call_update(kutrace_tell_##what,				\
			   (typeof(function))kutrace_past(function))

static int kutrace_tracepoints_connect(const struct kutrace_table *table)
{
	if (table->ops.version != KUTRACE_OPS_VERSION)
		return -ENOEXEC;
	for_each_kernel_tracepoint(kutrace_found, NULL);
	kutrace_hypervisor_connect();
	kutrace_lead(event, table->ops.event);
	kutrace_lead(value, table->ops.value);
	kutrace_lead(address, table->ops.address);
	kutrace_lead(syscall, table->ops.syscall);
	kutrace_lead(syscall_return, table->ops.syscall_return);
	kutrace_lead(switch_to, table->ops.switch_to);
	kutrace_lead(task, table->ops.task);
	kutrace_lead(vector, table->ops.vector);
	kutrace_lead(point, table->point);
	kutrace_told = table;
	return 0;
}

static void kutrace_tracepoints_disable(void)
{
	struct kutrace_probe *probe;
	size_t group;

	if (!kutrace_tracepoints_on)
		return;
	kutrace_tracepoints_on = false;
	for_each_probe(group, probe) {
		if (probe->is_on)
			tracepoint_probe_unregister(probe->tracepoint,
						    probe->function, NULL);
		probe->is_on = false;
	}
	kutrace_hypervisor_end();
	/*
	 * Waits for every probe that is under way: by the guarantee of
	 * tracepoints, and for those in an NMI by an interrupt on every CPU,
	 * which comes after it.
	 */
	tracepoint_synchronize_unregister();
	kick_all_cpus_sync();
	kutrace_faults_end();
	kutrace_devices_end();
	kutrace_frequency_end();
	/* A CPU that goes offline in the meantime takes back what it has asked for. */
	kutrace_cpus_end();
}

static void kutrace_tracepoints_disconnect(void)
{
	/* Nothing calls the targets of the static calls any more. */
	kutrace_tracepoints_disable();
	kutrace_told = NULL;
}

static int kutrace_tracepoints_enable(void)
{
	struct kutrace_probe *probe;
	size_t group;
	int ret;

	kutrace_idle_begin();
	ret = kutrace_faults_begin() ?: kutrace_devices_begin() ?: kutrace_frequency_begin() ?:
	      kutrace_cpus_begin() ?: kutrace_hypervisor_begin();
	kutrace_tracepoints_on = true;
	for_each_probe(group, probe) {
		if (!probe->tracepoint || ret)
			continue;
		ret = tracepoint_probe_register_prio(probe->tracepoint,
						     probe->function, NULL,
						     probe->is_last ? 0 : TRACEPOINT_DEFAULT_PRIO);
		probe->is_on = !ret;
	}
	if (ret)
		kutrace_tracepoints_disable();
	kick_all_cpus_sync();
	return ret;
}

static u64 kutrace_tracepoints_unseen(void)
{
	u64 unseen = BIT_ULL(QUOTAS) | BIT_ULL(EXCEPTIONS) | BIT_ULL(KERNEL_FAULTS) |
		     BIT_ULL(ENTRY_CODE) | BIT_ULL(NMIS) |
		     BIT_ULL(MACHINE_CHECKS) | BIT_ULL(DENIED) | BIT_ULL(STOPS);

	if (!kutrace_frequency_is_known())
		unseen |= BIT_ULL(FREQUENCY);
	/* The kernel has it for KVM. */
	if (!IS_ENABLED(CONFIG_USER_RETURN_NOTIFIER))
		unseen |= BIT_ULL(PROGRAM_FAULTS);
	if (!kutrace_has("sched_entry_tp"))
		unseen |= BIT_ULL(SCHEDULER);
	if (!kutrace_has("ipi_send_cpu"))
		unseen |= BIT_ULL(SENDERS);
	if (kutrace_hypervisor_is_silent())
		unseen |= BIT_ULL(INTERRUPTS);
	return unseen;
}

const struct kutrace_source kutrace_tracepoints = {
	.name = "tracepoints",
	.kind = KUTRACE_TRACEPOINTS,
	.connect = kutrace_tracepoints_connect,
	.disconnect = kutrace_tracepoints_disconnect,
	.enable = kutrace_tracepoints_enable,
	.disable = kutrace_tracepoints_disable,
	.each_vector = kutrace_each_device_vector,
	.unseen = kutrace_tracepoints_unseen,
};
