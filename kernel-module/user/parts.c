// SPDX-License-Identifier: GPL-2.0
/*
 * What each process has of its area: parts, each whole pages, and what threads
 * have, or had, of those. A part goes to the thread that asks; what it leaves of
 * one goes to another, and a part that nobody writes into any more is granted
 * anew with new pages: in wrap mode when there are no others, in a stream when
 * its reader has taken what was there.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <asm/tsc.h>

#include "parts.h"

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
	/* NULL while nobody has it. */
	struct kutrace_piece *newest;
	/* Of each page the number of its frame, 0 while there is none. */
	u64 frames[];
};

u64 kutrace_bytes;
struct kutrace_quota kutrace_quota;

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

static void kutrace_punch(struct kutrace_process *process, u32 offset, u64 bytes)
{
	shmem_truncate_range(file_inode(process->area), offset,
			     (loff_t)offset + bytes - 1);
}

/*
 * The area is never shorter than its parts. A system call that makes a file
 * longer would end a program whose files have a limit.
 */
static void kutrace_reach(struct kutrace_process *process, loff_t end)
{
	struct inode *inode = file_inode(process->area);

	inode_lock(inode);
	if (i_size_read(inode) < end)
		i_size_write(inode, end);
	inode_unlock(inode);
}

/* Gives back the pages that kutrace_fill() keeps. */
static void kutrace_drop(struct kutrace_part *part)
{
	u32 n;

	for (n = 0; n < part->bytes / PAGE_SIZE; n++) {
		if (part->frames[n])
			put_page(pfn_to_page(part->frames[n]));
		part->frames[n] = 0;
	}
}

/*
 * A part gets pages, all 0, and keeps them: they are neither swapped out nor
 * moved, so the numbers of their frames hold until it is cleared. By these
 * whoever reads an image of a machine that has crashed finds what is there. It
 * is no more memory than the quota allows.
 */
static int kutrace_fill(struct kutrace_process *process, struct kutrace_part *part)
{
	struct page *page;
	u32 n;

	kutrace_reach(process, part->offset + part->bytes);
	for (n = 0; n < part->bytes / PAGE_SIZE; n++) {
		page = shmem_read_mapping_page(process->area->f_mapping,
					       part->offset / PAGE_SIZE + n);
		if (IS_ERR(page)) {
			kutrace_drop(part);
			kutrace_punch(process, part->offset, part->bytes);
			return PTR_ERR(page);
		}
		part->frames[n] = page_to_pfn(page);
	}
	return 0;
}

/* Nor are its pages there. While anybody is known to have it, they are. */
static void kutrace_clear(struct kutrace_process *process, struct kutrace_part *part)
{
	kutrace_punch(process, part->offset, part->bytes);
	kutrace_forget(process, part);
	kutrace_drop(part);
	process->held -= part->bytes;
	kutrace_bytes -= part->bytes;
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

/* A part without pages, as the stream's reader has taken it; NULL for none. */
static struct kutrace_part *kutrace_taken_part(struct kutrace_process *process,
					       const struct kutrace_grant *grant)
{
	struct kutrace_part *part;

	list_for_each_entry(part, &process->parts, list)
		if (!part->newest && part->bytes <= grant->bytes &&
		    part->bytes <= kutrace_room(process->user))
			return part;
	return NULL;
}

static int kutrace_give_pages(struct kutrace_process *process,
			      struct kutrace_part *part,
			      struct kutrace_grant *grant)
{
	int ret = kutrace_fill(process, part);

	if (ret)
		return ret;
	process->held += part->bytes;
	kutrace_bytes += part->bytes;
	ret = kutrace_give(process, part, part->offset, grant);
	if (ret)
		kutrace_clear(process, part);
	return ret;
}

/* Another part: one that was taken, or one at the end of what the process has. */
int kutrace_parts_more(struct kutrace_process *process,
			     struct kutrace_grant *grant)
{
	struct kutrace_part *part;
	u64 room;
	u32 bytes;
	int ret;

	if (grant->kind == KUTRACE_KIND_WORDS) {
		kutrace_bytes -= process->booked;
		process->booked = 0;
		part = kutrace_taken_part(process, grant);
		if (part)
			return kutrace_give_pages(process, part, grant);
	}
	room = min(kutrace_quota.process - process->bytes - process->booked,
		   kutrace_room(process->user));
	bytes = min_t(u64, grant->bytes, round_down(room, PAGE_SIZE));
	if (!bytes)
		return -ENOSPC;
	part = kvzalloc(struct_size(part, frames, bytes / PAGE_SIZE),
			GFP_KERNEL_ACCOUNT);
	if (!part)
		return -ENOMEM;
	INIT_LIST_HEAD(&part->list);
	part->offset = process->bytes;
	part->bytes = bytes;
	part->kind = grant->kind;
	ret = kutrace_give_pages(process, part, grant);
	if (ret)
		kvfree(part);
	else
		process->bytes += bytes;
	return ret;
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
 * Nobody writes into a part of words of a thread that is gone, or has got others
 * since. One other may not be enough: a signal handler that came into the middle
 * of an entry may have asked for it.
 */
static bool kutrace_is_done(const struct kutrace_part *part)
{
	return part->kind == KUTRACE_KIND_WORDS &&
	       (part->left > 1 || !kutrace_lives(part->thread));
}

/* The oldest part that nobody writes into, or else nearly so. */
static struct kutrace_part *kutrace_oldest(struct kutrace_process *process)
{
	struct kutrace_part *part, *second = NULL;

	list_for_each_entry(part, &process->parts, list) {
		if (part->kind != KUTRACE_KIND_WORDS || !part->newest)
			continue;
		if (kutrace_is_done(part))
			return part;
		if (part->left && !second)
			second = part;
	}
	return second;
}

/* In wrap mode: that, with new pages. */
int kutrace_parts_again(struct kutrace_process *process,
			      struct kutrace_grant *grant)
{
	struct kutrace_part *part = kutrace_oldest(process);

	if (!part)
		return -ENOSPC;
	kutrace_clear(process, part);
	return kutrace_give_pages(process, part, grant);
}

/*
 * What is left of a part: its own, which it did not use before, or that of a
 * thread which is gone. The sequence says which piece is meant, so it is not
 * one that was granted anew, and the offset where its thread had got to.
 */
int kutrace_parts_rest(struct kutrace_process *process,
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

/* Writes what is known of the parts, up to @room pieces. */
u32 kutrace_parts_tell(const struct kutrace_process *process,
		       struct kutrace_granted *to, u32 room)
{
	struct kutrace_granted *first = to;
	struct kutrace_piece *piece;
	struct kutrace_part *part;
	u32 end;

	list_for_each_entry(part, &process->parts, list) {
		u32 kind = part->kind | KUTRACE_KIND_LAST;

		if (kutrace_is_done(part))
			kind |= KUTRACE_KIND_DONE;
		end = part->offset + part->bytes;
		for (piece = part->newest; piece && room;
		     end = piece->offset, piece = piece->before, room--) {
			*to++ = (struct kutrace_granted) {
				.offset = piece->offset,
				.bytes = end - piece->offset,
				.tid = piece->tid,
				.kind = kind,
				.sequence = piece->sequence,
				.tsc = piece->tsc,
			};
			kind &= ~KUTRACE_KIND_LAST;
		}
	}
	return to - first;
}

/* Nobody has a part any more that was done when it was read. */
int kutrace_parts_take(struct kutrace_process *process, u64 sequence)
{
	struct kutrace_part *part;

	list_for_each_entry(part, &process->parts, list) {
		if (!part->newest || part->newest->sequence != sequence)
			continue;
		if (!kutrace_is_done(part))
			return -EBUSY;
		kutrace_clear(process, part);
		return 0;
	}
	return -ESTALE;
}

/* The process may have its area mapped; what is there goes all the same. */
void kutrace_parts_free(struct kutrace_process *process)
{
	struct kutrace_part *part, *next;

	list_for_each_entry_safe(part, next, &process->parts, list) {
		kutrace_forget(process, part);
		kutrace_drop(part);
		kvfree(part);
	}
	if (process->bytes)
		kutrace_punch(process, 0, process->bytes);
}

void kutrace_parts_layout(struct kutrace_layout *layout)
{
	layout->part.list = offsetof(struct kutrace_part, list);
	layout->part.offset = offsetof(struct kutrace_part, offset);
	layout->part.bytes = offsetof(struct kutrace_part, bytes);
	layout->part.kind = offsetof(struct kutrace_part, kind);
	layout->part.newest = offsetof(struct kutrace_part, newest);
	layout->part.frames = offsetof(struct kutrace_part, frames);
	layout->piece.before = offsetof(struct kutrace_piece, before);
	layout->piece.offset = offsetof(struct kutrace_piece, offset);
	layout->piece.tid = offsetof(struct kutrace_piece, tid);
	layout->piece.sequence = offsetof(struct kutrace_piece, sequence);
	layout->piece.tsc = offsetof(struct kutrace_piece, tsc);
}
