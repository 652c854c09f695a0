/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks, spans, counters and log lines of a program in the KUtrace trace of the
 * machine it runs on. Link with -lkutrace; docs/marks.md has more.
 *
 *	KUTRACE_SPAN("find", "path", path);             // this thread, to the end of the block
 *	KUTRACE_MARK("reply", "status", 200);           // a moment
 *	KUTRACE_COUNTER("queued", n);                   // the current value
 *	KUTRACE_ASYNC_SPAN_BEGIN("upload", id, "size", bytes);
 *	KUTRACE_ASYNC_SPAN_END("upload", id);           // in any thread
 *	KUTRACE_LOG("disk full");
 *
 * Names are literals of up to 119 bytes; names of fields are literals too. A
 * field is an integer, a floating-point number, a bool, a string that ends with
 * a zero byte, or a pointer, which is shown in base 16. All fields of an entry
 * share 120 bytes: a number takes 8, a string its length plus one. A string that
 * does not fit is truncated, which the trace shows, and the fields after it are
 * dropped.
 *
 * While nothing is traced, each macro costs a load and a branch, on any kernel,
 * and no field is computed. During a trace, records go into memory that the
 * recorder grants each thread, without a system call. All macros may be used in
 * any thread and in signal handlers: they allocate nothing, take no lock and do
 * not change errno. They need no privilege. Each macro except KUTRACE_SPAN has a
 * value, a long: 1 if the record is in the trace, else 0.
 *
 * A program that is compiled with -DKUTRACE_OFF records nothing and needs no
 * library. kutrace_original.h has the marks of the original KUtrace.
 */
#ifndef KUTRACE_H
#define KUTRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef KUTRACE_OFF
/* 1 while anything is traced, else 0; use it to skip computing values for marks. */
int kutrace_is_on(void);

/*
 * Requests a snapshot of this moment: `kutrace_control watch --when keep` writes
 * the events that led to it, and reports the reason, of up to 56 bytes. Makes a
 * system call. Returns > 0 if it is recorded, 0 if nothing is traced, else the
 * complement of an errno.
 */
long kutrace_keep(const char *reason);

/*
 * Looks for the recorder once more, for a program that began before the module
 * was loaded. Returns 1 if the macros below can record now, else 0. It opens and
 * maps /dev/kutrace_programs, which a sandbox may forbid. All other programs have
 * looked before main.
 */
int kutrace_attach(void);

/*
 * Records that this thread now works on this span of this OpenTelemetry trace: a
 * mark otel(trace_id=...,span_id=...), in base 16. `high` and `low` are the halves
 * of the trace's id.
 */
long kutrace_trace_id(uint64_t high, uint64_t low, uint64_t span);
#else
#define kutrace_is_on() 0
#define kutrace_keep(reason) ((void)(reason), 0L)
#define kutrace_trace_id(high, low, span) ((void)(high), (void)(low), (void)(span), 0L)
#endif

/*
 * The rest implements the macros, and is called by other languages.
 *
 * A place in the program: its name, followed by the names of its fields, each
 * after a zero byte. It lives, like its text, as long as the program.
 */
struct kutrace_site {
	uint64_t id; /* 0; set by the library */
	const char *name;
	size_t bytes; /* of the text */
};

/* Values of fields, their number, and their types, four bits each. */
struct kutrace_fields {
	size_t used;
	uint64_t words[15];
	uint64_t kinds;
	uint64_t count;
};

enum kutrace_kind {
	KUTRACE_UNSIGNED = 1,
	KUTRACE_SIGNED,
	KUTRACE_FLOAT,
	KUTRACE_BOOL,
	KUTRACE_HEX,
	KUTRACE_TEXT,
};

/* Adds the words of a text; null is the empty text. */
void kutrace_fields_text(struct kutrace_fields *fields, const char *text);

/* Each returns 1 if it is recorded, else 0. A span ends in the thread that began it. */
long kutrace_site_mark(struct kutrace_site *site);
long kutrace_site_mark_with(struct kutrace_site *site, const struct kutrace_fields *fields);
long kutrace_site_begin(struct kutrace_site *site);
long kutrace_site_begin_with(struct kutrace_site *site, const struct kutrace_fields *fields);
long kutrace_site_end(struct kutrace_site *site);
long kutrace_site_counter(struct kutrace_site *site, int64_t value);
long kutrace_site_async_begin(struct kutrace_site *site, uint64_t id,
			      const struct kutrace_fields *fields);
long kutrace_site_async_end(struct kutrace_site *site, uint64_t id);

/*
 * The word that is 0 while nothing is traced; its address does not change.
 * Returns `before` if the word is not known.
 */
const uint32_t *kutrace_word(const uint32_t *before);

#ifdef __cplusplus
}
#endif

#ifdef KUTRACE_OFF
#define kutrace_may_be_on() 0
#else
/*
 * First check of each macro, in three instructions and without a call: whether
 * anything may be traced. The first check in a file while the word is not known
 * looks for it.
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
	/* Compilers emit two instructions for an atomic load and a comparison. */
	__asm__ goto("cmpl $0, %0\n\tjne %l1" : : "m"(*word) : "cc" : on);
	return 0;
on:
#else
	if (__builtin_expect(!__atomic_load_n(word, __ATOMIC_RELAXED), 1))
		return 0;
#endif
	if (__builtin_expect(word != &kutrace_word_unknown, 1))
		return 1;
	kutrace_look_here();
	return kutrace_is_on();
}
#endif

static inline void kutrace_add_kind(struct kutrace_fields *fields, enum kutrace_kind kind)
{
	if (fields->count < 15)
		fields->kinds |= (uint64_t)kind << (4 * fields->count++);
}
static inline void kutrace_add_word(struct kutrace_fields *fields, enum kutrace_kind kind,
				    uint64_t word)
{
	kutrace_add_kind(fields, kind);
	if (fields->used < 15)
		fields->words[fields->used++] = word;
}
static inline void kutrace_add_unsigned(struct kutrace_fields *fields, unsigned long long value)
{
	kutrace_add_word(fields, KUTRACE_UNSIGNED, value);
}
static inline void kutrace_add_signed(struct kutrace_fields *fields, long long value)
{
	kutrace_add_word(fields, KUTRACE_SIGNED, (uint64_t)value);
}
static inline void kutrace_add_float(struct kutrace_fields *fields, double value)
{
	uint64_t word;

	__builtin_memcpy(&word, &value, sizeof(word));
	kutrace_add_word(fields, KUTRACE_FLOAT, word);
}
static inline void kutrace_add_bool(struct kutrace_fields *fields, unsigned value)
{
	kutrace_add_word(fields, KUTRACE_BOOL, !!value);
}
static inline void kutrace_add_hex(struct kutrace_fields *fields, const volatile void *value)
{
	kutrace_add_word(fields, KUTRACE_HEX, (uintptr_t)value);
}
static inline void kutrace_add_text(struct kutrace_fields *fields, const char *text)
{
	kutrace_add_kind(fields, KUTRACE_TEXT);
	kutrace_fields_text(fields, text);
}

/* Adds a value by its type; kutrace.hpp has more of these. */
#ifdef __cplusplus
#define KUTRACE_ADDS(type, by) \
	static inline void kutrace_add(struct kutrace_fields *fields, type value) { by(fields, value); }
KUTRACE_ADDS(unsigned char, kutrace_add_unsigned)
KUTRACE_ADDS(unsigned short, kutrace_add_unsigned)
KUTRACE_ADDS(unsigned, kutrace_add_unsigned)
KUTRACE_ADDS(unsigned long, kutrace_add_unsigned)
KUTRACE_ADDS(unsigned long long, kutrace_add_unsigned)
KUTRACE_ADDS(char, kutrace_add_signed)
KUTRACE_ADDS(signed char, kutrace_add_signed)
KUTRACE_ADDS(short, kutrace_add_signed)
KUTRACE_ADDS(int, kutrace_add_signed)
KUTRACE_ADDS(long, kutrace_add_signed)
KUTRACE_ADDS(long long, kutrace_add_signed)
KUTRACE_ADDS(float, kutrace_add_float)
KUTRACE_ADDS(double, kutrace_add_float)
KUTRACE_ADDS(bool, kutrace_add_bool)
KUTRACE_ADDS(const char *, kutrace_add_text)
KUTRACE_ADDS(const volatile void *, kutrace_add_hex)
#undef KUTRACE_ADDS
#else
#define kutrace_add(fields, value)                                            \
	_Generic((value),                                                     \
		unsigned char: kutrace_add_unsigned,                          \
		unsigned short: kutrace_add_unsigned,                         \
		unsigned: kutrace_add_unsigned,                               \
		unsigned long: kutrace_add_unsigned,                          \
		unsigned long long: kutrace_add_unsigned,                     \
		char: kutrace_add_signed,                                     \
		signed char: kutrace_add_signed,                              \
		short: kutrace_add_signed,                                    \
		int: kutrace_add_signed,                                      \
		long: kutrace_add_signed,                                     \
		long long: kutrace_add_signed,                                \
		float: kutrace_add_float,                                     \
		double: kutrace_add_float,                                    \
		_Bool: kutrace_add_bool,                                      \
		char *: kutrace_add_text,                                     \
		const char *: kutrace_add_text,                               \
		default: kutrace_add_hex)(fields, value)
#endif

/* macro(name, value) for each pair in a list of names and values. */
#define KUTRACE_EACH(macro, ...)                                              \
	__VA_OPT__(KUTRACE_AGAIN3(KUTRACE_EACH_FIRST(macro, __VA_ARGS__)))
#define KUTRACE_EACH_FIRST(macro, name, value, ...)                           \
	macro(name, value) __VA_OPT__(KUTRACE_EACH_NEXT KUTRACE_NO_ARGUMENTS (macro, __VA_ARGS__))
#define KUTRACE_EACH_NEXT() KUTRACE_EACH_FIRST
#define KUTRACE_NO_ARGUMENTS ()
#define KUTRACE_AGAIN3(...) KUTRACE_AGAIN2(KUTRACE_AGAIN2(KUTRACE_AGAIN2(__VA_ARGS__)))
#define KUTRACE_AGAIN2(...) KUTRACE_AGAIN1(KUTRACE_AGAIN1(KUTRACE_AGAIN1(__VA_ARGS__)))
#define KUTRACE_AGAIN1(...) KUTRACE_AGAIN0(KUTRACE_AGAIN0(KUTRACE_AGAIN0(__VA_ARGS__)))
#define KUTRACE_AGAIN0(...) __VA_ARGS__
#define KUTRACE_PASTE(first, second) KUTRACE_PASTE_EXPANDED(first, second)
#define KUTRACE_PASTE_EXPANDED(first, second) first##second

/* The place and the values that the macros below record. */
#define KUTRACE_NAME(name, value) "\0" name
#define KUTRACE_ADD(name, value) kutrace_add(&kutrace_values, value);
#define KUTRACE_HERE(name, ...)                                               \
	static struct kutrace_site kutrace_here = {                           \
		0, name KUTRACE_EACH(KUTRACE_NAME, __VA_ARGS__),              \
		sizeof(name KUTRACE_EACH(KUTRACE_NAME, __VA_ARGS__)) - 1      \
	};
#define KUTRACE_VALUES(...)                                                   \
	struct kutrace_fields kutrace_values = { 0, { 0 }, 0, 0 };            \
	KUTRACE_EACH(KUTRACE_ADD, __VA_ARGS__)
#define KUTRACE_IF_ON(...)                                                    \
	__extension__({ kutrace_may_be_on() ? __extension__({ __VA_ARGS__ }) : 0L; })
#define KUTRACE_RECORD(function, name, ...)                                   \
	KUTRACE_HERE(name, __VA_ARGS__)                                       \
	__VA_OPT__(KUTRACE_VALUES(__VA_ARGS__))                               \
	long kutrace_is_recorded = KUTRACE_PASTE(function, __VA_OPT__(_with)) \
		(&kutrace_here __VA_OPT__(, &kutrace_values));

/* Marks this moment. */
#define KUTRACE_MARK(name, ...)                                               \
	KUTRACE_IF_ON(KUTRACE_RECORD(kutrace_site_mark, name, __VA_ARGS__) kutrace_is_recorded;)
/* Records a log line, truncated to 119 bytes. */
#define KUTRACE_LOG(text) KUTRACE_MARK("log", "message", (const char *)(text))
/* Records the current value of a counter, a signed integer of 64 bits. */
#define KUTRACE_COUNTER(name, value)                                          \
	KUTRACE_IF_ON(KUTRACE_HERE(name, ) kutrace_site_counter(&kutrace_here, value);)

/*
 * This thread is in a part of the program: until the end of the block, however
 * that is left, or from BEGIN to END of the same name. Spans nest.
 */
#define KUTRACE_SPAN(name, ...)                                               \
	struct kutrace_site *__attribute__((cleanup(kutrace_span_leave), unused)) \
	KUTRACE_PASTE(kutrace_span_, __LINE__) =                              \
		!kutrace_may_be_on() ? NULL : __extension__({                 \
			KUTRACE_RECORD(kutrace_site_begin, name, __VA_ARGS__) \
			kutrace_is_recorded ? &kutrace_here : NULL;           \
		})
#define KUTRACE_SPAN_BEGIN(name, ...)                                         \
	KUTRACE_IF_ON(KUTRACE_RECORD(kutrace_site_begin, name, __VA_ARGS__) kutrace_is_recorded;)
#define KUTRACE_SPAN_END(name) KUTRACE_IF_ON(KUTRACE_HERE(name, ) kutrace_site_end(&kutrace_here);)
static inline void kutrace_span_leave(struct kutrace_site *const *begun)
{
#ifdef KUTRACE_OFF
	(void)begun;
#else
	if (*begun)
		kutrace_site_end(*begun);
#endif
}

/*
 * An activity of the program that any thread may end, by its name and number; at
 * any time, no two with one name may have the same number.
 */
#define KUTRACE_ASYNC_SPAN_BEGIN(name, id, ...)                               \
	KUTRACE_IF_ON(KUTRACE_HERE(name, __VA_ARGS__) KUTRACE_VALUES(__VA_ARGS__) \
		      kutrace_site_async_begin(&kutrace_here, id, &kutrace_values);)
#define KUTRACE_ASYNC_SPAN_END(name, id)                                      \
	KUTRACE_IF_ON(KUTRACE_HERE(name, ) kutrace_site_async_end(&kutrace_here, id);)

#endif /* KUTRACE_H */
