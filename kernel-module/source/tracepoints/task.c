// SPDX-License-Identifier: GPL-2.0
/*
 * Threads: which one runs, is woken, is new, is renamed or ends.
 */
#include <linux/sched.h>
#include <linux/string.h>

#include "probe.h"

/* Since 7.0: start and end of the scheduler. */
static void notrace kutrace_sched_entry(void *data, bool preempt)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_SCHED));
}

static void notrace kutrace_sched_exit(void *data, bool is_switch)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_SCHED_RETURN));
}

/*
 * A thread that has ended leaves for the last time. The switch comes last: the
 * header of a block that begins after it would name the thread that is leaving
 * as the running one. So the switch also comes after the record of this
 * tracepoint, if that is chosen.
 */
static void notrace kutrace_sched_switch(void *data, bool preempt,
					 struct task_struct *prev,
					 struct task_struct *next,
					 unsigned int state)
{
	kutrace_guarded(if (unlikely(state & TASK_DEAD))
				kutrace_tell(value)(KUTRACE_EXIT,
						    prev->exit_code);
			kutrace_faults_switch_to(next);
			kutrace_tell(switch_to)(next));
}

static void notrace kutrace_sched_waking(void *data, struct task_struct *task)
{
	kutrace_guarded(kutrace_tell(value)(KUTRACE_RUNNABLE, task->pid));
}

static void notrace kutrace_sched_wakeup_new(void *data, struct task_struct *task)
{
	kutrace_guarded(kutrace_faults_leave(task);
			kutrace_tell(task)(task);
			kutrace_tell(value)(KUTRACE_RUNNABLE, task->pid));
}

/* The task still has its old name. */
static void notrace kutrace_task_rename(void *data, struct task_struct *task,
					const char *name)
{
	char comm[TASK_COMM_LEN];

	strscpy_pad(comm, name, sizeof(comm));
	kutrace_guarded(kutrace_told->rename(task, comm));
}

struct kutrace_probe kutrace_task_probes[] = {
	{ "sched_switch", kutrace_sched_switch, .is_last = true },
	{ "sched_waking", kutrace_sched_waking },
	{ "sched_wakeup_new", kutrace_sched_wakeup_new },
	{ "task_rename", kutrace_task_rename },
	{ "sched_exit_tp", kutrace_sched_exit },
	{ "sched_entry_tp", kutrace_sched_entry },
	{ }
};
