# SPDX-License-Identifier: BSD-3-Clause
"""A server of lines with one thread, that turns to any client that is ready: loop.py PORT. `later MS` is answered
later, while others are served; `block MS` keeps all clients waiting; `file MS` is left to another thread."""
import asyncio
import sys
import time


async def serve(reader, writer):
    while line := await reader.readline():
        what, ms = line.split()
        if what == b"later":
            await asyncio.sleep(float(ms) / 1e3)
        elif what == b"block":
            time.sleep(float(ms) / 1e3)
        elif what == b"file":
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, float(ms) / 1e3)
        writer.write(b"ok\r\n")


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
