# SPDX-License-Identifier: BSD-3-Clause
"""Two threads that read files, count their words and pack them. PYTHONPATH names the folder of kutrace.py."""

import collections
import threading
import zlib

import kutrace

FILES = ["/etc/services", "/etc/protocols", "/etc/mime.types"]


@kutrace.span("count")
def count(text):
    return len(collections.Counter(word.lower() for word in text.split()))


def work(files):
    for path in files:
        with kutrace.span("file", path=path):
            with kutrace.span("read"), open(path, "rb") as file:
                text = file.read()
            words = count(text)
            # Without the interpreter's lock.
            with kutrace.span("pack", size=len(text)):
                packed = zlib.compress(text, 9)
            kutrace.mark("done", words=words, packed=len(packed))


threads = [threading.Thread(target=work, args=[files]) for files in (FILES, FILES[::-1])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
