// SPDX-License-Identifier: GPL-2.0
/*
 * The interrupts of Hyper-V, of its timer and of its devices, which come
 * without a tracepoint: an fprobe encloses the function that handles each.
 * There is none on other machines, nor while tracing is off.
 */
#include <linux/fprobe.h>
#include <asm/hypervisor.h>
#include <asm/irq_vectors.h>
#include <asm/ptrace.h>

#include "probe.h"

#ifndef HYPERV_STIMER0_VECTOR
/* Only a kernel that can be Hyper-V's guest has a name for it. */
#define HYPERV_STIMER0_VECTOR	0xed
#endif

/* The handlers of an fprobe have had several forms. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define ARGUMENTS	struct fprobe *probe, unsigned long ip, unsigned long to, \
			struct ftrace_regs *regs, void *data
#define HANDLER(function)	(function)
#define first_of(regs)	ftrace_regs_get_argument(regs, 0)
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define ARGUMENTS	struct fprobe *probe, unsigned long ip, unsigned long to, \
			struct pt_regs *regs, void *data
#define HANDLER(function)	(function)
#define first_of(regs)	regs_get_kernel_argument(regs, 0)
#else
/*
 * Older ones, and those that distributions made of them, may pass more after
 * @regs, and may ignore the value.
 */
#define ARGUMENTS	struct fprobe *probe, unsigned long ip, struct pt_regs *regs
#define HANDLER(function)	((void *)(function))
#define first_of(regs)	regs_get_kernel_argument(regs, 0)
#endif

static void notrace kutrace_begins(u8 vector)
{
	kutrace_tell(event)(KUTRACE_IRQ + vector);
}

static void notrace kutrace_ends(u8 vector)
{
	kutrace_tell(event)(KUTRACE_IRQ_RETURN + vector);
}

/* All are called with interrupts off. */
static int notrace kutrace_devices_entry(ARGUMENTS)
{
	kutrace_begins(HYPERVISOR_CALLBACK_VECTOR);
	return 0;
}

static void notrace kutrace_devices_exit(ARGUMENTS)
{
	kutrace_ends(HYPERVISOR_CALLBACK_VECTOR);
}

static int notrace kutrace_timer_entry(ARGUMENTS)
{
	/* The registers of the interrupted code. */
	struct pt_regs *at = (struct pt_regs *)first_of(regs);

	kutrace_begins(HYPERV_STIMER0_VECTOR);
	kutrace_tell(address)(user_mode(at) ? KUTRACE_PC_USER : KUTRACE_PC_KERNEL,
			      instruction_pointer(at));
	kutrace_frequency_tick();
	return 0;
}

static void notrace kutrace_timer_exit(ARGUMENTS)
{
	kutrace_ends(HYPERV_STIMER0_VECTOR);
}

static struct kutrace_handler {
	const char *name;
	struct fprobe calls;
	struct fprobe probe;
	bool is_on;
} kutrace_handlers[] = {
	{
		"__sysvec_hyperv_callback",
		{
			.entry_handler = HANDLER(kutrace_devices_entry),
			.exit_handler = HANDLER(kutrace_devices_exit),
		},
	},
	{
		"__sysvec_hyperv_stimer0",
		{
			.entry_handler = HANDLER(kutrace_timer_entry),
			.exit_handler = HANDLER(kutrace_timer_exit),
		},
	},
};

#define for_each_handler(handler)					\
	for (handler = kutrace_handlers;				\
	     handler < kutrace_handlers + ARRAY_SIZE(kutrace_handlers);	\
	     handler++)

static bool kutrace_encloses;

static int kutrace_enclose(void)
{
	struct kutrace_handler *handler;
	int ret;

	for_each_handler(handler) {
		/* An fprobe that was registered before points to freed memory. */
		handler->probe = handler->calls;
		ret = register_fprobe_syms(&handler->probe, &handler->name, 1);
		if (ret)
			return ret;
		handler->is_on = true;
	}
	return 0;
}

int kutrace_hypervisor_begin(void)
{
	return kutrace_encloses ? kutrace_enclose() : 0;
}

/* A function that is under way may still be in its last instructions. */
void kutrace_hypervisor_end(void)
{
	struct kutrace_handler *handler;

	for_each_handler(handler) {
		if (handler->is_on)
			unregister_fprobe(&handler->probe);
		handler->is_on = false;
	}
}

/* Tries once whether the kernel lets the handlers be enclosed. */
void kutrace_hypervisor_connect(void)
{
	kutrace_encloses = x86_hyper_type == X86_HYPER_MS_HYPERV && !kutrace_enclose();
	kutrace_hypervisor_end();
}

/* Xen's interrupts are not reported, nor are Hyper-V's if they cannot be enclosed. */
bool kutrace_hypervisor_is_silent(void)
{
	return x86_hyper_type == X86_HYPER_XEN_PV || x86_hyper_type == X86_HYPER_XEN_HVM ||
	       (x86_hyper_type == X86_HYPER_MS_HYPERV && !kutrace_encloses);
}
