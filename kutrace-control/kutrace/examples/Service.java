// SPDX-License-Identifier: BSD-3-Clause
import kutrace.Kutrace;

/**
 * Spans, fields and counters of a Java program; kutrace/Kutrace.java lists the requirements.
 *
 * kutrace_control go; java -Djava.library.path=. Service; kutrace_control stop t.trace
 */
public final class Service {
    private static final Kutrace HANDLE = new Kutrace("java.handle");
    private static final Kutrace FIND = new Kutrace("java.find", "path", "cached");
    private static final Kutrace REPLY = new Kutrace("java.reply", "status", "ratio", "path");
    private static final Kutrace QUEUED = new Kutrace("java.queued");
    private static final Kutrace UPLOAD = new Kutrace("java.upload", "size");
    private static final Kutrace DONE = new Kutrace("java.done");

    private static boolean handle(String path) {
        try (Kutrace.Span all = HANDLE.span()) {
            try (Kutrace.Span span = FIND.span(path, false)) {
                QUEUED.counter(-3);
            }
            return REPLY.mark(200, 0.5, path);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        boolean replied = handle("/index");
        Kutrace.AsyncSpan upload = UPLOAD.asyncSpan(7, 4096);
        Thread thread = new Thread(upload::close);
        thread.start();
        thread.join();
        boolean marked = DONE.mark();
        // While nothing is traced, nothing is recorded, and the program does the same.
        if (replied != marked || marked != Kutrace.isOn()) {
            throw new AssertionError("recorded in part");
        }
    }
}
