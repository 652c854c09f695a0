/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events that programs record into memory of their own. Layouts and numbers are
 * those of format/src/abi/programs.rs.
 */
#ifndef KUTRACE_PROGRAMS_H
#define KUTRACE_PROGRAMS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "area.h"

/* A process that was refused something; Refused of format/src/abi/programs.rs. */
struct kutrace_refused {
	u32 place;
	u32 tgid;
	u64 times;
	char comm[16];
};

/* Commands of /dev/kutrace. */
#define KUTRACE_IOC_PROGRAM	_IOWR(KUTRACE_IOC_TYPE, 0x44, struct kutrace_program)
#define KUTRACE_IOC_COPY	_IOW(KUTRACE_IOC_TYPE, 0x48, struct kutrace_copy)

int kutrace_programs_add(void);
void kutrace_programs_remove(void);
/* Report a process and its grants; copy the bytes of a grant. The caller has no lock. */
long kutrace_programs_tell(struct kutrace_program __user *to);
long kutrace_programs_copy(const struct kutrace_copy __user *from);

/* The holder of the control lock calls these, Rust the first. */
long kutrace_programs_control(unsigned int cmd, void *argument);
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
