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
 * it writes there the kernel never reads.
 *
 * The file belongs to the kernel, not to the module: who has it mapped does not
 * keep the module from being unloaded, and does not lose the memory by that.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/falloc.h>
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
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <asm/tsc.h>

#include "../shim.h"
#include "programs.h"

/* Since 7.0 flags of areas are a type of their own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define KUTRACE_NO_RESERVE	mk_vma_flags(VMA_NORESERVE_BIT)
#else
#define KUTRACE_NO_RESERVE	VM_NORESERVE
#endif

#define KUTRACE_PROGRAMS_VERSION 2
#define KUTRACE_AREA_BYTES	(16UL << 20)
#define KUTRACE_NO_MORE		U32_MAX
/* Of what a thread gets of another's part; what is noted of it takes as much. */
#define KUTRACE_REST_BYTES	32U

enum { KUTRACE_KIND_WORDS, KUTRACE_KIND_NAMES, KUTRACE_KIND_REST };

struct kutrace_attach {
	u32 version;
	u32 serial;
	u64 address;
	u64 bytes;
};

struct kutrace_grant {
	u32 kind;
	u32 bytes;
	u32 offset;
	u32 serial;
	u64 sequence;
};

struct kutrace_page {
	u64 address;
};

struct kutrace_quota {
	u64 process;
	u64 all;
};

struct kutrace_program {
	u32 serial;
	u32 tgid;
	s32 fd;
	u32 grants;
	u64 address;
	u64 refused;
	char comm[16];
};

struct kutrace_granted {
	u32 offset;
	u32 bytes;
	u32 tid;
	u32 kind;
	u64 sequence;
	u64 tsc;
};

#define KUTRACE_IOC_ATTACH	_IOWR(KUTRACE_IOC_TYPE, 0x40, struct kutrace_attach)
#define KUTRACE_IOC_GRANT	_IOWR(KUTRACE_IOC_TYPE, 0x41, struct kutrace_grant)
#define KUTRACE_IOC_PAGE	_IOR(KUTRACE_IOC_TYPE, 0x42, struct kutrace_page)
#define KUTRACE_IOC_QUOTA	_IOW(KUTRACE_IOC_TYPE, 0x43, struct kutrace_quota)
#define KUTRACE_IOC_PROGRAM	_IOWR(KUTRACE_IOC_TYPE, 0x44, struct kutrace_program)

/* What one thread has, or had, of a part: up to the next piece, or its end. */
struct kutrace_piece {
	struct kutrace_piece *before;
	u32 offset;
	u32 tid;
	u64 sequence;
	u64 tsc;
};

/* A part of an area: whole pages. */
struct kutrace_part {
	struct list_head list;
	u32 offset;
	u32 bytes;
	u32 kind;
	/* How many others the thread of the newest piece has got since. */
	u32 left;
	struct pid *thread;
	struct kutrace_piece *newest;
};

/* A process, known by its memory: that lasts from one exec to the next. */
struct kutrace_process {
	struct list_head list;
	struct mm_struct *mm;
	struct file *area;
	unsigned long address;
	u64 bytes;
	/* Of what all have, kept for its first words. */
	u32 booked;
	u32 pieces;
	u64 sequence;
	/* The one granted last is last. */
	struct list_head parts;
	struct kutrace_program told;
};

/* Of all that follows. Taken under the control lock, and under no lock of mm. */
static DEFINE_MUTEX(kutrace_programs_lock);
static LIST_HEAD(kutrace_processes);
static u32 kutrace_serial;
static bool kutrace_recording;
static bool kutrace_wraps;
static u64 kutrace_bytes;
/* For the next trace, and for the present one. */
#define KUTRACE_USUAL	((struct kutrace_quota) { 4UL << 20, 64UL << 20 })
static struct kutrace_quota kutrace_asked = KUTRACE_USUAL;
static struct kutrace_quota kutrace_quota;
/* Whoever got no area, told as one process after all others. */
static struct kutrace_process kutrace_others = {
	.parts = LIST_HEAD_INIT(kutrace_others.parts),
	.told = { .serial = KUTRACE_NO_MORE, .comm = "others" },
};

/* The page of programs; its number is that of the trace, or 0. */
static struct file *kutrace_page_file;
static struct page *kutrace_page;
static u32 kutrace_traces;

/* A trace may have been started before there is a page. */
static void kutrace_show(u32 trace)
{
	if (kutrace_page)
		WRITE_ONCE(*(u32 *)page_address(kutrace_page), trace);
}

/* Nobody has anything of a part any more. */
static void kutrace_forget(struct kutrace_process *process,
			   struct kutrace_part *part)
{
	struct kutrace_piece *piece;

	while ((piece = part->newest)) {
		part->newest = piece->before;
		process->pieces--;
		kfree(piece);
	}
	put_pid(part->thread);
	part->thread = NULL;
}

static void kutrace_free_process(struct kutrace_process *process)
{
	struct kutrace_part *part, *next;

	list_for_each_entry_safe(part, next, &process->parts, list) {
		kutrace_forget(process, part);
		kfree(part);
	}
	/* The process may have it mapped; what is there goes all the same. */
	if (process->bytes)
		vfs_fallocate(process->area,
			      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			      process->bytes);
	fput(process->area);
	mmdrop(process->mm);
	kfree(process);
}

void kutrace_programs_reset(bool wrap)
{
	struct kutrace_process *process, *next;

	mutex_lock(&kutrace_programs_lock);
	list_for_each_entry_safe(process, next, &kutrace_processes, list)
		kutrace_free_process(process);
	INIT_LIST_HEAD(&kutrace_processes);
	kutrace_bytes = 0;
	kutrace_wraps = wrap;
	kutrace_quota = kutrace_asked;
	kutrace_asked = KUTRACE_USUAL;
	kutrace_others.told.refused = 0;
	mutex_unlock(&kutrace_programs_lock);
}

void kutrace_programs_open(void)
{
	mutex_lock(&kutrace_programs_lock);
	kutrace_recording = true;
	if (!++kutrace_traces)
		kutrace_traces = 1;
	kutrace_show(kutrace_traces);
	mutex_unlock(&kutrace_programs_lock);
}

void kutrace_programs_close(void)
{
	mutex_lock(&kutrace_programs_lock);
	kutrace_recording = false;
	kutrace_show(0);
	mutex_unlock(&kutrace_programs_lock);
}

static struct kutrace_process *kutrace_find_process(void)
{
	struct kutrace_process *process;

	list_for_each_entry(process, &kutrace_processes, list)
		if (process->mm == current->mm)
			return process;
	return NULL;
}

/* The calling thread has a part from @offset on. */
static int kutrace_give(struct kutrace_process *process,
			struct kutrace_part *part, u32 offset,
			struct kutrace_grant *grant)
{
	struct kutrace_piece *piece;
	struct kutrace_part *other;

	piece = kmalloc(sizeof(*piece), GFP_KERNEL_ACCOUNT);
	if (!piece)
		return -ENOMEM;
	*piece = (struct kutrace_piece) {
		.before = part->newest,
		.offset = offset,
		.tid = task_pid_nr(current),
		.sequence = ++process->sequence,
		.tsc = rdtsc_ordered(),
	};
	if (part->kind == KUTRACE_KIND_WORDS)
		list_for_each_entry(other, &process->parts, list)
			if (other->thread == task_pid(current) &&
			    other->kind == KUTRACE_KIND_WORDS)
				other->left++;
	part->newest = piece;
	part->left = 0;
	put_pid(part->thread);
	part->thread = get_pid(task_pid(current));
	list_move_tail(&part->list, &process->parts);
	process->pieces++;
	grant->offset = offset;
	grant->bytes = part->offset + part->bytes - offset;
	grant->sequence = piece->sequence;
	return 0;
}

/* Another part at the end of what the process has. */
static int kutrace_give_more(struct kutrace_process *process,
			     struct kutrace_grant *grant)
{
	struct kutrace_part *part;
	u64 room;
	u32 bytes;
	int ret;

	if (grant->kind == KUTRACE_KIND_WORDS) {
		kutrace_bytes -= process->booked;
		process->booked = 0;
	}
	room = min(kutrace_quota.process - process->bytes - process->booked,
		   kutrace_quota.all - kutrace_bytes);
	bytes = min_t(u64, grant->bytes, round_down(room, PAGE_SIZE));
	if (!bytes)
		return -ENOSPC;
	part = kzalloc(sizeof(*part), GFP_KERNEL_ACCOUNT);
	if (!part)
		return -ENOMEM;
	INIT_LIST_HEAD(&part->list);
	part->offset = process->bytes;
	part->bytes = bytes;
	part->kind = grant->kind;
	ret = vfs_fallocate(process->area, 0, part->offset, bytes);
	if (!ret)
		ret = kutrace_give(process, part, part->offset, grant);
	if (ret) {
		kfree(part);
		return ret;
	}
	process->bytes += bytes;
	kutrace_bytes += bytes;
	return 0;
}

static bool kutrace_lives(struct pid *thread)
{
	bool lives;

	rcu_read_lock();
	lives = pid_task(thread, PIDTYPE_PID);
	rcu_read_unlock();
	return lives;
}

/*
 * The oldest part that nobody writes into: of a thread that is gone, or has got
 * others since. One other may not be enough: a signal handler that came into
 * the middle of an entry may have asked for it.
 */
static struct kutrace_part *kutrace_oldest(struct kutrace_process *process)
{
	struct kutrace_part *part, *second = NULL;

	list_for_each_entry(part, &process->parts, list) {
		if (part->kind != KUTRACE_KIND_WORDS)
			continue;
		if (part->left > 1 || !kutrace_lives(part->thread))
			return part;
		if (part->left && !second)
			second = part;
	}
	return second;
}

/* In wrap mode: that, with new pages. */
static int kutrace_give_again(struct kutrace_process *process,
			      struct kutrace_grant *grant)
{
	struct kutrace_part *part = kutrace_oldest(process);
	int ret;

	if (!part)
		return -ENOSPC;
	ret = vfs_fallocate(process->area,
			    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			    part->offset, part->bytes);
	if (ret)
		return ret;
	kutrace_forget(process, part);
	part->left = U32_MAX;
	ret = vfs_fallocate(process->area, 0, part->offset, part->bytes);
	if (ret)
		return ret;
	return kutrace_give(process, part, part->offset, grant);
}

/*
 * What is left of a part: its own, which it did not use before, or that of a
 * thread which is gone. The sequence says which piece is meant, so it is not
 * one that was granted anew, and the offset where its thread had got to.
 */
static int kutrace_give_rest(struct kutrace_process *process,
			     struct kutrace_grant *grant)
{
	struct kutrace_part *part;
	struct kutrace_piece *piece;
	u32 used;
	int ret;

	list_for_each_entry_reverse(part, &process->parts, list)
		if (part->newest && part->newest->sequence == grant->sequence)
			goto found;
	return -ESTALE;
found:
	piece = part->newest;
	if (part->kind != KUTRACE_KIND_WORDS ||
	    grant->offset < piece->offset ||
	    grant->offset > part->offset + part->bytes)
		return -EINVAL;
	if (part->thread != task_pid(current) && kutrace_lives(part->thread))
		return -EBUSY;
	used = round_up(grant->offset - piece->offset, KUTRACE_REST_BYTES);
	if (piece->offset + used >= part->offset + part->bytes)
		return -ENOSPC;
	ret = kutrace_give(process, part, piece->offset + used, grant);
	/* Of nothing, nothing need be known. */
	if (!ret && !used) {
		part->newest->before = piece->before;
		process->pieces--;
		kfree(piece);
	}
	return ret;
}

static long kutrace_grant_locked(struct kutrace_grant *grant)
{
	struct kutrace_process *process = kutrace_find_process();
	int ret;

	if (!process || process->told.serial != grant->serial)
		return -ESTALE;
	if (!kutrace_recording)
		return -EAGAIN;
	if (grant->kind == KUTRACE_KIND_REST)
		return kutrace_give_rest(process, grant);
	if (!grant->bytes || grant->bytes % PAGE_SIZE ||
	    grant->bytes > KUTRACE_AREA_BYTES ||
	    grant->kind > KUTRACE_KIND_NAMES)
		return -EINVAL;
	ret = kutrace_give_more(process, grant);
	if (ret == -ENOSPC && kutrace_wraps &&
	    grant->kind == KUTRACE_KIND_WORDS)
		ret = kutrace_give_again(process, grant);
	if (ret)
		process->told.refused++;
	return ret;
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
	process->area = shmem_file_setup("kutrace", 0, KUTRACE_NO_RESERVE);
	if (IS_ERR(process->area)) {
		void *error = process->area;

		kfree(process);
		return error;
	}
	INIT_LIST_HEAD(&process->parts);
	process->mm = current->mm;
	mmgrab(process->mm);
	process->told.serial = ++kutrace_serial;
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
 * maps it, too: to the process both are the same memory.
 */
static struct file *kutrace_area(struct kutrace_attach *attach)
{
	struct kutrace_grant names = {
		.kind = KUTRACE_KIND_NAMES, .bytes = PAGE_SIZE,
	};
	struct kutrace_process *process;
	int ret;

	if (!kutrace_recording)
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
	/* An area without a word would be worth less than none. */
	if (min(kutrace_quota.process, kutrace_quota.all - kutrace_bytes) <
	    2 * PAGE_SIZE)
		return kutrace_no_area(-ENOSPC);
	process = kutrace_new_process();
	if (IS_ERR(process))
		return kutrace_no_area(PTR_ERR(process));
	ret = kutrace_give_more(process, &names);
	if (ret) {
		kutrace_free_process(process);
		return kutrace_no_area(ret);
	}
	process->booked = PAGE_SIZE;
	kutrace_bytes += PAGE_SIZE;
	list_add_tail(&process->list, &kutrace_processes);
	attach->serial = process->told.serial;
	return get_file(process->area);
}

/*
 * Notes where an area was mapped, unless it is gone with its trace. Where that
 * failed the area stays, for the next attempt.
 */
static long kutrace_placed(u32 serial, unsigned long address)
{
	struct kutrace_process *process = kutrace_find_process();

	if (!process || process->told.serial != serial)
		return -ESTALE;
	if (IS_ERR_VALUE(address))
		return address;
	process->address = address;
	return 0;
}

static long kutrace_attach(struct kutrace_attach *attach)
{
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
	attach->address = vm_mmap(area, 0, KUTRACE_AREA_BYTES,
				  PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	fput(area);
	mutex_lock(&kutrace_programs_lock);
	ret = kutrace_placed(attach->serial, attach->address);
	mutex_unlock(&kutrace_programs_lock);
	return ret;
}

/* A file opened for reading only can never be mapped for writing. */
static struct file *kutrace_readonly(struct file *file)
{
	return dentry_open(&file->f_path, O_RDONLY | O_LARGEFILE, current_cred());
}

static long kutrace_map_page(struct kutrace_page *page)
{
	struct file *file = kutrace_readonly(kutrace_page_file);
	unsigned long address;

	if (IS_ERR(file))
		return PTR_ERR(file);
	address = vm_mmap(file, 0, PAGE_SIZE, PROT_READ, MAP_SHARED, 0);
	fput(file);
	if (IS_ERR_VALUE(address))
		return address;
	page->address = address;
	return 0;
}

static long kutrace_programs_ioctl(struct file *file, unsigned int cmd,
				   unsigned long arg)
{
	union {
		struct kutrace_attach attach;
		struct kutrace_grant grant;
		struct kutrace_page page;
	} argument = {};
	long ret;

	if (_IOC_TYPE(cmd) != KUTRACE_IOC_TYPE || _IOC_SIZE(cmd) > sizeof(argument))
		return -ENOTTY;
	if ((_IOC_DIR(cmd) & _IOC_WRITE) &&
	    copy_from_user(&argument, (void __user *)arg, _IOC_SIZE(cmd)))
		return -EFAULT;
	switch (cmd) {
	case KUTRACE_IOC_ATTACH:
		ret = kutrace_attach(&argument.attach);
		break;
	case KUTRACE_IOC_GRANT:
		ret = kutrace_grant(&argument.grant);
		break;
	case KUTRACE_IOC_PAGE:
		ret = kutrace_map_page(&argument.page);
		break;
	default:
		ret = -ENOTTY;
	}
	if (!ret && copy_to_user((void __user *)arg, &argument, _IOC_SIZE(cmd)))
		return -EFAULT;
	return ret;
}

/* Writes what is known of the parts, and opens the area for reading. */
static long kutrace_tell(struct kutrace_process *process,
			 struct kutrace_program *program)
{
	struct kutrace_granted __user *to = u64_to_user_ptr(program->address);
	u32 room = program->grants;
	struct kutrace_piece *piece;
	struct kutrace_part *part;
	struct file *file;
	u32 end;
	int fd;

	*program = process->told;
	program->grants = process->pieces;
	list_for_each_entry(part, &process->parts, list) {
		end = part->offset + part->bytes;
		for (piece = part->newest; piece && room;
		     end = piece->offset, piece = piece->before, room--) {
			struct kutrace_granted granted = {
				.offset = piece->offset,
				.bytes = end - piece->offset,
				.tid = piece->tid,
				.kind = part->kind,
				.sequence = piece->sequence,
				.tsc = piece->tsc,
			};

			if (copy_to_user(to++, &granted, sizeof(*to)))
				return -EFAULT;
		}
	}
	file = kutrace_readonly(process->area);
	if (IS_ERR(file))
		return PTR_ERR(file);
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		fput(file);
		return fd;
	}
	fd_install(fd, file);
	program->fd = fd;
	return 0;
}

static long kutrace_next_program(struct kutrace_program *program)
{
	struct kutrace_process *process;

	list_for_each_entry(process, &kutrace_processes, list)
		if (process->told.serial > program->serial)
			return kutrace_tell(process, program);
	if (kutrace_others.told.refused && program->serial < KUTRACE_NO_MORE)
		return kutrace_tell(&kutrace_others, program);
	*program = (struct kutrace_program) { .fd = -1 };
	return 0;
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

long kutrace_programs_control(unsigned int cmd, union kutrace_argument *argument)
{
	long ret;

	mutex_lock(&kutrace_programs_lock);
	switch (cmd) {
	case KUTRACE_IOC_QUOTA:
		ret = kutrace_set_quota((void *)argument);
		break;
	case KUTRACE_IOC_PROGRAM:
		ret = kutrace_next_program((void *)argument);
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&kutrace_programs_lock);
	return ret;
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

static void kutrace_free_page(void)
{
	kutrace_show(0);
	put_page(kutrace_page);
	kutrace_page = NULL;
	fput(kutrace_page_file);
}

int kutrace_programs_add(void)
{
	struct page *page;
	int ret;

	kutrace_quota = kutrace_asked;
	kutrace_page_file = shmem_file_setup("kutrace", PAGE_SIZE, KUTRACE_NO_RESERVE);
	if (IS_ERR(kutrace_page_file))
		return PTR_ERR(kutrace_page_file);
	/* It is read by its address, so it must stay where it is. */
	mapping_set_unevictable(kutrace_page_file->f_mapping);
	page = shmem_read_mapping_page(kutrace_page_file->f_mapping, 0);
	if (IS_ERR(page)) {
		fput(kutrace_page_file);
		return PTR_ERR(page);
	}
	kutrace_page = page;
	/* It has no parts of it, so nothing of the page is read. */
	kutrace_others.area = kutrace_page_file;
	kutrace_show(kutrace_recording ? kutrace_traces : 0);
	ret = misc_register(&kutrace_programs_device);
	if (ret)
		kutrace_free_page();
	return ret;
}

void kutrace_programs_remove(void)
{
	misc_deregister(&kutrace_programs_device);
	kutrace_programs_reset(false);
	kutrace_free_page();
}
