/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of a recorder, for kernels without the header of the patches: a
 * part of that header.
 */
#ifndef KUTRACE_KUTRACE_H
#define KUTRACE_KUTRACE_H

#include <linux/types.h>

struct task_struct;

/* Event numbers; the recorder's format definition has the same. */
#define KUTRACE_RUNNABLE	0x206	/* value: pid made runnable */
#define KUTRACE_IPI		0x207	/* value: target CPU | vector << 16 */
#define KUTRACE_MWAIT		0x208	/* value: mwait hint, or below */
#define KUTRACE_FREQUENCY	0x209	/* value: MHz since the one before */
#define KUTRACE_MONITOR_STORE	0x21e	/* value: target CPU */
#define KUTRACE_MONITOR_EXIT	0x21f	/* value: 0 */
#define KUTRACE_EXIT		0x220	/* value: exit code, as for wait() */
#define KUTRACE_OFFLINE		0x227	/* cpu: this one is gone */
#define KUTRACE_ONLINE		0x228	/* cpu: this one is here */
#define KUTRACE_PC_USER		0x280	/* address: interrupted instruction */
#define KUTRACE_PC_KERNEL	0x281
#define KUTRACE_SOFTIRQ		0x300	/* + softirq number */
#define KUTRACE_SOFTIRQ_RETURN	0x310
#define KUTRACE_TRAP		0x400	/* + vector */
#define KUTRACE_IRQ		0x500	/* + vector */
#define KUTRACE_TRAP_RETURN	0x600
#define KUTRACE_IRQ_RETURN	0x700
#define KUTRACE_SYSCALL		0x800	/* + number */
#define KUTRACE_UNKNOWN_CALL	0x9fe	/* a number no system call has */
#define KUTRACE_SCHED		0xdff
#define KUTRACE_SYSCALL32	0xe00	/* + number */
#define KUTRACE_SCHED_RETURN	0xfff

/* Values of KUTRACE_MWAIT that are no hints. */
#define KUTRACE_IDLE_POLL	253	/* the CPU does not sleep */
#define KUTRACE_IDLE_HLT	254	/* the hlt instruction */
#define KUTRACE_IDLE_IO		255	/* reading an I/O port */

/* The system call of programs built for the original KUtrace. */
#define KUTRACE_USER_CALL	1023
#define KUTRACE_INSERT_MANY	8	/* or ~8: the argument is an address */
#define KUTRACE_USER_WORDS	8	/* read from there */

#define KUTRACE_VECTOR_NAME	56	/* bytes of a name, the last one 0 */

typedef void kutrace_op_event_t(unsigned int event);
typedef void kutrace_op_value_t(unsigned int event, unsigned int value);
typedef void kutrace_op_address_t(unsigned int event, unsigned long address);
typedef void kutrace_op_syscall_t(unsigned long arg, unsigned int nr);
typedef void kutrace_op_syscall_return_t(long value);
typedef void kutrace_op_switch_to_t(struct task_struct *next);
typedef void kutrace_op_task_t(struct task_struct *task);
typedef long kutrace_op_user_t(unsigned long command, const u64 *words);
typedef void kutrace_op_vector_t(unsigned int cpu, unsigned int vector,
				 const char *name);
typedef void kutrace_op_cpu_t(unsigned int event);

/* All are called with preemption off and may be interrupted by one another. */
struct kutrace_ops {
	unsigned int version;
	kutrace_op_event_t *event;
	kutrace_op_value_t *value;
	kutrace_op_address_t *address;
	kutrace_op_syscall_t *syscall;
	kutrace_op_syscall_return_t *syscall_return;
	kutrace_op_switch_to_t *switch_to;
	kutrace_op_task_t *task;
	kutrace_op_user_t *user;
	kutrace_op_vector_t *vector;
	kutrace_op_cpu_t *cpu;
};

#define KUTRACE_OPS_VERSION	(0x20000 | sizeof(struct kutrace_ops))

#endif
