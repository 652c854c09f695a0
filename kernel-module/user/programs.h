/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What programs record into memory of their own. Layouts and numbers are those
 * of format/src/abi/programs.rs.
 */
#ifndef KUTRACE_PROGRAMS_H
#define KUTRACE_PROGRAMS_H

#include <linux/types.h>

union kutrace_argument;
struct kutrace_layout;

/* A process that was refused something; Refused of format/src/abi/programs.rs. */
struct kutrace_refused {
	u32 place;
	u32 tgid;
	u64 times;
	char comm[16];
};

/* Commands of /dev/kutrace from this number on are for these. */
#define KUTRACE_PROGRAMS_FIRST	0x40

int kutrace_programs_add(void);
void kutrace_programs_remove(void);
long kutrace_programs_control(unsigned int cmd, union kutrace_argument *argument);

/* The holder of the control lock calls these. */
void kutrace_programs_reset(bool wrap, bool stream);
void kutrace_programs_open(void);
void kutrace_programs_close(void);
void kutrace_programs_layout(struct kutrace_layout *layout);

/* rate.c; Rust calls the first two, with preemption off. */
bool kutrace_rate_take_one(void);
void kutrace_rate_refused(void);
bool kutrace_rate_take(u32 items);
void kutrace_rate_reset(void);
void kutrace_rate_next(struct kutrace_refused *told);

#endif
