// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for what programs record themselves: /dev/kutrace_programs, which any
 * process may open.
 *
 * A process has an area: a file in memory of the kernel's own, mapped into it.
 * The kernel grants it part by part, to the thread that asks, and notes thread,
 * time and place. The process has no descriptor of the file, so it can neither
 * change its size nor pass it on, and it never sees memory that another process
 * had: pages come zeroed, and a part that is granted anew gets new ones. What
 * it writes there the kernel never reads. The file is sealed before anybody gets
 * a descriptor of it, so that nobody else writes there or makes it shorter.
 *
 * The file belongs to the kernel, not to the module: who has it mapped does not
 * keep the module from being unloaded, and does not lose the memory by that.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../shim.h"
#include "../source/source.h"
#include "page.h"
#include "parts.h"
#include "programs.h"

#define KUTRACE_PROGRAMS_VERSION 2
#define KUTRACE_NO_MORE		U32_MAX
/* Names and words: an area without a word would be worth less than none. */
#define KUTRACE_LEAST		(2 * PAGE_SIZE)

struct kutrace_attach {
	u32 version;
	u32 serial;
	u64 address;
	u64 bytes;
};

/* System call 1023, where the kernel has none. */
struct kutrace_call {
	u64 command;
	s64 answer;
	u64 words[KUTRACE_USER_WORDS];
};

struct kutrace_taken {
	u32 serial;
	u32 reserved;
	/* Of the newest piece of a part; 0 for all that an ended process had. */
	u64 sequence;
};

#define KUTRACE_IOC_ATTACH	_IOWR(KUTRACE_IOC_TYPE, 0x40, struct kutrace_attach)
#define KUTRACE_IOC_GRANT	_IOWR(KUTRACE_IOC_TYPE, 0x41, struct kutrace_grant)
#define KUTRACE_IOC_PAGE	_IOR(KUTRACE_IOC_TYPE, 0x42, struct kutrace_page)
#define KUTRACE_IOC_QUOTA	_IOW(KUTRACE_IOC_TYPE, 0x43, struct kutrace_quota)
#define KUTRACE_IOC_REFUSED	_IOWR(KUTRACE_IOC_TYPE, 0x45, struct kutrace_refused)
#define KUTRACE_IOC_TAKEN	_IOW(KUTRACE_IOC_TYPE, 0x46, struct kutrace_taken)
#define KUTRACE_IOC_CALL	_IOWR(KUTRACE_IOC_TYPE, 0x47, struct kutrace_call)

/* Of all that follows. Taken under the control lock, and under no lock of mm. */
static DEFINE_MUTEX(kutrace_programs_lock);
static LIST_HEAD(kutrace_processes);
static u32 kutrace_serial;
static bool kutrace_recording;
/* The number of the trace, which programs see while it is recorded. */
static u32 kutrace_traces;
static bool kutrace_wraps;
static bool kutrace_streams;
/* What the next trace is to have, and what one has otherwise. */
#define KUTRACE_USUAL	((struct kutrace_quota) { 4UL << 20, 64UL << 20 })
static struct kutrace_quota kutrace_asked = KUTRACE_USUAL;
/* Whoever got no area, told as one process after all others. */
static struct kutrace_process kutrace_others = {
	.parts = LIST_HEAD_INIT(kutrace_others.parts),
	.told = { .serial = KUTRACE_NO_MORE, .fd = -1, .comm = "others" },
};

static void kutrace_free_process(struct kutrace_process *process)
{
	kutrace_parts_free(process);
	fput(process->area);
	put_pid(process->tgid);
	kfree(process);
}

void kutrace_programs_reset(bool wrap, bool stream)
{
	struct kutrace_process *process, *next;

	mutex_lock(&kutrace_programs_lock);
	list_for_each_entry_safe(process, next, &kutrace_processes, list) {
		list_del(&process->list);
		kutrace_free_process(process);
	}
	kutrace_bytes = 0;
	kutrace_wraps = wrap;
	kutrace_streams = stream;
	kutrace_quota = kutrace_asked;
	kutrace_asked = KUTRACE_USUAL;
	kutrace_others.told.refused = 0;
	kutrace_rate_reset();
	mutex_unlock(&kutrace_programs_lock);
}

void kutrace_programs_open(void)
{
	mutex_lock(&kutrace_programs_lock);
	WRITE_ONCE(kutrace_recording, true);
	if (!++kutrace_traces)
		kutrace_traces = 1;
	kutrace_page_show(kutrace_traces);
	mutex_unlock(&kutrace_programs_lock);
}

/* Not under their lock: a program that waits for memory is not waited for. */
void kutrace_programs_close(void)
{
	WRITE_ONCE(kutrace_recording, false);
	kutrace_page_show(0);
}

/* Nobody writes there any more. */
static bool kutrace_has_ended(const struct kutrace_process *process)
{
	struct task_struct *task;
	bool has_ended;

	rcu_read_lock();
	task = pid_task(process->tgid, PIDTYPE_TGID);
	has_ended = !task || !atomic_read(&task->signal->live) ||
		    READ_ONCE(task->self_exec_id) != process->exec;
	rcu_read_unlock();
	return has_ended;
}

/* Of the half of all that a user's areas may have; root's may have all. */
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

u64 kutrace_room(kuid_t user)
{
	return min(kutrace_share(user), kutrace_quota.all - kutrace_bytes);
}

static void kutrace_remove(struct kutrace_process *process)
{
	list_del(&process->list);
	kutrace_bytes -= process->held + process->booked;
	kutrace_free_process(process);
}

/*
 * In wrap mode: takes what a process has that has ended, of those the one that
 * came first; one of the user's own, if the user has had its share. Who is
 * reading it finds out.
 */
static bool kutrace_make_room(kuid_t user)
{
	bool own = kutrace_share(user) < KUTRACE_LEAST;
	struct kutrace_process *process;

	if (!kutrace_wraps)
		return false;
	list_for_each_entry(process, &kutrace_processes, list) {
		if (!kutrace_has_ended(process) ||
		    (own && !uid_eq(process->user, user)))
			continue;
		kutrace_others.told.refused += process->told.refused;
		kutrace_remove(process);
		return true;
	}
	return false;
}

static struct kutrace_process *kutrace_find_process(void)
{
	struct kutrace_process *process;

	list_for_each_entry(process, &kutrace_processes, list)
		if (process->tgid == task_tgid(current) &&
		    process->exec == current->self_exec_id)
			return process;
	return NULL;
}

static long kutrace_grant_locked(struct kutrace_grant *grant)
{
	struct kutrace_process *process = kutrace_find_process();
	int ret;

	if (!process || process->told.serial != grant->serial)
		return -ESTALE;
	if (!READ_ONCE(kutrace_recording))
		return -EAGAIN;
	if (grant->kind == KUTRACE_KIND_REST)
		return kutrace_parts_rest(process, grant);
	if (!grant->bytes || grant->bytes % PAGE_SIZE ||
	    grant->bytes > KUTRACE_AREA_BYTES ||
	    grant->kind > KUTRACE_KIND_NAMES)
		return -EINVAL;
	if (grant->kind == KUTRACE_KIND_WORDS &&
	    !kutrace_rate_take(grant->bytes / sizeof(u64)))
		return -EDQUOT;
	do
		ret = kutrace_parts_more(process, grant);
	while (ret == -ENOSPC && process->bytes < kutrace_quota.process &&
	       kutrace_make_room(process->user));
	if (ret == -ENOSPC && kutrace_wraps &&
	    grant->kind == KUTRACE_KIND_WORDS)
		ret = kutrace_parts_again(process, grant);
	if (ret)
		process->told.refused++;
	/* Room comes as the stream is read. */
	return ret == -ENOSPC && kutrace_streams ? -EDQUOT : ret;
}

static long kutrace_grant(struct kutrace_grant *grant)
{
	long ret;

	if (mutex_lock_killable(&kutrace_programs_lock))
		return -EINTR;
	ret = kutrace_grant_locked(grant);
	mutex_unlock(&kutrace_programs_lock);
	return ret;
}

static struct kutrace_process *kutrace_new_process(void)
{
	struct kutrace_process *process;

	process = kzalloc(sizeof(*process), GFP_KERNEL_ACCOUNT);
	if (!process)
		return ERR_PTR(-ENOMEM);
	process->area = kutrace_new_file(0);
	if (IS_ERR(process->area)) {
		void *error = process->area;

		kfree(process);
		return error;
	}
	/* Its pages stay where they are, so they shall not be where others move. */
	mapping_set_gfp_mask(process->area->f_mapping, GFP_HIGHUSER);
	INIT_LIST_HEAD(&process->parts);
	process->tgid = get_pid(task_tgid(current));
	process->exec = current->self_exec_id;
	process->user = current_uid();
	process->told.tgid = task_tgid_nr(current);
	get_task_comm(process->told.comm, current->group_leader);
	return process;
}

static struct file *kutrace_no_area(int error)
{
	kutrace_others.told.refused++;
	return ERR_PTR(error);
}

/*
 * The area of the calling process, a new one if it has none; NULL if it is
 * mapped. It is mapped with no lock held, as others of the process may keep its
 * mappings locked for as long as they like. Another thread that comes meanwhile
 * tries the same.
 */
static struct file *kutrace_area(struct kutrace_attach *attach)
{
	struct kutrace_grant names = {
		.kind = KUTRACE_KIND_NAMES, .bytes = PAGE_SIZE,
	};
	struct kutrace_process *process;
	int ret;

	if (!READ_ONCE(kutrace_recording))
		return ERR_PTR(-EAGAIN);
	process = kutrace_find_process();
	if (process) {
		attach->serial = process->told.serial;
		attach->address = process->address;
		return process->address ? NULL : get_file(process->area);
	}
	/* The number after the last is that of those who get none. */
	if (kutrace_serial == KUTRACE_NO_MORE - 1)
		return kutrace_no_area(-ENOSPC);
	if (kutrace_quota.process < KUTRACE_LEAST)
		return kutrace_no_area(-ENOSPC);
	while (kutrace_room(current_uid()) < KUTRACE_LEAST)
		if (!kutrace_make_room(current_uid()))
			return kutrace_no_area(-ENOSPC);
	process = kutrace_new_process();
	if (IS_ERR(process))
		return kutrace_no_area(PTR_ERR(process));
	ret = kutrace_parts_more(process, &names);
	if (ret) {
		kutrace_free_process(process);
		return kutrace_no_area(ret);
	}
	process->told.serial = ++kutrace_serial;
	process->booked = PAGE_SIZE;
	kutrace_bytes += PAGE_SIZE;
	list_add_tail(&process->list, &kutrace_processes);
	attach->serial = process->told.serial;
	return get_file(process->area);
}

/*
 * Notes where an area was mapped, unless it is gone with its trace or another
 * thread was first. From then on it can be mapped for writing no more. Where
 * the mapping failed the area stays, for the next attempt.
 */
static long kutrace_placed(struct kutrace_attach *attach, unsigned long address)
{
	struct kutrace_process *process = kutrace_find_process();

	if (!process || process->told.serial != attach->serial)
		return -ESTALE;
	if (!process->address) {
		if (IS_ERR_VALUE(address))
			return address;
		process->address = address;
		kutrace_seal(process->area);
	}
	attach->address = process->address;
	return 0;
}

static long kutrace_attach(struct kutrace_attach *attach)
{
	unsigned long address;
	struct file *area;
	long ret;

	if (attach->version != KUTRACE_PROGRAMS_VERSION)
		return -EINVAL;
	if (!kutrace_shim_may_mark() || !current->mm)
		return -EPERM;
	attach->bytes = KUTRACE_AREA_BYTES;
	if (mutex_lock_killable(&kutrace_programs_lock))
		return -EINTR;
	area = kutrace_area(attach);
	mutex_unlock(&kutrace_programs_lock);
	if (IS_ERR_OR_NULL(area))
		return PTR_ERR_OR_ZERO(area);
	address = vm_mmap(area, 0, KUTRACE_AREA_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED, 0);
	fput(area);
	mutex_lock(&kutrace_programs_lock);
	ret = kutrace_placed(attach, address);
	mutex_unlock(&kutrace_programs_lock);
	/* That of another thread is the same memory. */
	if (!IS_ERR_VALUE(address) && (ret || attach->address != address))
		vm_munmap(address, KUTRACE_AREA_BYTES);
	return ret;
}

static long kutrace_call(struct kutrace_call *call)
{
	call->answer = kutrace_source_call(call->command, call->words);
	return 0;
}

static long kutrace_programs_ioctl(struct file *file, unsigned int cmd,
				   unsigned long arg)
{
	union {
		struct kutrace_attach attach;
		struct kutrace_grant grant;
		struct kutrace_page page;
		struct kutrace_call call;
	} argument = {};
	long ret;

	if (_IOC_TYPE(cmd) != KUTRACE_IOC_TYPE || _IOC_SIZE(cmd) > sizeof(argument))
		return -ENOTTY;
	if ((_IOC_DIR(cmd) & _IOC_WRITE) &&
	    copy_from_user(&argument, (void __user *)arg, _IOC_SIZE(cmd)))
		return -EFAULT;
	/* A kernel with hooks has a page and a system call of its own. */
	if ((cmd == KUTRACE_IOC_PAGE || cmd == KUTRACE_IOC_CALL) &&
	    kutrace_source_kind() == KUTRACE_HOOKS)
		return -ENOTTY;
	switch (cmd) {
	case KUTRACE_IOC_ATTACH:
		ret = kutrace_attach(&argument.attach);
		break;
	case KUTRACE_IOC_GRANT:
		ret = kutrace_grant(&argument.grant);
		break;
	case KUTRACE_IOC_PAGE:
		ret = kutrace_page_map(&argument.page);
		break;
	case KUTRACE_IOC_CALL:
		ret = kutrace_call(&argument.call);
		break;
	default:
		ret = -ENOTTY;
	}
	if (!ret && copy_to_user((void __user *)arg, &argument, _IOC_SIZE(cmd)))
		return -EFAULT;
	return ret;
}

/*
 * Tells of the process after @program's, and of its parts; and its area, if it
 * has one. One that has not mapped its area yet has recorded nothing.
 */
static struct file *kutrace_next_program(struct kutrace_program *program,
					 struct kutrace_granted *grants, u32 *room)
{
	struct kutrace_process *process;

	list_for_each_entry(process, &kutrace_processes, list) {
		if (process->told.serial <= program->serial || !process->address)
			continue;
		*program = process->told;
		program->grants = process->pieces;
		program->ended = kutrace_has_ended(process);
		*room = kutrace_parts_tell(process, grants, *room);
		return get_file(process->area);
	}
	if (kutrace_others.told.refused && program->serial < KUTRACE_NO_MORE)
		*program = kutrace_others.told;
	else
		*program = (struct kutrace_program) { .fd = -1 };
	*room = 0;
	return NULL;
}

/* Gives the caller a descriptor by which it reads the area, and @program. */
static long kutrace_show(struct file *area, struct kutrace_program *program,
			 struct kutrace_program __user *to)
{
	struct file *file = kutrace_readonly(area);
	int fd;

	if (IS_ERR(file))
		return PTR_ERR(file);
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		fput(file);
		return fd;
	}
	program->fd = fd;
	if (copy_to_user(to, program, sizeof(*to))) {
		put_unused_fd(fd);
		fput(file);
		return -EFAULT;
	}
	fd_install(fd, file);
	return 0;
}

/* The caller's memory, which may take for ever, is not touched under a lock. */
long kutrace_programs_tell(struct kutrace_program __user *to)
{
	struct kutrace_program program;
	struct kutrace_granted *grants;
	void __user *address;
	struct file *area;
	long ret = -EINTR;
	u32 room;

	if (copy_from_user(&program, to, sizeof(program)))
		return -EFAULT;
	address = u64_to_user_ptr(program.address);
	room = min_t(u32, program.grants, KUTRACE_PIECES_MAX);
	grants = kvmalloc_array(room, sizeof(*grants), GFP_KERNEL_ACCOUNT);
	if (!grants)
		return -ENOMEM;
	if (mutex_lock_killable(&kutrace_programs_lock))
		goto out;
	area = kutrace_next_program(&program, grants, &room);
	mutex_unlock(&kutrace_programs_lock);
	if (copy_to_user(address, grants, room * sizeof(*grants)))
		ret = -EFAULT;
	else if (area)
		ret = kutrace_show(area, &program, to);
	else
		ret = copy_to_user(to, &program, sizeof(program)) ? -EFAULT : 0;
	if (area)
		fput(area);
out:
	kvfree(grants);
	return ret;
}

static long kutrace_take(const struct kutrace_taken *taken)
{
	struct kutrace_process *process;

	if (!kutrace_streams || taken->reserved)
		return -EINVAL;
	list_for_each_entry(process, &kutrace_processes, list) {
		if (process->told.serial != taken->serial)
			continue;
		if (taken->sequence)
			return kutrace_parts_take(process, taken->sequence);
		if (!kutrace_has_ended(process))
			return -EBUSY;
		kutrace_remove(process);
		return 0;
	}
	return -ESTALE;
}

static long kutrace_set_quota(const struct kutrace_quota *quota)
{
	if (quota->process > KUTRACE_AREA_BYTES)
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
		ret = kutrace_take(argument);
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

/* Says where an image of the memory has what programs record. */
void kutrace_programs_layout(struct kutrace_layout *layout)
{
	*layout = (struct kutrace_layout) {
		.processes = (u64)&kutrace_processes,
		.others = (u64)&kutrace_others.told,
		.process.list = offsetof(struct kutrace_process, list),
		.process.told = offsetof(struct kutrace_process, told),
		.process.pieces = offsetof(struct kutrace_process, pieces),
		.process.parts = offsetof(struct kutrace_process, parts),
	};
	kutrace_parts_layout(layout);
}

static const struct file_operations kutrace_programs_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = kutrace_programs_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
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
