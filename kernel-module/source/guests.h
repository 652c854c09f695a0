/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Virtual machines that this one runs by KVM, in addition to a source's events.
 */
#ifndef KUTRACE_GUESTS_H
#define KUTRACE_GUESTS_H

#include "source.h"

/* Both may sleep; on return from the second no CPU is in the table's functions. */
int kutrace_guests_begin(const struct kutrace_table *table);
void kutrace_guests_end(void);

#endif
