#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# redis in a control group that may use 20 ms of a CPU in each 100 ms. It needs less on average, but requests come five
# at a time and use up the quota of the moment. Fix: cpu.max.burst, which saves what was not used before.
. "${0%/*}/common.sh"

redis-server --port 6379 --save '' --enable-debug-command yes >/dev/null &
await redis-cli ping
redis-cli debug populate 1000 key 20 >/dev/null
mkdir groups
mount -t cgroup2 none groups
echo +cpu >groups/cgroup.subtree_control
mkdir groups/container
echo 20000 100000 >groups/container/cpu.max
echo $! >groups/container/cgroup.procs
load() {
    for _ in {1..40}; do
        printf 'keys *77*\n%.0s' 1 2 3 4 5
        sleep 0.25
    done | redis-cli
}

load >/dev/null &
recorded before sleep 7
wait $!
echo 20000 >groups/container/cpu.max.burst
load >/dev/null &
recorded after sleep 7
wait $!
