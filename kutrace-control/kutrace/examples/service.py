#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Spans, fields, coroutines and a log of a Python program; PYTHONPATH must have the folder of kutrace.py.

kutrace_control go; ./service.py; kutrace_control stop t.trace
"""

import asyncio
import logging
import threading

import kutrace


@kutrace.span("python.handle")
def handle(path):
    with kutrace.span("python.find", path=path, cached=False):
        kutrace.counter("python.queued", -3)
    return kutrace.mark("python.reply", status=200, ratio=0.5, path=path)


@kutrace.span("python.answer")
async def answer(path):
    async with kutrace.span("python.fetch", path=path):
        await asyncio.sleep(0.01)
    return path


async def answers():
    return await asyncio.gather(answer("/a"), answer("/b"))


logging.getLogger().addHandler(kutrace.Handler())
replied = handle("/index")
upload = kutrace.async_span("python.upload", 7, size=4096)
thread = threading.Thread(target=upload.end)
thread.start()
thread.join()
assert asyncio.run(answers()) == ["/a", "/b"]
logging.warning("disk %d %% full", 93)
kutrace.log("disk full")
marked = kutrace.mark("python.done")
# While nothing is traced, nothing is recorded, and the program does the same.
assert replied == marked == kutrace.is_on()
