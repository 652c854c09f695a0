#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The workload that the demo traces: shell pipelines, a compiler, and a server under load. Everything it writes is below
# /tmp.
set -euo pipefail
work=$(mktemp -d /tmp/workload.XXXXXX)
cd "$work"

# Pipelines: processes that start, talk through pipes and end.
seq 1 20000 | sort -rn | tail -n 100 | wc -l >pipeline
cat /usr/include/linux/*.h | tr -cs 'A-Za-z' '\n' | sort | uniq -c | sort -rn >words
head -n 1 words

# A compiler: fork, exec, many small reads, computing.
cat >primes.c <<'C'
#include <stdio.h>
int main(void) {
    int found = 0;
    for (int n = 2; n < 20000; n++) {
        int prime = 1;
        for (int d = 2; d * d <= n; d++) {
            if (n % d == 0) { prime = 0; break; }
        }
        found += prime;
    }
    printf("%d primes\n", found);
    return 0;
}
C
gcc -O2 -o primes primes.c
./primes

# A server: TCP over loopback between two programs, epoll, timers.
redis-server --port 6399 --save '' --appendonly no --dir "$work" --daemonize no >redis.log 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 1 100); do
    redis-cli -p 6399 ping >/dev/null 2>&1 && break
    sleep 0.05
done
redis-benchmark -p 6399 -t set,get -n 10000 -c 10 --csv
redis-cli -p 6399 shutdown nosave || true
wait "$server" || true
