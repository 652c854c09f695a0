// SPDX-License-Identifier: GPL-2.0
/*
 * System calls: 64-bit ones, 32-bit ones, and the one that programs make to put
 * marks into a trace. A call begins after whoever may deny it (seccomp, a
 * tracer) and ends with the work of the exit.
 */
#include <linux/minmax.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "probe.h"

static_assert(NR_syscalls <= 512 && NR_syscalls <= KUTRACE_USER_CALL);

#define UNKNOWN	(KUTRACE_UNKNOWN_CALL - KUTRACE_SYSCALL)

#ifdef CONFIG_IA32_EMULATION
static notrace noinline void kutrace_enter32(struct pt_regs *regs, long id)
{
	unsigned int nr = id + KUTRACE_SYSCALL32 - KUTRACE_SYSCALL;

	if (id < 0 || id >= IA32_NR_syscalls)
		nr = UNKNOWN;
	kutrace_guarded(kutrace_tell(syscall)(regs->bx, nr));
}
#endif

static void notrace kutrace_sys_enter(void *data, struct pt_regs *regs, long id)
{
#ifdef CONFIG_IA32_EMULATION
	if (unlikely(current_thread_info()->status & TS_COMPAT)) {
		kutrace_enter32(regs, id);
		return;
	}
#endif
	if (unlikely((unsigned long)id >= NR_syscalls)) {
		/* That is told of when it returns. */
		if (id == KUTRACE_USER_CALL)
			return;
		id = UNKNOWN;
	}
	kutrace_guarded(kutrace_tell(syscall)(regs->di, id));
}

/*
 * The call of programs with marks. The kernel has no such call, has said so and
 * is about to return: what is put in the place of its answer the program gets.
 * What is not in memory is not read, since preemption may be off.
 */
static notrace noinline void kutrace_answer(struct pt_regs *regs)
{
	u64 words[KUTRACE_USER_WORDS] = { regs->si };
	unsigned long command = regs->di;

	if (min(command, ~command) == KUTRACE_INSERT_MANY &&
	    copy_from_user_nofault(words, (void __user *)regs->si, sizeof(words))) {
		regs->ax = -EFAULT;
		return;
	}
	kutrace_guarded(regs->ax = kutrace_told->ops.user(command, words));
}

static void notrace kutrace_sys_exit(void *data, struct pt_regs *regs, long ret)
{
	if (unlikely(regs->orig_ax == KUTRACE_USER_CALL) && !in_ia32_syscall()) {
		kutrace_answer(regs);
		return;
	}
	kutrace_guarded(kutrace_tell(syscall_return)(ret));
}

/* The return first: a call is not to be seen without one. */
struct kutrace_probe kutrace_call_probes[] = {
	{ "sys_exit", kutrace_sys_exit },
	{ "sys_enter", kutrace_sys_enter },
	{ }
};
