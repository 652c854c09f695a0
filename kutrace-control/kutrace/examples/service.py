#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Parts, fields, coroutines and a log of a Python program; PYTHONPATH says where kutrace.py is, LD_LIBRARY_PATH libkutrace.so.

kutrace_control go; ./service.py; kutrace_control stop t.trace
"""

import asyncio
import logging
import threading

import kutrace


@kutrace.part("python.handle")
def handle(path):
    with kutrace.part("python.find", path=path, cached=False):
        kutrace.value("python.queued", -3)
    return kutrace.event("python.reply", status=200, ratio=0.5, path=path)


@kutrace.part("python.answer")
async def answer(path):
    async with kutrace.part("python.fetch", path=path):
        await asyncio.sleep(0.01)
    return path


async def answers():
    return await asyncio.gather(answer("/a"), answer("/b"))


logging.getLogger().addHandler(kutrace.Handler())
replied = handle("/index")
kutrace.begin("python.upload", 7, size=4096)
thread = threading.Thread(target=kutrace.end, args=("python.upload", 7))
thread.start()
thread.join()
assert asyncio.run(answers()) == ["/a", "/b"]
logging.warning("disk %d %% full", 93)
marked = kutrace.mark("python.done")
# While nothing is traced, nothing is recorded, and the program does the same.
assert replied == marked == kutrace.is_on()
