#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A web service in Python, a thread for each request: while a report is computed, other threads want the interpreter's
# lock. Fix: reports in a process of their own.
. "${0%/*}/common.sh"

cat >service.py <<'PY'
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def report():
    rows = [{"number": n, "square": n * n} for n in range(4000)]
    return str(sum(len(json.dumps(row)) for row in rows)).encode()


class Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True

    def do_GET(self):
        body = b"ok" if self.path.startswith("/health") else pool.submit(report).result() if pool else report()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


pool = ProcessPoolExecutor(1) if sys.argv[1] == "process" else None
ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
PY
serve() {
    /usr/bin/python3 service.py "$1" &
    await curl -s http://127.0.0.1:8080/report
}
load() {
    ab -q -n 5 http://127.0.0.1:8080/report &
    sleep 0.2
    curl -s --rate 30/s "http://127.0.0.1:8080/health?[1-60]"
    wait $!
}

serve thread
recorded before load
end %1
serve process
recorded after load
