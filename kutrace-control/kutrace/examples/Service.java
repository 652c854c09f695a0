// SPDX-License-Identifier: BSD-3-Clause

/**
 * Parts, fields and values of a Java program; java/Kutrace.java says what it needs.
 *
 * kutrace_control go; java -Djava.library.path=. Service; kutrace_control stop t.trace
 */
public final class Service {
    private static final Kutrace HANDLE = new Kutrace("java.handle");
    private static final Kutrace FIND = new Kutrace("java.find", "path", String.class, "cached", boolean.class);
    private static final Kutrace REPLY =
            new Kutrace("java.reply", "status", long.class, "ratio", double.class, "path", String.class);
    private static final Kutrace QUEUED = new Kutrace("java.queued");
    private static final Kutrace UPLOAD = new Kutrace("java.upload", "size", long.class);
    private static final Kutrace DONE = new Kutrace("java.done");

    private static boolean handle(String path) {
        try (Kutrace.Part all = HANDLE.part()) {
            try (Kutrace.Part part = FIND.part(path, false)) {
                QUEUED.value(-3);
            }
            return REPLY.mark(200, 0.5, path);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        boolean replied = handle("/index");
        UPLOAD.begin(7, 4096);
        Thread thread = new Thread(() -> UPLOAD.end(7));
        thread.start();
        thread.join();
        boolean marked = DONE.mark();
        // While nothing is traced, nothing is recorded, and the program does the same.
        if (replied != marked || marked != Kutrace.isOn()) {
            throw new AssertionError("recorded in part");
        }
    }
}
