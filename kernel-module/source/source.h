/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A source reports events to the recorder: the hooks of a patched kernel, or
 * probes on the tracepoints of any other.
 */
#ifndef KUTRACE_SOURCE_H
#define KUTRACE_SOURCE_H

#include <linux/types.h>

#ifdef CONFIG_KUTRACE
#include <linux/kutrace.h>
#else
#include "kutrace.h"
#endif

struct kutrace_packet;

/* The functions that a source calls. Layout of Table in ../ffi.rs. */
struct kutrace_table {
	/* The table of the hooks of a patched kernel. */
	struct kutrace_ops ops;
	/* An event and its return at one moment: an event without a length. */
	void (*point)(unsigned int event);
	/* A task is about to get another name, of TASK_COMM_LEN bytes. */
	void (*rename)(struct task_struct *task, const char *comm);
	/* A packet of a chosen port, with the first 32 bytes of UDP's data. */
	void (*flow)(bool sent, const struct kutrace_packet *packet, const u64 *data);
	/* The record of a chosen tracepoint, by its place among those chosen. */
	void (*record)(u32 number, const void *words, u32 bytes);
};

/* Values of Info::source in ../format/src/abi/command.rs. */
enum kutrace_kind { KUTRACE_HOOKS, KUTRACE_TRACEPOINTS };

/*
 * All may sleep, and the recorder calls one at a time. @connect leaves the
 * source off. On return from @enable every online CPU reports events, unless it
 * fails: then none does. On return from @disable and @disconnect no CPU is in a
 * function of the table.
 */
struct kutrace_source {
	const char *name;
	enum kutrace_kind kind;
	int (*connect)(const struct kutrace_table *table);
	void (*disconnect)(void);
	int (*enable)(void);
	void (*disable)(void);
	/* Calls @each for every vector of every CPU that is for a device. */
	void (*each_vector)(kutrace_op_vector_t *each);
	/* Bits of ../format/src/capability.rs: the capabilities that it lacks, if any. */
	u64 (*unseen)(void);
};

extern const struct kutrace_source kutrace_hooks;
extern const struct kutrace_source kutrace_tracepoints;

/* The chosen source, as ../ffi.rs has it. */
int kutrace_source_choose(void);
int kutrace_source_connect(const struct kutrace_table *table);
void kutrace_source_disconnect(void);
int kutrace_source_enable(void);
void kutrace_source_disable(void);
void kutrace_source_each_vector(kutrace_op_vector_t *each);
u32 kutrace_source_kind(void);
u64 kutrace_source_unseen(void);

/* Does what system call 1023 does on a kernel with hooks. The caller may sleep. */
long kutrace_source_call(unsigned long command, const u64 *words);

#endif
