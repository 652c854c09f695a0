# SPDX-License-Identifier: BSD-3-Clause
"""Marks, parts and fields of a Python program in the KUtrace trace of the machine it runs on.

    import kutrace

    kutrace.mark("parsed")
    with kutrace.part("request", path="/index", size=17):
        ...

    @kutrace.part("reply")
    def reply(): ...

    async with kutrace.part("request", path="/index"):
        await ...

    logging.getLogger().addHandler(kutrace.Handler())

Each is recorded without a system call, and costs about as much as a call of a C function by ctypes; while nothing is
traced it is one such call. libkutrace.so is looked for as any shared library is.
"""

import contextlib
import ctypes
import functools
import inspect
import itertools
import logging
import struct

__all__ = ["Handler", "begin", "end", "event", "is_on", "keep", "mark", "part", "value"]


class _Site(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("name", ctypes.c_char_p), ("bytes", ctypes.c_size_t)]


class _Fields(ctypes.Structure):
    _fields_ = [("used", ctypes.c_size_t), ("words", ctypes.c_uint64 * 15)]


def _load():
    try:
        return ctypes.PyDLL("libkutrace.so.0")
    except OSError:
        return ctypes.PyDLL("libkutrace.so")


# The functions do not wait, so the interpreter's lock is kept.
_library = _load()
_library.kutrace_fields_word.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
_library.kutrace_fields_text.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_library.kutrace_keep.argtypes = [ctypes.c_char_p]
_library.kutrace_keep.restype = ctypes.c_long
for _name, _arguments in {
    "mark": [],
    "begin": [],
    "end": [],
    "value": [ctypes.c_int64],
    "event": [ctypes.c_void_p],
    "begin_with": [ctypes.c_void_p],
    "async_begin": [ctypes.c_uint64, ctypes.c_void_p],
    "async_end": [ctypes.c_uint64],
}.items():
    getattr(_library, "kutrace_site_" + _name).argtypes = [ctypes.c_void_p, *_arguments]

# By name and types of fields. They stay: the library keeps their addresses.
_sites = {}

# Of parts that are left and entered again, as those of coroutines.
_numbers = itertools.count(1)


def is_on():
    """Whether anything is traced now."""
    return bool(_library.kutrace_is_on())


def _site(name):
    site = _sites.get(name)
    if site is None:
        text = name.encode(errors="replace")
        site = _sites.setdefault(name, _Site(0, text, len(text)))
    return ctypes.byref(site)


def _pack(name, values):
    """The place that a name with fields of these types has, and the values."""
    fields = _Fields()
    kinds = [name]
    for field, value in values.items():
        if isinstance(value, bool):
            kind, word = "b", int(value)
        elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
            kind, word = "i", value & (1 << 64) - 1
        elif isinstance(value, float):
            kind, word = "f", struct.unpack("<Q", struct.pack("<d", value))[0]
        else:
            kind, word = "s", None
        kinds.append(kind + field)
        if word is None:
            _library.kutrace_fields_text(ctypes.byref(fields), str(value).replace("\0", "").encode(errors="replace"))
        else:
            _library.kutrace_fields_word(ctypes.byref(fields), word)
    return _site("\0".join(kinds)), ctypes.byref(fields)


def mark(name):
    """This thread is here now; whether that is in the trace."""
    return bool(_library.kutrace_site_mark(_site(name)))


def event(name, **fields):
    """The same with fields: numbers, booleans, and what else there is as text, 120 bytes in all."""
    return is_on() and bool(_library.kutrace_site_event(*_pack(name, fields)))


def value(name, number):
    """What is counted here is this much now."""
    return bool(_library.kutrace_site_value(_site(name), number))


def keep(reason):
    """Asks for this moment to be kept, by `kutrace_control watch --when keep`; whether that is in the trace."""
    return _library.kutrace_keep(reason.replace("\0", "").encode(errors="replace")) > 0


class part(contextlib.ContextDecorator):
    """This thread is in a part of the program: in a with statement, or in the function that this decorates.

    What awaits is not always in the part in which its thread is. A part that it is in to the end of an async with
    statement is one that any thread may end, with a number of its own; and so is a coroutine function, or a generator,
    that this decorates. Each async with statement needs a part of its own. Async generators are left as they are.
    """

    def __init__(self, name, **fields):
        self.name, self.fields = name, fields

    def __call__(self, function):
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def inside(*arguments, **named):
                with _numbered(self.name, self.fields):
                    return await function(*arguments, **named)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def inside(*arguments, **named):
                with _numbered(self.name, self.fields):
                    return (yield from function(*arguments, **named))

        elif inspect.isasyncgenfunction(function):
            return function
        else:
            return super().__call__(function)
        return inside

    async def __aenter__(self):
        self.numbered = _numbered(self.name, self.fields)
        self.numbered.__enter__()
        return self

    async def __aexit__(self, *_):
        return self.numbered.__exit__()

    def __enter__(self):
        if not self.fields:
            _library.kutrace_site_begin(_site(self.name))
        elif is_on():
            _library.kutrace_site_begin_with(*_pack(self.name, self.fields))
        return self

    def __exit__(self, *_):
        _library.kutrace_site_end(_site(self.name))
        return False


class _numbered:
    """A part with a number that no other of its name has, unless the program numbers some itself."""

    def __init__(self, name, fields):
        self.name, self.fields, self.number = name, fields, 0

    def __enter__(self):
        if is_on():
            self.number = next(_numbers)
            site, packed = _pack(self.name, self.fields)
            _library.kutrace_site_async_begin(site, self.number, packed)

    def __exit__(self, *_):
        if self.number:
            end(self.name, self.number)
        return False


def begin(name, number, **fields):
    """A part begins that any thread may end, by its name and number."""
    if not is_on():
        return False
    site, packed = _pack(name, fields)
    return bool(_library.kutrace_site_async_begin(site, number, packed))


def end(name, number):
    """And ends."""
    return bool(_library.kutrace_site_async_end(_site(name), number))


class Handler(logging.Handler):
    """Lines of a log: marks `log` with level, logger and message."""

    def emit(self, record):
        if is_on():
            try:
                event("log", level=record.levelname, logger=record.name, message=record.getMessage())
            except Exception:
                self.handleError(record)
