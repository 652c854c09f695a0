/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The marks of the original KUtrace: labels of six characters, RPCs, locks and
 * queues, by system call 1023; docs/original-api.md has more. New programs need
 * them for marks that kutrace.h does not have.
 *
 * A text ends with a zero byte; a null pointer is the empty text. A name has up
 * to 56 bytes of UTF-8; longer names are truncated.
 *
 * A function of type long returns
 *   > 0  recorded (for a name, its words of 8 bytes)
 *     0  not recorded: nothing is traced
 *   < 0  refused, the complement of an errno: -EINVAL for an event or name that
 *        only the kernel records, -ENOSYS if no recorder is loaded or a filter
 *        restricts the thread's system calls (seccomp)
 */
#ifndef KUTRACE_ORIGINAL_H
#define KUTRACE_ORIGINAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Asks the recorder by a system call: 1 tracing, 0 not, -ENOSYS none loaded. */
long kutrace_test(void);
/* The version of the recorder's system call, 4; -ENOSYS if none is loaded. */
long kutrace_version(void);

/*
 * Marks this moment with a label of up to six characters of a-z0-9-./ ; capital
 * letters become small ones, others dots. The range between the labels "text"
 * and "/text" is what `spantotrim text` cuts out of a trace.
 */
long kutrace_mark_a(const char *label);
long kutrace_mark_b(const char *label);
long kutrace_mark_c(const char *label);
/* Marks this moment with a number. */
long kutrace_mark_d(uint32_t number);

/*
 * This thread is in a named part of the program until kutrace_span_end, which
 * gets the result of kutrace_span_begin. Parts with the same name are the same
 * part, in all threads and programs. They may nest; the innermost is shown.
 */
typedef uint64_t kutrace_span;
kutrace_span kutrace_span_begin(const char *name);
void kutrace_span_end(kutrace_span span);

/*
 * The work of this thread: an RPC with an id of 1 to 65535. A request or a
 * response has a size in bytes, 0 if that does not matter. A thread that continues
 * with an RPC resumes it, and each thread that leaves it ends it: finished, queued,
 * or set aside.
 */
long kutrace_rpc_request(const char *method, uint16_t id, uint64_t bytes);
long kutrace_rpc_response(const char *method, uint16_t id, uint64_t bytes);
long kutrace_rpc_resume(const char *method, uint16_t id);
long kutrace_rpc_end(void);

/*
 * A lock was not free; this thread got it after that; this thread releases it
 * (call this before waking the threads that wait).
 */
long kutrace_lock_try(const char *lock);
long kutrace_lock_acquired(const char *lock);
long kutrace_lock_released(const char *lock);

/*
 * This thread puts its current RPC into a queue (before kutrace_rpc_end), or
 * takes one out (before kutrace_rpc_resume).
 */
long kutrace_enqueue(const char *queue);
long kutrace_dequeue(const char *queue);

/*
 * Records an event by its number: 0x201-0x203 RPCs, 0x20a-0x20d marks,
 * 0x210-0x212 locks, 0x216 and 0x217 messages, 0x219 a resource, 0x21a and
 * 0x21b queues. Names a number from here on: kind 3 an RPC's method, 7 a lock,
 * 0x105 a queue, 0x106 a resource. The functions above do both by themselves.
 */
long kutrace_addevent(uint16_t event, uint32_t value);
long kutrace_addname(uint16_t kind, uint32_t number, const char *name);

#ifdef __cplusplus
}
#endif

#endif /* KUTRACE_ORIGINAL_H */
