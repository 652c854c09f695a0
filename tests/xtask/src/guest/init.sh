#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The guest's first process: gives CMD the host's root (read-only), places to write and its own output, then reports.
#
# Three virtio ports lead to the host: CMD's standard output, CMD's standard error, and the report, one fact per line:
#   ready                   CMD is about to start
#   fail WHAT               it cannot be
#   exit STATUS OUT ERR     CMD ended, after that many bytes on each output
# /job/settings is written by the host: MODULE, VISIBLE, PROBE, EARLY; /job/command is shell text that ends in CMD.

export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
. /job/settings
if [ -e /early.ko ]; then
    # shellcheck disable=SC2086
    insmod /early.ko $EARLY
fi
for module in /modules/*.ko; do
    [ -e "$module" ] && insmod "$module"
done
ip link set lo up
hostname kutrace-vm

# The ports appear a moment after the kernel has started us, under numbers that depend on the other devices.
while ! [ -e /job/report ]; do
    for port in /sys/class/virtio-ports/*; do
        read -r name 2>/dev/null <"$port/name" && ln -sf "/dev/${port##*/}" "/job/$name"
    done
    [ -e /job/report ] || usleep 5000
done
exec 3>/job/report

fail() {
    echo "fail $*" >&3
    while :; do sleep 1; done
}

if [ "$PROBE" ]; then
    echo "exit 0 0 0" >&3
    while :; do sleep 1; done
fi

mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose host /host || fail "the host's root cannot be mounted"
mount -o bind /host /root
for dir in tmp run var/tmp mnt; do
    mount -t tmpfs -o mode=1777 tmpfs "/root/$dir" || fail "/$dir cannot be a tmpfs"
done
# The host's files below these stay hidden, except for the checkout's own folders.
for dir in $VISIBLE; do
    mkdir -p "/root$dir" && mount -o bind "/host$dir" "/root$dir" || fail "$dir cannot be shown"
done
mkdir -p /dev/shm /dev/pts /root/mnt/share
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts devpts /dev/pts
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
mount -o rbind /dev /root/dev
mount -t proc proc /root/proc
mount -t sysfs sys /root/sys
mount -t debugfs debugfs /root/sys/kernel/debug
# Through the page cache: ten times as fast here as without.
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=mmap share /root/mnt/share || fail "the share cannot be mounted"

if [ "$MODULE" ]; then
    insmod "/root$MODULE" 2>/job/insmod || fail "$(cat /job/insmod)"
fi

# A kernel that has just started counts on a first guess of the TSC's rate and changes to a better one in its third
# second. Time that the host takes until then is missing from the kernel's clock, and a trace would rightly report that
# its clock is not the processor's.
source=/sys/devices/system/clocksource/clocksource0/current_clocksource
round=0
while [ $((round += 1)) -lt 250 ] && read -r clock <$source && [ "$clock" = tsc-early ]; do usleep 20000; done

# Named pipes, so that CMD may reopen /dev/stdout and /dev/stderr, which the ports do not allow.
mkfifo /job/stdout /job/stderr
tee /job/out </job/stdout 3>&- | wc -c >/job/out.size &
tee /job/err </job/stderr 3>&- | wc -c >/job/err.size &
before=" $(echo /proc/[0-9]*) "
echo ready >&3
chroot /root /bin/sh -c "$(cat /job/command)" </dev/null >/job/stdout 2>/job/stderr 3>&-
status=$?

# Programs left running by CMD would hold its output open. Twice, for those born during the first round.
for round in 1 2; do
    for process in /proc/[0-9]*; do
        case "$before" in
            *" $process "*) ;;
            *) kill -9 "${process#/proc/}" 2>/dev/null ;;
        esac
    done
done
wait
umount /root/mnt/share
echo "exit $status $(cat /job/out.size) $(cat /job/err.size)" >&3
# The host ends the guest when it has all of the output.
while :; do sleep 1; done
