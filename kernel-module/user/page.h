/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page of programs, which holds the number of the trace, or 0.
 */
#ifndef KUTRACE_PAGE_H
#define KUTRACE_PAGE_H

#include <linux/mm_types.h>
#include <linux/types.h>

int kutrace_page_add(void);
void kutrace_page_remove(void);
void kutrace_page_show(u32 trace);
int kutrace_page_map(struct vm_area_struct *vma);

#endif
