// SPDX-License-Identifier: GPL-2.0
/*
 * The grants of each process in its area: each is a unit of addresses with
 * pages of its own, into which one thread writes. A grant into which no thread
 * writes any more is given up: in wrap mode when there is no other room, in a
 * stream when its reader has taken its content. Its addresses can be granted
 * again, with new pages.
 *
 * The pages stay where they are, and are neither swapped out nor moved, so
 * their frame numbers hold as long as the grant does. By these numbers the
 * reader of a memory image of a crashed machine finds the content.
 */
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <asm/tsc.h>

#include "area.h"

/* Losing marks is better than ending a process, whose memory they are charged to. */
#define KUTRACE_GFP	(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN)
#define KUTRACE_NOWHERE	U64_MAX

struct kutrace_grant {
	struct list_head list;
	u32 offset;
	u32 bytes;
	u32 tid;
	/* Number of grants that its thread has got since. */
	u32 newer;
	struct pid *thread;
	u64 sequence;
	u64 tsc;
	/* The frame number of each page. */
	u64 frames[];
};

u64 kutrace_bytes;
struct kutrace_quota kutrace_quota;

u32 kutrace_unit(u32 offset, u32 *bytes)
{
	*bytes = offset < KUTRACE_RUNS_AT ? PAGE_SIZE : KUTRACE_RUN_BYTES;
	return round_down(offset, *bytes);
}

static bool kutrace_is_of_names(const struct kutrace_grant *grant)
{
	return grant->offset < KUTRACE_WORDS_AT;
}

static void kutrace_unmap(struct kutrace_process *process, u64 offset, u64 bytes)
{
	if (process->mapping)
		unmap_mapping_range(process->mapping, process->at + offset, bytes, 1);
}

static void kutrace_unmap_junk(struct kutrace_process *process)
{
	if (process->junk_at != KUTRACE_NOWHERE)
		kutrace_unmap(process, process->junk_at, PAGE_SIZE);
	process->junk_at = KUTRACE_NOWHERE;
}

/* No two areas have pages at the same place of a file, except those of forks. */
struct kutrace_process *kutrace_new_process(struct vm_area_struct *vma, gfp_t gfp)
{
	struct kutrace_process *process = kzalloc(sizeof(*process), gfp);

	if (!process)
		return NULL;
	process->mapping = vma->vm_file->f_mapping;
	process->at = (u64)vma->vm_pgoff << PAGE_SHIFT;
	process->junk_at = KUTRACE_NOWHERE;
	xa_init(&process->units);
	INIT_LIST_HEAD(&process->grants);
	return process;
}

static void kutrace_free_grant(struct kutrace_grant *grant)
{
	u32 n;

	for (n = 0; n < grant->bytes / PAGE_SIZE && grant->frames[n]; n++)
		put_page(pfn_to_page(grant->frames[n]));
	put_pid(grant->thread);
	kfree(grant);
}

/* The grant is mapped nowhere. */
static void kutrace_remove_grant(struct kutrace_process *process,
				 struct kutrace_grant *grant)
{
	xa_erase(&process->units, grant->offset / PAGE_SIZE);
	list_del(&grant->list);
	process->count--;
	process->held -= grant->bytes;
	kutrace_bytes -= grant->bytes;
	kutrace_free_grant(grant);
}

static void kutrace_clear(struct kutrace_process *process,
			  struct kutrace_grant *grant)
{
	kutrace_unmap(process, grant->offset, grant->bytes);
	kutrace_remove_grant(process, grant);
}

void kutrace_empty(struct kutrace_process *process)
{
	struct kutrace_grant *grant, *next;

	if (process->count || process->junk)
		kutrace_unmap(process, 0, KUTRACE_AREA_BYTES);
	list_for_each_entry_safe(grant, next, &process->grants, list)
		kutrace_remove_grant(process, grant);
	if (process->junk)
		put_page(process->junk);
	kutrace_bytes -= process->booked;
	process->junk = NULL;
	process->junk_at = KUTRACE_NOWHERE;
	process->named = 0;
	process->booked = 0;
	process->sequence = 0;
	memset(&process->told, 0, sizeof(process->told));
}

void kutrace_free_process(struct kutrace_process *process)
{
	kutrace_empty(process);
	xa_destroy(&process->units);
	kfree(process);
}

struct kutrace_grant *kutrace_granted_at(struct kutrace_process *process, u32 offset)
{
	u32 bytes;

	return xa_load(&process->units, kutrace_unit(offset, &bytes) / PAGE_SIZE);
}

/* Makes a grant with pages, all 0. */
static struct kutrace_grant *kutrace_new_grant(u32 offset)
{
	u32 n, bytes, start = kutrace_unit(offset, &bytes);
	struct kutrace_grant *grant;

	grant = kzalloc(struct_size(grant, frames, bytes / PAGE_SIZE), KUTRACE_GFP);
	if (!grant)
		return NULL;
	grant->offset = start;
	grant->bytes = bytes;
	for (n = 0; n < bytes / PAGE_SIZE; n++) {
		struct page *page = alloc_page(KUTRACE_GFP);

		if (!page) {
			kutrace_free_grant(grant);
			return NULL;
		}
		grant->frames[n] = page_to_pfn(page);
	}
	return grant;
}

/* Counts a newer one for each grant of the running thread. */
static void kutrace_count_newer(struct kutrace_process *process)
{
	struct kutrace_grant *grant;

	list_for_each_entry(grant, &process->grants, list)
		if (grant->thread == task_pid(current))
			grant->newer++;
}

struct kutrace_grant *kutrace_grant(struct kutrace_process *process, u32 offset)
{
	struct kutrace_grant *grant = kutrace_new_grant(offset);
	int ret;

	if (!grant)
		return ERR_PTR(-ENOMEM);
	ret = xa_err(xa_store(&process->units, grant->offset / PAGE_SIZE, grant,
			      KUTRACE_GFP & ~__GFP_ZERO));
	if (ret) {
		kutrace_free_grant(grant);
		return ERR_PTR(ret);
	}
	/* A thread may have written there before. */
	if (process->junk_at - grant->offset < grant->bytes)
		kutrace_unmap_junk(process);
	if (kutrace_is_of_names(grant))
		process->named += grant->bytes;
	else
		kutrace_count_newer(process);
	grant->tid = task_pid_nr(current);
	grant->thread = get_pid(task_pid(current));
	grant->sequence = ++process->sequence;
	grant->tsc = rdtsc_ordered();
	list_add_tail(&grant->list, &process->grants);
	process->count++;
	process->held += grant->bytes;
	kutrace_bytes += grant->bytes;
	return grant;
}

/*
 * Nothing writes any more into the words of a thread that is gone, or has got
 * other words since. One other grant may not be enough: a signal handler that
 * came in the middle of an entry may have got it.
 */
static bool kutrace_is_done(const struct kutrace_grant *grant)
{
	bool lives;

	if (kutrace_is_of_names(grant))
		return false;
	rcu_read_lock();
	lives = pid_task(grant->thread, PIDTYPE_PID);
	rcu_read_unlock();
	return !lives || grant->newer > 1;
}

/* If no grant is done, gives up one that is nearly so. */
bool kutrace_give_up(struct kutrace_process *process)
{
	struct kutrace_grant *grant, *second = NULL;

	list_for_each_entry(grant, &process->grants, list) {
		if (kutrace_is_done(grant)) {
			kutrace_clear(process, grant);
			return true;
		}
		if (grant->newer && !second && !kutrace_is_of_names(grant))
			second = grant;
	}
	if (second)
		kutrace_clear(process, second);
	return second;
}

/* Returns the grant of that number, unless its unit was given up since. */
static struct kutrace_grant *kutrace_find_grant(struct kutrace_process *process,
						u32 offset, u64 sequence)
{
	struct kutrace_grant *grant = kutrace_granted_at(process, offset);

	return grant && grant->sequence == sequence ? grant : NULL;
}

/* Takes a grant that was done when it was read. */
int kutrace_take_grant(struct kutrace_process *process, u32 offset, u64 sequence)
{
	struct kutrace_grant *grant = kutrace_find_grant(process, offset, sequence);

	if (!grant)
		return -ESTALE;
	if (!kutrace_is_done(grant))
		return -EBUSY;
	kutrace_clear(process, grant);
	return 0;
}

/* Another thread may have mapped it first. */
static int kutrace_map(struct vm_area_struct *vma, u32 offset, struct page *page)
{
	int ret = vm_insert_page(vma, vma->vm_start + offset, page);

	return ret == -EBUSY ? 0 : ret;
}

int kutrace_map_grant(struct kutrace_grant *grant, struct vm_area_struct *vma)
{
	int ret = 0;
	u32 n;

	for (n = 0; !ret && n < grant->bytes / PAGE_SIZE; n++)
		ret = kutrace_map(vma, grant->offset + n * PAGE_SIZE,
				  pfn_to_page(grant->frames[n]));
	return ret;
}

void *kutrace_first_page(struct kutrace_grant *grant)
{
	return page_address(pfn_to_page(grant->frames[0]));
}

/*
 * Maps a page that no reader sees, which belongs to the process alone, and is
 * charged to it however much it has: there is one if there is any memory. It is
 * mapped at one address at a time, so that a unit that was refused once can be
 * asked for again.
 */
int kutrace_map_junk(struct kutrace_process *process, struct vm_area_struct *vma,
		     u32 offset, u64 word)
{
	if (!process->junk)
		process->junk = alloc_page(KUTRACE_GFP | __GFP_NOFAIL);
	if (process->junk_at != offset)
		kutrace_unmap_junk(process);
	process->junk_at = offset;
	WRITE_ONCE(*(u64 *)page_address(process->junk), word);
	return kutrace_map(vma, offset, process->junk);
}

u32 kutrace_tell(const struct kutrace_process *process,
		 struct kutrace_granted *to, u32 room)
{
	struct kutrace_granted *first = to;
	struct kutrace_grant *grant;

	list_for_each_entry(grant, &process->grants, list) {
		if (!room--)
			break;
		*to++ = (struct kutrace_granted) {
			.offset = grant->offset,
			.bytes = grant->bytes,
			.tid = grant->tid,
			.kind = kutrace_is_of_names(grant) ? KUTRACE_KIND_NAMES :
				kutrace_is_done(grant) ? KUTRACE_KIND_DONE : 0,
			.sequence = grant->sequence,
			.tsc = grant->tsc,
		};
	}
	return to - first;
}

int kutrace_pages(struct kutrace_process *process,
		  const struct kutrace_copy *copy, struct page **pages)
{
	struct kutrace_grant *grant = kutrace_find_grant(process, copy->offset,
							 copy->sequence);
	u32 n, from, count = 0;

	if (!grant)
		return -ESTALE;
	from = copy->offset - grant->offset;
	if (copy->bytes > grant->bytes - from)
		return -EINVAL;
	for (n = from / PAGE_SIZE; n * PAGE_SIZE < from + copy->bytes; n++) {
		pages[count] = pfn_to_page(grant->frames[n]);
		get_page(pages[count++]);
	}
	return count;
}

void kutrace_area_layout(struct kutrace_layout *layout)
{
	layout->process.list = offsetof(struct kutrace_process, list);
	layout->process.told = offsetof(struct kutrace_process, told);
	layout->process.count = offsetof(struct kutrace_process, count);
	layout->process.grants = offsetof(struct kutrace_process, grants);
	layout->grant.list = offsetof(struct kutrace_grant, list);
	layout->grant.offset = offsetof(struct kutrace_grant, offset);
	layout->grant.bytes = offsetof(struct kutrace_grant, bytes);
	layout->grant.tid = offsetof(struct kutrace_grant, tid);
	layout->grant.sequence = offsetof(struct kutrace_grant, sequence);
	layout->grant.tsc = offsetof(struct kutrace_grant, tsc);
	layout->grant.frames = offsetof(struct kutrace_grant, frames);
}
