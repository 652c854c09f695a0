// SPDX-License-Identifier: GPL-2.0
/*
 * System calls: 64-bit ones and 32-bit ones. A call begins after seccomp or a
 * tracer, which may deny it, and ends with the work of the exit.
 */
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "probe.h"

static_assert(NR_syscalls <= 512);

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
	if (unlikely((unsigned long)id >= NR_syscalls))
		id = UNKNOWN;
	kutrace_guarded(kutrace_tell(syscall)(regs->di, id));
}

static void notrace kutrace_sys_exit(void *data, struct pt_regs *regs, long ret)
{
	kutrace_guarded(kutrace_tell(syscall_return)(ret));
}

/* The return comes first: no call is to be seen without one. */
struct kutrace_probe kutrace_call_probes[] = {
	{ "sys_exit", kutrace_sys_exit },
	{ "sys_enter", kutrace_sys_enter },
	{ }
};
