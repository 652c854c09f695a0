#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Records the samples, in the virtual machine: cargo xtask vm --share samples -- bash /mnt/share/record.sh [NAME ...]
# postgres, whose probes want a kernel with uprobes, only when it is named: cargo xtask vm --kernel distribution --mem 2048 ...
set -euo pipefail
cd "$(dirname "$0")"
TOOLS=$(dirname "$(command -v kutrace_control)")
make -s -C /tmp -f /dev/null CFLAGS='-O2 -pthread' VPATH="$PWD" convoy faults slices

hello() { bash -c '/bin/echo hello, world'; }
convoy() { /tmp/convoy; }
pipeline() { bash -c 'seq 1 300 | sort -rn | tail -n 1'; }
faults() { /tmp/faults; }
slices() { /tmp/slices; }
disk() { dd if=/dev/zero of=/mnt/share/disk.tmp bs=4k count=8 oflag=dsync status=none; }
redis() { redis-benchmark -p 6399 -t get -n 250 -c 4; }
web() { "$TOOLS/examples/web" ask 8123 9; }
words() { LD_LIBRARY_PATH=$TOOLS PYTHONPATH=/tmp PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$PWD/words.py"; }
postgres() { psql -q -h /tmp -U nobody -d postgres -f "$PWD/postgres.sql"; }

# What runs before a trace begins.
before_redis() {
    redis-server --port 6399 --save '' --dir /tmp >/dev/null &
    until redis-cli -p 6399 ping >/dev/null 2>&1; do sleep 0.05; done
}
before_web() {
    "$TOOLS/examples/web" serve 8123 &
    until "$TOOLS/examples/web" ask 8123 3 2>/dev/null; do sleep 0.05; done
}
before_words() {
    cp "$(dirname "$TOOLS")/../../kutrace-control/kutrace/python/kutrace.py" /tmp
    words
}
before_postgres() {
    local bin=/usr/lib/postgresql/15/bin
    install -d -o nobody /tmp/data
    setpriv --reuid nobody --clear-groups "$bin/initdb" -D /tmp/data -U nobody --no-sync >/dev/null
    setpriv --reuid nobody --clear-groups "$bin/postgres" -D /tmp/data -k /tmp -c listen_addresses= -c shared_buffers=4MB \
        >/dev/null 2>&1 &
    until psql -h /tmp -U nobody -d postgres -qc 'CREATE TABLE words AS SELECT n, md5(n::text) AS word FROM generate_series(1, 3000) n' \
        2>/dev/null; do sleep 0.2; done
}
# With which it begins.
options() {
    if [ "$1" = postgres ]; then
        local file=/usr/lib/postgresql/15/bin/postgres
        printf ' --usdt %s:postgresql:%s' $file 'query__start(string)' $file query__done $file query__plan__start \
            $file query__execute__start $file sort__start $file sort__done $file transaction__commit
    fi
}

if [ $# -eq 0 ]; then set -- hello convoy pipeline faults slices disk redis web words; fi
for name; do
    if [ "$(type -t "before_$name")" = function ]; then "before_$name"; fi
    sync
    sleep 1
    # shellcheck disable=SC2046
    kutrace_control go $(options "$name")
    "$name" >/dev/null
    kutrace_control stop --force "/mnt/share/$name.trace"
    rm -f /mnt/share/disk.tmp
done
