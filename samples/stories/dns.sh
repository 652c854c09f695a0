#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The first name server of /etc/resolv.conf is gone: packets to it are lost. Fix: the one that answers comes first.
. "${0%/*}/common.sh"

gone=192.0.2.53 here=127.0.0.1
ip address add 192.0.2.1 dev lo
ip route add $gone dev lo
dnsmasq --keep-in-foreground --user=root --listen-address=$here --bind-interfaces --no-resolv --no-hosts \
    --address=/shop.test/192.0.2.80 --pid-file= &
echo >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
load() {
    for _ in 1 2 3; do
        for _ in 1 2 3 4 5 6 7 8; do getent ahostsv4 shop.test & lookups+=($!); done
        wait "${lookups[@]}"
        lookups=()
    done
}

printf 'nameserver %s\n' $here >resolv.conf
await getent ahostsv4 shop.test
printf 'nameserver %s\n' $gone $here >resolv.conf
recorded before load
printf 'nameserver %s\n' $here $gone >resolv.conf
recorded after load
