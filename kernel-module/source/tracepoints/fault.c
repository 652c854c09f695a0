// SPDX-License-Identifier: GPL-2.0
/*
 * Exceptions. A page fault of a program begins at its tracepoint and ends when
 * the program continues: the kernel reports that, once, by the notifier that it
 * has for KVM. A fault of the kernel's own has no end, and other exceptions
 * have nothing but the signal that results: these are points.
 */
#include <linux/bitops.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/smp.h>
#include <linux/threads.h>
#include <linux/user-return-notifier.h>
#include <linux/vmalloc.h>
#include <asm/trapnr.h>

#include "probe.h"

#ifdef CONFIG_USER_RETURN_NOTIFIER
/* A bit for each thread that is in a page fault, by its pid. */
static unsigned long *kutrace_faulting;

struct kutrace_return {
	struct user_return_notifier notifier;
	bool armed;
};
static DEFINE_PER_CPU(struct kutrace_return, kutrace_return);

/* Interrupts are off. */
static void notrace kutrace_user_return(struct user_return_notifier *notifier)
{
	struct kutrace_return *this = container_of(notifier, struct kutrace_return,
						   notifier);

	if (test_and_clear_bit(current->pid, kutrace_faulting))
		kutrace_tell(event)(KUTRACE_TRAP_RETURN + X86_TRAP_PF);
	this->armed = false;
	user_return_notifier_unregister(notifier);
}

/* Asks for the next return of this CPU to a program. Interrupts are off. */
static __always_inline void kutrace_arm(void)
{
	struct kutrace_return *this = this_cpu_ptr(&kutrace_return);

	if (!this->armed) {
		this->armed = true;
		this->notifier.on_user_return = kutrace_user_return;
		user_return_notifier_register(&this->notifier);
	}
}

/* Takes that back on this CPU. Interrupts are off. */
void kutrace_faults_forget(void)
{
	struct kutrace_return *this = this_cpu_ptr(&kutrace_return);

	if (this->armed) {
		this->armed = false;
		user_return_notifier_unregister(&this->notifier);
	}
}

static void kutrace_forget_here(void *unused)
{
	kutrace_faults_forget();
}

int kutrace_faults_begin(void)
{
	kutrace_faulting = vzalloc(BITS_TO_LONGS(PID_MAX_LIMIT) * sizeof(long));
	return kutrace_faulting ? 0 : -ENOMEM;
}

/* Called when no probe runs any more, so none arms. */
void kutrace_faults_end(void)
{
	on_each_cpu(kutrace_forget_here, NULL, true);
	vfree(kutrace_faulting);
	kutrace_faulting = NULL;
}

void notrace kutrace_faults_leave(struct task_struct *task)
{
	clear_bit(task->pid, kutrace_faulting);
}

/* Arms again for a task that was switched away from in its fault. */
void notrace kutrace_faults_switch_to(struct task_struct *next)
{
	if (test_bit(next->pid, kutrace_faulting))
		kutrace_arm();
}

/* Interrupts are off. */
static void notrace kutrace_page_fault_user(void *data, unsigned long address,
					    struct pt_regs *regs,
					    unsigned long error)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_TRAP + X86_TRAP_PF);
			set_bit(current->pid, kutrace_faulting);
			kutrace_arm());
}
#else
int kutrace_faults_begin(void)
{
	return 0;
}

void kutrace_faults_end(void)
{
}

void kutrace_faults_forget(void)
{
}

void notrace kutrace_faults_leave(struct task_struct *task)
{
}

void notrace kutrace_faults_switch_to(struct task_struct *next)
{
}

#define kutrace_page_fault_user kutrace_page_fault_kernel
#endif

static void notrace kutrace_page_fault_kernel(void *data, unsigned long address,
					      struct pt_regs *regs,
					      unsigned long error)
{
	kutrace_guarded(kutrace_tell(point)(KUTRACE_TRAP + X86_TRAP_PF));
}

/*
 * A signal that the kernel sends the running thread for what the thread has
 * done. A page fault has more than that. The sender of a signal has locked the
 * task's signal handlers, which a task that has ended does not have any more.
 */
static void notrace kutrace_signal_generate(void *data, int sig,
					    struct kernel_siginfo *info,
					    struct task_struct *task,
					    int group, int result)
{
	unsigned long vector = task->thread.trap_nr;

	if (task != current || info == SEND_SIG_NOINFO || info == SEND_SIG_PRIV ||
	    info->si_code <= 0 || vector == X86_TRAP_PF || vector > 31)
		return;
	if (sig != SIGFPE && sig != SIGILL && sig != SIGSEGV && sig != SIGBUS &&
	    sig != SIGTRAP)
		return;
	kutrace_guarded(kutrace_tell(point)(KUTRACE_TRAP + vector));
}

/* A handler has claimed an NMI. */
static void notrace kutrace_nmi_handler(void *data, void *handler, s64 ns,
					int handled)
{
	if (handled > 0)
		kutrace_guarded(kutrace_tell(point)(KUTRACE_TRAP + X86_TRAP_NMI));
}

struct kutrace_probe kutrace_fault_probes[] = {
	{ "page_fault_user", kutrace_page_fault_user },
	{ "page_fault_kernel", kutrace_page_fault_kernel },
	{ "signal_generate", kutrace_signal_generate },
	{ "nmi_handler", kutrace_nmi_handler },
	{ }
};
