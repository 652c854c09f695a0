// SPDX-License-Identifier: GPL-2.0
/*
 * Things that Rust for Linux 6.12 cannot express: per-CPU data, module
 * parameters, inline functions of the kernel. Each has the version that makes
 * it unnecessary.
 */
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <asm/syscall.h>
#include <asm/tsc.h>

#include "shim.h"
#include "source/source.h"

MODULE_AUTHOR("KUtrace in Rust developers");
MODULE_DESCRIPTION("KUtrace recorder");

/* Until 6.3 the threads that io_uring creates in a process are the only user workers. */
#ifndef PF_USER_WORKER
#define PF_USER_WORKER PF_IO_WORKER
#endif

/* Remove when: the kernel crate has per-CPU statics. */
DEFINE_PER_CPU_ALIGNED(struct kutrace_cpu, kutrace_cpu);

struct kutrace_cpu *kutrace_shim_cpu(u32 cpu)
{
	return per_cpu_ptr(&kutrace_cpu, cpu);
}

/*
 * Offsets of the task's fields that the Rust side reads, as symbols that are
 * numbers: code that is compiled once is then linked into a module for any
 * kernel.
 */
#define kutrace_field(name, field)					\
	asm volatile(".globl kutrace_task_" #name "\n\t"		\
		     ".set kutrace_task_" #name ", %c0"			\
		     :: "i" (offsetof(struct task_struct, field)))

static void noinline __used kutrace_fields(void)
{
	static_assert(sizeof(pid_t) == 4);
	static_assert(sizeof_field(struct task_struct, start_time) == 8);
	static_assert(sizeof_field(struct task_struct, comm) == 16);
	kutrace_field(pid, pid);
	kutrace_field(tgid, tgid);
	kutrace_field(born, start_time);
	kutrace_field(comm, comm);
}

u32 kutrace_shim_cpus(void)
{
	return nr_cpu_ids;
}

bool kutrace_shim_possible(u32 cpu)
{
	return cpu_possible(cpu);
}

bool kutrace_shim_online(u32 cpu)
{
	return cpu_online(cpu);
}

/*
 * Has a CPU make a call, in an interrupt, and does not wait. False if the CPU
 * has not yet taken its interrupt for the previous call, or is offline; a CPU
 * that goes offline makes the call before that. Remove when: the kernel crate
 * has smp_call_function_single_async().
 */
static DEFINE_PER_CPU(call_single_data_t, kutrace_csd);

bool kutrace_shim_call(u32 cpu, void (*call)(void *))
{
	call_single_data_t *csd = per_cpu_ptr(&kutrace_csd, cpu);

	if (smp_load_acquire(&csd->node.u_flags) & CSD_FLAG_LOCK)
		return false;
	INIT_CSD(csd, call, NULL);
	return !smp_call_function_single_async(cpu, csd);
}

/*
 * While it is held no CPU comes online or goes offline. Remove when: the kernel
 * crate has cpus_read_lock().
 */
bool kutrace_shim_try_hold_cpus(void)
{
	return cpus_read_trylock();
}

void kutrace_shim_release_cpus(void)
{
	cpus_read_unlock();
}

/*
 * Sleeps for a moment; false if the process is being killed. Remove when: the
 * kernel crate has fsleep() (6.17) and fatal_signal_pending().
 */
bool kutrace_shim_pause(void)
{
	usleep_range(10, 100);
	return !fatal_signal_pending(current);
}

/*
 * A grace period that is polled instead of slept for: a CPU that is stuck must
 * not block a command forever. Remove when: the kernel crate polls grace
 * periods.
 */
unsigned long kutrace_shim_grace(bool in_haste)
{
	return in_haste ? start_poll_synchronize_rcu_expedited() :
			  start_poll_synchronize_rcu();
}

bool kutrace_shim_is_over(unsigned long grace)
{
	return poll_state_synchronize_rcu(grace);
}

/* Remove when: the module! macro takes parameters (6.17). */
static unsigned int tracemb = 20;
module_param(tracemb, uint, 0444);
MODULE_PARM_DESC(tracemb, "Trace buffer in MiB, 1 to 65535 (default 20)");

/* Whether to start when loaded. Remove when: the module! macro takes strings. */
static char *go = "";
module_param(go, charp, 0444);
MODULE_PARM_DESC(go, "Start recording when loaded: wrap, to keep the newest (default not)");

int kutrace_shim_go(void)
{
	if (!*go)
		return 0;
	if (!strcmp(go, "wrap"))
		return 1;
	pr_err("kutrace: go=%s: wrap or nothing is meant\n", go);
	return -EINVAL;
}

static unsigned int maxmb = 256;
module_param(maxmb, uint, 0444);
MODULE_PARM_DESC(maxmb, "MiB that who lacks CAP_SYS_RESOURCE may ask for (default 256, never less than tracemb)");

bool kutrace_shim_may_have(size_t bytes)
{
	return bytes <= (size_t)max(maxmb, tracemb) << 20 ||
	       capable(CAP_SYS_RESOURCE);
}

size_t kutrace_shim_pool_bytes(void)
{
	return (size_t)clamp(tracemb, 1u, 65535u) << 20;
}

/*
 * Limits for insertions by programs into the trace. Remove when: the module!
 * macro takes parameters (6.17).
 */
unsigned int kutrace_shim_namerate = 1000;
module_param_named(namerate, kutrace_shim_namerate, uint, 0444);
MODULE_PARM_DESC(namerate, "Names that programs may give, a second on each CPU, 0 for any number (default 1000)");
unsigned int kutrace_shim_markrate = 1000000;
module_param_named(markrate, kutrace_shim_markrate, uint, 0444);
MODULE_PARM_DESC(markrate, "Marks that programs may set, a second on each CPU, 0 for any number (default 1000000)");

/*
 * Returns zeroed memory, charged to the caller's memory control group; NULL
 * rather than the last eighth of the memory that is available. Remove when: the
 * kernel crate's VVec takes flags for accounting.
 */
void *kutrace_shim_alloc(size_t bytes)
{
	if ((long)(bytes >> PAGE_SHIFT) > si_mem_available() / 8 * 7)
		return NULL;
	return __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO |
			 __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

void kutrace_shim_free(void *memory)
{
	vfree(memory);
}

/* Returns the calling process, referenced. Remove when: the kernel crate has Pid. */
struct pid *kutrace_shim_process(void)
{
	return get_pid(task_tgid(current));
}

/* Returns its number for the caller; 0 for NULL. */
u32 kutrace_shim_process_number(struct pid *process)
{
	return pid_vnr(process);
}

void kutrace_shim_process_put(struct pid *process)
{
	put_pid(process);
}

/*
 * Returns whether a task that a hook was given still has its kernel stack: a
 * task that has ended has given it back in finish_task_switch(), and can still
 * be renamed by comm_write(), with interrupts on. The running task has its
 * stack. With interrupts off another task is given by __schedule(), as the next
 * to run, or by wake_up_new_task(), before its run queue is unlocked and it can
 * run.
 */
static bool kutrace_has_stack(struct task_struct *task)
{
	return task == current || irqs_disabled();
}

/*
 * Returns the number of the system call that a task is in, plus 0x400 for a
 * 32-bit one, or 0xffff for none. The entry code leaves -1 for any other way
 * into the kernel. 0xfffe stands for a kernel thread: one that has never been
 * in user mode has no code segment there. Remove when: bindings cover
 * task_pt_regs().
 */
u16 kutrace_shim_open_call(struct task_struct *task)
{
	static_assert(NR_syscalls <= 512);
	struct pt_regs *regs;
	long nr;

	if (task->flags & (PF_KTHREAD | PF_USER_WORKER))
		return 0xfffe;
	if (!kutrace_has_stack(task))
		return 0xffff;
	regs = task_pt_regs(task);
	if (!regs->cs)
		return 0xfffe;
	/*
	 * From the entry code on, a call's value is -ENOSYS until it returns:
	 * this call has returned. A thread that was never switched away from
	 * may be new: it has the value 0 in the call that created it.
	 */
	if (regs->ax != -ENOSYS && task->nvcsw + task->nivcsw)
		return 0xffff;
	nr = regs->orig_ax;
#ifdef CONFIG_IA32_EMULATION
	if (task_thread_info(task)->status & TS_COMPAT)
		return nr >= 0 && nr < IA32_NR_syscalls ? nr + 0x400 : 0xffff;
#endif
	return nr >= 0 && nr < NR_syscalls ? nr : 0xffff;
}

/*
 * Returns the number of the 64-bit system call that the running task returns
 * from, or 0x1ff, which no call has. Remove when: bindings cover
 * current_pt_regs().
 */
u32 kutrace_shim_returning(void)
{
	static_assert(NR_syscalls <= 0x1ff);
	long nr = current_pt_regs()->orig_ax;

	return !in_ia32_syscall() && nr >= 0 && nr < NR_syscalls ? nr : 0x1ff;
}

/*
 * Returns the low 16 bits of the id of a task's control group of the cpu
 * controller, 0 for the root. Preemption is off: RCU keeps the group while the
 * task is moved to another. A task that has ended keeps its groups until the
 * last reference to it is gone, and the caller holds it. Where RCU does not
 * watch, the task is an idle one, which stays in the root. Remove when:
 * bindings cover task_css().
 */
u16 kutrace_shim_group(struct task_struct *task)
{
#ifdef CONFIG_CGROUP_SCHED
	struct cgroup_subsys_state *css = task_css_check(task, cpu_cgrp_id, true);

	return css->parent ? css->id : 0;
#else
	return 0;
#endif
}

/*
 * Returns the low half of the id of a task's control group of version 2, which
 * is the inode of its directory. The groups are kept as in
 * kutrace_shim_group(). Remove when: bindings cover task_dfl_cgroup().
 */
u32 kutrace_shim_cgroup(struct task_struct *task)
{
	u32 id = 0;

#ifdef CONFIG_CGROUPS
	rcu_read_lock();
	id = cgroup_id(task_dfl_cgroup(task));
	rcu_read_unlock();
#endif
	return id;
}

/*
 * Reads three clocks at one moment, and tries again in case something came
 * between the readings. Remove when: the kernel crate reads CLOCK_REALTIME.
 */
void kutrace_shim_moment(struct kutrace_moment *moment)
{
	u64 best = U64_MAX;
	int tries;

	for (tries = 0; tries < 20; tries++) {
		u64 before, after, realtime, monotonic;
		unsigned long flags;

		local_irq_save(flags);
		before = rdtsc_ordered();
		realtime = ktime_get_real_ns();
		monotonic = ktime_get_ns();
		after = rdtsc_ordered();
		local_irq_restore(flags);
		if (after - before >= best)
			continue;
		best = after - before;
		moment->tsc = before + best / 2;
		moment->realtime_ns = realtime;
		moment->monotonic_ns = monotonic;
	}
}

/*
 * Describes the machine, so that the reader of a memory image can follow
 * addresses from @page, which is one of the module's. Remove when: the kernel
 * crate has physical addresses, page tables and utsname().
 */
void kutrace_shim_machine(struct kutrace_machine *machine, const void *page)
{
	const struct new_utsname *name = init_utsname();
	const u64 *tables = __va(read_cr3_pa());

	static_assert(PTRS_PER_PGD == 2 * ARRAY_SIZE(machine->tables));
	machine->physical = (u64)vmalloc_to_pfn(page) << PAGE_SHIFT;
	machine->levels = pgtable_l5_enabled() ? 5 : 4;
	machine->mask = PTE_PFN_MASK;
	memcpy(machine->tables, tables + ARRAY_SIZE(machine->tables),
	       sizeof(machine->tables));
	machine->offsets = (u64)__per_cpu_offset;
	machine->states = (__force u64)&kutrace_cpu;
	snprintf(machine->kernel, sizeof(machine->kernel), "%s %s",
		 name->release, name->version);
	strscpy_pad(machine->host, name->nodename, sizeof(machine->host));
	strscpy_pad(machine->model, boot_cpu_data.x86_model_id,
		    sizeof(machine->model));
}

/*
 * Has perf count hardware event @config on a CPU, in addition to whatever it
 * counts there, if the CPU is online. A pinned event counts always, or fails.
 * Remove when: bindings cover linux/perf_event.h.
 */
int kutrace_shim_counter_open(u32 cpu, u64 config,
			      struct kutrace_counter *counter)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.pinned = 1,
	};
	struct perf_event *event = NULL;

	/* Xen lets no PV guest execute rdpmc. */
	if (cpu_feature_enabled(X86_FEATURE_XENPV))
		return -EOPNOTSUPP;
	cpus_read_lock();
	if (cpu_online(cpu))
		event = perf_event_create_kernel_counter(&attr, cpu, NULL,
							 NULL, NULL);
	cpus_read_unlock();

	switch (PTR_ERR_OR_ZERO(event)) {
	case 0:
		break;
	case -ENOMEM:
		return -ENOMEM;
	case -EBUSY:
		return -ENOSPC;
	default:
		return -EOPNOTSUPP;
	}
	if (!event)
		return 0;
	if (READ_ONCE(event->state) == PERF_EVENT_STATE_ERROR) {
		perf_event_release_kernel(event);
		return -ENOSPC;
	}
	counter->event = event;
	counter->index = &event->hw.event_base_rdpmc;
	return 0;
}

void kutrace_shim_counter_close(struct kutrace_counter *counter)
{
	if (counter->event)
		perf_event_release_kernel(counter->event);
}

/*
 * Finds the next vector for a device interrupt after @vector->which, if there
 * is one. The control lock is held.
 */
static struct kutrace_vector *kutrace_next;
static u32 kutrace_after;

static void kutrace_look_at_vector(unsigned int cpu, unsigned int vector,
				   const char *name)
{
	u32 which = (cpu + 1) << 16 | vector;

	if (which <= kutrace_after ||
	    (kutrace_next->which && kutrace_next->which < which))
		return;
	kutrace_next->which = which;
	strscpy_pad(kutrace_next->name, name, sizeof(kutrace_next->name));
}

void kutrace_shim_next_vector(struct kutrace_vector *vector)
{
	kutrace_after = vector->which;
	kutrace_next = vector;
	vector->which = 0;
	kutrace_source_each_vector(kutrace_look_at_vector);
}

/* Prints the counts of a recorder that counts, since the reset. */
void kutrace_shim_print_counts(u64 calls, u64 recorded, u64 lost,
			       u64 overwritten, u64 outside)
{
	pr_info("kutrace: count: calls=%llu recorded=%llu lost=%llu overwritten=%llu outside=%llu\n",
		calls, recorded, lost, overwritten, outside);
}

/* Remove when: bindings cover asm/tsc.h. */
u32 kutrace_shim_tsc_khz(void)
{
	return tsc_khz;
}

bool kutrace_shim_tsc_unstable(void)
{
	return check_tsc_unstable();
}
