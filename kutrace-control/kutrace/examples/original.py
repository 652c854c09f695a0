#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Marks, spans and an RPC of the original library; LD_LIBRARY_PATH must have the folder of libkutrace.so.

kutrace_control go; ./original.py; kutrace_control stop t.trace
"""

import contextlib
import ctypes
import time

kutrace = ctypes.CDLL("libkutrace.so")
kutrace.kutrace_span_begin.restype = ctypes.c_uint64
kutrace.kutrace_span_end.argtypes = [ctypes.c_uint64]
kutrace.kutrace_rpc_request.argtypes = [ctypes.c_char_p, ctypes.c_uint16, ctypes.c_uint64]


@contextlib.contextmanager
def span(name):
    """This thread is in a named part of the program."""
    begun = kutrace.kutrace_span_begin(name.encode())
    try:
        yield
    finally:
        kutrace.kutrace_span_end(begun)


kutrace.kutrace_mark_a(b"python")
with span("python outer"):
    time.sleep(0.001)
    with span("python inner"):
        time.sleep(0.001)
kutrace.kutrace_rpc_request(b"python_get", 79, 1000)
time.sleep(0.001)
kutrace.kutrace_rpc_end()
kutrace.kutrace_mark_d(123)
