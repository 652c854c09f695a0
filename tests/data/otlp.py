# SPDX-License-Identifier: BSD-3-Clause
"""Reads requests by the schema that OpenTelemetry publishes, a line of JSON for each, and prints what they have and whose they are, as JSON.

Fails if the schema lacks a field, or has another type for it.
"""

import base64
import collections
import json
import re
import sys

from google.protobuf.json_format import Parse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData


def by_protobuf(value, key=None):
    """Ids as protobuf's own JSON has them: OTLP writes them in hexadecimal."""
    if isinstance(value, dict):
        return {key: by_protobuf(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [by_protobuf(inner) for inner in value]
    if key in ("traceId", "spanId", "parentSpanId"):
        if not re.fullmatch("[0-9a-f]{32}" if key == "traceId" else "[0-9a-f]{16}", value):
            sys.exit(f"{key}: {value}")
        return base64.b64encode(bytes.fromhex(value)).decode()
    return value


counts, hosts = collections.defaultdict(lambda: [0, 0]), set()
for line in sys.stdin:
    traces = Parse(json.dumps(by_protobuf(json.loads(line))), TracesData())
    for resource in traces.resource_spans:
        said = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
        hosts.add((said["host.name"], said["service.name"]))
        spans = [span for scope in resource.scope_spans for span in scope.spans]
        ids = {span.span_id for span in spans}
        for span in spans:
            said = {attribute.key: attribute.value.string_value for attribute in span.attributes}
            kind = said.get("kutrace.kind", "request")
            if span.kind != Span.SPAN_KIND_INTERNAL or (kind != "request") != (span.parent_span_id in ids):
                sys.exit(f"{line}: {span}")
            counts[kind][0] += 1
            counts[kind][1] += span.end_time_unix_nano - span.start_time_unix_nano
json.dump([counts, sorted(hosts)], sys.stdout)
