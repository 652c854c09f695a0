// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes that a tracing process may read any number of times: data that was left
 * with a trace, and data that an earlier kernel left (reserved.c). They never
 * change, and stay until the last reader is gone: so they are copied to and
 * from user memory, which may take forever, under no lock.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/uaccess.h>

#include "shim.h"

struct kutrace_blob *kutrace_blob_new(size_t bytes)
{
	struct kutrace_blob *blob = kutrace_shim_alloc(sizeof(*blob) + bytes);

	if (!blob)
		return NULL;
	kref_init(&blob->users);
	blob->bytes = bytes;
	return blob;
}

static void kutrace_blob_free(struct kref *users)
{
	kutrace_shim_free(container_of(users, struct kutrace_blob, users));
}

struct kutrace_blob *kutrace_blob_get(struct kutrace_blob *blob)
{
	if (blob)
		kref_get(&blob->users);
	return blob;
}

void kutrace_blob_put(struct kutrace_blob *blob)
{
	if (blob)
		kref_put(&blob->users, kutrace_blob_free);
}

/* READINGS_MAX of format/src/reading.rs. */
#define KUTRACE_NOTE_MAX (4UL << 20)

struct kutrace_blob *kutrace_note;

struct kutrace_blob *kutrace_note_from(const char __user *from, size_t bytes)
{
	struct kutrace_blob *note;

	if (bytes > KUTRACE_NOTE_MAX)
		return ERR_PTR(-EFBIG);
	note = kutrace_blob_new(bytes);
	if (!note)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(note->data, from, bytes)) {
		kutrace_blob_put(note);
		return ERR_PTR(-EFAULT);
	}
	return note;
}

void kutrace_shim_note_clear(void)
{
	kutrace_blob_put(kutrace_note);
	kutrace_note = NULL;
}
