# SPDX-License-Identifier: BSD-3-Clause
"""Spans of tasks that take turns on one thread, of a suspended generator, and of a function."""

import asyncio

import kutrace


@kutrace.span("handle", number=1)
async def handle(path):
    kutrace.mark("handling")
    async with kutrace.span("read", path=path):
        await asyncio.sleep(0)
    if path == "/bad":
        raise ValueError(path)
    return path


@kutrace.span("items")
def items():
    got = yield 1
    kutrace.mark("between")
    return got


@kutrace.span("plain")
def plain():
    return 3


async def serve():
    said = await asyncio.gather(handle("/a"), handle("/bad"), return_exceptions=True)
    assert said[0] == "/a" and isinstance(said[1], ValueError), said


asyncio.run(serve())
generator = items()
assert next(generator) == 1
kutrace.mark("aside")
try:
    generator.send(2)
except StopIteration as stop:
    assert stop.value == 2
assert plain() == 3 and handle.__name__ == "handle"
