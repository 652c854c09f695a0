#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds spans against the events they were made of, by a reading of its own.

    check.py EVENTS SPANS [SUMMARY]     event lines, JSON of eventtospan, text of `summary`
    check.py FOLDER...                  the same in files of these names
    check.py --part-of EVENTS FOLDER... of recordings that are parts of another

It replays the events with one stack for each thread and knows at every moment what a CPU was doing, which call every
thread was in, who woke whom; the rules are those of docs/format.md and docs/hooks.md. Where events are missing on a
CPU, what it knew of a thread that may have run there is forgotten. What the source of the events lacks, as they say,
it does not expect. Then it asks of the spans:

    cover    each CPU's spans lie end to end over its traced time, and each shows the CPU's work
    twice    no thread runs on two CPUs at once
    arc      a wakeup arc begins at a wakeup, in the thread that ran there, and ends where the woken thread runs;
             every wakeup that led to a run has one
    wait     between two runs a thread waits, all the time and for nothing that what it blocked in excludes
    value    a call's spans have its argument; the one it returns in has the value, the others have none
    sample   a sample of the program counter lies in a span of user code or of the kernel, as it says
    stall    while a CPU stood still it recorded nothing, though a tick or an interrupt of another CPU was due, or while
             it was in the handler of an interrupt and another CPU stood still, or while no CPU recorded anything and
             two missed a tick
    steal    what the host took has no event inside, and is no more than it said
    count    calls, waits and wakeups are as many as `summary` prints
    part     of a part, where nothing is lost: the span is what the whole recording says, and who waits does not run

Prints a line for each kind that failed, with the first places; status 0 if none did, else 1.
"""

import bisect
import collections
import json
import os
import re
import sys

Event = collections.namedtuple("Event", "ts dur number cpu pid arg ret name")
Span = collections.namedtuple("Span", "start end cpu pid number arg ret name")

SWITCH, RUNNABLE, IPI, STORE, EXIT, WAIT_SAID, WORK, WORK_END = 0x200, 0x206, 0x207, 0x21E, 0x220, 0x225, 0x22A, 0x22B
GUEST_IN, GUEST_OUT, GUEST = 0x221, 0x222, 0x4FC
# The guest halted: by Intel's number, and by AMD's.
HALTS = {0x1000C, 0x20078}
PC_USER, PC_KERNEL = 0x280, 0x281
# What programs insert by the recorder's own system call, which is itself no event.
INSERTED = {0x201, 0x202, 0x203, 0x20A, 0x20B, 0x20C, 0x20D, 0x210, 0x211, 0x212, 0x216, 0x217, 0x219, 0x21A, 0x21B}
GOES_OFFLINE, COMES_ONLINE = 0x227, 0x228
STEAL = 0x229
SOFTIRQ, SCHED, LOST, USER, C_EXIT, KERNEL, EXIT_WORK = 0x5FF, 0xDFF, 0x30000, 0x10000, 0x20000, 0x40000, 0x9FD
OFFLINE, STALLED = 0x30001, 0x30002
UNKNOWN_CALL = 0x9FE
UNMASKABLE = 0x402, 0x412
# Activities that began before the trace: their start is unknown.
UNSURE = -1
# Statements of a thread before its CPU's events begin.
UNHEARD = "?"
# 10 ns is the unit of all times: rounded ones may be off by one.
UNIT = 1
# Waits shorter than this are not drawn.
SHORT = 10
# Time in the kernel before an interrupt whose sample shows that it was the kernel that was interrupted.
ENTERING = 100
FOREVER = 1 << 62
# A quota may be for as little.
QUOTA = 100000
# A CPU stood still for this long, and its tick comes this soon after: in the kernel, the end of a program's time is its
# entry, 1 us.
STALL, LATE = 100000, 20000 + 100
# From one tick to the next.
PERIODS = 100000, 333333, 400000, 1000000


def is_call(number):
    return 0x800 <= number < 0xA00 or 0xC00 <= number < 0xDFF


def is_return(number):
    return 0xA00 <= number < 0xC00 or 0xE00 <= number < 0xFFF


def is_cover(number):
    return 0x400 <= number < 0x1000 or number >= USER


def read_events(path):
    events, lines = [], []
    with open(path, encoding="utf-8", errors="replace") as text:
        for line in text:
            if line.startswith("#"):
                lines.append(line)
                continue
            column = line.split()
            number = int(column[2])
            if number < 0x200:
                events.append(Event(int(column[0]), 1, number & 0xF0F, None, None, int(column[3]), 0, " ".join(column[4:])))
            else:
                ts, dur, number, cpu, pid, _, arg, ret, _ = map(int, column[:9])
                events.append(Event(ts, dur, number, cpu, pid, arg, ret, " ".join(column[9:-1])))
    intervals = {}
    for line in lines:
        found = re.match(r"# ## CPU: (\d+) (-?\d+) (-?\d+)", line)
        if found:
            cpu, start, end = map(int, found.groups())
            intervals[cpu] = start, end
    unseen = {name for line in lines for name, text in capabilities().items() if line.rstrip() == f"# ## UNSEEN: {text}"}
    missing = any(re.match(r"# ## (LOST: [1-9]|QUALITY)", line) for line in lines)
    flags = [int(line.split()[3]) for line in lines if line.startswith("# ## FLAGS")]
    wrapped = bool(flags and flags[0] & 0x40)
    return events, intervals, gaps_of(events, intervals, missing or wrapped), unseen


def capabilities():
    """Facts that a trace cannot show by docs/format.md, by the name of the capability that its source lacks then."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/format.md")
    with open(path, encoding="utf-8") as document:
        return {name: text for _, name, text in re.findall(r"^\| (\d+) \| ([A-Z]\w+) \| (.*) \|$", document.read(), re.M)}


def gaps_of(events, intervals, missing):
    """From when to when there are no events of a CPU, though it may have had some."""
    gaps, lost = [], {}
    for event in events:
        if event.number == LOST:
            lost.setdefault(event.cpu, event.ts)
        elif event.cpu in lost:
            gaps.append((lost.pop(event.cpu), event.ts))
    gaps += [(start, FOREVER) for start in lost.values()]
    if missing:
        first = min((start for start, _ in intervals.values()), default=0)
        last = max((end for _, end in intervals.values()), default=0)
        gaps += [(-FOREVER, start) for start, _ in intervals.values() if start > first]
        gaps += [(end, FOREVER) for _, end in intervals.values() if end < last]
    return gaps


def read_spans(path):
    with open(path, encoding="utf-8", errors="replace") as text:
        trace = json.load(text)
    spans = []
    for start, dur, cpu, pid, _, number, arg, ret, _, name in trace["events"]:
        if start != 999.0:
            begin = round(start * 1e8)
            spans.append(Span(begin, begin + round(dur * 1e8), cpu, pid, number, arg, ret, name))
    return spans, trace


class Call:
    """A system call of a thread; `end` and `value` are None while it has not returned."""

    def __init__(self, number, name, begin, arg):
        self.number, self.name, self.begin, self.arg = number, name, begin, arg
        self.end = self.value = None


class Frame:
    """Something a CPU is inside of, up to an `end` that is an event of its own."""

    def __init__(self, number, name, begin, call=None, arg=0):
        self.number, self.name, self.begin, self.call, self.arg = number, name, begin, call, arg
        self.end = FOREVER
        # The pieces of CPUs' time that it is on top of.
        self.pieces = []


Off = collections.namedtuple("Off", "off on blocked said wakes")
Wake = collections.namedtuple("Wake", "ts cpu waker woken inside")


class Reading:
    """Facts from the events."""

    def __init__(self, events, intervals, gaps, unseen):
        self.unseen = unseen
        self.stacks = collections.defaultdict(list)
        self.running, self.since = {}, {}
        self.pieces = collections.defaultdict(list)
        # Times of each thread in which its activity is unknown.
        self.bare = collections.defaultdict(list)
        self.calls = collections.defaultdict(list)
        self.runs, self.offs = collections.defaultdict(list), collections.defaultdict(list)
        self.wakes, self.led, self.samples, self.exits = [], [], [], set()
        self.said, self.names = {}, {}
        # Threads that run since before the events of their CPU, and may have recorded then the reason of a wait to
        # come.
        self.unheard = set()
        self.scheduled = collections.defaultdict(list)
        # When something happened on each CPU, and when others sent it interrupts.
        self.moments, self.sent = collections.defaultdict(list), collections.defaultdict(list)
        # When the threads of each CPU did something themselves, and whether they inserted it.
        self.acts, self.inserted = collections.defaultdict(list), collections.defaultdict(list)
        # Times in which events of CPUs are missing; the last time at which each thread was seen; threads whose activity
        # is unknown after a gap, and the time since which they are seen again.
        self.gaps = gaps
        self.seen, self.blank = {}, {}
        # The calls that they were in before.
        self.left = {}
        # When each CPU was offline, from its last word to its first.
        self.away = collections.defaultdict(list)
        self.programs = set()
        # Start of the events of CPUs whose scheduler has recorded nothing since: they may have begun inside it.
        self.fresh = {} if "Scheduler" in unseen else {cpu: start for cpu, (start, _) in intervals.items()}
        self.intervals = intervals
        self.end = max((end for _, end in intervals.values()), default=0)
        self.events = events
        waiting = collections.defaultdict(list)
        self.waiting, self.sleeping, self.switching = waiting, {}, {}
        for event in events:
            if event.cpu is None:
                self.told(event)
            else:
                self.step(event)
        for cpu in list(self.since):
            self.cut(cpu, max(self.end, self.since[cpu]))
        # Who was switched to, and has not left the scheduler at the end, does not run yet.
        for wakes, off in self.switching.values():
            self.led = [led for led in self.led if led is not wakes]
            if off:
                off[1] = None

    def key(self, cpu):
        """Whose stack a CPU uses: a thread's, or its own while idle."""
        return self.running.get(cpu) or ("idle", cpu)

    def told(self, event):
        if event.number == 0x107:
            nr, name = event.name.split("/", 1)
            number = 0x800 + int(nr) if int(nr) < 1024 else 0xC00 + int(nr) - 1024
            self.programs.add(event.arg)
            on = [cpu for cpu, pid in self.running.items() if pid == event.arg]
            for cpu in on:
                self.cut(cpu, event.ts)
            self.meet(event.arg, event.ts)
            stack = self.stacks[event.arg]
            if any(frame.number == number for frame in stack):
                return
            call = Call(number, name, None, self.known(event.arg, number))
            # It has returned from another one, unseen.
            for gone in [frame for frame in stack if is_call(frame.number)]:
                stack.remove(gone)
                gone.call.number = UNKNOWN_CALL
                self.doubt(gone)
            stack.insert(0, Frame(number, name, event.ts, call))
            self.calls[event.arg].append(call)
        elif event.number == 0x002:
            self.names[event.arg] = event.name

    def meet(self, pid, ts):
        """A thread is seen. If it may have run unseen, what it is in, waits for and was woken by is not known."""
        seen, self.seen[pid] = self.seen.get(pid, -FOREVER), ts
        until = max((end for start, end in self.gaps if start < ts and end > seen), default=None)
        if until is None or pid in self.running.values():
            return
        for frame in self.stacks.pop(pid, []):
            if frame.call:
                self.left[pid] = frame.call.number, frame.call.arg
                frame.call.number = UNKNOWN_CALL
        self.said.pop(pid, None)
        self.sleeping.pop(pid, None)
        self.waiting[pid] = [wake for wake in self.waiting[pid] if wake.ts >= until]
        self.exits.discard(pid)
        self.blank[pid] = ts

    def cut(self, cpu, ts):
        """What the CPU did up to here is known."""
        since = self.since.get(cpu, ts)
        if ts > since:
            stack = self.stacks[self.key(cpu)]
            pid = self.running.get(cpu)
            top = stack[-1] if stack else None
            told = top is None or top.call and top.call.begin is None
            number = LOST if pid is None else UNSURE if told and pid in self.blank else top.number if top else USER
            self.piece(cpu, [since, ts, number, pid, top])
        self.since[cpu] = max(ts, since)

    def piece(self, cpu, piece):
        self.pieces[cpu].append(piece)
        (piece[4].pieces if piece[4] else self.bare[piece[3]]).append(piece)

    def step(self, event):
        ts, cpu, number = event.ts, event.cpu, event.number
        self.moments[cpu].append(ts)
        if number in (IPI, STORE) and event.arg != cpu:
            self.sent[event.arg].append(ts)
        if number in INSERTED or number in (SWITCH, SCHED) or is_call(number) or is_return(number):
            self.acts[cpu].append(ts)
            self.inserted[cpu].append(number in INSERTED)
        if cpu not in self.since:
            self.since[cpu] = self.intervals.get(cpu, (ts, ts))[0]
        if number == SCHED | 0x200:
            self.scheduled[cpu].append(ts)
        if number in (LOST, COMES_ONLINE) and "Scheduler" not in self.unseen:
            self.fresh[cpu] = ts
        elif number in (SCHED, SCHED | 0x200):
            self.fresh.pop(cpu, None)
        if number == GOES_OFFLINE:
            self.cut(cpu, ts)
            self.away[cpu].append([ts, float("inf")])
        elif number == COMES_ONLINE:
            if not self.away[cpu] or self.away[cpu][-1][1] <= ts:
                self.away[cpu].append([0, ts])
            self.away[cpu][-1][1] = ts
        if is_cover(number):
            self.switching.pop(cpu, None)
        if number == SWITCH:
            return self.switch(event)
        if number == LOST:
            self.cut(cpu, ts)
            self.leave(cpu, ts)
            self.running[cpu] = None
            self.stacks.pop(("idle", cpu), None)
            return None
        key = self.key(cpu)
        stack = self.stacks[key]
        if number == RUNNABLE:
            wake = Wake(ts, cpu, self.running.get(cpu), event.arg, list(stack))
            self.wakes.append(wake)
            self.waiting[event.arg].append(wake)
        elif number in (PC_USER, PC_KERNEL):
            self.samples.append((ts, cpu, number == PC_KERNEL, event.name))
        elif number == EXIT:
            self.exits.add(key)
        elif number == WAIT_SAID:
            self.announces(key, event.name)
        elif number == WORK:
            self.enter(event, key, EXIT_WORK)
        elif number == WORK_END:
            self.back(cpu, ts, lambda frame: frame.number == EXIT_WORK, EXIT_WORK, event)
        elif number == GUEST_IN:
            self.announces(key, None)
            self.enter(event, key, GUEST)
        elif number == GUEST_OUT:
            self.back(cpu, ts, lambda frame: frame.number == GUEST, GUEST, event)
            self.announces(key, "wait_guest" if event.arg in HALTS else None)
        elif number == SOFTIRQ:
            self.enter(event, key, SOFTIRQ)
        elif number == SOFTIRQ | 0x200:
            self.back(cpu, ts, lambda frame: frame.number == SOFTIRQ and frame.arg == event.arg, SOFTIRQ, event)
        elif 0x400 <= number < 0x600 or number == SCHED:
            self.enter(event, key, number)
        elif 0x600 <= number < 0x800 or number == SCHED | 0x200:
            self.back(cpu, ts, lambda frame: frame.number == number - 0x200, number - 0x200, event)
        elif is_call(number):
            self.programs.add(key)
            self.announces(key, None)
            self.cut(cpu, ts)
            self.blank.pop(key, None)
            call = Call(number, event.name, ts, event.arg)
            self.calls[key].append(call)
            # A thread is in one call at most: one that is still open has returned unseen.
            while stack and is_call(stack[0].number):
                gone = stack.pop(0)
                # An activity known only by name was over, or was this one.
                if gone.call.begin is None:
                    self.calls[key].remove(gone.call)
                    self.doubt(gone)
                gone.call.number = UNKNOWN_CALL
            if event.dur:
                call.end, call.value = ts + event.dur, event.ret
                self.piece(cpu, [ts, call.end, number, self.running.get(cpu), Frame(number, event.name, ts, call)])
                self.since[cpu] = call.end
            else:
                stack.append(Frame(number, event.name, ts, call))
        elif is_return(number):
            self.programs.add(key)
            self.announces(key, None)
            self.returned(event, key, stack)
        return None

    def announces(self, key, what):
        """What a thread will wait for, if it now waits."""
        self.unheard.discard(key)
        self.said[key] = what

    def enter(self, event, key, number):
        self.cut(event.cpu, event.ts)
        self.stacks[key].append(Frame(number, event.name, event.ts, arg=event.arg))

    def back(self, cpu, ts, is_it, number, event):
        """A return: of the innermost frame that fits, or of one that began before the trace."""
        self.cut(cpu, ts)
        stack = self.stacks[self.key(cpu)]
        for at in range(len(stack) - 1, -1, -1):
            if is_it(stack[at]):
                stack[at].end = ts
                del stack[at:]
                return
        self.amend(cpu, Frame(number, event.name.lstrip("/"), ts))

    def amend(self, cpu, frame, since=0):
        """What the CPU has been doing at the bottom since it was first seen was this, from some time on."""
        for piece in self.pieces[cpu]:
            # A call known only by name was below.
            told = piece[4] is None or piece[4].call and piece[4].call.begin is None
            if piece[0] >= since and told and piece[3] == self.running.get(cpu):
                piece[2], piece[4] = UNSURE, frame
                frame.pieces.append(piece)

    def doubt(self, frame):
        """The end of this is unknown."""
        for piece in frame.pieces:
            if piece[4] is frame:
                piece[2] = UNSURE

    def known(self, pid, number):
        """The argument of a call that may be the one that the thread was in before events were missing."""
        before, arg = self.left.pop(pid, (None, None))
        return arg if before == number else None

    def returned(self, event, key, stack):
        ts, cpu = event.ts, event.cpu
        self.cut(cpu, ts)
        for at in range(len(stack) - 1, -1, -1):
            if stack[at].call:
                call, stack[at].end = stack[at].call, ts
                del stack[at:]
                self.blank.pop(key, None)
                break
        else:
            number = event.number - 0x200
            call = Call(number, event.name.lstrip("/"), None, self.known(key, number))
            frame = Frame(call.number, call.name, ts, call)
            if not self.calls[key] or key in self.blank:
                since = self.blank.pop(key, -FOREVER)
                for piece in self.bare.pop(key, []):
                    if piece[4] is None and piece[0] >= since:
                        frame.pieces.append(piece)
                        piece[2], piece[4] = UNSURE if number == UNKNOWN_CALL else number, frame
            self.calls[key].append(call)
        call.number, call.end, call.value = event.number - 0x200, ts, event.ret

    def leave(self, cpu, ts):
        """The thread that ran on the CPU runs there no more."""
        old = self.running.get(cpu)
        if old:
            run = self.runs[old][-1]
            run[1] = self.seen[old] = ts
        return old

    def switch(self, event):
        ts, cpu, new = event.ts, event.cpu, event.arg
        old = self.running.get(cpu)
        if event.dur and old and not new and self.away[cpu] and self.away[cpu][-1][1] > ts:
            # A thread that announced going offline had left the CPU then.
            self.blank[self.leave(cpu, self.since[cpu])] = ts
            self.running[cpu] = old = 0
        if old == new and event.dur:
            return
        self.cut(cpu, ts)
        moved = []
        if old is not None and old != new:
            stack = self.stacks[self.key(cpu)]
            if cpu in self.fresh and not event.dur:
                scheduler = Frame(SCHED, "-sched-", ts)
                self.amend(cpu, scheduler, self.fresh.pop(cpu))
                stack.append(scheduler)
            for at, frame in enumerate(stack):
                if frame.number == SCHED:
                    moved = stack[at:]
                    del stack[at:]
                    break
            self.leave(cpu, ts)
            if old in self.exits:
                # The next with this number is another thread.
                self.exits.discard(old)
                stack.clear()
            elif old and not event.dur:
                blocked = stack[-1] if stack else None
                self.sleeping[old] = len(self.offs[old])
                said = UNHEARD if old in self.unheard else self.said.pop(old, None)
                self.offs[old].append([ts, None, blocked, said, None, list(stack)])
            self.unheard.discard(old)
        if new and old != new:
            self.meet(new, ts)
        self.running[cpu] = new
        if event.dur:
            self.unheard.add(new)
        if old != new:
            self.stacks[self.key(cpu)].extend(moved)
            if new:
                self.runs[new].append([ts, None, cpu])
                wakes = self.waiting.pop(new, [])
                # A thread that is reported as running may have run before it was woken.
                if wakes and not event.dur:
                    self.led.append(wakes)
                off = self.offs[new][self.sleeping.pop(new)] if new in self.sleeping else None
                if off:
                    # Of wakeups before it left, without the scheduler's end, only later ones show that it had run on.
                    later = [wake for wake in wakes if wake.ts > off[0]]
                    off[1], off[4] = ts, later or wakes
                # Where the scheduler is not seen, it runs from here on.
                if "Scheduler" not in self.unseen:
                    self.switching[cpu] = wakes, off


class Checker:
    """Questions, and what was found."""

    def __init__(self, events, spans, summary, whole):
        self.whole = whole
        events, self.intervals, gaps, self.unseen = read_events(events)
        self.reading = Reading(events, self.intervals, gaps, self.unseen)
        self.spans, self.trace = read_spans(spans)
        self.summary = open(summary, encoding="utf-8").readlines() if summary else []
        self.found = collections.defaultdict(list)
        self.asked = collections.Counter()
        self.explained = 0
        self.by_cpu = collections.defaultdict(list)
        for span in self.spans:
            if span.cpu >= 0 and is_cover(span.number) and span.end > span.start:
                self.by_cpu[span.cpu].append(span)
        self.starts = {cpu: [span.start for span in spans] for cpu, spans in self.by_cpu.items()}

    def bad(self, kind, *facts):
        self.found[kind].append(facts)

    def at(self, cpu, ts):
        """The span of a CPU at a moment."""
        place = bisect.bisect_right(self.starts.get(cpu, []), ts) - 1
        if place < 0 or self.by_cpu[cpu][place].end <= ts:
            return None
        return self.by_cpu[cpu][place]

    def run(self):
        for question in (self.cover, self.twice, self.says, self.arcs, self.waits, self.values, self.sampled, self.stalls,
                         self.stolen, self.counts):
            question()
        if self.whole:
            self.part()

    def cover(self):
        for cpu, (start, end) in self.intervals.items():
            now = start
            for span in self.by_cpu[cpu]:
                self.asked["cover"] += 1
                if span.start != now:
                    self.bad("cover", "gap" if span.start > now else "overlap", now, span)
                now = span.end
            if now != end:
                self.bad("cover", f"cpu {cpu} ends at {now}, not at {end}")

    def says(self):
        """Each moment's span is that of the replay; pieces of the replay may be rounded by a unit."""
        for cpu, pieces in self.reading.pieces.items():
            spans, place = self.by_cpu[cpu], 0
            for start, end, number, pid, frame in pieces:
                while place < len(spans) and spans[place].end <= start:
                    place += 1
                look = place
                while look < len(spans) and spans[look].start < end:
                    span = spans[look]
                    overlap = min(end, span.end) - max(start, span.start)
                    if overlap > UNIT and not self.same(number, pid, frame, span):
                        self.bad("cover", f"{max(start, span.start)} {overlap} units: {number:#x} of {pid}", span)
                    look += 1

    def part(self):
        """Times of a part are a little off, as it has measured the clock on its own."""
        off = 4 * UNIT
        for cpu, pieces in self.whole.pieces.items():
            spans, starts = self.by_cpu[cpu], self.starts.get(cpu, [])
            lost = [span for span in spans if span.number == LOST]
            begin, last = self.intervals.get(cpu, (0, FOREVER))
            begins = [begin] + [span.end for span in lost]
            ends = [span.start for span in lost] + [last]
            for start, end, number, pid, frame in pieces:
                # Activities that began before and had no end leave no record.
                since = bisect.bisect_right(begins, end) - 1
                if frame and since >= 0 and frame.begin < begins[since] and frame.end >= ends[since]:
                    continue
                # A call that has returned looks like one that has not, until the thread is in its program.
                left = self.whole.calls[pid] if frame is None and number == USER and pid else []
                left = next((call.number for call in reversed(left) if call.end is not None and call.end <= start), None)
                place = max(bisect.bisect_right(starts, start) - 1, 0)
                for span in spans[place:bisect.bisect_left(starts, end)]:
                    overlap = min(end, span.end) - max(start, span.start)
                    if overlap <= off or LOST in (number, span.number):
                        continue
                    self.asked["part"] += 1
                    if not self.same(number, pid, frame, span) and not (left == span.number and span.arg is None):
                        self.bad("part", f"{max(start, span.start)} {overlap} units: {number:#x} of {pid}", span)
        for span in self.spans:
            if 0x300 <= span.number <= 0x319:
                for start, end, cpu in self.whole.runs[span.pid]:
                    # A wait ends where the scheduler does that switched to the thread.
                    ends = self.whole.scheduled[cpu]
                    place = bisect.bisect_left(ends, start)
                    start = ends[place] if place < len(ends) else FOREVER
                    end = self.whole.end if end is None else end
                    if min(end, span.end) - max(start, span.start) > off:
                        self.bad("part", f"runs from {start} to {end} on {cpu}", span)

    def same(self, number, pid, frame, span):
        if number == UNSURE:
            return True
        if span.number == STALLED:
            span, frame = span._replace(number=span.arg), None
        if number == USER:
            if not pid:
                return span.number in (USER, C_EXIT) or span.number == OFFLINE and self.is_away(span)
            low = pid & 0xFFFF or 0xFFFF
            return span.number in (USER | low, KERNEL | low, EXIT_WORK) and span.pid == pid
        if number == SOFTIRQ:
            return span.number == number and (frame is None or span.arg == frame.arg)
        if number == SCHED:
            return span.number == number
        return span.number == number and (span.pid == pid or pid is None)

    def is_away(self, span):
        return any(start <= span.end and span.start <= end for start, end in self.reading.away[span.cpu])

    def twice(self):
        by_pid = collections.defaultdict(list)
        for spans in self.by_cpu.values():
            for span in spans:
                if span.pid > 0 and span.number != LOST:
                    by_pid[span.pid].append(span)
        for spans in by_pid.values():
            spans.sort(key=lambda span: span[:5])
            for one, two in zip(spans, spans[1:]):
                self.asked["twice"] += 1
                if two.start < one.end and two.cpu != one.cpu:
                    self.bad("twice", one, two)

    def arcs(self):
        wakes = collections.defaultdict(list)
        for wake in self.reading.wakes:
            wakes[wake.ts, wake.cpu, wake.woken].append(wake)
        starts = collections.defaultdict(list)
        for pid, runs in self.reading.runs.items():
            for start, end, cpu in runs:
                starts[pid, cpu].append((start, end if end is not None else self.reading.end))
        arcs = [span for span in self.spans if span.number == -3]
        for arc in arcs:
            self.asked["arc"] += 1
            found = wakes.get((arc.start, arc.cpu, arc.ret))
            if not found:
                self.bad("arc", "begins at no wakeup", arc)
            elif (found[0].waker or 0) != arc.pid:
                self.bad("arc", f"begins in {found[0].waker}", arc)
            runs = starts.get((arc.ret, arc.arg), [])
            place = bisect.bisect_right(runs, (arc.end + UNIT, float("inf"))) - 1
            # The arc ends at the scheduler's return, which follows the switch.
            if place < 0 or not runs[place][0] - UNIT <= arc.end <= runs[place][1] + UNIT:
                self.bad("arc", "ends at no run of the woken", arc)
        drawn = {(arc.start, arc.cpu, arc.ret) for arc in arcs}
        for wakes in self.reading.led:
            if not any((wake.ts, wake.cpu, wake.woken) in drawn for wake in wakes):
                self.bad("arc", "a wakeup that led to a run has none", *wakes[0][:4])

    def waits(self):
        waits = collections.defaultdict(list)
        for span in self.spans:
            if 0x300 <= span.number <= 0x319:
                waits[span.pid].append(span)
        for pid, spans in waits.items():
            spans.sort(key=lambda span: span[:5])
            for one, two in zip(spans, spans[1:]):
                if two.start < one.end:
                    self.bad("wait", "overlap", one, two)
        self.slept = collections.Counter()
        for pid, offs in self.reading.offs.items():
            spans = waits.get(pid, [])
            begins = [span.start for span in spans]
            for off, on, blocked, said, wakes, stack in offs:
                if on is None:
                    continue
                self.asked["wait"] += 1
                place = max(bisect.bisect_right(begins, off) - 1, 0)
                mine = [span for span in spans[place:bisect.bisect_left(begins, on)] if span.end > off]
                self.off(pid, off, on, blocked, stack, said, wakes, mine)

    def off(self, pid, off, on, blocked, stack, said, wakes, mine):
        """One time off the CPU, and the waits that cover it. The scheduler's own time before the wait is none."""
        covered = sum(min(span.end, on) - max(span.start, off) for span in mine)
        if on - off - covered > self.scheduling(pid, off, on):
            self.bad("wait", f"{pid} off from {off} to {on}, {covered} covered", name_of(blocked), *mine[:3])
            return
        if said in SAID:
            for span in mine:
                if span.name not in {SAID[said]} | COULD_RUN:
                    self.bad("wait", f"{pid} recorded {said}: {span.name}", span)
            return
        for span in mine:
            reason = span.name
            self.slept[reason] += 1
            if reason in COULD_RUN:
                could_run = wakes[0].ts if wakes else off
                if reason == "wait_cpu" and all(self.was_idle(pid, since, on, span) for since in (could_run, span.start)):
                    self.bad("wait", f"{pid} wait_cpu, and its CPU was idle", span)
                if wakes and span.end - UNIT <= wakes[0].ts:
                    self.bad("wait", f"{pid} {reason} before its wakeup", span)
                continue
            allowed = self.allowed(pid, blocked, stack, wakes)
            if allowed and said == UNHEARD and wakes and [frame.name for frame in wakes[0].inside[-1:]] == ["ptrace"]:
                allowed = {"wait_traced"}
            if allowed and reason not in allowed:
                wake = wakes[0] if wakes else None
                by = f"{wake.waker} in {name_of(wake.inside[-1] if wake.inside else None)}" if wake else "no waker"
                self.bad("wait", f"{pid} blocked in {name_of(blocked)}, woken by {by}: {reason}")

    def was_idle(self, pid, since, on, wait):
        """Whether the CPU that a thread got at last had been idle, mostly, since then or since some time within a wait."""
        place = bisect.bisect_left(self.reading.runs[pid], [on])
        cpu = self.reading.runs[pid][place][2]
        idle, begin = 0, on
        spans = self.by_cpu[cpu]
        for place in range(bisect.bisect_left(self.starts[cpu], on) - 1, -1, -1):
            span = spans[place]
            if span.pid > 0 or span.end <= since:
                break
            begin = max(span.start, since)
            # It may have been for a quota.
            if "Quotas" in self.unseen and on - begin >= QUOTA:
                return False
            idle += (span.end - begin) * (span.number in (USER, C_EXIT))
        return 3 * idle > 2 * (on - begin) and begin < wait.end - UNIT

    def scheduling(self, pid, off, on):
        """How long a time off the CPU may go untold: while the scheduler that took it off ran on."""
        if "Scheduler" in self.unseen:
            return 2 * SHORT
        runs = self.reading.runs[pid]
        last = bisect.bisect_left(runs, [off]) - 1
        while last >= 0 and (runs[last][1] is None or runs[last][1] > off):
            last -= 1
        ends = self.reading.scheduled[runs[last][2]] if last >= 0 else []
        place = bisect.bisect_left(ends, off)
        return (ends[place] - off if place < len(ends) else on - off) + 2 * SHORT

    def allowed(self, pid, blocked, stack, wakes):
        if pid not in self.reading.programs:
            return NEVER_OF_KERNEL
        if blocked is None:
            return None
        # Who opens a fifo waits for another to open its other end; who opens a file of FUSE, for its daemon to answer.
        opened = OPENS & {blocked.name} and wakes and OPENED & {frame.name for frame in wakes[0].inside}
        # A call that a supervisor decides on may first wait for the list of those, which that has locked in ioctl.
        listed = wakes and [frame.name for frame in wakes[0].inside[-1:]] == ["ioctl"]
        for pattern, reasons in EXCLUDED:
            if re.fullmatch(pattern, blocked.name):
                return reasons | ({"wait_pipe"} if opened else set()) | ({"wait_task"} if listed else set())
        return None

    def values(self):
        """The spans of each call, by thread and number, in the order of time."""
        by_thread = collections.defaultdict(list)
        for spans in self.by_cpu.values():
            for span in spans:
                if is_call(span.number):
                    by_thread[span.pid].append(span)
        for span in self.spans:
            if span.cpu >= 0 and is_call(span.number) and span.start == span.end:
                by_thread[span.pid].append(span)
        for spans in by_thread.values():
            spans.sort(key=lambda span: span[:5])
        for pid, calls in self.reading.calls.items():
            spans = by_thread.get(pid, [])
            begins = [span.start for span in spans]
            for call in calls:
                if call.number == UNKNOWN_CALL:
                    continue
                self.asked["value"] += 1
                end = self.reading.end if call.end is None else call.end
                first = bisect.bisect_left(begins, call.begin if call.begin is not None else -1)
                last = bisect.bisect_right(begins, end)
                mine = [span for span in spans[first:last] if span.number == call.number and span.end <= end + UNIT]
                if call.begin is None:
                    mine = [span for span in mine if span.end >= end - UNIT]
                if call.end is not None and not mine:
                    self.bad("value", f"{pid} {call.name} from {call.begin} to {call.end} has no span")
                    continue
                self.value(pid, call, mine)

    def value(self, pid, call, mine):
        """JSON without `valueBits` has the original's 16 bits of a value, and 0 for none."""
        wide = self.trace.get("valueBits") == 32
        none = (None,) if wide else (0, None)
        for span in mine:
            if call.begin is not None and span.start >= call.begin and span.arg != call.arg and (span.start, span.end) != (call.end, call.end):
                self.bad("value", f"{pid} {call.name}: argument {call.arg}", span)
                return
            returned = call.end is not None and abs(span.end - call.end) <= UNIT
            if wide and call.begin is None and span.arg not in (None, call.arg):
                self.bad("value", f"{pid} {call.name}: an unknown argument", span)
            if returned and span is mine[-1]:
                value = (call.value + (1 << 31)) % (1 << 32) - (1 << 31) if wide else call.value & 0xFFFF
                if span.ret != value:
                    self.bad("value", f"{pid} {call.name}: returned {value}", span)
            elif span.ret not in none:
                self.bad("value", f"{pid} {call.name}: not returned", span)

    def sampled(self):
        for ts, cpu, kernel, name in self.reading.samples:
            span, between = self.beneath(cpu, ts)
            if span is None or span.number == LOST:
                continue
            self.asked["sample"] += 1
            user = USER < self.inside(span) < C_EXIT
            # From the end of one interrupt to the next the kernel runs, without an event; nor in the recorder's call.
            if user and kernel and (between or self.inserts(cpu, ts)):
                self.explained += 1
            elif user == kernel:
                self.bad("sample", f"{ts} cpu {cpu} {name} is {'kernel' if kernel else 'user'}", span)

    def stalls(self):
        reading = self.reading
        ticks = collections.defaultdict(list)
        for ts, cpu, _, _ in reading.samples:
            ticks[cpu].append(ts)
        for span in self.spans:
            if span.number != STALLED:
                continue
            self.asked["stall"] += 1
            moments, sent, sampled = reading.moments[span.cpu], reading.sent[span.cpu], ticks[span.cpu]
            inside = bisect.bisect_left(moments, span.end) - bisect.bisect_right(moments, span.start)
            stolen = span.name.startswith("stolen:")
            if inside or span.end - span.start < STALL and not stolen:
                self.bad("stall", f"{inside} events inside", span)
            if stolen:
                # The host of a guest records it, and it may be short.
                continue
            tick = bisect.bisect_left(sampled, span.end)
            came = tick < len(sampled) and sampled[tick] - span.end <= LATE
            due = span.start in sent or came and tick >= 4 and span.arg != USER
            if not due and not self.stood_still_with_another(span) and not self.stood_still_together(span, ticks):
                self.bad("stall", "nothing was due", span)

    def stood_still_with_another(self, span):
        """Whether a CPU was in the handler of an interrupt, while another one stood still for most of that."""
        if not (0x500 <= span.arg < SOFTIRQ or span.arg in UNMASKABLE):
            return False
        together = collections.Counter()
        for other in self.spans:
            if other.number == STALLED and other.cpu != span.cpu:
                together[other.cpu] += max(min(other.end, span.end) - max(other.start, span.start), 0)
        return any(2 * time > span.end - span.start for time in together.values())

    def stood_still_together(self, span, ticks):
        """Whether no CPU recorded anything in a span, and two that stood still then had missed a tick."""
        for moments in self.reading.moments.values():
            if bisect.bisect_left(moments, span.end) > bisect.bisect_right(moments, span.start):
                return False
        apart = collections.Counter()
        for sampled in ticks.values():
            for before, after in zip(sampled, sampled[1:]):
                apart.update(period for period in PERIODS if abs(after - before - period) <= period // 16)
        if not apart:
            return False
        period, = (period for period, _ in apart.most_common(1))
        missed = 0
        for other in self.spans:
            # The last moment before an interrupt may be known to be the kernel's.
            if other.number == STALLED and other.start == span.start and abs(other.end - span.end) <= ENTERING:
                sampled = ticks[other.cpu]
                tick = bisect.bisect_left(sampled, span.end)
                missed += tick >= 1 and span.end - sampled[tick - 1] >= period
        return missed >= 2

    def stolen(self):
        told, drawn = collections.Counter(), collections.Counter()
        for event in self.reading.events:
            if event.number == STEAL:
                told[event.cpu] += event.arg
        for span in self.spans:
            if span.number != STEAL:
                continue
            self.asked["steal"] += 1
            drawn[span.cpu] += 10 * (span.end - span.start)
            moments = self.reading.moments[span.cpu]
            inside = bisect.bisect_left(moments, span.end) - bisect.bisect_right(moments, span.start)
            if inside or span.arg < 0:
                self.bad("steal", f"{inside} events inside", span)
        for cpu, ns in drawn.items():
            if ns > told[cpu]:
                self.bad("steal", f"cpu {cpu}: {ns} ns of {told[cpu]}")

    def beneath(self, cpu, ts):
        """What the tick interrupted: the span before the interrupts at this moment; and whether those are several."""
        first = place = bisect.bisect_right(self.starts.get(cpu, []), ts) - 1
        spans = self.by_cpu.get(cpu, [])
        # What cannot be masked may have come inside the tick.
        while place >= 0 and (0x500 <= self.inside(spans[place]) < SOFTIRQ or self.inside(spans[place]) in UNMASKABLE):
            place -= 1
        kinds = {self.inside(span) for span in spans[place + 1:first + 1]}
        return spans[place] if place >= 0 else None, len(kinds) > 1

    def inserts(self, cpu, ts):
        """Whether a thread may be in the recorder's own call: what it inserted is its last act so far, or the next."""
        place = bisect.bisect_left(self.reading.acts[cpu], ts)
        return any(self.reading.inserted[cpu][max(place - 1, 0):place + 1])

    def inside(self, span):
        """What a CPU is at in a span, if it stood still what it was."""
        return span.arg if span.number == STALLED else span.number

    def counts(self):
        """The tables of `summary`: how many calls of each name began, how many waits there were for each reason."""
        begun, waited = collections.Counter(), collections.Counter()
        for event in self.reading.events:
            number = event.number
            if event.cpu is not None and (0x400 <= number < 0x600 or is_call(number) or number == SCHED):
                begun[event.name] += 1
        for span in self.spans:
            waited[span.name] += 0x300 <= span.number <= 0x319
        table = None
        for line in self.summary:
            words = line.split()
            heading = re.search(r"  ([A-Z ]+)(, and who waited longest)?$", line.rstrip())
            if heading or not words:
                table = heading.group(1).strip() if heading else None
            elif table in ("SYSTEM CALL", "INTERRUPT", "FAULT") and words[0] == "-":
                self.count(words[-1], int(words[2]), begun)
            elif table in ("SYSTEM CALL", "INTERRUPT", "FAULT") and words[3] == "%":
                self.count(words[-1], int(words[4]), begun)
            elif table == "WAIT":
                self.count(words[-2], int(words[2]), waited)

    def count(self, name, said, expected):
        self.asked["count"] += 1
        if expected[name] != said:
            self.bad("count", f"{name}: {said} in the summary, {expected[name]} in the events")


# The call a thread blocked in, and the possible reasons of its wait then. Not here: calls that leave it open, as read
# or poll.
COULD_RUN = {"wait_cpu", "wait_idle", "wait_quota", "wait_stall"}
ALWAYS = {"wait_rcu", "wait_unk"}
NEVER_OF_KERNEL = {"wait_task", "wait_time", "wait_disk", "wait_net", "wait_lock", "wait_unk"}
EXCLUDED = [
    ("(clock_)?nanosleep", {"wait_time", "wait_task"}),
    ("futex.*", {"wait_lock", "wait_time", "wait_task"}),
    ("wait4|waitid|vfork|pause|rt_sigsuspend", {"wait_task"}),
    ("rt_sigtimedwait", {"wait_task", "wait_time"}),
    ("fsync|fdatasync|sync|syncfs|sync_file_range|msync", {"wait_disk", "wait_task", "wait_lock", "wait_time"}),
    ("openat2?|open|creat|execve(at)?|stat|lstat|newfstatat|statx|access|faccessat2?|getdents(64)?|unlink(at)?|mkdir(at)?|rename(at2?)?",
     {"wait_disk", "wait_task", "wait_lock", "wait_time", "wait_mem"}),
    ("flock|fcntl|semop|semtimedop", {"wait_lock", "wait_time", "wait_disk", "wait_task"}),
    ("exit(_group)?", {"wait_disk", "wait_task", "wait_lock", "wait_time"}),
    ("page_fault", {"wait_disk", "wait_mem", "wait_lock", "wait_task", "wait_time"}),
    ("sched_yield|getpid|getppid", set()),
]
OPENS = {"open", "openat", "openat2", "creat"}
OPENED = OPENS | {"write", "writev", "splice", "io_uring_enter"}
EXCLUDED = [(pattern, reasons | ALWAYS) for pattern, reasons in EXCLUDED]


# A thread's own record before it waits, and the wait that follows.
SAID = {
    "wait_guest": "wait_guest", "wait_frozen": "wait_frozen", "wait_stopped": "wait_stopped", "wait_traced": "wait_traced",
    "wait_memory_limit": "wait_mem", "wait_reclaim": "wait_mem", "wait_dirty_pages": "wait_disk",
    "wait_supervisor": "wait_task",
}


def name_of(frame):
    return frame.name if frame else "no call"


def main(arguments):
    whole = None
    if arguments[:1] == ["--part-of"] and len(arguments) > 2:
        whole = Reading(*read_events(arguments[1]))
        arguments = arguments[2:]
    folders = [argument for argument in arguments if os.path.isdir(argument)]
    if folders and len(folders) == len(arguments):
        asked = [[os.path.join(folder, name) for name in ("events", "spans", "summary")] for folder in folders]
    elif len(arguments) in (2, 3):
        asked = [arguments]
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return max([check(*files, whole=whole) for files in asked])


def check(events, spans, summary=None, whole=None):
    """The status of one trace, after saying what was asked and what is wrong."""
    checker = Checker(events, spans, summary, whole)
    checker.run()
    print(f"{events}: " + ", ".join(f"{count} {kind}" for kind, count in checker.asked.items()))
    print(f"{len(checker.found['sample'])} of {checker.asked['sample']} samples of the program counter contradict a span,"
          f" {checker.explained} lie between two interrupts or in the recorder's call")
    for kind, found in checker.found.items():
        if found:
            print(f"{kind}: {len(found)} wrong")
        for facts in found[:8]:
            print("   ", *facts)
    return 1 if any(checker.found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
