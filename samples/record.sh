#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Records the samples, in the virtual machine: cargo xtask vm --share samples -- bash /mnt/share/record.sh [NAME ...]
set -euo pipefail
cd "$(dirname "$0")"
make -s -C /tmp -f /dev/null CFLAGS='-O2 -pthread' VPATH="$PWD" convoy faults slices

hello() { bash -c '/bin/echo hello, world'; }
convoy() { /tmp/convoy; }
pipeline() { bash -c 'seq 1 300 | sort -rn | tail -n 1'; }
faults() { /tmp/faults; }
slices() { /tmp/slices; }
disk() { dd if=/dev/zero of=/mnt/share/disk.tmp bs=4k count=8 oflag=dsync status=none; }
redis() { redis-benchmark -p 6399 -t get -n 250 -c 4; }

server() {
    redis-server --port 6399 --save '' --dir /tmp >/dev/null &
    until redis-cli -p 6399 ping >/dev/null 2>&1; do sleep 0.05; done
}

if [ $# -eq 0 ]; then set -- hello convoy pipeline faults slices disk redis; fi
for name; do
    if [ "$name" = redis ]; then server; fi
    sync
    sleep 1
    kutrace_control go
    "$name" >/dev/null
    kutrace_control stop --force "/mnt/share/$name.trace"
    rm -f /mnt/share/disk.tmp
done
