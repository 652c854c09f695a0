/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time that the host of this machine takes from its CPUs, in addition to a
 * source's events.
 */
#ifndef KUTRACE_STEAL_H
#define KUTRACE_STEAL_H

#include <linux/types.h>

/*
 * The first finds out, when the module is loaded, whether the host counts it;
 * the second returns that, the third whether all such time can be seen.
 */
void kutrace_steal_find(void);
bool kutrace_steal_is_known(void);
bool kutrace_steal_is_seen(void);

/* Both may sleep. Time taken before the first is not reported. */
int kutrace_steal_begin(void);
void kutrace_steal_end(void);

/* Returns how many more ns it has taken from this CPU, as ../ffi.rs has it. */
u32 kutrace_steal_taken(void);

#endif
