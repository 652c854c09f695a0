// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for the events that programs record themselves: /dev/kutrace_programs,
 * which any process may open and map.
 *
 * A process maps its area once, and never makes another call: recording needs
 * no system call that a filter could see, nor any privilege. The area has no
 * pages. A thread that reads an address without a page is granted the unit of
 * that address: the kernel notes thread, time and place. A child gets an area
 * of its own with the fork. If there is no room, or if a thread writes late
 * into a unit that was taken away, a page that no reader sees is there: no fault
 * of an area harms its program.
 *
 * A process never sees memory that another had: pages come zeroed, and a unit
 * that is granted again gets new ones. The kernel never reads what a process
 * writes there; a process that may control the recorder gets copies.
 *
 * Locks: faults come with the locks of an address space held, and then take the
 * lock of this file. So no user memory is touched under that lock.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../shim.h"
#include "../source/source.h"
#include "area.h"
#include "page.h"
#include "programs.h"

#define KUTRACE_NO_MORE		U32_MAX
/* Names and words: an area without a word would be worse than none. */
#define KUTRACE_LEAST		(2 * PAGE_SIZE)

/* The place of the attachment's number in the first page of an area. */
#define KUTRACE_SERIAL_AT	16
/* Read where nothing is granted: never in this trace, or not yet. */
#define KUTRACE_NO_ROOM		U64_MAX
#define KUTRACE_LATER		(U64_MAX - 1)

/* System call 1023, for kernels that do not have it. */
struct kutrace_call {
	u64 command;
	s64 answer;
	u64 words[KUTRACE_USER_WORDS];
};

struct kutrace_taken {
	u32 serial;
	u32 offset;
	/* That of a grant; 0 for everything that an ended process had. */
	u64 sequence;
};

#define KUTRACE_IOC_QUOTA	_IOW(KUTRACE_IOC_TYPE, 0x43, struct kutrace_quota)
#define KUTRACE_IOC_REFUSED	_IOWR(KUTRACE_IOC_TYPE, 0x45, struct kutrace_refused)
#define KUTRACE_IOC_TAKEN	_IOW(KUTRACE_IOC_TYPE, 0x46, struct kutrace_taken)
#define KUTRACE_IOC_CALL	_IOWR(KUTRACE_IOC_TYPE, 0x47, struct kutrace_call)

/* Protects everything below. Taken under the control lock and under the locks of mm. */
static DEFINE_MUTEX(kutrace_programs_lock);
/* Processes that have a part of this trace, by serial number; and the others. */
static LIST_HEAD(kutrace_processes);
static LIST_HEAD(kutrace_idle);
static u32 kutrace_serial;
/* Number of places of the file that are taken: the first is asked for, the second is the page's. */
static u64 kutrace_areas = 2;
static bool kutrace_recording;
/* The number of the trace, which programs see while it is recorded. */
static u32 kutrace_traces;
static bool kutrace_wraps;
static bool kutrace_streams;
/* The quota that was requested for the next trace, and the default. */
#define KUTRACE_USUAL	((struct kutrace_quota) { 4UL << 20, 64UL << 20 })
static struct kutrace_quota kutrace_asked = KUTRACE_USUAL;
/* The processes that got nothing, reported as one after all others. */
static struct kutrace_program kutrace_others = {
	.serial = KUTRACE_NO_MORE, .comm = "others",
};

/* Nothing writes there any more. */
static bool kutrace_has_ended(const struct kutrace_process *process)
{
	return !process->mapping;
}

static void kutrace_remove(struct kutrace_process *process)
{
	list_del(&process->list);
	kutrace_free_process(process);
}

void kutrace_programs_reset(bool wrap, bool stream)
{
	struct kutrace_process *process, *next;

	mutex_lock(&kutrace_programs_lock);
	list_for_each_entry_safe(process, next, &kutrace_processes, list) {
		if (kutrace_has_ended(process)) {
			kutrace_remove(process);
			continue;
		}
		kutrace_empty(process);
		list_move(&process->list, &kutrace_idle);
	}
	kutrace_wraps = wrap;
	kutrace_streams = stream;
	kutrace_quota = kutrace_asked;
	kutrace_asked = KUTRACE_USUAL;
	kutrace_others.refused = 0;
	kutrace_rate_reset();
	mutex_unlock(&kutrace_programs_lock);
}

/* Requests that were refused because nothing was recorded can be made again. */
void kutrace_programs_open(void)
{
	struct kutrace_process *process;

	mutex_lock(&kutrace_programs_lock);
	list_for_each_entry(process, &kutrace_idle, list)
		kutrace_empty(process);
	WRITE_ONCE(kutrace_recording, true);
	if (!++kutrace_traces)
		kutrace_traces = 1;
	kutrace_page_show(kutrace_traces);
	mutex_unlock(&kutrace_programs_lock);
}

/* Not under the lock: a program that waits for memory under it is not waited for. */
void kutrace_programs_close(void)
{
	WRITE_ONCE(kutrace_recording, false);
	kutrace_page_show(0);
}

/* Returns the rest of a user's share: the share is half of all, root's is all. */
static u64 kutrace_share(kuid_t user)
{
	struct kutrace_process *process;
	u64 share = kutrace_quota.all / 2;

	if (uid_eq(user, GLOBAL_ROOT_UID))
		return kutrace_quota.all;
	list_for_each_entry(process, &kutrace_processes, list)
		if (uid_eq(process->user, user))
			share -= min(share, process->held + process->booked);
	return share;
}

static u64 kutrace_room(kuid_t user)
{
	return min(kutrace_share(user), kutrace_quota.all - kutrace_bytes);
}

/*
 * In wrap mode: takes everything from a process that has ended, the one that
 * came first; one of the user's own, if the user has had its share. A reader of
 * it finds out.
 */
static bool kutrace_make_room(kuid_t user, u64 bytes)
{
	bool own = kutrace_share(user) < bytes;
	struct kutrace_process *process;

	if (!kutrace_wraps)
		return false;
	list_for_each_entry(process, &kutrace_processes, list) {
		if (!kutrace_has_ended(process) ||
		    (own && !uid_eq(process->user, user)))
			continue;
		kutrace_others.refused += process->told.refused;
		kutrace_remove(process);
		return true;
	}
	return false;
}

/* Returns whether there is room for a grant, if necessary after giving up others. */
static bool kutrace_has_room(struct kutrace_process *process, u64 bytes)
{
	if (process->named + bytes > kutrace_quota.process)
		return false;
	for (;;) {
		bool fits = process->held + bytes <= kutrace_quota.process;

		if (fits && bytes <= kutrace_room(process->user))
			return true;
		if (!(fits && kutrace_make_room(process->user, bytes)) &&
		    !(kutrace_wraps && kutrace_give_up(process)))
			return false;
	}
}

/* True between vfork and exec: its memory, and what its thread knows, are its parent's. */
static bool kutrace_borrows(void)
{
	return current->vfork_done && atomic_read(&current->mm->mm_users) > 1;
}

/* Attaches the process to the trace: grants its first page, for names. */
static struct kutrace_grant *kutrace_begin(struct kutrace_process *process)
{
	struct kutrace_grant *grant;
	struct task_struct *task;

	/* The number after the last is that of the processes that get nothing. */
	if (kutrace_serial == KUTRACE_NO_MORE - 1 ||
	    kutrace_quota.process < KUTRACE_LEAST)
		return ERR_PTR(-ENOSPC);
	process->user = current_uid();
	while (kutrace_room(process->user) < KUTRACE_LEAST)
		if (!kutrace_make_room(process->user, KUTRACE_LEAST))
			return ERR_PTR(-ENOSPC);
	grant = kutrace_grant(process, 0);
	if (IS_ERR(grant))
		return grant;
	process->booked = PAGE_SIZE;
	kutrace_bytes += PAGE_SIZE;
	rcu_read_lock();
	task = kutrace_borrows() ? rcu_dereference(current->real_parent) : current;
	process->told.tgid = task_tgid_nr(task);
	get_task_comm(process->told.comm, task->group_leader);
	rcu_read_unlock();
	process->told.serial = ++kutrace_serial;
	*(u32 *)(kutrace_first_page(grant) + KUTRACE_SERIAL_AT) = kutrace_serial;
	list_move_tail(&process->list, &kutrace_processes);
	return grant;
}

static struct kutrace_grant *kutrace_grant_words(struct kutrace_process *process,
						 u32 offset, u32 bytes)
{
	if (kutrace_borrows())
		return ERR_PTR(-EAGAIN);
	if (!kutrace_rate_take(bytes / sizeof(u64)))
		return ERR_PTR(-EDQUOT);
	if (bytes == PAGE_SIZE && process->booked) {
		kutrace_bytes -= process->booked;
		process->booked = 0;
	}
	if (!kutrace_has_room(process, bytes))
		return ERR_PTR(-ENOSPC);
	return kutrace_grant(process, offset);
}

/* Grants the unit of an address that the running thread reads. */
static struct kutrace_grant *kutrace_ask(struct kutrace_process *process, u32 offset)
{
	bool is_first = offset < PAGE_SIZE;
	u32 bytes;

	if (!kutrace_recording || (!is_first && !process->told.serial))
		return ERR_PTR(-EAGAIN);
	/* Reading the TSC, for an entry, would kill a thread that may not read it. */
	if (test_thread_flag(TIF_NOTSC))
		return ERR_PTR(-EPERM);
	if (is_first)
		return kutrace_shim_may_mark() ? kutrace_begin(process) : ERR_PTR(-EPERM);
	kutrace_unit(offset, &bytes);
	if (offset >= KUTRACE_WORDS_AT)
		return kutrace_grant_words(process, offset, bytes);
	return kutrace_has_room(process, bytes) ? kutrace_grant(process, offset) :
	       ERR_PTR(-ENOSPC);
}

/* A thread that gets no run asks for a page. Requests above the rate are counted by rate.c. */
static void kutrace_count_refused(struct kutrace_process *process, u32 offset,
				  long error)
{
	if (offset >= KUTRACE_RUNS_AT || error == -EAGAIN || error == -EDQUOT)
		return;
	(offset < PAGE_SIZE ? &kutrace_others : &process->told)->refused++;
}

/* In a stream, room comes as the stream is read. */
static u64 kutrace_junk_word(long error)
{
	return error == -EPERM || (error == -ENOSPC && !kutrace_streams) ?
		KUTRACE_NO_ROOM : KUTRACE_LATER;
}

/*
 * Only a program itself is granted memory, and only where it reads: a thread
 * that writes first is late, and writes into a unit that was taken away in the
 * meantime. System calls, and debuggers, get an error.
 */
static vm_fault_t kutrace_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct kutrace_process *process = vma->vm_private_data;
	u32 offset = (vmf->address & PAGE_MASK) - vma->vm_start;
	struct kutrace_grant *grant;
	int ret;

	if (vma->vm_mm != current->mm || !(vmf->flags & FAULT_FLAG_USER))
		return VM_FAULT_SIGBUS;
	mutex_lock(&kutrace_programs_lock);
	grant = kutrace_granted_at(process, offset);
	if (!grant)
		grant = vmf->flags & FAULT_FLAG_WRITE ? ERR_PTR(-EAGAIN) :
			kutrace_ask(process, offset);
	if (IS_ERR(grant)) {
		kutrace_count_refused(process, offset, PTR_ERR(grant));
		ret = kutrace_map_junk(process, vma, offset,
				       kutrace_junk_word(PTR_ERR(grant)));
	} else {
		ret = kutrace_map_grant(grant, vma);
	}
	mutex_unlock(&kutrace_programs_lock);
	/* If there is no memory at all, the program tries again. */
	return ret ? VM_FAULT_OOM : VM_FAULT_NOPAGE;
}

static void kutrace_attach(struct vm_area_struct *vma, struct kutrace_process *process)
{
	vma->vm_private_data = process;
	mutex_lock(&kutrace_programs_lock);
	list_add(&process->list, &kutrace_idle);
	mutex_unlock(&kutrace_programs_lock);
}

/* For a child of a fork, or an address space whose move is about to be refused. */
static void kutrace_area_open(struct vm_area_struct *vma)
{
	kutrace_attach(vma, kutrace_new_process(vma, GFP_KERNEL_ACCOUNT | __GFP_NOFAIL));
}

/* The area has no pages any more. Its part of the trace stays until it is taken. */
static void kutrace_area_close(struct vm_area_struct *vma)
{
	struct kutrace_process *process = vma->vm_private_data;

	mutex_lock(&kutrace_programs_lock);
	process->mapping = NULL;
	if (!process->told.serial)
		kutrace_remove(process);
	mutex_unlock(&kutrace_programs_lock);
}

static int kutrace_no_split(struct vm_area_struct *vma, unsigned long address)
{
	return -EINVAL;
}

static int kutrace_no_move(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static const struct vm_operations_struct kutrace_area_ops = {
	.open = kutrace_area_open,
	.close = kutrace_area_close,
	.may_split = kutrace_no_split,
	.mremap = kutrace_no_move,
	.fault = kutrace_fault,
};

/*
 * A fork copies no pages, a core dump has none of them, and mlockall() gets
 * none. The place in the file is one that no other area has, so that pages can
 * be taken away from this area and those of its children alone.
 */
static int kutrace_area_map(struct vm_area_struct *vma)
{
	struct kutrace_process *process;

	if (vma->vm_end - vma->vm_start != KUTRACE_AREA_BYTES ||
	    !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	kutrace_vm_flags(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_WIPEONFORK,
		     VM_MAYEXEC);
	mutex_lock(&kutrace_programs_lock);
	vma->vm_pgoff = kutrace_areas++ * (KUTRACE_AREA_BYTES / PAGE_SIZE);
	mutex_unlock(&kutrace_programs_lock);
	process = kutrace_new_process(vma, GFP_KERNEL_ACCOUNT);
	if (!process)
		return -ENOMEM;
	vma->vm_ops = &kutrace_area_ops;
	kutrace_attach(vma, process);
	return 0;
}

/* A kernel with hooks has a page and a system call of its own. */
static int kutrace_programs_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (!vma->vm_pgoff)
		return kutrace_area_map(vma);
	if (vma->vm_pgoff != KUTRACE_AREA_BYTES / PAGE_SIZE)
		return -EINVAL;
	return kutrace_source_kind() == KUTRACE_HOOKS ? -ENODEV :
	       kutrace_page_map(vma);
}

static long kutrace_programs_ioctl(struct file *file, unsigned int cmd,
				   unsigned long arg)
{
	struct kutrace_call call;

	if (cmd != KUTRACE_IOC_CALL || kutrace_source_kind() == KUTRACE_HOOKS)
		return -ENOTTY;
	if (copy_from_user(&call, (void __user *)arg, sizeof(call)))
		return -EFAULT;
	call.answer = kutrace_source_call(call.command, call.words);
	return copy_to_user((void __user *)arg, &call, sizeof(call)) ? -EFAULT : 0;
}

static struct kutrace_process *kutrace_find(u32 serial)
{
	struct kutrace_process *process;

	list_for_each_entry(process, &kutrace_processes, list)
		if (process->told.serial == serial)
			return process;
	return NULL;
}

/* Reports the process after @program's, and its grants. */
static void kutrace_next_program(struct kutrace_program *program,
				 struct kutrace_granted *grants, u32 *room)
{
	struct kutrace_process *process;

	list_for_each_entry(process, &kutrace_processes, list) {
		if (process->told.serial <= program->serial)
			continue;
		*program = process->told;
		program->grants = process->count;
		program->ended = kutrace_has_ended(process);
		*room = kutrace_tell(process, grants, *room);
		return;
	}
	if (kutrace_others.refused && program->serial < KUTRACE_NO_MORE)
		*program = kutrace_others;
	else
		*program = (struct kutrace_program) {};
	*room = 0;
}

/* The caller's memory, which may take forever, is not touched under a lock. */
long kutrace_programs_tell(struct kutrace_program __user *to)
{
	struct kutrace_program program;
	struct kutrace_granted *grants;
	void __user *address;
	long ret = -EINTR;
	u32 room;

	if (copy_from_user(&program, to, sizeof(program)))
		return -EFAULT;
	address = u64_to_user_ptr(program.address);
	room = min_t(u32, program.grants, KUTRACE_GRANTS_MAX);
	grants = kvmalloc_array(room, sizeof(*grants), GFP_KERNEL_ACCOUNT);
	if (!grants)
		return -ENOMEM;
	if (mutex_lock_killable(&kutrace_programs_lock))
		goto out;
	kutrace_next_program(&program, grants, &room);
	mutex_unlock(&kutrace_programs_lock);
	ret = copy_to_user(address, grants, room * sizeof(*grants)) ||
	      copy_to_user(to, &program, sizeof(program)) ? -EFAULT : 0;
out:
	kvfree(grants);
	return ret;
}

static long kutrace_copy_pages(const struct kutrace_copy *copy, struct page **pages)
{
	void __user *to = u64_to_user_ptr(copy->address);
	size_t at = copy->offset % PAGE_SIZE, left = copy->bytes, bytes;

	for (; left; left -= bytes, to += bytes, at = 0) {
		bytes = min_t(size_t, left, PAGE_SIZE - at);
		if (copy_to_user(to, page_address(*pages++) + at, bytes))
			return -EFAULT;
	}
	return 0;
}

/* A grant that is given up in the meantime is copied as it was. */
long kutrace_programs_copy(const struct kutrace_copy __user *from)
{
	struct page *pages[KUTRACE_RUN_BYTES / PAGE_SIZE];
	struct kutrace_process *process;
	struct kutrace_copy copy;
	int n, count;
	long ret;

	if (copy_from_user(&copy, from, sizeof(copy)))
		return -EFAULT;
	if (mutex_lock_killable(&kutrace_programs_lock))
		return -EINTR;
	process = kutrace_find(copy.serial);
	count = process ? kutrace_pages(process, &copy, pages) : -ESTALE;
	mutex_unlock(&kutrace_programs_lock);
	if (count < 0)
		return count;
	ret = kutrace_copy_pages(&copy, pages);
	for (n = 0; n < count; n++)
		put_page(pages[n]);
	return ret;
}

static long kutrace_give_back(const struct kutrace_taken *taken)
{
	struct kutrace_process *process;

	if (!kutrace_streams)
		return -EINVAL;
	process = kutrace_find(taken->serial);
	if (!process)
		return -ESTALE;
	if (taken->sequence)
		return kutrace_take_grant(process, taken->offset, taken->sequence);
	if (!kutrace_has_ended(process))
		return -EBUSY;
	kutrace_remove(process);
	return 0;
}

static long kutrace_set_quota(const struct kutrace_quota *quota)
{
	if (quota->process > KUTRACE_QUOTA_MAX)
		return -EINVAL;
	if (!kutrace_shim_may_have(quota->all))
		return -E2BIG;
	kutrace_asked = *quota;
	return 0;
}

long kutrace_programs_control(unsigned int cmd, void *argument)
{
	long ret;

	if (mutex_lock_killable(&kutrace_programs_lock))
		return -EINTR;
	switch (cmd) {
	case KUTRACE_IOC_QUOTA:
		ret = kutrace_set_quota(argument);
		break;
	case KUTRACE_IOC_TAKEN:
		ret = kutrace_give_back(argument);
		break;
	case KUTRACE_IOC_REFUSED:
		kutrace_rate_next(argument);
		ret = 0;
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&kutrace_programs_lock);
	return ret;
}

/* Describes where a memory image has the data that programs record. */
void kutrace_programs_layout(struct kutrace_layout *layout)
{
	*layout = (struct kutrace_layout) {
		.processes = (u64)&kutrace_processes,
		.others = (u64)&kutrace_others,
	};
	kutrace_area_layout(layout);
}

static const struct file_operations kutrace_programs_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = kutrace_programs_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kutrace_programs_mmap,
	.llseek = noop_llseek,
};

static struct miscdevice kutrace_programs_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kutrace_programs",
	.fops = &kutrace_programs_fops,
	.mode = 0666,
};

int kutrace_programs_add(void)
{
	int ret;

	kutrace_quota = kutrace_asked;
	ret = kutrace_page_add();
	if (ret)
		return ret;
	kutrace_page_show(kutrace_recording ? kutrace_traces : 0);
	ret = misc_register(&kutrace_programs_device);
	if (ret)
		kutrace_page_remove();
	return ret;
}

void kutrace_programs_remove(void)
{
	misc_deregister(&kutrace_programs_device);
	kutrace_programs_reset(false, false);
	kutrace_page_remove();
}
