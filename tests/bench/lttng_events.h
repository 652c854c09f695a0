/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The events that lttng.c records by LTTng-UST: a moment, a number, and one that is not enabled.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kutrace_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_events.h"

#if !defined(KUTRACE_BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KUTRACE_BENCH_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(kutrace_bench, mark, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(kutrace_bench, off, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(kutrace_bench, value, LTTNG_UST_TP_ARGS(int64_t, number),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, number, number)))

#endif

#include <lttng/tracepoint-event.h>
