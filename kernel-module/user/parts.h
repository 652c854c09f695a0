/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each process has of its area: parts, and what threads have of those.
 * Layouts and numbers are those of format/src/abi/programs.rs.
 */
#ifndef KUTRACE_PARTS_H
#define KUTRACE_PARTS_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#define KUTRACE_AREA_BYTES	(16UL << 20)
/* Of what a thread gets of another's part; what is noted of it takes as much. */
#define KUTRACE_REST_BYTES	32U
#define KUTRACE_PIECES_MAX	(KUTRACE_AREA_BYTES / KUTRACE_REST_BYTES)

enum { KUTRACE_KIND_WORDS, KUTRACE_KIND_NAMES, KUTRACE_KIND_REST };

/* With the kind of what is granted: nobody writes there any more; the last of its part. */
#define KUTRACE_KIND_DONE	BIT(31)
#define KUTRACE_KIND_LAST	BIT(30)

struct kutrace_grant {
	u32 kind;
	u32 bytes;
	u32 offset;
	u32 serial;
	u64 sequence;
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
	u32 ended;
	u32 reserved;
};

struct kutrace_granted {
	u32 offset;
	u32 bytes;
	u32 tid;
	u32 kind;
	u64 sequence;
	u64 tsc;
};

struct kutrace_part;

/* A process from one exec to the next. */
struct kutrace_process {
	struct list_head list;
	struct pid *tgid;
	u64 exec;
	kuid_t user;
	struct file *area;
	unsigned long address;
	/* Up to where its area is in parts, and how much of that has pages. */
	u64 bytes;
	u64 held;
	/* Of what all have, kept for its first words. */
	u32 booked;
	u32 pieces;
	u64 sequence;
	/* The one granted last is last. */
	struct list_head parts;
	struct kutrace_program told;
};

/* Where an image of the memory has all this; Programs of format/src/abi/landmark.rs. */
struct kutrace_layout {
	u64 processes;
	u64 others;
	struct {
		u32 list;
		u32 told;
		u32 pieces;
		u32 parts;
	} process;
	struct {
		u32 list;
		u32 offset;
		u32 bytes;
		u32 kind;
		u32 newest;
		u32 frames;
	} part;
	struct {
		u32 before;
		u32 offset;
		u32 tid;
		u32 sequence;
		u32 tsc;
	} piece;
	u32 reserved;
};

/* What all areas together have, and may have; under the lock of programs.c. */
extern u64 kutrace_bytes;
extern struct kutrace_quota kutrace_quota;

/* What a user's areas may have beside what they have. */
u64 kutrace_room(kuid_t user);

/* Each of these gives the calling thread something, or says why not. */
int kutrace_parts_more(struct kutrace_process *process, struct kutrace_grant *grant);
int kutrace_parts_again(struct kutrace_process *process, struct kutrace_grant *grant);
int kutrace_parts_rest(struct kutrace_process *process, struct kutrace_grant *grant);

/* Returns how many it has told. */
u32 kutrace_parts_tell(const struct kutrace_process *process,
		       struct kutrace_granted *to, u32 room);
int kutrace_parts_take(struct kutrace_process *process, u64 sequence);
void kutrace_parts_free(struct kutrace_process *process);
void kutrace_parts_layout(struct kutrace_layout *layout);

#endif
