/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks, named spans, RPCs, locks and queues of a program in the KUtrace trace
 * of the machine it runs on. Link with -lkutrace; docs/marks.md has examples.
 *
 * While nothing is traced every function that records is a call, a load and a
 * branch, and the macros below are not even the call, on any kernel; while
 * tracing a function is a system call, what a macro makes is none. All but
 * kutrace_go, kutrace_stop and kutrace_control may be called in any thread and
 * in signal handlers: they allocate nothing, take no lock and leave errno as
 * it is. No privilege is needed but for those three.
 *
 * A text ends with a zero byte; a null pointer is the empty text. A name is of
 * up to 56 bytes of UTF-8; what is longer is cut.
 *
 * A function that returns long answers
 *   > 0  recorded (for a name, its words of 8 bytes)
 *     0  not recorded: nothing is traced
 *   < 0  refused, the complement of an errno: -EINVAL for an event or name that
 *        only the kernel records, -ENOSYS if no recorder is loaded or a filter
 *        decides which system calls the thread may make (seccomp)
 */
#ifndef KUTRACE_H
#define KUTRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 while anything is traced, else 0; for what is computed for a mark only. */
int kutrace_is_on(void);

/*
 * The word that is 0 while nothing is traced, and stays where it is; the macros
 * below ask it. Where it is not known, what is given.
 */
const uint32_t *kutrace_word(const uint32_t *before);

/*
 * Looks for the recorder once more, for a program that began before the module
 * was loaded: 1 if what the macros below make can be recorded now, else 0. It
 * opens and maps /dev/kutrace_programs, which a sandbox may forbid. All others
 * have looked before main.
 */
int kutrace_attach(void);

/* Asks the recorder by a system call: 1 tracing, 0 not, -ENOSYS none loaded. */
long kutrace_test(void);
/* The version of the recorder's system call, 4; -ENOSYS if none is loaded. */
long kutrace_version(void);

/*
 * Marks this moment with a label of up to six characters of a-z0-9-./ ; capital
 * letters become small ones, others dots. What lies between the labels "text"
 * and "/text" is what `spantotrim text` cuts out of a trace.
 */
long kutrace_mark_a(const char *label);
long kutrace_mark_b(const char *label);
long kutrace_mark_c(const char *label);
/* Marks this moment with a number. */
long kutrace_mark_d(uint32_t number);

/*
 * This thread is in a part of the program that has a name, until it ends it
 * with what begin answered. Parts of the same name are the same, in all threads
 * and programs. They may nest; the innermost is shown.
 */
typedef uint64_t kutrace_span;
kutrace_span kutrace_span_begin(const char *name);
void kutrace_span_end(kutrace_span span);

/*
 * A place in the program, which records by its name into memory that the
 * recorder grants the thread: without a system call, as the macros below do. It
 * lives, as its name does, as long as the program. Parts nest, and end in the
 * thread that began them. Where the recorder grants nothing the functions make
 * a system call, and a value is not recorded. They answer 1 if it is recorded,
 * else 0.
 */
struct kutrace_site {
	uint64_t id; /* 0; the library's */
	const char *name;
	size_t bytes; /* of the name, 119 at most */
};
long kutrace_site_mark(struct kutrace_site *site);
long kutrace_site_begin(struct kutrace_site *site);
long kutrace_site_end(struct kutrace_site *site);
long kutrace_site_value(struct kutrace_site *site, int64_t value);

/*
 * A place whose name has fields: after the name, for each, a zero, a letter
 * for its type (u unsigned, i signed, f double, b bool, x hexadecimal, s text)
 * and its name: "request\0usize\0spath". Their values are added in that order,
 * 15 words at most, of which a number takes one and a text one for its length
 * and 7 bytes and another for each 8 more; what has no room is left out, and a
 * text cut, which the trace tells. Start with KUTRACE_FIELDS. Null is none.
 *
 * An async part may end in another thread, at a place of the same name, by its
 * number; of a name no two that overlap in a process may have the same one.
 * Where the recorder grants nothing it is not recorded.
 */
struct kutrace_fields {
	size_t used;
	uint64_t words[15];
};
#define KUTRACE_FIELDS { 0, { 0 } }
void kutrace_fields_word(struct kutrace_fields *fields, uint64_t word);
void kutrace_fields_text(struct kutrace_fields *fields, const char *text);
long kutrace_site_event(struct kutrace_site *site, const struct kutrace_fields *fields);
long kutrace_site_begin_with(struct kutrace_site *site, const struct kutrace_fields *fields);
long kutrace_site_async_begin(struct kutrace_site *site, uint64_t id,
			      const struct kutrace_fields *fields);
long kutrace_site_async_end(struct kutrace_site *site, uint64_t id);

/*
 * This thread works on this span of this trace of OpenTelemetry now: a mark
 * otel(trace_id=...,span_id=...), in base 16. The halves of the trace's id.
 */
long kutrace_trace_id(uint64_t high, uint64_t low, uint64_t span);

/*
 * What this thread works on: an RPC with an id of 1 to 65535. A request or a
 * response has a size in bytes, 0 if that does not matter. It is resumed by a
 * thread that continues with it, and ended by each that leaves it: done, put into
 * a queue, or put aside.
 */
long kutrace_rpc_request(const char *method, uint16_t id, uint64_t bytes);
long kutrace_rpc_response(const char *method, uint16_t id, uint64_t bytes);
long kutrace_rpc_resume(const char *method, uint16_t id);
long kutrace_rpc_end(void);

/*
 * A lock was not free; this thread got it after that; this thread gives it up
 * (before it wakes who waits).
 */
long kutrace_lock_try(const char *lock);
long kutrace_lock_acquired(const char *lock);
long kutrace_lock_released(const char *lock);

/*
 * This thread puts the RPC that it works on into a queue (before
 * kutrace_rpc_end), or takes one out (before kutrace_rpc_resume).
 */
long kutrace_enqueue(const char *queue);
long kutrace_dequeue(const char *queue);

/*
 * Asks for this moment to be kept: `kutrace_control watch --when keep` writes
 * what led up to it, and tells the reason. It answers as a mark does.
 */
long kutrace_keep(const char *reason);

/*
 * Records an event by its number: 0x201-0x203 RPCs, 0x20a-0x20d marks,
 * 0x210-0x212 locks, 0x216 and 0x217 messages, 0x219 a resource, 0x21a and
 * 0x21b queues. Names a number from here on: kind 3 an RPC's method, 7 a lock,
 * 0x105 a queue, 0x106 a resource. The functions above do both by themselves.
 */
long kutrace_addevent(uint16_t event, uint32_t value);
long kutrace_addname(uint16_t kind, uint32_t number, const char *name);

/*
 * Start a trace, with a mode that kutrace_control knows ("go", "goipc",
 * "gowrap", ...; null is "go"); stop it and write it to a file that is not
 * there yet (null: a name with date and host); have kutrace_control carry out
 * words, one a line. Each runs kutrace_control from PATH, waits for it, and
 * needs what it needs: root, or CAP_PERFMON or CAP_SYS_ADMIN. Returns its
 * status (0 done, 1 failed, 2 not understood, 3 done but events were lost; it
 * says why on standard error), or the complement of an errno if it cannot be
 * started. Not for signal handlers.
 */
int kutrace_go(const char *mode);
int kutrace_stop(const char *file);
int kutrace_control(const char *words);

#ifdef __cplusplus
}
#endif

/* A span from here to the end of the block. */
#if defined(__GNUC__)
static inline void kutrace_span_end_at(const kutrace_span *span)
{
	kutrace_span_end(*span);
}
#define KUTRACE_SPAN_NAME2(line) kutrace_span_##line
#define KUTRACE_SPAN_NAME(line) KUTRACE_SPAN_NAME2(line)
#define KUTRACE_SPAN(name)                                                    \
	kutrace_span __attribute__((cleanup(kutrace_span_end_at), unused))    \
	KUTRACE_SPAN_NAME(__LINE__) = kutrace_span_begin(name)

/*
 * A moment, a part of the program up to the end of the block, the start and the
 * end of one, a value. The name is a literal.
 */
#define KUTRACE_SITE(name)                                                    \
	(__extension__({                                                      \
		static struct kutrace_site kutrace_here = {                   \
			0, name, sizeof(name) - 1                             \
		};                                                            \
		&kutrace_here;                                                \
	}))
/*
 * What each of the macros asks first, in three instructions and without a call:
 * whether anything may be traced. The first one of a file that is made while the
 * word is not known looks for it.
 */
static const uint32_t kutrace_word_unknown __attribute__((unused)) = 1;
static const uint32_t *kutrace_word_here __attribute__((unused)) =
	&kutrace_word_unknown;
static __attribute__((cold, noinline, unused)) void kutrace_look_here(void)
{
	__atomic_store_n(&kutrace_word_here, kutrace_word(&kutrace_word_unknown),
			 __ATOMIC_RELAXED);
}
static inline __attribute__((always_inline)) int kutrace_may_be_on(void)
{
	const uint32_t *word = __atomic_load_n(&kutrace_word_here, __ATOMIC_RELAXED);

#if defined(__x86_64__)
	/* Compilers make two instructions of an atomic load and a comparison. */
	__asm__ goto("cmpl $0, %0\n\tjne %l1" : : "m"(*word) : "cc" : on);
	return 0;
on:
#else
	if (__builtin_expect(!__atomic_load_n(word, __ATOMIC_RELAXED), 1))
		return 0;
#endif
	if (__builtin_expect(word == &kutrace_word_unknown, 0))
		kutrace_look_here();
	return 1;
}
#define KUTRACE_IF_ON(call) (kutrace_may_be_on() ? (call) : 0L)
#define KUTRACE_MARK(name) KUTRACE_IF_ON(kutrace_site_mark(KUTRACE_SITE(name)))
#define KUTRACE_EVENT(name, fields)                                           \
	KUTRACE_IF_ON(kutrace_site_event(KUTRACE_SITE(name), fields))
#define KUTRACE_ASYNC_BEGIN(name, id, fields)                                 \
	KUTRACE_IF_ON(kutrace_site_async_begin(KUTRACE_SITE(name), id, fields))
#define KUTRACE_ASYNC_END(name, id)                                           \
	KUTRACE_IF_ON(kutrace_site_async_end(KUTRACE_SITE(name), id))
/* A line of a log; of more than 119 bytes the first. */
static inline long kutrace_log_at(struct kutrace_site *site, const char *text)
{
	struct kutrace_fields fields = KUTRACE_FIELDS;

	if (!kutrace_is_on())
		return 0;
	kutrace_fields_text(&fields, text);
	return kutrace_site_event(site, &fields);
}
#define KUTRACE_LOG(text)                                                     \
	KUTRACE_IF_ON(kutrace_log_at(KUTRACE_SITE("log\0smessage"), text))
#define KUTRACE_VALUE(name, value)                                            \
	KUTRACE_IF_ON(kutrace_site_value(KUTRACE_SITE(name), value))
#define KUTRACE_BEGIN(name) KUTRACE_IF_ON(kutrace_site_begin(KUTRACE_SITE(name)))
#define KUTRACE_END(name) KUTRACE_IF_ON(kutrace_site_end(KUTRACE_SITE(name)))
static inline void kutrace_scope_end(struct kutrace_site *const *site)
{
	(void)KUTRACE_IF_ON(kutrace_site_end(*site));
}
static inline struct kutrace_site *kutrace_scope_begin(struct kutrace_site *site)
{
	(void)KUTRACE_IF_ON(kutrace_site_begin(site));
	return site;
}
#define KUTRACE_SCOPE(name)                                                   \
	struct kutrace_site *__attribute__((cleanup(kutrace_scope_end),       \
					    unused))                          \
	KUTRACE_SPAN_NAME(__LINE__) = kutrace_scope_begin(KUTRACE_SITE(name))
#endif

#endif /* KUTRACE_H */
