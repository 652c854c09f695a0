// SPDX-License-Identifier: BSD-3-Clause
package kutrace;

import java.nio.charset.StandardCharsets;

/**
 * Marks, spans, counters and log lines of a Java program in the KUtrace trace of the machine it runs on.
 *
 * <pre>
 * private static final Kutrace FIND = new Kutrace("find", "path");
 * private static final Kutrace REPLY = new Kutrace("reply", "status", "path");
 * private static final Kutrace QUEUED = new Kutrace("queued");
 *
 * try (Kutrace.Span span = FIND.span(path)) { ... }
 * REPLY.mark(200, path);
 * QUEUED.counter(queue.size());
 * </pre>
 *
 * A place of the program is created once, and lives as long as the program. A field is an integer, a floating-point
 * number, a Boolean, or the text of String.valueOf; all fields of one entry share 120 bytes. Recording makes no system
 * call, and costs calls through JNI; while nothing is traced, one. A virtual thread must not leave its carrier between
 * the start and the end of a span: use {@link #asyncSpan} instead, which any thread may end.
 *
 * <p>The native side is kutrace_java.c: libkutrace_java.so, which System.loadLibrary finds. Without it, nothing is
 * recorded.
 */
public final class Kutrace {
    private static final boolean LOADED = load();
    private static final int MOST_FIELDS = 15;

    private static final Kutrace LOG = new Kutrace("log", "message");

    private final byte[] text;
    private final int fields;
    private final Span end = new Span();
    /** The newest shape of this place; null without the library. */
    private volatile Shape last;

    /** A place with fields of these types. */
    private static final class Shape {
        final long kinds;
        final long site;
        final Shape next;

        Shape(long kinds, long site, Shape next) {
            this.kinds = kinds;
            this.site = site;
            this.next = next;
        }
    }

    /** A place with this name, and the names of its fields, at most 15. */
    public Kutrace(String name, String... fields) {
        if (fields.length > MOST_FIELDS) {
            throw new IllegalArgumentException(fields.length + " fields, at most " + MOST_FIELDS);
        }
        this.fields = fields.length;
        String joined = fields.length == 0 ? name : name + '\0' + String.join("\0", fields);
        text = joined.getBytes(StandardCharsets.UTF_8);
        last = LOADED ? new Shape(0, site0(name.getBytes(StandardCharsets.UTF_8)), null) : null;
    }

    private static boolean load() {
        try {
            System.loadLibrary("kutrace_java");
            return true;
        } catch (UnsatisfiedLinkError none) {
            return false;
        }
    }

    /** Returns whether anything is traced now. */
    public static boolean isOn() {
        return LOADED && isOn0();
    }

    /** Records a log line. Returns true if it is in the trace. */
    public static boolean log(String line) {
        return LOG.mark(line);
    }

    /** Requests a snapshot of this moment, by kutrace_control watch --when keep. Returns true if it is in the trace. */
    public static boolean keep(String reason) {
        return LOADED && keep0(reason);
    }

    /**
     * Records that this thread now works on this span of this OpenTelemetry trace, given by the halves of the trace's
     * number, and the span's.
     */
    public static boolean traceId(long high, long low, long span) {
        return LOADED && traceId0(high, low, span);
    }

    /** Records that this thread is here now. Returns true if it is in the trace. */
    public boolean mark(Object... values) {
        return isOn() && new Values(values).put(MARK, 0);
    }

    /** Records the current value of the counter. Returns true if it is in the trace. */
    public boolean counter(long number) {
        return isOn() && counter0(site(0), number);
    }

    /** Begins a part of the program in this thread, which lasts until it is closed. Spans nest. */
    public Span span(Object... values) {
        if (isOn()) {
            new Values(values).put(BEGIN, 0);
        }
        return end;
    }

    /** Begins an activity that lasts until any thread closes it. At any time, no two may have the same number. */
    public AsyncSpan asyncSpan(long number, Object... values) {
        return new AsyncSpan(number, isOn() && new Values(values).put(ASYNC_BEGIN, number));
    }

    /** A span of a thread. */
    public final class Span implements AutoCloseable {
        @Override
        public void close() {
            if (isOn()) {
                end0(site(0));
            }
        }
    }

    /** A span that any thread may close. */
    public final class AsyncSpan implements AutoCloseable {
        private final long number;
        private final boolean begun;

        private AsyncSpan(long number, boolean begun) {
            this.number = number;
            this.begun = begun;
        }

        @Override
        public void close() {
            if (begun) {
                asyncEnd0(site(0), number);
            }
        }
    }

    /** The native place for fields of these types, created if needed. */
    private long site(long kinds) {
        for (Shape shape = last; shape != null; shape = shape.next) {
            if (shape.kinds == kinds) {
                return shape.site;
            }
        }
        synchronized (this) {
            for (Shape shape = last; shape != null; shape = shape.next) {
                if (shape.kinds == kinds) {
                    return shape.site;
                }
            }
            last = new Shape(kinds, site0(text), last);
            return last.site;
        }
    }

    private static final int MARK = 0;
    private static final int BEGIN = 1;
    private static final int ASYNC_BEGIN = 2;

    /** Values of fields in the library's encoding: types, four bits each; words; texts at the index of their field. */
    private final class Values {
        private long kinds;
        private final long[] words;
        private final String[] texts;

        Values(Object[] values) {
            if (values.length != fields) {
                throw new IllegalArgumentException(fields + " fields, " + values.length + " values");
            }
            words = new long[values.length];
            texts = new String[values.length];
            for (int n = 0; n < values.length; n++) {
                kinds |= (long) add(n, values[n]) << 4 * n;
            }
        }

        private int add(int n, Object value) {
            if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
                words[n] = ((Number) value).longValue();
                return 2;
            }
            if (value instanceof Double || value instanceof Float) {
                words[n] = Double.doubleToRawLongBits(((Number) value).doubleValue());
                return 3;
            }
            if (value instanceof Boolean) {
                words[n] = (Boolean) value ? 1 : 0;
                return 4;
            }
            texts[n] = String.valueOf(value);
            return 6;
        }

        boolean put(int what, long number) {
            return put0(site(kinds), what, number, kinds, words, texts);
        }
    }

    private static native boolean isOn0();

    private static native boolean keep0(String reason);

    private static native boolean traceId0(long high, long low, long span);

    private static native long site0(byte[] name);

    private static native boolean counter0(long site, long number);

    private static native boolean end0(long site);

    private static native boolean asyncEnd0(long site, long number);

    private static native boolean put0(long site, int what, long number, long kinds, long[] words, String[] texts);
}
