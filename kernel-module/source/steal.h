/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the host of this machine takes from its CPUs, beside what a source tells.
 */
#ifndef KUTRACE_STEAL_H
#define KUTRACE_STEAL_H

#include <linux/types.h>

/* Whether the host counts it, when the module is loaded, and whether that can be asked. */
void kutrace_steal_find(void);
bool kutrace_steal_is_known(void);
bool kutrace_steal_is_seen(void);

/* Both may sleep. What was taken before the first is not told. */
int kutrace_steal_begin(void);
void kutrace_steal_end(void);

/* How many ns more it has taken from this CPU, as ../ffi.rs has it. */
u32 kutrace_steal_taken(void);

#endif
