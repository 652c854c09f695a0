// SPDX-License-Identifier: GPL-2.0
/*
 * The rate at which each process inserts: a number a second, and at once as
 * many as it did not use in the last second. A mark by system call counts as
 * one, and memory for marks as many as it has words, when it is granted:
 * nothing is checked afterwards.
 *
 * A process needs a place here only while it inserts, and for as long as its
 * refusals are to be reported. A process that used up nothing of the last
 * second has all of its second, like one without a place. So a few places serve
 * any number of processes. If a newcomer finds none, only the limits of its CPU
 * apply to it.
 *
 * A CPU takes a part in advance for the process that it runs, so that most
 * marks need neither the lock nor the time. It gives back the rest of that part
 * when another process inserts there.
 *
 * Only tasks get here, in a system call or a page fault of an area, and no
 * hook of the kernel: so nothing waits for a lock longer than the lookup of a
 * place takes.
 */
#include <linux/hash.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "../shim.h"
#include "programs.h"

#define KUTRACE_ROWS_BITS	6
#define KUTRACE_ROWS		(1U << KUTRACE_ROWS_BITS)
#define KUTRACE_PLACES		8U
/* After all places: the processes that had to make room. */
#define KUTRACE_OTHERS		(KUTRACE_ROWS * KUTRACE_PLACES)
/* Insertions that a CPU takes in advance: a thousandth of a second's, but no more than this. */
#define KUTRACE_ADVANCE		64U

static unsigned int usermark_rate = 1000000;
module_param(usermark_rate, uint, 0444);
MODULE_PARM_DESC(usermark_rate, "What a process may insert a second, in marks by system call and words in its memory, 0 for any number (default 1000000)");

struct kutrace_place {
	/* Start time: together with the number no other process's. */
	u64 born;
	/* The time up to which its rate is used up. */
	u64 used;
	u64 refused;
	u32 tgid;
	char comm[TASK_COMM_LEN];
};

struct kutrace_row {
	raw_spinlock_t lock;
	struct kutrace_place places[KUTRACE_PLACES];
};

/* The insertions that this CPU took in advance, and their process. */
struct kutrace_advance {
	u64 born;
	u32 tgid;
	u32 left;
};

static DEFINE_PER_CPU(struct kutrace_advance, kutrace_advance);

static struct kutrace_row kutrace_rows[KUTRACE_ROWS] = {
	[0 ... KUTRACE_ROWS - 1] = {
		.lock = __RAW_SPIN_LOCK_UNLOCKED(kutrace_rows.lock),
	},
};
static atomic64_t kutrace_others_refused;

/* Times count from a second before the machine's start, so there is none before 0. */
static u64 kutrace_now(void)
{
	return ktime_get_mono_fast_ns() + NSEC_PER_SEC;
}

static bool kutrace_is_unused(const struct kutrace_place *place, u64 now)
{
	return place->used + NSEC_PER_SEC <= now;
}

static u64 kutrace_born(void)
{
	return current->group_leader->start_boottime;
}

static struct kutrace_row *kutrace_row(u32 tgid)
{
	return &kutrace_rows[hash_32(tgid, KUTRACE_ROWS_BITS)];
}

static struct kutrace_place *kutrace_own_place(struct kutrace_row *row, u32 tgid, u64 born)
{
	struct kutrace_place *place;

	for (place = row->places; place < row->places + KUTRACE_PLACES; place++)
		if (place->tgid == tgid && place->born == born)
			return place;
	return NULL;
}

/*
 * Returns the place of the running process: its own, or one that another
 * process does not need any more, among these the one that was refused least.
 * NULL if all are needed.
 */
static struct kutrace_place *kutrace_find_place(struct kutrace_row *row, u64 now)
{
	u32 tgid = task_tgid_nr(current);
	u64 born = kutrace_born();
	struct kutrace_place *place, *found = kutrace_own_place(row, tgid, born);

	if (found)
		return found;
	for (place = row->places; place < row->places + KUTRACE_PLACES; place++) {
		if (kutrace_is_unused(place, now) &&
		    (!found || place->refused < found->refused))
			found = place;
	}
	if (found) {
		atomic64_add(found->refused, &kutrace_others_refused);
		*found = (struct kutrace_place) { .tgid = tgid, .born = born };
	}
	return found;
}

static u64 kutrace_cost(u32 items)
{
	return items * (NSEC_PER_SEC / usermark_rate);
}

static bool kutrace_take(struct kutrace_place *place, u64 now, u32 items)
{
	u64 used = max(place->used, now - NSEC_PER_SEC);

	if (used >= now)
		return false;
	place->used = used + kutrace_cost(items);
	return true;
}

/* A process without a place used up nothing of the last second: nothing is due to it. */
static void kutrace_give_back(struct kutrace_advance *advance)
{
	struct kutrace_row *row = kutrace_row(advance->tgid);
	struct kutrace_place *place;

	raw_spin_lock(&row->lock);
	place = kutrace_own_place(row, advance->tgid, advance->born);
	if (place)
		place->used -= kutrace_cost(advance->left);
	raw_spin_unlock(&row->lock);
	advance->left = 0;
}

static void kutrace_count_refused(struct kutrace_place *place)
{
	if (!place) {
		atomic64_inc(&kutrace_others_refused);
		return;
	}
	if (!place->refused++)
		strscpy_pad(place->comm, current->group_leader->comm, TASK_COMM_LEN);
}

/*
 * Takes @items from the rate of the running process; false if nothing is left,
 * which is counted. Items beyond what is left are owed.
 */
bool kutrace_rate_take(u32 items)
{
	struct kutrace_row *row = kutrace_row(task_tgid_nr(current));
	struct kutrace_place *place;
	bool is_taken;
	u64 now;

	if (!usermark_rate)
		return true;
	raw_spin_lock(&row->lock);
	now = kutrace_now();
	place = kutrace_find_place(row, now);
	is_taken = !place || kutrace_take(place, now, items);
	if (!is_taken)
		kutrace_count_refused(place);
	raw_spin_unlock(&row->lock);
	return is_taken;
}

static noinline bool kutrace_advance_more(struct kutrace_advance *advance)
{
	u32 tgid = task_tgid_nr(current);
	u64 born = kutrace_born();
	u32 part;

	if (advance->tgid != tgid || advance->born != born) {
		if (advance->left)
			kutrace_give_back(advance);
		*advance = (struct kutrace_advance) { .tgid = tgid, .born = born };
	}
	part = clamp(usermark_rate / 1000, 1U, KUTRACE_ADVANCE);
	if (!kutrace_rate_take(part))
		return false;
	advance->left = part - 1;
	return true;
}

/* Like kutrace_rate_take() for one, most often from this CPU's advance; with preemption off. */
bool kutrace_rate_take_one(void)
{
	struct kutrace_advance *advance = this_cpu_ptr(&kutrace_advance);

	if (!usermark_rate)
		return true;
	if (!advance->left || advance->tgid != task_tgid_nr(current) ||
	    advance->born != kutrace_born())
		return kutrace_advance_more(advance);
	advance->left--;
	return true;
}

/* Counts that the running process was refused by the limits of its CPU. */
void kutrace_rate_refused(void)
{
	struct kutrace_row *row = kutrace_row(task_tgid_nr(current));

	raw_spin_lock(&row->lock);
	kutrace_count_refused(kutrace_find_place(row, kutrace_now()));
	raw_spin_unlock(&row->lock);
}

void kutrace_rate_reset(void)
{
	struct kutrace_row *row;
	int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu(kutrace_advance, cpu).tgid, 0);
	for (row = kutrace_rows; row < kutrace_rows + KUTRACE_ROWS; row++) {
		raw_spin_lock(&row->lock);
		memset(row->places, 0, sizeof(row->places));
		raw_spin_unlock(&row->lock);
	}
	atomic64_set(&kutrace_others_refused, 0);
}

/* Reports the process that was refused and has the next place after @told's. */
void kutrace_rate_next(struct kutrace_refused *told)
{
	u32 at = told->place;

	memset(told, 0, sizeof(*told));
	for (; at < KUTRACE_OTHERS; at++) {
		struct kutrace_row *row = &kutrace_rows[at / KUTRACE_PLACES];
		struct kutrace_place *place = &row->places[at % KUTRACE_PLACES];

		raw_spin_lock(&row->lock);
		told->tgid = place->tgid;
		told->times = place->refused;
		memcpy(told->comm, place->comm, sizeof(told->comm));
		raw_spin_unlock(&row->lock);
		if (told->times) {
			told->place = at + 1;
			return;
		}
	}
	memset(told, 0, sizeof(*told));
	if (at > KUTRACE_OTHERS)
		return;
	told->times = atomic64_read(&kutrace_others_refused);
	told->place = told->times ? at + 1 : 0;
}
