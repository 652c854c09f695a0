// SPDX-License-Identifier: GPL-2.0
/*
 * The page of programs: a file in memory of the kernel's own that any process
 * may map, but none write. Its number is that of the trace, or 0.
 */
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>

#include "page.h"

static struct file *kutrace_page_file;
static struct page *kutrace_page;

/* A trace may have been started before there is a page. */
void kutrace_page_show(u32 trace)
{
	if (kutrace_page)
		WRITE_ONCE(*(u32 *)page_address(kutrace_page), trace);
}

struct file *kutrace_new_file(loff_t bytes)
{
	struct file *file = shmem_file_setup("kutrace", bytes, KUTRACE_NO_RESERVE);

	if (IS_ERR(file))
		return file;
	mapping_set_unevictable(file->f_mapping);
	file_inode(file)->i_mode &= ~S_IRWXUGO;
	return file;
}

/*
 * Nobody maps the file for writing any more, writes into it or changes its
 * size by a system call, not even root who opens what a descriptor leads to.
 * Mappings stay as they are.
 */
void kutrace_seal(struct file *file)
{
	SHMEM_I(file_inode(file))->seals |=
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
}

/* A file opened for reading only can never be mapped for writing. */
struct file *kutrace_readonly(struct file *file)
{
	return dentry_open(&file->f_path, O_RDONLY | O_LARGEFILE, current_cred());
}

long kutrace_page_map(struct kutrace_page *page)
{
	struct file *file = kutrace_readonly(kutrace_page_file);
	unsigned long address;

	if (IS_ERR(file))
		return PTR_ERR(file);
	address = vm_mmap(file, 0, PAGE_SIZE, PROT_READ, MAP_SHARED, 0);
	fput(file);
	if (IS_ERR_VALUE(address))
		return address;
	page->address = address;
	return 0;
}

/* The page, all 0. */
int kutrace_page_add(void)
{
	struct page *page;

	kutrace_page_file = kutrace_new_file(PAGE_SIZE);
	if (IS_ERR(kutrace_page_file))
		return PTR_ERR(kutrace_page_file);
	kutrace_seal(kutrace_page_file);
	page = shmem_read_mapping_page(kutrace_page_file->f_mapping, 0);
	if (IS_ERR(page)) {
		fput(kutrace_page_file);
		return PTR_ERR(page);
	}
	kutrace_page = page;
	return 0;
}

void kutrace_page_remove(void)
{
	kutrace_page_show(0);
	put_page(kutrace_page);
	kutrace_page = NULL;
	fput(kutrace_page_file);
}
