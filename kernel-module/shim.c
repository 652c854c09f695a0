// SPDX-License-Identifier: GPL-2.0
/*
 * What Rust for Linux 6.12 cannot say: per-CPU data, module parameters, the
 * misc device, inline functions of the kernel. Each with the version that
 * makes it unnecessary.
 */
#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/syscall.h>
#include <asm/tsc.h>

#include "shim.h"

/* Remove when: the kernel crate has per-CPU statics. */
DEFINE_PER_CPU_ALIGNED(struct kutrace_cpu, kutrace_cpu);

struct kutrace_cpu *kutrace_shim_cpu(u32 cpu)
{
	return per_cpu_ptr(&kutrace_cpu, cpu);
}

u32 kutrace_shim_cpus(void)
{
	return nr_cpu_ids;
}

bool kutrace_shim_possible(u32 cpu)
{
	return cpu_possible(cpu);
}

/* Calls on every online CPU, in an interrupt, and waits. Remove when: the kernel crate has on_each_cpu(). */
void kutrace_shim_on_each_cpu(void (*call)(void *), void *argument)
{
	on_each_cpu(call, argument, 1);
}

/* Remove when: the kernel crate has fsleep() (6.17). */
void kutrace_shim_pause(void)
{
	usleep_range(10, 100);
}

/* Remove when: the module! macro takes parameters (6.17). */
static unsigned int tracemb = 20;
module_param(tracemb, uint, 0444);
MODULE_PARM_DESC(tracemb, "Trace buffer in MiB, 1 to 65535 (default 20)");

size_t kutrace_shim_pool_bytes(void)
{
	return (size_t)clamp(tracemb, 1u, 65535u) << 20;
}

/* The packet filter; see format/src/abi/packet.rs. Remove when: as above. */
long kutrace_shim_pktmask = 0xf;
module_param_named(pktmask, kutrace_shim_pktmask, long, 0444);
MODULE_PARM_DESC(pktmask, "Bytes of a packet's data to compare, bit n for byte n of 24; 0 no packet, -1 all packets (default 0xf)");
long kutrace_shim_pktmatch = 0xd1c517e5;
module_param_named(pktmatch, kutrace_shim_pktmatch, long, 0444);
MODULE_PARM_DESC(pktmatch, "What the exclusive or of these bytes, in words of four, must be (default 0xd1c517e5)");

/*
 * Zeroed, and fit to be mapped; NULL rather than the last eighth of the memory
 * that is available. Remove when: the kernel crate has vmalloc_user().
 */
void *kutrace_shim_alloc(size_t bytes)
{
	if ((long)(bytes >> PAGE_SHIFT) > si_mem_available() / 8 * 7)
		return NULL;
	return vmalloc_user(bytes);
}

void kutrace_shim_free(void *memory)
{
	vfree(memory);
}

/*
 * Held to exchange the pool's memory, and to map it. Not the lock of the
 * commands: a mapping is made under locks that perf takes below that one.
 */
static DEFINE_MUTEX(kutrace_mapping_lock);

void kutrace_shim_lock_mapping(void)
{
	mutex_lock(&kutrace_mapping_lock);
}

void kutrace_shim_unlock_mapping(void)
{
	mutex_unlock(&kutrace_mapping_lock);
}

/* The calling process, referenced. Remove when: the kernel crate has Pid. */
struct pid *kutrace_shim_process(void)
{
	return get_pid(task_tgid(current));
}

/* Its number for the caller; 0 for NULL. */
u32 kutrace_shim_process_number(struct pid *process)
{
	return pid_vnr(process);
}

void kutrace_shim_process_put(struct pid *process)
{
	put_pid(process);
}

/*
 * The system call a task is in, a 32-bit one plus 0x400, or 0xffff. The entry
 * code leaves -1 for whatever entered the kernel otherwise. Remove when:
 * bindings cover task_pt_regs().
 */
u16 kutrace_shim_open_call(struct task_struct *task)
{
	static_assert(NR_syscalls <= 512);
	long nr;

	if (task->flags & (PF_KTHREAD | PF_USER_WORKER))
		return 0xffff;
	nr = task_pt_regs(task)->orig_ax;
#ifdef CONFIG_IA32_EMULATION
	if (task_thread_info(task)->status & TS_COMPAT)
		return nr >= 0 && nr < IA32_NR_syscalls ? nr + 0x400 : 0xffff;
#endif
	return nr >= 0 && nr < NR_syscalls ? nr : 0xffff;
}

/*
 * One moment on three clocks, tried again while something came between the
 * readings. Remove when: the kernel crate reads CLOCK_REALTIME.
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
 * Has perf count hardware event @config on a CPU, beside whatever else it
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

/* Remove when: bindings cover asm/tsc.h. */
u32 kutrace_shim_tsc_khz(void)
{
	return tsc_khz;
}

bool kutrace_shim_tsc_unstable(void)
{
	return check_tsc_unstable();
}

/* The device. Remove when: the kernel crate has MiscDevice with mmap (6.16). */
static DEFINE_MUTEX(kutrace_control_lock);

static long kutrace_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	union kutrace_argument argument;
	long ret;

	if (_IOC_TYPE(cmd) != KUTRACE_IOC_TYPE || _IOC_SIZE(cmd) > sizeof(argument))
		return -ENOTTY;
	if (!perfmon_capable())
		return -EPERM;
	memset(&argument, 0, sizeof(argument));
	if ((_IOC_DIR(cmd) & _IOC_WRITE) &&
	    copy_from_user(&argument, (void __user *)arg, _IOC_SIZE(cmd)))
		return -EFAULT;

	mutex_lock(&kutrace_control_lock);
	ret = kutrace_control(file, cmd, &argument);
	mutex_unlock(&kutrace_control_lock);

	if (!ret && (_IOC_DIR(cmd) & _IOC_READ) &&
	    copy_to_user((void __user *)arg, &argument, _IOC_SIZE(cmd)))
		return -EFAULT;
	return ret;
}

static int kutrace_mmap(struct file *file, struct vm_area_struct *vma)
{
	void *pool;
	u64 skip;
	int ret;

	if (!perfmon_capable())
		return -EPERM;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	vm_flags_clear(vma, VM_MAYWRITE);
	mutex_lock(&kutrace_mapping_lock);
	pool = kutrace_pool(&skip);
	ret = remap_vmalloc_range(vma, pool, (skip >> PAGE_SHIFT) + vma->vm_pgoff);
	mutex_unlock(&kutrace_mapping_lock);
	return ret;
}

static int kutrace_release(struct inode *inode, struct file *file)
{
	mutex_lock(&kutrace_control_lock);
	kutrace_close(file);
	mutex_unlock(&kutrace_control_lock);
	return 0;
}

static const struct file_operations kutrace_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = kutrace_ioctl,
	.mmap = kutrace_mmap,
	.release = kutrace_release,
	.llseek = noop_llseek,
};

static struct miscdevice kutrace_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kutrace",
	.fops = &kutrace_fops,
	.mode = 0660,
};

int kutrace_shim_device_add(void)
{
	return misc_register(&kutrace_device);
}

void kutrace_shim_device_remove(void)
{
	misc_deregister(&kutrace_device);
}
