// SPDX-License-Identifier: GPL-2.0
/*
 * The page of programs: any process may map it, and none may write it. It holds
 * the number of the trace, or 0.
 */
#include <linux/gfp.h>
#include <linux/mm.h>

#include "../shim.h"
#include "page.h"

static u32 *kutrace_page;

/* A trace may have been started before there is a page. */
void kutrace_page_show(u32 trace)
{
	if (kutrace_page)
		WRITE_ONCE(*kutrace_page, trace);
}

int kutrace_page_map(struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	kutrace_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	return vm_insert_page(vma, vma->vm_start, virt_to_page(kutrace_page));
}

int kutrace_page_add(void)
{
	kutrace_page = (u32 *)get_zeroed_page(GFP_KERNEL);
	return kutrace_page ? 0 : -ENOMEM;
}

/* A mapping of the page holds the module, too. */
void kutrace_page_remove(void)
{
	free_page((unsigned long)kutrace_page);
	kutrace_page = NULL;
}
