/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 */
/*
 * A module's own typed event: its name, and its fields. Its place in the code
 * is one line, trace_said(...), which is a NOP without a listener.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM said

#if !defined(SAID_H) || defined(TRACE_HEADER_MULTI_READ)
#define SAID_H

#include <linux/tracepoint.h>

TRACE_EVENT(said,
	TP_PROTO(u64 number, int cpu, const char *where, const u16 *pair),
	TP_ARGS(number, cpu, where, pair),
	TP_STRUCT__entry(
		__field(u64, number)
		__field(int, cpu)
		__array(char, where, 8)
		__array(u16, pair, 2)
	),
	TP_fast_assign(
		__entry->number = number;
		__entry->cpu = cpu;
		strscpy(__entry->where, where, sizeof(__entry->where));
		memcpy(__entry->pair, pair, sizeof(__entry->pair));
	),
	TP_printk("number=%llu cpu=%d where=%s", __entry->number, __entry->cpu,
		  __entry->where)
);

/* The smallest that there is: a word. */
TRACE_EVENT(said_briefly,
	TP_PROTO(u32 word),
	TP_ARGS(word),
	TP_STRUCT__entry(__field(u32, word)),
	TP_fast_assign(__entry->word = word;),
	TP_printk("word=%u", __entry->word)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE said
#include <trace/define_trace.h>
