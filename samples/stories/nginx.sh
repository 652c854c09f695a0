#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# nginx with one worker sends images from a disk to which a backup writes: while the worker waits for an image, a page
# that is in memory has to wait, too. Fix: aio threads.
. "${0%/*}/common.sh"

mkdir www
mkfs.ext4 -q -F -E lazy_itable_init=0 /dev/vda
mount /dev/vda www
for n in {1..300}; do head -c 20000 /dev/urandom >www/image$n; done
echo 'A small page.' >www/page
serve() {
    umount www
    mount /dev/vda www
    nginx_with "sendfile on; aio $1;" 'root /tmp/www;'
    await curl -sf http://127.0.0.1:8080/page
}
load() {
    dd if=/dev/zero of=www/backup bs=1M count=300 oflag=direct conv=notrunc status=none & backup=$!
    wget -q -O /dev/null http://127.0.0.1:8080/image{1..300} & images=$!
    sleep 0.1
    curl -s --rate 100/s "http://127.0.0.1:8080/page?[1-100]"
    kill $backup $images 2>/dev/null || true
}

serve off
recorded before load
end %1
serve threads
recorded after load
