// SPDX-License-Identifier: GPL-2.0
/*
 * Entries and exits of KVM's virtual CPUs, with the reasons, and wakeups of
 * those that were halted: from KVM's tracepoints, so in any kernel, whichever
 * the source. While off there is no probe.
 *
 * KVM is mostly a module, which may come and go while a trace is recorded. The
 * kernel notifies of each module with tracepoints, at once of those that are
 * loaded, and of their unloading before it; it makes one call at a time.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "guests.h"

#if IS_ENABLED(CONFIG_KVM) && defined(CONFIG_TRACEPOINTS) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)

#include <linux/kvm_host.h>
#include <asm/asm.h>
#include <asm/svm.h>
#include <asm/vmx.h>

/* Numbers of ../format/src/abi/table.rs. */
enum { GUEST_ENTER = 0x221, GUEST_EXIT = 0x222, GUEST_WAKE = 0x226 };

/* GuestExit of ../format/src/abi/guest.rs, and the bits of a wakeup. */
#define REASON_UNKNOWN	0xffffU
#define ISA_SHIFT	16
#define ENTRY_FAILED	BIT(31)
#define WAKE_SLEPT	BIT(0)
#define WAKE_HAS_WORK	BIT(1)

/* As KVM's tracepoints call them. */
enum { ISA_VMX = 1, ISA_SVM = 2 };

static const struct kutrace_table *kutrace_guests_told;

/* Until 6.12 a tracepoint calls its probes with preemption off. */
static void kutrace_guest_says(unsigned int event, u32 value)
{
	preempt_disable_notrace();
	kutrace_guests_told->ops.value(event, value);
	preempt_enable_notrace();
}

/*
 * The start of what struct vcpu_svm of kvm-amd has after its struct kvm_vcpu.
 * No header has that, but all kernels have this start since 5.12. It can be
 * verified: it has the address of a page, and the same page's physical address.
 */
struct kutrace_vcpu_svm {
	unsigned long vmcb;
	unsigned long first;
	unsigned long first_pa;
};

/* A physical address may have the encryption bit above these bits. */
#define PA_MASK GENMASK_ULL(39, PAGE_SHIFT)

static u32 kutrace_reason_svm(const struct kvm_vcpu *vcpu)
{
	const struct kutrace_vcpu_svm *svm = (const void *)(vcpu + 1);
	unsigned long vmcb, first, pa;
	u32 code;

	__get_kernel_nofault(&vmcb, &svm->vmcb, unsigned long, unknown);
	__get_kernel_nofault(&first, &svm->first, unsigned long, unknown);
	__get_kernel_nofault(&pa, &svm->first_pa, unsigned long, unknown);
	if (!virt_addr_valid(first) || !virt_addr_valid(vmcb) || !PAGE_ALIGNED(vmcb) ||
	    (__pa(first) ^ pa) & PA_MASK)
		return REASON_UNKNOWN;
	__get_kernel_nofault(&code, &((const struct vmcb *)vmcb)->control.exit_code, u32, unknown);
	/* The guest's state was refused, and nothing of it ran. */
	if (code == (u32)SVM_EXIT_ERR)
		return ENTRY_FAILED;
	return code < REASON_UNKNOWN ? code : REASON_UNKNOWN;
unknown:
	return REASON_UNKNOWN;
}

/* The VMCS of the guest that was left is still the processor's current one. */
static u32 kutrace_reason_vmx(void)
{
	unsigned long reason = 0;
	bool failed = true;

	asm volatile("1:	vmread %[field], %[reason]\n"
		     "	setna %[failed]\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : [reason] "+r" (reason), [failed] "+qm" (failed)
		     : [field] "r" ((unsigned long)VM_EXIT_REASON)
		     : "cc");
	if (failed)
		return REASON_UNKNOWN;
	return (reason & 0xffff) | (reason & VMX_EXIT_REASONS_FAILED_VMENTRY);
}

static u32 kutrace_reason(const struct kvm_vcpu *vcpu, u32 isa)
{
	switch (isa) {
	case ISA_VMX:
		return isa << ISA_SHIFT | kutrace_reason_vmx();
	case ISA_SVM:
		return isa << ISA_SHIFT | kutrace_reason_svm(vcpu);
	default:
		return REASON_UNKNOWN;
	}
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
static void notrace kutrace_kvm_entry(void *data, struct kvm_vcpu *vcpu, bool exits_at_once)
#else
static void notrace kutrace_kvm_entry(void *data, struct kvm_vcpu *vcpu)
#endif
{
	kutrace_guest_says(GUEST_ENTER, vcpu->vcpu_id);
}

static void notrace kutrace_kvm_exit(void *data, struct kvm_vcpu *vcpu, u32 isa)
{
	kutrace_guest_says(GUEST_EXIT, kutrace_reason(vcpu, isa));
}

static void notrace kutrace_kvm_vcpu_wakeup(void *data, u64 ns, bool waited, bool valid)
{
	kutrace_guest_says(GUEST_WAKE, (waited ? WAKE_SLEPT : 0) | (valid ? WAKE_HAS_WORK : 0));
}

static struct {
	const char *name;
	void *function;
	struct tracepoint *on;
} kutrace_guest_probes[] = {
	{ "kvm_entry", kutrace_kvm_entry },
	{ "kvm_exit", kutrace_kvm_exit },
	{ "kvm_vcpu_wakeup", kutrace_kvm_vcpu_wakeup },
};

static int kutrace_guests_failed;

static void kutrace_guest_found(struct tracepoint *tracepoint, void *unused)
{
	size_t n;
	int ret;

	for (n = 0; n < ARRAY_SIZE(kutrace_guest_probes); n++) {
		if (kutrace_guest_probes[n].on || strcmp(kutrace_guest_probes[n].name, tracepoint->name))
			continue;
		ret = tracepoint_probe_register(tracepoint, kutrace_guest_probes[n].function, NULL);
		if (ret)
			kutrace_guests_failed = ret;
		else
			kutrace_guest_probes[n].on = tracepoint;
	}
}

static void kutrace_guest_gone(struct tracepoint *tracepoint, void *unused)
{
	size_t n;

	for (n = 0; n < ARRAY_SIZE(kutrace_guest_probes); n++) {
		if (kutrace_guest_probes[n].on != tracepoint)
			continue;
		tracepoint_probe_unregister(tracepoint, kutrace_guest_probes[n].function, NULL);
		kutrace_guest_probes[n].on = NULL;
	}
}

#ifdef CONFIG_MODULES
static int kutrace_guest_module(struct notifier_block *block, unsigned long action, void *data)
{
	const struct tp_module *with = data;
	unsigned int n;

	for (n = 0; n < with->mod->num_tracepoints; n++) {
		struct tracepoint *tracepoint = tracepoint_ptr_deref(&with->mod->tracepoints_ptrs[n]);

		if (action == MODULE_STATE_COMING)
			kutrace_guest_found(tracepoint, NULL);
		else if (action == MODULE_STATE_GOING)
			kutrace_guest_gone(tracepoint, NULL);
	}
	return NOTIFY_OK;
}

static struct notifier_block kutrace_guest_modules = {
	.notifier_call = kutrace_guest_module,
};
#endif

int kutrace_guests_begin(const struct kutrace_table *table)
{
	int ret = 0;

	kutrace_guests_told = table;
	kutrace_guests_failed = 0;
	for_each_kernel_tracepoint(kutrace_guest_found, NULL);
#ifdef CONFIG_MODULES
	ret = register_tracepoint_module_notifier(&kutrace_guest_modules);
#endif
	ret = ret ?: kutrace_guests_failed;
	if (ret)
		kutrace_guests_end();
	return ret;
}

void kutrace_guests_end(void)
{
	if (!kutrace_guests_told)
		return;
#ifdef CONFIG_MODULES
	/*
	 * Fails only if it is not registered, and notifies of the end of all
	 * modules that are loaded.
	 */
	unregister_tracepoint_module_notifier(&kutrace_guest_modules);
#endif
	for_each_kernel_tracepoint(kutrace_guest_gone, NULL);
	tracepoint_synchronize_unregister();
	kutrace_guests_told = NULL;
}

#else /* without KVM there are no guests */

int kutrace_guests_begin(const struct kutrace_table *table)
{
	return 0;
}

void kutrace_guests_end(void)
{
}
#endif
