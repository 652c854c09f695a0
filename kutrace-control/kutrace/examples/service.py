#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Parts, fields and a log of a Python program; PYTHONPATH says where kutrace.py is, LD_LIBRARY_PATH libkutrace.so.

kutrace_control go; ./service.py; kutrace_control stop t.trace
"""

import logging
import threading

import kutrace


@kutrace.part("python.handle")
def handle(path):
    with kutrace.part("python.find", path=path, cached=False):
        kutrace.value("python.queued", -3)
    return kutrace.event("python.reply", status=200, ratio=0.5, path=path)


logging.getLogger().addHandler(kutrace.Handler())
replied = handle("/index")
kutrace.begin("python.upload", 7, size=4096)
thread = threading.Thread(target=kutrace.end, args=("python.upload", 7))
thread.start()
thread.join()
logging.warning("disk %d %% full", 93)
marked = kutrace.mark("python.done")
# While nothing is traced, nothing is recorded, and the program does the same.
assert replied == marked == kutrace.is_on()
