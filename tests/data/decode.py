# SPDX-License-Identifier: BSD-3-Clause
"""Reads a trace by the schema that Perfetto publishes, and prints how often it has what, as JSON.

Fails if the trace has a field that the schema lacks.
"""

import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def check(message):
    """Fails if a message, or one in it, has a field of no name."""
    if len(UnknownFieldSet(message)):
        sys.exit(f"a field that the schema lacks: {message}")
    for field, value in message.ListFields():
        if field.message_type:
            for inner in value if field.is_repeated else [value]:
                check(inner)


trace = Trace()
trace.ParseFromString(sys.stdin.buffer.read())
check(trace)
names, tracks = {}, {}
counts = collections.defaultdict(collections.Counter)
for packet in trace.packet:
    names.update((name.iid, name.name) for name in packet.interned_data.event_names)
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    for event in packet.ftrace_events.event:
        counts["ftrace"][event.WhichOneof("event")] += 1
    if packet.HasField("track_event"):
        event = packet.track_event
        kind = TrackEvent.Type.Name(event.type).removeprefix("TYPE_").lower()
        track = tracks[event.track_uuid]
        own = track.HasField("thread") or track.name.endswith(" while idle")
        place = "own" if own else track.name
        if kind == "slice_begin":
            counts[place][names[event.name_iid]] += 1
        elif kind == "counter":
            counts["counters"][track.name] += 1
        elif kind == "slice_end":
            counts["ends"][place] += 1
        elif kind == "instant" and event.flow_ids:
            counts["flows"]["sent"] += 1
        elif kind == "instant" and event.terminating_flow_ids:
            counts["flows"]["arrived"] += 1
        elif kind == "instant":
            counts["instants"][event.name or names[event.name_iid]] += 1
json.dump(counts, sys.stdout)
