/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes on tracepoints, and their calls of the recorder.
 */
#ifndef KUTRACE_PROBE_H
#define KUTRACE_PROBE_H

#include <linux/preempt.h>
#include <linux/static_call.h>
#include <linux/types.h>
#include <linux/version.h>

#include "../source.h"

struct tracepoint;

/* A probe, and the tracepoint of that name if the kernel has it. */
struct kutrace_probe {
	const char *name;
	void *function;
	struct tracepoint *tracepoint;
	bool is_on;
	/* Called after the other probes of its tracepoint. */
	bool is_last;
};

/* The probes of each file; the last has no name. */
extern struct kutrace_probe kutrace_call_probes[];
extern struct kutrace_probe kutrace_interrupt_probes[];
extern struct kutrace_probe kutrace_fault_probes[];
extern struct kutrace_probe kutrace_task_probes[];
extern struct kutrace_probe kutrace_idle_probes[];

/*
 * Direct calls, which do nothing while no recorder is connected. A recorder
 * that is connected stays for as long as a probe may run.
 */
DECLARE_STATIC_CALL(kutrace_tell_event, kutrace_op_event_t);
DECLARE_STATIC_CALL(kutrace_tell_value, kutrace_op_value_t);
DECLARE_STATIC_CALL(kutrace_tell_address, kutrace_op_address_t);
DECLARE_STATIC_CALL(kutrace_tell_syscall, kutrace_op_syscall_t);
DECLARE_STATIC_CALL(kutrace_tell_syscall_return, kutrace_op_syscall_return_t);
DECLARE_STATIC_CALL(kutrace_tell_switch_to, kutrace_op_switch_to_t);
DECLARE_STATIC_CALL(kutrace_tell_task, kutrace_op_task_t);
DECLARE_STATIC_CALL(kutrace_tell_vector, kutrace_op_vector_t);
DECLARE_STATIC_CALL(kutrace_tell_point, kutrace_op_event_t);

#define kutrace_tell(what)	static_call_cond(kutrace_tell_##what)

/* For rare calls; set while a recorder is connected. */
extern const struct kutrace_table *kutrace_told;

/*
 * A caller of the recorder stays on its CPU. Until 6.12 a tracepoint calls its
 * probes with preemption off; since 6.13 those of system calls, and later
 * others, with preemption on.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define kutrace_guarded(calls)						\
do {									\
	preempt_disable_notrace();					\
	calls;								\
	preempt_enable_notrace();					\
} while (0)
#else
#define kutrace_guarded(calls)	do { calls; } while (0)
#endif

/* The work of each file in addition to its probes. All may sleep. */
int kutrace_faults_begin(void);
void kutrace_faults_end(void);
void kutrace_faults_forget(void);
void kutrace_idle_begin(void);
int kutrace_cpus_begin(void);
void kutrace_cpus_end(void);
int kutrace_devices_begin(void);
void kutrace_devices_end(void);
bool kutrace_frequency_is_known(void);
int kutrace_frequency_begin(void);
void kutrace_frequency_end(void);
void kutrace_hypervisor_connect(void);
int kutrace_hypervisor_begin(void);
void kutrace_hypervisor_end(void);
bool kutrace_hypervisor_is_silent(void);
void kutrace_each_device_vector(kutrace_op_vector_t *each);

/* A tick, with interrupts off. */
void kutrace_frequency_tick(void);

/* A new task has no fault yet. Preemption is off. */
void kutrace_faults_leave(struct task_struct *task);
void kutrace_faults_switch_to(struct task_struct *next);

#endif
