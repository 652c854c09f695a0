// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that outlives a warm reboot: a range that the kernel's command line
 * keeps free by reserve_mem=, from 6.12 on. The trace is recorded there, and a
 * copy of the data that the previous kernel left there is kept, to be read from
 * /dev/kutrace.
 *
 * Invariant: only kutrace_shim_reserved_forget() drops the data that was left;
 * otherwise the range has it again when the module is gone.
 */
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <asm/cacheflush.h>

#include "shim.h"

/* Remove when: the module! macro takes strings. */
static char *reserved = "kutrace";
module_param(reserved, charp, 0444);
MODULE_PARM_DESC(reserved, "Memory that outlives a reboot: the name of a reserve_mem= (default kutrace, where there is one)");

/* Period in ms at which the CPUs' positions are written down. */
#define KUTRACE_SIGHT_PERIOD 10

/* The range, and its content when the module was loaded; under the control lock. */
static void *kutrace_reserved;
static phys_addr_t kutrace_reserved_at;
static size_t kutrace_reserved_bytes;
struct kutrace_blob *kutrace_kept;

static bool kutrace_find_named(phys_addr_t *at, phys_addr_t *bytes)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	return reserve_mem_find_by_name(reserved, at, bytes);
#else
	return false;
#endif
}

/* Returns 1 if there is such a range, which is then mapped; 0 if not; or an errno. */
int kutrace_shim_reserved_find(void **memory, u64 *physical, u64 *size)
{
	phys_addr_t at = 0, bytes = 0;

	if (!kutrace_find_named(&at, &bytes))
		return 0;
	if (!PAGE_ALIGNED(at | bytes)) {
		pr_err("kutrace: reserved=%s: not a range of whole pages\n",
		       reserved);
		return -EINVAL;
	}
	kutrace_reserved = memremap(at, bytes, MEMREMAP_WB);
	if (!kutrace_reserved)
		return -ENOMEM;
	kutrace_reserved_at = at;
	kutrace_reserved_bytes = bytes;
	*memory = kutrace_reserved;
	*physical = at;
	*size = bytes;
	return 1;
}

/* Keeps a copy of the range's content. */
int kutrace_shim_reserved_keep(void)
{
	kutrace_kept = kutrace_blob_new(kutrace_reserved_bytes);
	if (!kutrace_kept) {
		pr_err("kutrace: no memory to keep the previous kernel's trace: it stays in place; reserved= loads the module without it\n");
		return -ENOMEM;
	}
	memcpy(kutrace_kept->data, kutrace_reserved, kutrace_reserved_bytes);
	pr_info("kutrace: the previous kernel's trace is kept: kutrace_control recover --boot writes it\n");
	return 0;
}

u64 kutrace_shim_reserved_kept(void)
{
	return kutrace_kept ? kutrace_kept->bytes : 0;
}

void kutrace_shim_reserved_forget(void)
{
	kutrace_blob_put(kutrace_kept);
	kutrace_kept = NULL;
}

/* Called when nothing uses the range any more. */
void kutrace_shim_reserved_leave(void)
{
	if (!kutrace_reserved)
		return;
	if (kutrace_kept)
		memcpy(kutrace_reserved, kutrace_kept->data, kutrace_reserved_bytes);
	kutrace_shim_reserved_forget();
	memunmap(kutrace_reserved);
	kutrace_reserved = NULL;
}

/* Returns the number of the page at an address of the range; 0 for any other. */
unsigned long kutrace_reserved_page(const void *memory)
{
	size_t within = memory - kutrace_reserved;

	if (!kutrace_reserved || memory < kutrace_reserved ||
	    within >= kutrace_reserved_bytes)
		return 0;
	return (kutrace_reserved_at + within) >> PAGE_SHIFT;
}

/* A reset loses data that is only in the caches, of whichever CPU. */
void kutrace_shim_reserved_flush(void)
{
	if (kutrace_reserved)
		clflush_cache_range(kutrace_reserved, kutrace_reserved_bytes);
}

/*
 * A reset comes without a notice, so the CPUs' positions are written down
 * periodically: not by a CPU that may hang, but by any.
 */
static void kutrace_sight_all(struct work_struct *work);
static DECLARE_DELAYED_WORK(kutrace_sight_work, kutrace_sight_all);
static struct workqueue_struct *kutrace_sight_queue;

static void kutrace_sight_next(void)
{
	queue_delayed_work(kutrace_sight_queue, &kutrace_sight_work,
			   msecs_to_jiffies(KUTRACE_SIGHT_PERIOD));
}

static void kutrace_sight_all(struct work_struct *work)
{
	kutrace_sight_cpus();
	kutrace_sight_next();
}

/* Starts the periodic writes. */
int kutrace_shim_reserved_watch(void)
{
	if (!kutrace_sight_queue)
		kutrace_sight_queue = alloc_workqueue("kutrace", WQ_UNBOUND, 1);
	if (!kutrace_sight_queue)
		return -ENOMEM;
	kutrace_sight_next();
	return 0;
}

/* Stops them: on return nothing is written. */
void kutrace_shim_reserved_unwatch(void)
{
	if (!kutrace_sight_queue)
		return;
	cancel_delayed_work_sync(&kutrace_sight_work);
	destroy_workqueue(kutrace_sight_queue);
	kutrace_sight_queue = NULL;
}
