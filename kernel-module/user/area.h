/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The grants of each process in its area: each is a unit of addresses with
 * pages. Layouts and numbers are those of format/src/abi/programs.rs.
 */
#ifndef KUTRACE_AREA_H
#define KUTRACE_AREA_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#define KUTRACE_AREA_BYTES	(64UL << 20)
/* Units of a page up to there: first those of names, then those of words. */
#define KUTRACE_WORDS_AT	(4UL << 20)
#define KUTRACE_RUNS_AT		(32UL << 20)
#define KUTRACE_RUN_BYTES	(64UL << 10)
/* The most that a process may have. */
#define KUTRACE_QUOTA_MAX	(16UL << 20)
#define KUTRACE_GRANTS_MAX	(KUTRACE_QUOTA_MAX / PAGE_SIZE)

enum { KUTRACE_KIND_WORDS, KUTRACE_KIND_NAMES };

/* Added to the kind of a grant: nothing writes there any more. */
#define KUTRACE_KIND_DONE	BIT(31)

struct kutrace_quota {
	u64 process;
	u64 all;
};

struct kutrace_program {
	u32 serial;
	u32 tgid;
	u32 grants;
	u32 ended;
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

struct kutrace_copy {
	u32 serial;
	u32 offset;
	u64 sequence;
	u64 address;
	u64 bytes;
};

struct kutrace_grant;

/* The area of a process, and its grants in a trace. */
struct kutrace_process {
	struct list_head list;
	/* Used to unmap its pages; NULL once the area is gone. */
	struct address_space *mapping;
	u64 at;
	kuid_t user;
	/* Bytes granted, those of them with names, and those kept for the first words. */
	u64 held;
	u64 named;
	u32 booked;
	u32 count;
	u64 sequence;
	/* Indexed by the page of the area at which they begin. */
	struct xarray units;
	/* In the order in which they were granted. */
	struct list_head grants;
	/* The page mapped where nothing is granted, and where it was last mapped. */
	struct page *junk;
	u64 junk_at;
	struct kutrace_program told;
};

/* Describes where a memory image has these; Programs of format/src/abi/landmark.rs. */
struct kutrace_layout {
	u64 processes;
	u64 others;
	struct {
		u32 list;
		u32 told;
		u32 count;
		u32 grants;
	} process;
	struct {
		u32 list;
		u32 offset;
		u32 bytes;
		u32 tid;
		u32 sequence;
		u32 tsc;
		u32 frames;
	} grant;
	u32 reserved;
};

/* Bytes that all areas together have, and quotas; under the lock of programs.c. */
extern u64 kutrace_bytes;
extern struct kutrace_quota kutrace_quota;

/* Returns the start of the unit of an address, and its length in @bytes. */
u32 kutrace_unit(u32 offset, u32 *bytes);

struct kutrace_process *kutrace_new_process(struct vm_area_struct *vma, gfp_t gfp);
void kutrace_free_process(struct kutrace_process *process);
/* Takes everything that it has, and resets it to its initial state. */
void kutrace_empty(struct kutrace_process *process);

/* The grant of the unit of an address, NULL for none; a new one to the running thread. */
struct kutrace_grant *kutrace_granted_at(struct kutrace_process *process, u32 offset);
struct kutrace_grant *kutrace_grant(struct kutrace_process *process, u32 offset);
/* Gives up the oldest grant into which nothing writes any more; false if there is none. */
bool kutrace_give_up(struct kutrace_process *process);
int kutrace_take_grant(struct kutrace_process *process, u32 offset, u64 sequence);

/* Both map the pages that are missing there. The caller is in a fault of the area. */
int kutrace_map_grant(struct kutrace_grant *grant, struct vm_area_struct *vma);
int kutrace_map_junk(struct kutrace_process *process, struct vm_area_struct *vma,
		     u32 offset, u64 word);
/* A grant's first page. */
void *kutrace_first_page(struct kutrace_grant *grant);

/* Returns the number of grants written to @to. */
u32 kutrace_tell(const struct kutrace_process *process,
		 struct kutrace_granted *to, u32 room);
/* Returns the number of pages from @copy->offset on in @pages, each referenced. */
int kutrace_pages(struct kutrace_process *process,
		  const struct kutrace_copy *copy, struct page **pages);
void kutrace_area_layout(struct kutrace_layout *layout);

#endif
