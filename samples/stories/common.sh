# SPDX-License-Identifier: BSD-3-Clause
# What all stories share; each sources it in the virtual machine, where /mnt/share is the folder of the traces.
set -euo pipefail
cd /tmp
story=$(basename "$0" .sh)
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# recorded before|after COMMAND...: what COMMAND does, as a trace.
recorded() {
    sync
    sleep 0.5
    kutrace_control go
    "${@:2}" >/dev/null
    kutrace_control stop --force "/mnt/share/$story.$1.trace"
}

# Repeats COMMAND until it succeeds.
await() {
    for _ in {1..100}; do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    "$@"
}

# Ends a server that was started in the background.
end() {
    kill "$1"
    wait "$1" || true
}

# nginx on port 8080, with one worker: lines of its configuration for http, and for the server.
nginx_with() {
    local folders=
    for of in client_body proxy fastcgi uwsgi scgi; do folders+="${of}_temp_path /tmp/$of; "; done
    cat >nginx.conf <<CONF
daemon off; pid /tmp/nginx.pid; error_log /tmp/nginx.log; worker_processes 1; user root;
events { worker_connections 64; }
http { access_log off; keepalive_requests 10000; $folders $1 server { listen 127.0.0.1:8080; $2 } }
CONF
    nginx -c /tmp/nginx.conf &
}
