// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts by their vectors, the names of device interrupts, the senders of
 * interrupts, samples of the code that ticks interrupt, and softirqs.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/hw_irq.h>
#include <asm/irq_regs.h>
#include <asm/irq_vectors.h>
#include <asm/irqdomain.h>
#include <asm/ptrace.h>

#include "probe.h"

#define VECTORS 256

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define irq_get_nr_irqs() nr_irqs
#endif

struct kutrace_device {
	/* The vector of the interrupt that is being handled; device interrupts do not nest. */
	u8 vector;
	/* The first handler of each vector when its name was last reported. */
	unsigned long told[VECTORS];
};
/*
 * One for each CPU, while tracing: the per-CPU memory that modules may have
 * otherwise is too small for it. A trace that begins knows no names.
 */
static struct kutrace_device __percpu *kutrace_devices;

int kutrace_devices_begin(void)
{
	kutrace_devices = alloc_percpu(struct kutrace_device);
	return kutrace_devices ? 0 : -ENOMEM;
}

/* Called when no probe runs any more. */
void kutrace_devices_end(void)
{
	free_percpu(kutrace_devices);
	kutrace_devices = NULL;
}

/*
 * The caller keeps the handlers: it has the descriptor's lock, or was called by
 * one of them.
 */
static void kutrace_name(unsigned int cpu, unsigned int vector,
			 const struct irqaction *action,
			 kutrace_op_vector_t *name)
{
	char text[KUTRACE_VECTOR_NAME] = "";

	for (; action; action = action->next) {
		if (text[0])
			strlcat(text, ", ", sizeof(text));
		strlcat(text, action->name ?: "?", sizeof(text));
	}
	name(cpu, vector, text);
}

/* Returns the vector of an interrupt; 0 for one that comes by the vector of another. */
static u8 kutrace_vector_of(struct irq_data *irq)
{
	struct irq_cfg *cfg = irq ? irqd_cfg(irq) : NULL;

	return cfg ? cfg->vector : 0;
}

/* Distinguishes handlers, of which one may be at the address of an earlier one. */
static notrace unsigned long kutrace_handler(const struct irqaction *first)
{
	return (unsigned long)first ^ (unsigned long)first->name ^
	       (unsigned long)first->dev_id;
}

/* Called when the vector has other handlers than when it was named. */
static notrace noinline void kutrace_name_again(u8 vector,
						const struct irqaction *first)
{
	__this_cpu_write(kutrace_devices->told[vector], kutrace_handler(first));
	kutrace_name(smp_processor_id(), vector, first, kutrace_told->ops.vector);
}

/*
 * __handle_irq_event_percpu() calls this, with interrupts off. Until it is done
 * __free_irq() waits in __synchronize_hardirq(), so neither the descriptor nor
 * any of its handlers is freed.
 */
static void notrace kutrace_irq_handler_entry(void *data, int irq,
					      struct irqaction *action)
{
	struct irq_data *vectored = irq_domain_get_irq_data(x86_vector_domain, irq);
	u8 vector = kutrace_vector_of(vectored);
	const struct irqaction *first = action;

	if (vectored)
		first = irq_data_to_desc(vectored)->action;
	if (__this_cpu_read(kutrace_devices->told[vector]) != kutrace_handler(first))
		kutrace_name_again(vector, first);
	__this_cpu_write(kutrace_devices->vector, vector);
	kutrace_guarded(kutrace_tell(event)(KUTRACE_IRQ + vector));
}

static void notrace kutrace_irq_handler_exit(void *data, int irq,
					     struct irqaction *action, int ret)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_IRQ_RETURN +
					    __this_cpu_read(kutrace_devices->vector)));
}

void kutrace_each_device_vector(kutrace_op_vector_t *each)
{
	unsigned int irq;

	for (irq = 0; irq < irq_get_nr_irqs(); irq++) {
		struct irq_data *data;
		struct irq_desc *desc;
		unsigned long flags;

		/*
		 * RCU keeps the descriptor, its lock the handlers; and while
		 * there are handlers, nothing frees what else the interrupt
		 * has.
		 */
		rcu_read_lock();
		data = irq_get_irq_data(irq);
		if (data) {
			desc = irq_data_to_desc(data);
			raw_spin_lock_irqsave(&desc->lock, flags);
			data = desc->action ? irq_domain_get_irq_data(x86_vector_domain, irq) : NULL;
			if (kutrace_vector_of(data))
				kutrace_name(cpumask_first(irq_data_get_effective_affinity_mask(data)),
					     kutrace_vector_of(data), desc->action, each);
			raw_spin_unlock_irqrestore(&desc->lock, flags);
		}
		rcu_read_unlock();
	}
}

/* Interrupts of the machine itself. */
static void notrace kutrace_vector_entry(void *data, int vector)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_IRQ + (u8)vector));
}

static void notrace kutrace_vector_exit(void *data, int vector)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_IRQ_RETURN + (u8)vector));
}

static void notrace kutrace_local_timer_entry(void *data, int vector)
{
	struct pt_regs *regs = get_irq_regs();
	unsigned int sample = user_mode(regs) ? KUTRACE_PC_USER : KUTRACE_PC_KERNEL;

	kutrace_guarded(kutrace_tell(event)(KUTRACE_IRQ + (u8)vector);
			kutrace_tell(address)(sample, instruction_pointer(regs)));
	kutrace_frequency_tick();
}

static void notrace kutrace_softirq_entry(void *data, unsigned int nr)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_SOFTIRQ + nr));
}

static void notrace kutrace_softirq_exit(void *data, unsigned int nr)
{
	kutrace_guarded(kutrace_tell(event)(KUTRACE_SOFTIRQ_RETURN + nr));
}

/*
 * Without a callback, the interrupt is sent for the scheduler; to the CPU
 * itself, for work that waits for an interrupt; otherwise for a function call.
 */
static void notrace kutrace_ipi_send_cpu(void *data, unsigned int cpu,
					 unsigned long callsite, void *callback)
{
	unsigned int vector = RESCHEDULE_VECTOR;

	if (callback && cpu == raw_smp_processor_id())
		vector = IRQ_WORK_VECTOR;
	else if (callback)
		vector = CALL_FUNCTION_SINGLE_VECTOR;
	kutrace_guarded(kutrace_tell(value)(KUTRACE_IPI, cpu | vector << 16));
}

static void notrace kutrace_ipi_send_cpumask(void *data,
					     const struct cpumask *mask,
					     unsigned long callsite,
					     void *callback)
{
	unsigned int cpu;

	kutrace_guarded(for_each_cpu(cpu, mask)
				kutrace_tell(value)(KUTRACE_IPI, cpu |
						    CALL_FUNCTION_VECTOR << 16));
}

#define BOTH(vector)							\
	{ #vector "_exit", kutrace_vector_exit },			\
	{ #vector "_entry", kutrace_vector_entry }

struct kutrace_probe kutrace_interrupt_probes[] = {
	{ "irq_handler_exit", kutrace_irq_handler_exit },
	{ "irq_handler_entry", kutrace_irq_handler_entry },
	{ "local_timer_exit", kutrace_vector_exit },
	{ "local_timer_entry", kutrace_local_timer_entry },
	BOTH(reschedule),
	BOTH(call_function),
	BOTH(call_function_single),
	BOTH(irq_work),
	BOTH(x86_platform_ipi),
	BOTH(error_apic),
	BOTH(spurious_apic),
	BOTH(thermal_apic),
	BOTH(threshold_apic),
	BOTH(deferred_error_apic),
	{ "softirq_exit", kutrace_softirq_exit },
	{ "softirq_entry", kutrace_softirq_entry },
	{ "ipi_send_cpu", kutrace_ipi_send_cpu },
	{ "ipi_send_cpumask", kutrace_ipi_send_cpumask },
	{ }
};
