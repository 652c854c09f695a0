// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/kutrace: access control for the recorder and for marks, one command at a
 * time, the pool mapped read-only, data left with a trace, and the end of a
 * trace before sleep, before the machine goes down, or in a panic.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/panic_notifier.h>
#include <linux/reboot.h>
#include <linux/security.h>
#include <linux/string.h>
#include <linux/suspend.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "shim.h"
#include "user/programs.h"

/* The programs whose marks are taken. Remove when: the module! macro takes strings. */
enum { MARKS_ALL, MARKS_GROUP, MARKS_OFF };
static const char * const kutrace_marks_words[] = { "all", "group", "off" };
static char *marks = "all";
module_param(marks, charp, 0444);
MODULE_PARM_DESC(marks, "Whose marks are taken: all, group (of /dev/kutrace), off (default all)");
static int kutrace_marks;

/* The group of /dev/kutrace, as it was when a permitted user last opened it. */
static kgid_t kutrace_group = GLOBAL_ROOT_GID;

bool kutrace_shim_may_mark(void)
{
	switch (kutrace_marks) {
	case MARKS_ALL:
		return true;
	case MARKS_GROUP:
		return uid_eq(current_euid(), GLOBAL_ROOT_UID) ||
		       in_egroup_p(READ_ONCE(kutrace_group));
	default:
		return false;
	}
}

/*
 * Held to replace the pool's memory, and to map it. Not the control lock: mmap
 * holds locks that perf takes under the control lock.
 */
static DEFINE_MUTEX(kutrace_mapping_lock);

void kutrace_shim_lock_mapping(void)
{
	mutex_lock(&kutrace_mapping_lock);
}

void kutrace_shim_unlock_mapping(void)
{
	mutex_unlock(&kutrace_mapping_lock);
}

/*
 * The device. Remove when: the kernel crate has MiscDevice with mmap (6.16).
 *
 * The holder of the lock touches no user memory, which may take forever to
 * fault in, and waits for nothing without a limit.
 */
static DEFINE_MUTEX(kutrace_control_lock);

/* For notifiers, which the machine waits for: false if the lock is not free in time. */
static bool kutrace_lock_in_time(void)
{
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (mutex_trylock(&kutrace_control_lock))
			return true;
		msleep(10);
	}
	return false;
}

/*
 * A trace holds kernel addresses. So access is denied to every process that
 * perf would keep from them: CAP_PERFMON is required whatever the value of
 * perf_event_paranoid, and a kernel that is locked down shows its addresses to
 * no process.
 */
static int kutrace_may_control(void)
{
	return perfmon_capable() ? security_locked_down(LOCKDOWN_PERF) : -EPERM;
}

static long kutrace_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	union kutrace_argument argument;
	long ret;

	if (_IOC_TYPE(cmd) != KUTRACE_IOC_TYPE || _IOC_SIZE(cmd) > sizeof(argument))
		return -ENOTTY;
	ret = kutrace_may_control();
	if (ret)
		return ret;
	if (cmd == KUTRACE_IOC_PROGRAM)
		return kutrace_programs_tell((void __user *)arg);
	if (cmd == KUTRACE_IOC_COPY)
		return kutrace_programs_copy((void __user *)arg);
	memset(&argument, 0, sizeof(argument));
	if ((_IOC_DIR(cmd) & _IOC_WRITE) &&
	    copy_from_user(&argument, (void __user *)arg, _IOC_SIZE(cmd)))
		return -EFAULT;

	if (mutex_lock_killable(&kutrace_control_lock))
		return -EINTR;
	ret = kutrace_control(file, cmd, &argument);
	mutex_unlock(&kutrace_control_lock);

	if (!ret && (_IOC_DIR(cmd) & _IOC_READ) &&
	    copy_to_user((void __user *)arg, &argument, _IOC_SIZE(cmd)))
		return -EFAULT;
	return ret;
}

static ssize_t kutrace_write(struct file *file, const char __user *from,
			     size_t bytes, loff_t *at)
{
	ssize_t ret = kutrace_may_control();
	struct kutrace_blob *note;

	if (ret)
		return ret;
	note = kutrace_note_from(from, bytes);
	if (IS_ERR(note))
		return PTR_ERR(note);
	if (mutex_lock_killable(&kutrace_control_lock)) {
		ret = -EINTR;
		goto out;
	}
	ret = kutrace_may_note(file);
	if (!ret)
		swap(kutrace_note, note);
	mutex_unlock(&kutrace_control_lock);
out:
	kutrace_blob_put(note);
	return ret ?: bytes;
}

static ssize_t kutrace_read(struct file *file, char __user *to, size_t bytes,
			    loff_t *at)
{
	loff_t from = *at < KUTRACE_KEPT_AT ? 0 : KUTRACE_KEPT_AT;
	ssize_t ret = kutrace_may_control();
	struct kutrace_blob *blob;

	if (ret)
		return ret;
	if (mutex_lock_killable(&kutrace_control_lock))
		return -EINTR;
	blob = kutrace_blob_get(from ? kutrace_kept : kutrace_note);
	mutex_unlock(&kutrace_control_lock);
	if (!blob)
		return 0;
	*at -= from;
	ret = simple_read_from_buffer(to, bytes, at, blob->data, blob->bytes);
	*at += from;
	kutrace_blob_put(blob);
	return ret;
}

/* Remove when: the kernel crate maps a VVec. */
static int kutrace_map(struct vm_area_struct *vma, void *pool, u64 bytes)
{
	unsigned long at, page;
	u64 from = (u64)vma->vm_pgoff << PAGE_SHIFT;
	int ret = 0;

	if (from > bytes || vma->vm_end - vma->vm_start > bytes - from)
		return -EINVAL;
	page = kutrace_reserved_page(pool + from);
	if (page)
		return remap_pfn_range(vma, vma->vm_start, page,
				       vma->vm_end - vma->vm_start,
				       vma->vm_page_prot);
	for (at = vma->vm_start; !ret && at < vma->vm_end; at += PAGE_SIZE) {
		ret = vm_insert_page(vma, at, vmalloc_to_page(pool + from));
		from += PAGE_SIZE;
	}
	return ret;
}

static int kutrace_mmap(struct file *file, struct vm_area_struct *vma)
{
	void *pool;
	u64 bytes;
	int ret;

	ret = kutrace_may_control();
	if (ret)
		return ret;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	kutrace_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE | VM_MAYEXEC);
	mutex_lock(&kutrace_mapping_lock);
	pool = kutrace_pool(&bytes);
	ret = kutrace_map(vma, pool, bytes);
	mutex_unlock(&kutrace_mapping_lock);
	return ret;
}

static int kutrace_open(struct inode *inode, struct file *file)
{
	if (perfmon_capable())
		WRITE_ONCE(kutrace_group, inode->i_gid);
	return 0;
}

static int kutrace_release(struct inode *inode, struct file *file)
{
	mutex_lock(&kutrace_control_lock);
	kutrace_close(file);
	mutex_unlock(&kutrace_control_lock);
	return 0;
}

static const struct file_operations kutrace_fops = {
	.owner = THIS_MODULE,
	.read = kutrace_read,
	.write = kutrace_write,
	.unlocked_ioctl = kutrace_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kutrace_mmap,
	.open = kutrace_open,
	.release = kutrace_release,
	.llseek = noop_llseek,
};

static struct miscdevice kutrace_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kutrace",
	.fops = &kutrace_fops,
	.mode = 0660,
};

/*
 * Called before the machine sleeps, while processes still run, and after it has
 * slept. The machine does not sleep with a trace.
 */
static int kutrace_sleep(struct notifier_block *block, unsigned long action,
			 void *data)
{
	switch (action) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		if (!kutrace_lock_in_time())
			return notifier_from_errno(-EBUSY);
		kutrace_end_for_sleep();
		mutex_unlock(&kutrace_control_lock);
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		kutrace_end_of_sleep();
	}
	return NOTIFY_DONE;
}

static struct notifier_block kutrace_sleep_block = {
	.notifier_call = kutrace_sleep,
};

/* Called before devices are shut down, while processes still run. */
static int kutrace_shutdown(struct notifier_block *block, unsigned long action,
			    void *data)
{
	if (!kutrace_lock_in_time())
		return NOTIFY_DONE;
	kutrace_end_for_shutdown();
	mutex_unlock(&kutrace_control_lock);
	return NOTIFY_DONE;
}

static struct notifier_block kutrace_shutdown_block = {
	.notifier_call = kutrace_shutdown,
};

/*
 * The kernel panics, with interrupts off. Clocks are read as in an NMI: the
 * panic may have come while they were being set.
 */
static int kutrace_panic(struct notifier_block *block, unsigned long action,
			 void *data)
{
	kutrace_end_for_panic(ktime_get_real_fast_ns(),
			      ktime_get_mono_fast_ns());
	return NOTIFY_DONE;
}

static struct notifier_block kutrace_panic_block = {
	.notifier_call = kutrace_panic,
};

int kutrace_shim_device_add(void)
{
	int ret;

	kutrace_marks = match_string(kutrace_marks_words,
				     ARRAY_SIZE(kutrace_marks_words), marks);
	if (kutrace_marks < 0) {
		pr_err("kutrace: marks=%s: all, group or off is meant\n", marks);
		return -EINVAL;
	}
	ret = register_pm_notifier(&kutrace_sleep_block);
	if (ret)
		return ret;
	ret = atomic_notifier_chain_register(&panic_notifier_list,
					     &kutrace_panic_block);
	if (ret)
		goto no_panic_notifier;
	ret = register_reboot_notifier(&kutrace_shutdown_block);
	if (ret)
		goto no_shutdown_notifier;
	ret = misc_register(&kutrace_device);
	if (ret)
		goto no_device;
	/* Last: a device that any process may have opened is not removed again. */
	ret = kutrace_programs_add();
	if (!ret)
		return 0;
	misc_deregister(&kutrace_device);
no_device:
	unregister_reboot_notifier(&kutrace_shutdown_block);
no_shutdown_notifier:
	atomic_notifier_chain_unregister(&panic_notifier_list,
					 &kutrace_panic_block);
no_panic_notifier:
	unregister_pm_notifier(&kutrace_sleep_block);
	return ret;
}

void kutrace_shim_device_remove(void)
{
	misc_deregister(&kutrace_device);
	unregister_reboot_notifier(&kutrace_shutdown_block);
	atomic_notifier_chain_unregister(&panic_notifier_list,
					 &kutrace_panic_block);
	unregister_pm_notifier(&kutrace_sleep_block);
	kutrace_programs_remove();
}
