/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints that a user has chosen by name, in addition to a source's events.
 */
#ifndef KUTRACE_RECORDS_H
#define KUTRACE_RECORDS_H

#include <linux/types.h>

#include "source.h"

/* RECORDS_MAX of ../format/src/abi/command.rs. */
#define KUTRACE_RECORDS_MAX	16

/* Chooses the tracepoints of the next trace, by the kernel's numbers. The control lock is held. */
void kutrace_records_choose(u32 count, const u32 *ids);
/* Both may sleep; on return from the second no CPU is in the table's functions. */
int kutrace_records_begin(const struct kutrace_table *table);
void kutrace_records_end(void);

#endif
