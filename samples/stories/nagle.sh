#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# nginx passes requests on to Python's own web server, over a connection that stays. That server sends the head and the
# body of an answer in two small packets: the second waits until the first is acknowledged, which takes its time.
# Fix: disable_nagle_algorithm (TCP_NODELAY).
. "${0%/*}/common.sh"

serve() {
    /usr/bin/python3 -c "
from http.server import SimpleHTTPRequestHandler as Handler, ThreadingHTTPServer
Handler.protocol_version = 'HTTP/1.1'
Handler.disable_nagle_algorithm = $1
ThreadingHTTPServer(('127.0.0.1', 8000), Handler).serve_forever()" 2>/dev/null &
    await curl -s http://127.0.0.1:8000/page
}
load() { ab -q -k -n 60 http://127.0.0.1:8080/page; }

echo 'A small page.' >page
nginx_with 'upstream app { server 127.0.0.1:8000; keepalive 4; }' \
    'location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; }'
serve False
recorded before load
end $!
serve True
recorded after load
