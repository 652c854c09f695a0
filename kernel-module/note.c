// SPDX-License-Identifier: GPL-2.0
/*
 * What the user who traces leaves with a trace, for whoever writes it to a file,
 * perhaps another process: write appends, read gives all of it back, and a reset
 * discards it. The module does not look into it.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "shim.h"

/* READINGS_MAX of format/src/reading.rs. */
#define KUTRACE_NOTE_MAX (4UL << 20)

/* Under the control lock. */
static void *kutrace_note;
static size_t kutrace_note_bytes;

ssize_t kutrace_note_append(const char __user *from, size_t bytes)
{
	void *note;

	if (bytes > KUTRACE_NOTE_MAX - kutrace_note_bytes)
		return -EFBIG;
	note = kvmalloc(kutrace_note_bytes + bytes, GFP_KERNEL_ACCOUNT);
	if (!note)
		return -ENOMEM;
	if (copy_from_user(note + kutrace_note_bytes, from, bytes)) {
		kvfree(note);
		return -EFAULT;
	}
	if (kutrace_note)
		memcpy(note, kutrace_note, kutrace_note_bytes);
	kvfree(kutrace_note);
	kutrace_note = note;
	kutrace_note_bytes += bytes;
	return bytes;
}

ssize_t kutrace_note_read(char __user *to, size_t bytes, loff_t *at)
{
	return simple_read_from_buffer(to, bytes, at, kutrace_note,
				       kutrace_note_bytes);
}

void kutrace_shim_note_clear(void)
{
	kvfree(kutrace_note);
	kutrace_note = NULL;
	kutrace_note_bytes = 0;
}
