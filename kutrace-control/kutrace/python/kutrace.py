# SPDX-License-Identifier: BSD-3-Clause
"""Marks, spans, counters and log lines of a Python program in the KUtrace trace of the machine it runs on.

    import kutrace

    with kutrace.span("find", path=path, size=17):
        ...
    kutrace.mark("reply", status=200)
    kutrace.counter("queued", len(queue))
    upload = kutrace.async_span("upload", 7, size=4096)  # upload.end() in any thread, or with upload:
    kutrace.log("disk full")

    @kutrace.span("reply")
    def reply(): ...

    async with kutrace.span("request", path="/index"):
        await ...

    logging.getLogger().addHandler(kutrace.Handler())

A field is a number, a bool, or the text of str(); all fields of one entry share 120 bytes. Recording makes no system
call, and costs about as much as a call of a C function by ctypes; while nothing is traced it is one such call.
libkutrace.so is found like any shared library; without it, nothing is recorded.
"""

import contextlib
import ctypes
import functools
import inspect
import itertools
import logging
import struct

__all__ = ["Handler", "async_span", "counter", "is_on", "keep", "log", "mark", "span", "trace_id"]


class _Site(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("name", ctypes.c_char_p), ("bytes", ctypes.c_size_t)]


class _Fields(ctypes.Structure):
    _fields_ = [
        ("used", ctypes.c_size_t),
        ("words", ctypes.c_uint64 * 15),
        ("kinds", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
    ]


def _load():
    # The functions do not block, so they keep the interpreter's lock.
    for name in ("libkutrace.so.0", "libkutrace.so"):
        with contextlib.suppress(OSError):
            return ctypes.PyDLL(name)
    return None


_library = _load()


def _function(name, result, *arguments):
    if _library is None:
        return lambda *_: 0
    function = getattr(_library, "kutrace_" + name)
    function.restype, function.argtypes = result, arguments
    return function


_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_uint64
_is_on = _function("is_on", ctypes.c_int)
_keep = _function("keep", ctypes.c_long, ctypes.c_char_p)
_trace_id = _function("trace_id", ctypes.c_long, _NUMBER, _NUMBER, _NUMBER)
_text = _function("fields_text", None, _POINTER, ctypes.c_char_p)
_mark = _function("site_mark", ctypes.c_long, _POINTER)
_mark_with = _function("site_mark_with", ctypes.c_long, _POINTER, _POINTER)
_begin = _function("site_begin", ctypes.c_long, _POINTER)
_begin_with = _function("site_begin_with", ctypes.c_long, _POINTER, _POINTER)
_end = _function("site_end", ctypes.c_long, _POINTER)
_counter = _function("site_counter", ctypes.c_long, _POINTER, ctypes.c_int64)
_async_begin = _function("site_async_begin", ctypes.c_long, _POINTER, _NUMBER, _POINTER)
_async_end = _function("site_async_end", ctypes.c_long, _POINTER, _NUMBER)

# By name and types of fields. Never removed: the library keeps their addresses.
_sites = {}

# Numbers for spans that are left and entered again, such as those of coroutines.
_numbers = itertools.count(1)


def is_on():
    """Return whether anything is traced now."""
    return bool(_is_on())


def _site(text, kinds=0):
    site = _sites.get((text, kinds))
    if site is None:
        encoded = text.encode(errors="replace")
        site = _sites.setdefault((text, kinds), _Site(0, encoded, len(encoded)))
    return ctypes.byref(site)


def _bytes(text):
    return str(text).replace("\0", "").encode(errors="replace")


def _pack(name, values):
    """Return the place for a name with fields of these types, and the packed values."""
    fields = _Fields()
    for value in values.values():
        if isinstance(value, bool):
            kind, word = 4, int(value)
        elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
            kind, word = 2, value & (1 << 64) - 1
        elif isinstance(value, float):
            kind, word = 3, struct.unpack("<Q", struct.pack("<d", value))[0]
        else:
            kind, word = 6, None
        if fields.count < 15:
            fields.kinds |= kind << 4 * fields.count
            fields.count += 1
        if word is None:
            _text(ctypes.byref(fields), _bytes(value))
        elif fields.used < 15:
            fields.words[fields.used] = word
            fields.used += 1
    return _site("\0".join([name, *itertools.islice(values, 15)]), fields.kinds), ctypes.byref(fields)


def mark(name, /, **fields):
    """Record that this thread is here now. Return whether it is in the trace."""
    if not fields:
        return bool(_mark(_site(name)))
    return is_on() and bool(_mark_with(*_pack(name, fields)))


def counter(name, number):
    """Record the current value of a counter, an integer. Return whether it is in the trace."""
    return bool(_counter(_site(name), number))


def log(line):
    """Record a log line. Return whether it is in the trace."""
    return mark("log", message=line)


def keep(reason):
    """Request a snapshot, by `kutrace_control watch --when keep`. Return whether the request is in the trace."""
    return _keep(_bytes(reason)) > 0


def trace_id(trace, span):
    """Record that this thread works on this OpenTelemetry trace and span. Return whether it is in the trace."""
    return bool(_trace_id(trace >> 64, trace & (1 << 64) - 1, span))


class async_span:
    """An activity that lasts until `end` is called or a with statement ends, in any thread.

    At any time, no two with one name may have the same number.
    """

    def __init__(self, name, number, /, **fields):
        self._name, self._number = name, number
        self._begun = False
        if is_on():
            site, packed = _pack(name, fields)
            self._begun = bool(_async_begin(site, number, packed))

    def end(self):
        """End the span. Return whether the end is in the trace."""
        begun, self._begun = self._begun, False
        return begun and bool(_async_end(_site(self._name), self._number))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        return False


class span(contextlib.ContextDecorator):
    """A part of the program in this thread: a with statement, or the function that this decorates.

    A coroutine is not always in the span of its thread. Therefore the span of an async with statement is an async one,
    with a number of its own; and so is that of a decorated coroutine function or generator. Each async with statement
    needs a span of its own. Async generators are left unchanged.
    """

    def __init__(self, name, /, **fields):
        self._name, self._fields = name, fields

    def _numbered(self):
        return async_span(self._name, next(_numbers) if is_on() else 0, **self._fields)

    def __call__(self, function):
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def inside(*arguments, **named):
                with self._numbered():
                    return await function(*arguments, **named)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def inside(*arguments, **named):
                with self._numbered():
                    return (yield from function(*arguments, **named))

        elif inspect.isasyncgenfunction(function):
            return function
        else:
            return super().__call__(function)
        return inside

    async def __aenter__(self):
        self._entered = self._numbered()
        return self

    async def __aexit__(self, *_):
        self._entered.end()
        return False

    def __enter__(self):
        if not self._fields:
            _begin(_site(self._name))
        elif is_on():
            _begin_with(*_pack(self._name, self._fields))
        return self

    def __exit__(self, *_):
        _end(_site(self._name))
        return False


class Handler(logging.Handler):
    """Records log lines as marks `log` with level, logger and message."""

    def emit(self, record):
        if is_on():
            try:
                mark("log", level=record.levelname, logger=record.name, message=record.getMessage())
            except Exception:
                self.handleError(record)
