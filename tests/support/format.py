#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A reader of raw format 5, written from docs/format.md alone: it shares no line with the tools it is held against.

    format.py TRACE            prints the event lines
    format.py TRACE LINES      compares them with LINES, what rawtoevent made of TRACE

Status 0 if nothing differs, 1 if something does, 2 for a file it cannot read.
"""

import heapq
import struct
import sys
import zlib

BLOCK = 65536
NOP, FULL_TIME, TASK, NAME, SWITCH, EXIT = 0, 1, 2, 3, 0x200, 0x220
FLOW_RECEIVED, FLOW_SENT, MEMBER = 4, 5, 6
IPI, THROTTLE, UNTHROTTLE = 0x207, 0x223, 0x224
SCHED, SCHED_RETURN = 0xDFF, 0xFFF
PC_KERNEL = 0x281
GAP, UNKNOWN_CALL = 0x30000, 0x9FE
# exit and exit_group, 64-bit and 32-bit.
NEVER_RETURN = {60, 231, 0x400 + 1, 0x400 + 252}
EXECS = {59, 322, 0x400 + 11, 0x400 + 358}
LETTERS = "\0abcdefghijklmnopqrstuvwxyz0123456789-./"


class Unreadable(Exception):
    """The file is not a trace of this format."""


def words_of(number):
    """How many argument words follow an entry; None if that is not known."""
    listed = {NOP: 0, FULL_TIME: 2, TASK: 7, NAME: 16, MEMBER: 2, FLOW_RECEIVED: 4, FLOW_SENT: 4, 0x280: 2, 0x281: 2, SCHED: 0, SCHED_RETURN: 0}
    if number in listed:
        return listed[number]
    for first, last, words in [
        (0x10, 0x1F, 1), (0x20, 0x2F, 3), (0x30, 0x3F, 7), (0x40, 0x4F, 15), (0x50, 0x5F, 31),
        (0x200, 0x27F, 1), (0x300, 0x31F, 0), (0x400, 0x7FF, 0), (0x800, 0xBFF, 1), (0xC00, 0xCFF, 0), (0xE00, 0xFFE, 1),
    ]:
        if first <= number <= last:
            return words
    return None


WORDS = [words_of(number) for number in range(0x1000)]


def checksum(data, at):
    """The CRC-32 of data whose own checksum, at `at`, counts as zero."""
    return zlib.crc32(data[at + 4:], zlib.crc32(b"\0\0\0\0", zlib.crc32(data[:at])))


def text_of(raw):
    """A name up to its end mark, as the columns of a line can carry it."""
    text = raw.split(b"\0")[0].decode("utf-8", "replace").strip()
    return "".join("_" if c.isspace() or ord(c) < 32 or 127 <= ord(c) < 160 or c in '"\\' else c for c in text)


def base40(number):
    letters = ""
    while number:
        number, digit = divmod(number, 40)
        letters += LETTERS[digit] if digit else ""
    return letters


class Trace:
    """Header, names and blocks of a file."""

    def __init__(self, data):
        if data[:8] != b"KUtrace5" or len(data) < 256 or checksum(data[:256], 12) != struct.unpack_from("<I", data, 12)[0]:
            raise Unreadable("no sound header of format 5")
        self.flags, self.shift, self.tsc_hz, self.cpus, size = struct.unpack_from("<IIQII", data, 16)
        self.start, self.stop = struct.unpack_from("<3Q", data, 56), struct.unpack_from("<3Q", data, 80)
        # Whether the source lacks the scheduler; then, each TASK that is right before its SWITCH, by CPU and counter.
        self.switches_only = struct.unpack_from("<Q", data, 152)[0] >> 11 & 1
        self.runs_next = set()
        # The names of threads whose TASK is right after their SWITCH, likewise.
        self.named_next = {}
        self.uuid = data[104:120]
        if size != BLOCK:
            raise Unreadable(f"blocks of {size} bytes")
        self.counted = self.flags & (4 | 8)
        self.names, self.damaged = [], 0
        self.streams, self.grants = {}, []
        at = 256
        while at + 32 <= len(data):
            tag, crc, length = struct.unpack_from("<4sIQ", data, at)
            payload = data[at + 32:at + 32 + length]
            if tag == b"NAME":
                # A stream names more at its end.
                self.names = []
                self.read_names(payload, crc)
            elif tag == b"PROG" and zlib.crc32(payload) == crc:
                self.read_program(payload)
            elif tag == b"BLOK":
                for n in range(0, len(payload), BLOCK):
                    self.read_block(payload[n:n + BLOCK])
            elif tag == b"STOP":
                self.stop = struct.unpack_from("<3Q", payload, 80)
            at += 32 + length
        for blocks in self.streams.values():
            blocks.sort(key=lambda block: block["sequence"])

    def read_names(self, payload, crc):
        if zlib.crc32(payload) != crc:
            raise Unreadable("the names are damaged")
        at = 0
        while at < len(payload):
            kind, length, number, second = struct.unpack_from("<HHII", payload, at)
            self.names.append((kind, number, second, payload[at + 12:at + 12 + length]))
            at += 12 + length

    def read_program(self, payload):
        serial, _, count, layout = struct.unpack_from("<4I", payload)
        area = payload[48 + 32 * count:]
        names, words, at = {}, [], 0
        for n in range(count):
            offset, size, tid, kind, _, tsc = struct.unpack_from("<4I2Q", payload, 48 + 32 * n)
            part = area[at:at + size] if layout else area[offset:offset + size]
            at += size
            if kind == 0:
                words.append((tid, tsc, struct.unpack_from(f"<{size // 8}Q", part)))
            else:
                names[offset] = part
        names = names if layout else {0: area}
        self.grants += [(serial, tid, tsc, names, numbers) for tid, tsc, numbers in words]

    def read_block(self, data):
        if len(data) < BLOCK or checksum(data, 108) != struct.unpack_from("<I", data, 108)[0] or data[4:20] != self.uuid:
            self.damaged += 1
            return
        names = "begin end content packet sequence lost cpu pid tgid state comm flags".split()
        block = dict(zip(names, struct.unpack_from("<6Q4I16sI", data, 24)))
        block["data"] = data
        self.streams.setdefault(block["cpu"], []).append(block)

    def nanoseconds(self, tsc):
        """Since the start."""
        counts, elapsed = self.stop[0] - self.start[0], self.stop[2] - self.start[2]
        calibrated = 1e9 / self.tsc_hz
        if elapsed < 1_000_000 or counts <= 0 or abs(elapsed / counts - calibrated) > calibrated / 100:
            counts, elapsed = self.tsc_hz, 1_000_000_000
        return (tsc - self.start[0]) * elapsed // counts

    def monotonic(self, ts):
        """On the monotonic clock, in ns."""
        return self.start[2] + (ts - self.start[1] % 60_000_000_000 // 10) * 10

    def units(self, counter):
        """Since the minute, in 10 ns."""
        return (self.nanoseconds(counter << self.shift) + self.start[1] % 60_000_000_000) // 10


def entries(trace, cpu, blocks):
    """Entries of a CPU's blocks: (counter, cpu, number, words, byte of the entry, byte of its first word). A block that
    begins is number -1, with its header for words; a gap is -2, with the number of lost events."""
    lost, now, expected = 0, 0, None if trace.flags & 2 else 0
    # Value added to the counter, as it stepped back so far; times continue from the last entry.
    ahead, last = 0, 0
    for block in blocks:
        if expected is not None and block["sequence"] != expected:
            yield now + ahead or trace.start[0] >> trace.shift, cpu, -2, 0, 0, 0
        expected = block["sequence"] + 1
        now = block["begin"]
        if block["flags"] & 4:
            ahead += max(last - now - ahead, 0)
        yield now + ahead, cpu, -1, block, 0, 0
        data = block["data"]
        count = (block["content"] // 8 - 128) // 4
        words = struct.unpack_from(f"<{count}I", data, 128)
        bytes_of = data[52455:] if trace.counted else bytes(count + 1)
        # For how long a call that has its return in it went on after its entry's time.
        n, sound, over = 0, True, 0
        while n < count:
            number = words[n] & 0xFFF
            arguments = WORDS[number]
            if arguments is None or n + 1 + arguments > count:
                sound = False
                break
            now += (words[n] >> 12) - now & 0xFFFFF
            if number == FULL_TIME:
                now = words[n + 1] | words[n + 2] << 32
            elif number != NOP:
                # Held until the counter has caught up with it.
                last = max(now + ahead, last)
                then = n + 1 + arguments
                while then < count and words[then] & 0xFFF in (FULL_TIME, NOP):
                    then += 1 + WORDS[words[then] & 0xFFF]
                following = (words[then] & 0xFFF, words[then + 1]) if then + 1 < count else None
                if number == TASK and following == (SWITCH, words[n + 1]):
                    trace.runs_next.add((cpu, last))
                # The block of such a switch may have had no name of its thread yet.
                if number == SWITCH and following == (TASK, words[n + 1]) and then + 8 <= count:
                    trace.named_next[cpu, last] = struct.pack("<4I", *words[then + 4:then + 8])
                over = (call_word(words[n + 1])[1] or (0, 0))[1] if is_call(number) else 0
                yield last, cpu, number, words[n + 1:n + 1 + arguments], bytes_of[n], bytes_of[n + 1] if arguments else 0
            n += 1 + arguments
        if block["flags"] & 1 or not sound:
            last = now + ahead + over
            yield last, cpu, -2, block["lost"] - lost, 0, 0
            lost = block["lost"]
            expected = None


def fields(schema, words):
    """Text of the fields of an entry; None for a double that programs write in different ways."""
    data, said = struct.pack(f"<{len(words)}Q", *words), []
    for field in schema:
        if not field:
            break
        kind, name = chr(field[0]), field[1:]
        if kind == "=":
            name, _, value = name.partition(b"=")
            said.append(f"{text_of(name)}={text_of(value)}")
            continue
        size = 8 * (1 + (data[0] & 0x7F) // 8) if kind == "s" and data else 8
        if len(data) < size or kind not in "uifbxs" or kind == "b" and struct.unpack_from("<Q", data)[0] > 1:
            said.append(f"{text_of(name)}=?")
            data = data[size:] if len(data) >= size else data
            break
        word, = struct.unpack_from("<Q", data)
        if kind == "s":
            value = text_of(data[1:1 + (data[0] & 0x7F)]) + ("..." if data[0] & 0x80 else "")
        elif kind == "f":
            value = repr(struct.unpack_from("<d", data)[0]).removesuffix(".0")
            if not value.replace(".", "").isdigit():
                return None
        else:
            value = {"u": word, "i": signed(word, 64), "b": "true" if word else "false", "x": hex(word)}[kind]
        said.append(f"{text_of(name)}={value}")
        data = data[size:]
    return said + ([f"...={len(data) // 8}"] if data else [])


def name_at(names, at):
    """What is at this place of an area of which these parts are known, from there on."""
    return next((part[at - start:] for start, part in names.items() if start <= at < start + len(part)), b"")


def recorded(trace, program, tid, now, names, words):
    """What a thread recorded in a grant: number -3, with (program, thread, kind, number of the name, value, name, what
    its fields say) for words."""
    n = 0
    while n < len(words):
        word = words[n]
        kind, is_open, payload, name = word >> 32 & 7, word >> 35 & 1, word >> 36 & 15, word >> 40
        values = words[n + 1:n + 1 + payload]
        n += 1 + payload
        if word == 0 or is_open or len(values) < payload:
            continue
        if kind == 7 and payload == 1 and values[0] >= now:
            now = values[0]
        elif kind in (1, 2) or kind == 3 and payload == 0 or kind in (4, 6) and payload == 1 or kind == 5 and payload:
            now += max(signed((word - now) & 0xFFFFFFFF, 32), 0)
            if trace.start[0] <= now <= trace.stop[0]:
                area = name_at(names, 8 * name)
                length = int.from_bytes(area[:2], "little")
                text = area[2:2 + length] if 0 < length < 1023 else b""
                text, *schema = text.removesuffix(b"\0").split(b"\0")
                value = values[0] if kind in (4, 5, 6) else 0
                said = fields(schema, values[kind == 5:]) if kind in (1, 2, 5) else []
                if said is not None and kind in (5, 6):
                    said = [f"id={value}"] + said
                text = text_of(text) or f"unnamed#{name}"
                # After all CPUs at the same count.
                yield now >> trace.shift, 1 << 20, -3, (program, tid, kind, name, value, text, said), 0, 0


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


def is_call(number):
    return 0x800 <= number < 0xA00 or 0xE00 <= number < 0xFFF


def call_word(word):
    """Argument, and value and counts of a return that is folded in."""
    if word & 1:
        return signed(word >> 24, 8) & 0xFFFF, ((word >> 16 & 0xFF) - 128, word >> 1 & 0x7FFF)
    value = word >> 8 & 0xFF
    return word >> 16, (value - 128, word >> 1 & 0x7F) if value else None


class Calls:
    """The system call that each thread is in: a number, -1 for none, None if unknown."""

    def __init__(self):
        self.of, self.gaps = {}, {}

    def get(self, pid):
        call, cpu, gaps = self.of.get(pid, (None, None, None))
        return call if self.gaps.get(cpu) == gaps else None

    def set(self, pid, call, cpu):
        self.of[pid] = call, cpu, self.gaps.get(cpu)

    def told(self, pid, state, cpu):
        """Contents of TASK or a header."""
        known = self.get(pid)
        nr = state & 0xFFFF
        told = nr < 0x200 or 0x400 <= nr < 0x5FF
        if known is None or known in NEVER_RETURN or told and known not in (-1, nr):
            known = nr if told else None
        self.set(pid, known, cpu)


class Names:
    """Names for event lines, as far as the file has them."""

    def __init__(self, records):
        self.tasks, self.events, self.on_cpu, self.softirqs = {0: "-idle-"}, {}, {}, {}
        self.functions, self.processes, self.maps = [], {}, {}
        bases = {4: 0x400, 5: 0x500, 8: 0x800, 12: 0xC00}
        for kind, number, second, raw in records:
            text = text_of(raw)
            if kind == 2:
                self.task(number, text)
                self.process(number, second)
            elif kind == 0x107:
                self.part(number, raw.decode("utf-8", "replace"))
            elif kind == 15:
                self.softirqs[number] = text
            elif kind == 5 and second:
                self.on_cpu[0x500 + number, second - 1] = text
            elif kind == 0x106:
                self.functions.append((second << 32 | number, text))
            elif kind in bases:
                self.events[bases[kind] + number] = text

    def function(self, number, pc):
        """The name of a sample of the kernel, after the function that starts last before it."""
        before = [(start, text) for start, text in self.functions if start <= pc and number == PC_KERNEL]
        return before and "PC=" + max(before)[1] or None

    def process(self, pid, tgid):
        if tgid:
            self.processes[pid] = tgid

    def part(self, tgid, text):
        """A part of a file that a process runs; one that is only known from the end counts as the last it got."""
        addresses, offset, since, _, path = text.split(" ", 4)
        first, end = (int(address, 16) for address in addresses.split("-"))
        since = (1 << 64) - 1 if since == "-" else int(since, 16)
        self.maps.setdefault(tgid, []).append((since, first, end, int(offset, 16), path))

    def place(self, pid, pc, now):
        """What a sample of user code is called, and what its argument is made of; `now` is of the monotonic clock."""
        parts = sorted(self.maps.get(self.processes.get(pid, pid), ()), key=lambda part: part[0])
        parts = [part for part in parts if part[1] <= pc < part[2]]
        if not parts:
            return None, None
        before = [part for part in parts if part[0] <= now]
        _, first, _, offset, path = before[-1] if before else parts[0]
        file = "PC=" + text_of(path.split("/")[-1].encode())
        return f"{file}+{pc - first + offset:#x}", file

    def task(self, pid, text):
        if text and pid:
            self.tasks[pid] = text

    def vector(self, words):
        """Name of a vector of a CPU from here on, by a NAME of kind 5."""
        if words[0] == 5:
            which = (0x500 + (words[1] & 0xFFFF), (words[1] >> 16) - 1)
            self.on_cpu[which] = text_of(struct.pack(f"<{len(words) - 2}I", *words[2:])) or None

    def line(self, event, cpu, argument):
        """None if the file does not have it."""
        if event == SWITCH:
            return f"{self.tasks.get(argument, '')}.{argument}" if argument else "-idle-"
        if 0x20A <= event <= 0x20C:
            return f"mark_{'abc'[event - 0x20a]}={base40(argument)}"
        if event in (0x5FF, 0x7FF):
            name = self.softirqs.get(argument)
            return name and ("/" if event == 0x7FF else "") + "BH:" + name
        if 0x400 <= event < 0x1000:
            call = event & ~0x200
            name = self.on_cpu.get((call, cpu)) or self.events.get(call)
            return name and ("/" if call != event else "") + name
        return None


def record_name(names, number, record):
    """What the record of a chosen tracepoint is called, by its description."""
    described = [text for kind, which, _, text in names if kind == 0x10F and which == number]
    if not described:
        return f"tracepoint#{number}(words=0x{record.hex()})"
    first, *fields = described[-1].decode("utf-8", "replace").splitlines() or [""]

    def text_at(at, size):
        rest = record[at:]
        ended = rest[:size].split(b"\0")[0]
        return text_of(ended) + ("..." if len(ended) == len(rest) < size else "")

    def value(kind, at, size):
        if kind == "s":
            return text_at(at, size) if at <= len(record) else "..."
        if at + size > len(record):
            return "..."
        own = record[at:at + size]
        if kind in "dDrR":
            where = int.from_bytes(own[:2], "little") + (8 + at + 4 if kind in "rR" else 0) - 8
            length = int.from_bytes(own[2:4], "little")
            if not 0 <= where <= len(record):
                return "..."
            return text_at(where, length) if kind in "dr" else "0x" + record[where:where + length].hex()
        item = int(kind[1:] or size)
        if kind[0] not in "uix" or item not in (1, 2, 4, 8):
            return "0x" + own.hex()
        items = [int.from_bytes(own[n:n + item], "little", signed=kind[0] == "i") for n in range(0, size, item)]
        return "/".join(hex(one) if kind[0] == "x" else str(one) for one in items)

    said = []
    for line in fields:
        name, kind, at, size = line.split(" ")
        said.append(f"{text_of(name.encode())}={value(kind, int(at), int(size))}")
    return text_of(first.encode()) + (f"({','.join(said)})" if said else "")


def lines(trace):
    """Events: (ts, dur, event, cpu, pid, argument, value, ipc, name)."""
    calls, names, running, outside = Calls(), Names(trace.names), {}, {}
    # By program and name the number of the first place; the parts that have begun, by that and their own number.
    numbers, parts, begun = {}, {}, 0
    units = trace.units
    streams = [entries(trace, cpu, blocks) for cpu, blocks in sorted(trace.streams.items())]
    streams += [recorded(trace, *grant) for grant in trace.grants]
    for at, cpu, number, words, own, inner in heapq.merge(*streams, key=lambda entry: entry[:2]):
        ts, dur, event, argument, value, sample = units(at), 0, number, 0, 0, None
        if number == -1:
            names.task(words["pid"], text_of(words["comm"]))
            names.process(words["pid"], words["tgid"])
            if running.get(cpu) == words["pid"]:
                continue
            running[cpu] = argument = words["pid"]
            calls.set(argument, calls.get(argument), cpu)
            calls.told(argument, words["state"], cpu)
            event, dur = SWITCH, 1
        elif number == -3:
            program, tid, kind, argument, wide, text, said = words
            cpu = next((cpu for cpu, pid in sorted(running.items()) if pid == tid), None)
            if cpu is None:
                continue
            argument = numbers.setdefault((program, text), argument)
            if kind in (5, 6):
                part = program, argument, wide
                argument = parts.pop(part, None) if kind == 6 else None
                if argument is None:
                    begun += 1
                    argument = begun
                if kind == 5:
                    parts[part] = argument
            if kind == 4:
                argument, value = wide & 0xFFFFFFFF, signed(wide >> 32, 32)
                text += f"={signed(wide, 64)}"
            text = None if said is None else ("/" if kind in (3, 6) else "") + text + (f"({','.join(said)})" if said else "")
            yield ts, 1, 0x22F + kind, cpu, tid, argument, value, 0, text
            continue
        elif number == -2:
            event, argument = GAP, words
            calls.gaps[cpu] = calls.gaps.get(cpu, 0) + 1
            outside[cpu] = False
        elif number == TASK:
            names.task(words[0], text_of(struct.pack("<4I", *words[3:])))
            names.process(words[0], words[1])
            before = running.get(cpu)
            elsewhere = (cpu, at) not in trace.runs_next if trace.switches_only else outside.get(cpu)
            became = words[0] != before and elsewhere and calls.get(before) in EXECS and words[2] & 0xFFFF in EXECS
            if became:
                calls.set(before, None, cpu)
                calls.set(words[0], None, cpu)
            calls.told(words[0], words[2], cpu)
            if not became:
                continue
            running[cpu] = argument = words[0]
            event, dur = SWITCH, 1
        elif number == NAME:
            names.vector(words)
            continue
        elif number == MEMBER:
            continue
        elif number in (FLOW_RECEIVED, FLOW_SENT):
            sent, flags = number == FLOW_SENT, words[2] >> 24
            event, dur = 0x22E + sent, 1
            argument, value = words[3], words[2] & 0xFFFFFF
            letters = "".join(letter for bit, letter in ((2, "S"), (1, "F"), (4, "R")) if flags & bit)
            sample = f"{'rt'[sent]}x.{words[1] >> 16}>{words[1] & 0xFFFF}{'' if flags else '/udp'}#{words[0]:08x}"
            sample += letters and ":" + letters
        elif 0x10 <= number < 0x60:
            event, dur, argument = 0x236, 1, number & 15
            sample = record_name(trace.names, argument, struct.pack(f"<{len(words)}I", *words))
        elif number < 0x280:
            argument, dur = words[0], int(number != SWITCH)
            if number == IPI:
                argument, value = words[0] & 0xFFFF, words[0] >> 16 & 0xFF
            elif number in (THROTTLE, UNTHROTTLE):
                argument, value = words[0] & 0xFFFFF, words[0] >> 20
            if number == SWITCH:
                if argument not in names.tasks:
                    names.task(argument, text_of(trace.named_next.get((cpu, at), b"")))
                running[cpu] = argument
                calls.set(argument, calls.get(argument), cpu)
            elif number == EXIT:
                calls.set(running[cpu], None, cpu)
        elif number < 0x300:
            pc = words[0] | words[1] << 32
            sample = named = names.function(number, pc)
            if number != PC_KERNEL:
                sample, named = names.place(running[cpu], pc, trace.monotonic(ts))
            argument = (zlib.crc32(named.encode()) if named else pc >> 6) & 0xFFFF
        elif number < 0x320:
            event, argument = (0x5FF, 0x7FF)[number >= 0x310], number & 15
        elif number in (SCHED, SCHED_RETURN):
            outside[cpu] = number == SCHED_RETURN
        elif 0x800 <= number < 0xA00 or 0xE00 <= number < 0xFFF:
            outside[cpu] = True
            event = number if number < 0xE00 else number - 0x200
            argument, returned = call_word(words[0])
            if returned:
                value, dur = returned[0], max(units(at + returned[1]) - ts, 1)
            calls.set(running[cpu], -1 if returned else event - 0x800, cpu)
        elif 0xA00 <= number < 0xD00:
            call = number - 0xA00 if number < 0xBFF else calls.get(running[cpu])
            value = signed(words[0], 32) if number < 0xC00 else number - 0xC80
            event = (UNKNOWN_CALL if call is None or call < 0 else 0x800 + call) + 0x200
            calls.set(running[cpu], -1, cpu)
        name = sample or names.line(event, cpu, argument)
        if number == -2:
            yield ts, dur, event, cpu, running.get(cpu, 0), argument, value, 0, name
            running.pop(cpu, None)
            continue
        yield ts, dur, event, cpu, running[cpu], argument, value, code(trace, own) | code(trace, inner) << 4, name


def code(trace, byte):
    """The four bits of a line's column; of both counters it shows neither as the file has it."""
    if trace.counted == 12:
        return byte & 0xC | (0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3)[byte >> 4]
    return byte & 0xF if trace.counted == 4 else byte >> 4


def theirs(path):
    """The same of rawtoevent's text."""
    with open(path, encoding="utf-8", errors="replace") as text:
        for line in text:
            column = line.split()
            if line[0] != "#" and int(column[2]) >= 0x200:
                ts, dur, event, cpu, pid, _, argument, value, ipc = map(int, column[:9])
                yield ts, dur, event, cpu, pid, argument, value, ipc, " ".join(column[9:-1])


def compare(ours, text):
    """Differences, CPU by CPU: entries of one time on different CPUs have no order."""
    count, found, cpus = 0, [], {}
    for line in ours:
        cpus.setdefault(line[3], []).append(line)
    places = dict.fromkeys(cpus, 0)
    for line in text:
        count += 1
        cpu, place = line[3], places.get(line[3], 0)
        places[cpu] = place + 1
        if place >= len(cpus.get(cpu, ())):
            found.append((None, line))
            continue
        mine = cpus[cpu][place]
        stated = mine[1:4] == line[1:4] and mine[1:3] == (1, SWITCH) or mine[2] == line[2] == GAP
        same_time = stated or abs(mine[0] - line[0]) <= 1 and abs(mine[1] - line[1]) <= 1
        if not same_time or mine[2:8] != line[2:8] or mine[8] not in (None, line[8]):
            found.append((mine, line))
    for cpu, place in places.items():
        found += [(mine, None) for mine in cpus.get(cpu, ())[place:]]
    return count, found


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(arguments[0], "rb") as file:
            trace = Trace(file.read())
    except (OSError, Unreadable) as problem:
        print(f"format.py: {arguments[0]}: {problem}", file=sys.stderr)
        return 2
    if len(arguments) == 1:
        for ts, dur, event, cpu, pid, argument, value, ipc, name in lines(trace):
            print(ts, dur, event, f"{cpu} ", pid, "0 ", argument, value, ipc, name or "-", f"({event:x})")
        return 0
    count, found = compare(lines(trace), theirs(arguments[1]))
    for mine, line in found[:10]:
        print(f"here  {mine}\nthere {line}", file=sys.stderr)
    print(f"{count} events, {len(found)} differ")
    return 1 if found or not count else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        sys.exit(1)
