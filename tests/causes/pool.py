# SPDX-License-Identifier: BSD-3-Clause
"""A server of lines with few threads: pool.py PORT THREADS. A line is what to do and for how many ms; `list 0` lists a
folder, `resolve PORT` asks another server, `run MS` starts a program, `log 0` writes a long line; `hand MS` hands the work
on to another process, `collect 0` looks for garbage among many objects, if that word follows THREADS."""
import gc
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor


def answer(connection, line):
    what, ms = line.split()
    if what == "sleep":
        time.sleep(float(ms) / 1e3)
    elif what == "compute":
        end = time.monotonic() + float(ms) / 1e3
        while time.monotonic() < end:
            sum(range(500))
    elif what == "list":
        os.listdir("big")
    elif what == "resolve":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
            resolver.settimeout(5)
            resolver.sendto(b"where is it?", ("127.0.0.1", int(ms)))
            resolver.recv(512)
    elif what == "run":
        subprocess.run(["crunch", ms])
    elif what == "hand":
        helper.apply(time.sleep, (float(ms) / 1e3,))
    elif what == "log":
        print("x" * 900, flush=True)
    elif what == "collect":
        gc.collect()
    connection.sendall(b"ok\r\n")


def read(connection, pool):
    for line in connection.makefile():
        pool.submit(answer, connection, line)


def main():
    global helper, objects
    if "hand" in sys.argv:
        helper = multiprocessing.Pool(1)
    if "collect" in sys.argv:
        objects = [[n] for n in range(100_000)]
        gc.disable()
    pool = ThreadPoolExecutor(int(sys.argv[2]))
    server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=read, args=(connection, pool), daemon=True).start()


main()
