/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page of programs, which says whether a trace is recorded. Layout and
 * number are those of format/src/abi/programs.rs.
 */
#ifndef KUTRACE_PAGE_H
#define KUTRACE_PAGE_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/version.h>

/* Since 7.0 flags of areas are a type of their own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define KUTRACE_NO_RESERVE	mk_vma_flags(VMA_NORESERVE_BIT)
#else
#define KUTRACE_NO_RESERVE	VM_NORESERVE
#endif

struct kutrace_page {
	u64 address;
};

/* A file in memory whose pages stay where they are, and that nobody opens anew. */
struct file *kutrace_new_file(loff_t bytes);
void kutrace_seal(struct file *file);
int kutrace_page_add(void);
void kutrace_page_remove(void);
void kutrace_page_show(u32 trace);
long kutrace_page_map(struct kutrace_page *page);
struct file *kutrace_readonly(struct file *file);

#endif
