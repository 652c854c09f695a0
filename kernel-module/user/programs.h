/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What programs record into memory of their own. Layouts and numbers are those
 * of format/src/abi/programs.rs.
 */
#ifndef KUTRACE_PROGRAMS_H
#define KUTRACE_PROGRAMS_H

#include <linux/types.h>

union kutrace_argument;

/* Commands of /dev/kutrace from this number on are for these. */
#define KUTRACE_PROGRAMS_FIRST	0x40

int kutrace_programs_add(void);
void kutrace_programs_remove(void);
long kutrace_programs_control(unsigned int cmd, union kutrace_argument *argument);

/* The holder of the control lock calls these. */
void kutrace_programs_reset(bool wrap);
void kutrace_programs_open(void);
void kutrace_programs_close(void);

#endif
