/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that shim.c, device.c, note.c, reserved.c and the Rust side call in
 * each other. Layouts are those of format/src/abi/ and per_cpu.rs.
 */
#ifndef KUTRACE_SHIM_H
#define KUTRACE_SHIM_H

#include <linux/compiler.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/types.h>
#include <linux/version.h>

struct file;
struct perf_event;
struct pid;
struct task_struct;

/* For an area that no other code knows yet. */
static inline void kutrace_vm_flags(struct vm_area_struct *vma, vm_flags_t set,
				    vm_flags_t clear)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#else
	vm_flags_mod(vma, set, clear);
#endif
}

/* Room for PerCpu of per_cpu.rs, which asserts the size. */
#define KUTRACE_CPU_BYTES 4096
#define KUTRACE_IOC_TYPE 0xb7
/* KEPT_AT of format/src/abi/command.rs. */
#define KUTRACE_KEPT_AT (1LL << 40)

struct kutrace_cpu {
	u8 bytes[KUTRACE_CPU_BYTES];
};

struct kutrace_moment {
	u64 tsc;
	u64 realtime_ns;
	u64 monotonic_ns;
};

/* The machine as the kernel knows it, for landmark.rs. */
struct kutrace_machine {
	u64 physical;
	u64 levels;
	u64 mask;
	u64 tables[256];
	u64 offsets;
	u64 states;
	char kernel[136];
	char host[72];
	char model[64];
};

/* A counter, and the number by which rdpmc reads it; both null if closed. */
struct kutrace_counter {
	struct perf_event *event;
	const int *index;
};

/* A vector of a CPU, and the device that it is for. */
struct kutrace_vector {
	u32 which;
	u32 reserved;
	char name[56];
};

/* Bytes that never change, for any number of readers. */
struct kutrace_blob {
	struct kref users;
	size_t bytes;
	u8 data[];
};

/* The largest structure an ioctl carries is smaller. */
union kutrace_argument {
	u64 words[32];
};

/* Data left with the trace, and by an earlier kernel; under the control lock. */
extern struct kutrace_blob *kutrace_note;
extern struct kutrace_blob *kutrace_kept;

extern unsigned int kutrace_shim_namerate;
extern unsigned int kutrace_shim_markrate;

/* Implemented in Rust. */
void kutrace_sight_cpus(void);
long kutrace_control(struct file *file, unsigned int cmd,
		     union kutrace_argument *argument);
void kutrace_close(struct file *file);
long kutrace_may_note(struct file *file);
void kutrace_end_for_sleep(void);
void kutrace_end_of_sleep(void);
void kutrace_end_for_shutdown(void);
void kutrace_end_for_panic(u64 realtime_ns, u64 monotonic_ns);
void *kutrace_pool(u64 *bytes);

/* Implemented in C. */
struct kutrace_blob *kutrace_blob_new(size_t bytes);
/* NULL stays NULL. */
struct kutrace_blob *kutrace_blob_get(struct kutrace_blob *blob);
void kutrace_blob_put(struct kutrace_blob *blob);
struct kutrace_blob *kutrace_note_from(const char __user *from, size_t bytes);
void kutrace_shim_note_clear(void);
int kutrace_shim_reserved_find(void **memory, u64 *physical, u64 *size);
int kutrace_shim_reserved_keep(void);
u64 kutrace_shim_reserved_kept(void);
void kutrace_shim_reserved_forget(void);
void kutrace_shim_reserved_leave(void);
unsigned long kutrace_reserved_page(const void *memory);
void kutrace_shim_reserved_flush(void);
int kutrace_shim_reserved_watch(void);
void kutrace_shim_reserved_unwatch(void);
struct kutrace_cpu *kutrace_shim_cpu(u32 cpu);
u32 kutrace_shim_cpus(void);
bool kutrace_shim_possible(u32 cpu);
bool kutrace_shim_may_mark(void);
bool kutrace_shim_online(u32 cpu);
bool kutrace_shim_call(u32 cpu, void (*call)(void *));
bool kutrace_shim_try_hold_cpus(void);
void kutrace_shim_release_cpus(void);
int kutrace_shim_go(void);
bool kutrace_shim_pause(void);
unsigned long kutrace_shim_grace(bool in_haste);
bool kutrace_shim_is_over(unsigned long grace);
bool kutrace_shim_may_have(size_t bytes);
size_t kutrace_shim_pool_bytes(void);
void *kutrace_shim_alloc(size_t bytes);
void kutrace_shim_free(void *memory);
void kutrace_shim_lock_mapping(void);
void kutrace_shim_unlock_mapping(void);
struct pid *kutrace_shim_process(void);
u32 kutrace_shim_process_number(struct pid *process);
void kutrace_shim_process_put(struct pid *process);
u16 kutrace_shim_open_call(struct task_struct *task);
u32 kutrace_shim_returning(void);
u16 kutrace_shim_group(struct task_struct *task);
u32 kutrace_shim_cgroup(struct task_struct *task);
void kutrace_shim_machine(struct kutrace_machine *machine, const void *page);
void kutrace_shim_moment(struct kutrace_moment *moment);
int kutrace_shim_counter_open(u32 cpu, u64 config,
			      struct kutrace_counter *counter);
void kutrace_shim_counter_close(struct kutrace_counter *counter);
void kutrace_shim_next_vector(struct kutrace_vector *vector);
void kutrace_shim_print_counts(u64 calls, u64 recorded, u64 lost,
			       u64 overwritten, u64 outside);
u32 kutrace_shim_tsc_khz(void);
bool kutrace_shim_tsc_unstable(void);
int kutrace_shim_device_add(void);
void kutrace_shim_device_remove(void);

#endif
