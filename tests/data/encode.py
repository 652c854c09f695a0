# SPDX-License-Identifier: BSD-3-Clause
"""Makes a trace by the schema that Perfetto publishes, from the output of trace-cmd on standard input, as Perfetto's
own recorder would: the events of one CPU after those of another, some in the compact form, some packets compressed.
"""

import collections
import re
import sys
import zlib

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import FtraceEvent, Trace, TracePacket

LINE = re.compile(r"\s*(.*)-(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}): (\w+):\s+(.*)")
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 0x10, "Z": 0x20, "I": 0x402}
# Events of a bundle.
BUNDLE = 50

own = {field.name for field in FtraceEvent.DESCRIPTOR.fields}
cpus, threads = collections.defaultdict(list), {}
for text in sys.stdin:
    match = LINE.match(text.rstrip("\n"))
    if not match:
        continue
    comm, pid, cpu, seconds, part, name, fields = match.groups()
    threads.setdefault(int(pid), comm)
    event = FtraceEvent(timestamp=int(seconds) * 10**9 + int(part), pid=int(pid))
    if name == "sys_enter":
        number, arguments = re.match(r"NR (-?\d+) \((.*)\)", fields).groups()
        event.sys_enter.id = int(number)
        event.sys_enter.args.extend(int(word, 16) for word in arguments.split(", "))
    elif name == "sys_exit":
        event.sys_exit.id, event.sys_exit.ret = map(int, re.match(r"NR (-?\d+) = (-?\d+)", fields).groups())
    elif name in own:
        message = getattr(event, name)
        message.SetInParent()
        for key, value in re.findall(r"(\w+)=(\S+)", fields):
            if key == "prev_state":
                value = STATES[value[0]]
            field = message.DESCRIPTOR.fields_by_name.get(key)
            if field and key not in ("handler", "ret"):
                setattr(message, key, value if field.type == field.TYPE_STRING else int(value))
    else:
        event.generic.event_name = name
        for key, value in re.findall(r"(\w+)=(\S+)", fields):
            field = event.generic.field.add(name=key)
            if re.fullmatch(r"\d+|0x[0-9a-f]+", value):
                field.uint_value = int(value, 0)
            else:
                field.str_value = value
    cpus[int(cpu)].append(event)


def compact(bundle, events):
    """Puts switches and wakeups into the bundle field by field, and returns the others."""
    lists, rest, names = bundle.compact_sched, [], {}
    last = {"switch": 0, "waking": 0}

    def add(kind, event, comm):
        getattr(lists, f"{kind}_timestamp").append(event.timestamp - last[kind])
        last[kind] = event.timestamp
        return names.setdefault(comm, len(names))

    for event in events:
        if event.HasField("sched_switch"):
            switch = event.sched_switch
            lists.switch_next_comm_index.append(add("switch", event, switch.next_comm))
            lists.switch_prev_state.append(switch.prev_state)
            lists.switch_next_pid.append(switch.next_pid)
        elif event.HasField("sched_waking"):
            lists.waking_comm_index.append(add("waking", event, event.sched_waking.comm))
            lists.waking_pid.append(event.sched_waking.pid)
        else:
            rest.append(event)
    lists.intern_table.extend(names)
    return rest


trace = Trace()
tree = trace.packet.add().process_tree
for pid, comm in threads.items():
    tree.threads.add(tid=pid, name=comm)
system = trace.packet.add().system_info
system.utsname.release, system.machine_name = "6.1.0", "box"
for cpu, events in reversed(cpus.items()):
    for n in range(0, len(events), BUNDLE):
        packet = TracePacket()
        bundle, some = packet.ftrace_events, events[n:n + BUNDLE]
        bundle.cpu = cpu
        if n // BUNDLE % 2:
            some = compact(bundle, some)
        bundle.event.extend(some)
        if n // BUNDLE % 3 == 2:
            inner = Trace(packet=[packet]).SerializeToString()
            packet = TracePacket(compressed_packets=zlib.compress(inner))
        trace.packet.append(packet)
sys.stdout.buffer.write(trace.SerializeToString())
