// SPDX-License-Identifier: BSD-3-Clause

/**
 * Marks, parts and fields of a Java program in the KUtrace trace of the machine it runs on.
 *
 * <pre>
 * private static final Kutrace PARSED = new Kutrace("parsed");
 * private static final Kutrace REQUEST = new Kutrace("request", "size", long.class, "path", String.class);
 *
 * PARSED.mark();
 * try (Kutrace.Part part = REQUEST.part(17, "/index")) { ... }
 * </pre>
 *
 * A place of the program is made once, and lives as long as the program. Recording makes no system call, and costs a call
 * through JNI; without fields, while nothing is traced, that is all. A virtual thread must not leave its carrier between
 * the ends of a part: there, use {@link #begin} and {@link #end}, which any thread may call.
 *
 * <p>kutrace_java.c is the other side: libkutrace_java.so, which is looked for as System.loadLibrary does.
 */
public final class Kutrace {
    static {
        System.loadLibrary("kutrace_java");
    }

    private final long site;
    private final Class<?>[] types;
    private final Part ends = new Part();

    /** A place of this name, whose fields are names and types in turn: long, double, boolean or String. */
    public Kutrace(String name, Object... fields) {
        StringBuilder text = new StringBuilder(name);
        types = new Class<?>[fields.length / 2];
        for (int n = 0; n < types.length; n++) {
            types[n] = (Class<?>) fields[2 * n + 1];
            text.append('\0').append(letter(types[n])).append(fields[2 * n]);
        }
        if (fields.length % 2 != 0) {
            throw new IllegalArgumentException("a field is a name and a type");
        }
        site = site0(text.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }

    private static char letter(Class<?> type) {
        if (type == long.class || type == int.class) {
            return 'i';
        }
        if (type == double.class) {
            return 'f';
        }
        if (type == boolean.class) {
            return 'b';
        }
        if (type == String.class) {
            return 's';
        }
        throw new IllegalArgumentException("a field is a long, int, double, boolean or String");
    }

    /** Whether anything is traced now. */
    public static native boolean isOn();

    /** This thread is here now; whether that is in the trace. */
    public boolean mark(Object... values) {
        return types.length == 0 ? mark0(site) : isOn() && event0(site, words(values), texts(values));
    }

    /** What is counted here is this much now. */
    public boolean value(long number) {
        return value0(site, number);
    }

    /** This thread is in a part of the program, until that is closed. */
    public Part part(Object... values) {
        if (types.length == 0) {
            begin0(site);
        } else if (isOn()) {
            beginWith0(site, words(values), texts(values));
        }
        return ends;
    }

    /** A part begins that any thread may end, by its number. */
    public boolean begin(long number, Object... values) {
        return isOn() && asyncBegin0(site, number, words(values), texts(values));
    }

    /** And ends. */
    public boolean end(long number) {
        return asyncEnd0(site, number);
    }

    /** The end of a part. */
    public final class Part implements AutoCloseable {
        @Override
        public void close() {
            end0(site);
        }
    }

    private long[] words(Object[] values) {
        if (values.length != types.length) {
            throw new IllegalArgumentException(types.length + " fields, " + values.length + " values");
        }
        long[] words = new long[types.length];
        for (int n = 0; n < types.length; n++) {
            if (types[n] == double.class) {
                words[n] = Double.doubleToRawLongBits(((Number) values[n]).doubleValue());
            } else if (types[n] == boolean.class) {
                words[n] = (Boolean) values[n] ? 1 : 0;
            } else if (types[n] != String.class) {
                words[n] = ((Number) values[n]).longValue();
            }
        }
        return words;
    }

    private String[] texts(Object[] values) {
        String[] texts = new String[types.length];
        for (int n = 0; n < types.length; n++) {
            texts[n] = types[n] == String.class ? String.valueOf(values[n]) : null;
        }
        return texts;
    }

    private static native long site0(byte[] name);

    private static native boolean mark0(long site);

    private static native boolean value0(long site, long number);

    private static native boolean begin0(long site);

    private static native boolean end0(long site);

    private static native boolean event0(long site, long[] words, String[] texts);

    private static native boolean beginWith0(long site, long[] words, String[] texts);

    private static native boolean asyncBegin0(long site, long number, long[] words, String[] texts);

    private static native boolean asyncEnd0(long site, long number);
}
