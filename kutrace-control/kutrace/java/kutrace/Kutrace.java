// SPDX-License-Identifier: BSD-3-Clause
package kutrace;

import java.nio.charset.StandardCharsets;

/**
 * Marks, spans, counters and lines of a log of a Java program in the KUtrace trace of the machine it runs on.
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
 * A place of the program is made once, and lives as long as the program. A field is an integer, a floating-point
 * number, a Boolean, or shown as String.valueOf does; all of one entry have 120 bytes. Recording makes no system call,
 * and costs calls through JNI; while nothing is traced, one. A virtual thread must not leave its carrier between the ends of a
 * span: there, use {@link #asyncSpan}, which any thread may end.
 *
 * <p>kutrace_java.c is the other side: libkutrace_java.so, which is looked for as System.loadLibrary does. Where it is
 * not found, nothing is recorded.
 */
public final class Kutrace {
    private static final boolean LOADED = load();
    private static final int MOST_FIELDS = 15;

    private static final Kutrace LOG = new Kutrace("log", "message");

    private final byte[] text;
    private final int fields;
    private final Span end = new Span();
    /** The newest of those made here: none where there is no library. */
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

    /** A place of this name, and the names of its fields, of which there are at most 15. */
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

    /** Whether anything is traced now. */
    public static boolean isOn() {
        return LOADED && isOn0();
    }

    /** A line of a log; whether that is in the trace. */
    public static boolean log(String line) {
        return LOG.mark(line);
    }

    /** Asks for this moment to be kept, by kutrace_control watch --when keep; whether that is in the trace. */
    public static boolean keep(String reason) {
        return LOADED && keep0(reason);
    }

    /** This thread works on this span of this trace of OpenTelemetry now: the halves of the trace's number, and the span's. */
    public static boolean traceId(long high, long low, long span) {
        return LOADED && traceId0(high, low, span);
    }

    /** This thread is here now; whether that is in the trace. */
    public boolean mark(Object... values) {
        return isOn() && new Values(values).put(MARK, 0);
    }

    /** How much something is now; whether that is in the trace. */
    public boolean counter(long number) {
        return isOn() && counter0(site(0), number);
    }

    /** This thread is in a part of the program, until that is closed. Spans nest. */
    public Span span(Object... values) {
        if (isOn()) {
            new Values(values).put(BEGIN, 0);
        }
        return end;
    }

    /** The program is at something until that is closed, by any thread. No two may have the same number at a time. */
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

    /** The place for fields of these types, of all that were made here. */
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

    /** Values of fields as the library has them: their types, four bits each, words, and texts in their places. */
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
