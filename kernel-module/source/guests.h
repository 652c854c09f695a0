/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Virtual machines that this one runs by KVM, beside what a source tells.
 */
#ifndef KUTRACE_GUESTS_H
#define KUTRACE_GUESTS_H

#include "source.h"

/* Both may sleep; on return from the second nobody is in the table's functions. */
int kutrace_guests_begin(const struct kutrace_table *table);
void kutrace_guests_end(void);

#endif
