#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh SUITE MIRROR FOLDER PACKAGE...: installs the packages in a fresh Debian SUITE in FOLDER, uses what they
# hold, and removes them; fails unless the system is afterwards as it was before.
set -euo pipefail
suite=$1 mirror=$2 root=$3
shift 3

debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" || { tail -5 "$root.log" >&2; exit 1; }
trap 'umount "$root/proc"' EXIT
mount -t proc proc "$root/proc"
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

# No service of this machine is to be started from there.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

# Installed before, so that what these leave of their own is not counted.
case $suite in
    bookworm) headers="linux-headers-6.12-cloud-amd64 linux-headers-cloud-amd64" ;;
    *) headers="linux-headers-cloud-amd64" ;;
esac
echo "deb ${mirror%/}-security $suite-security main" >>"$root/etc/apt/sources.list"
inside apt-get update -q >>"$root.log"
# shellcheck disable=SC2086
inside apt-get install -q -y --no-install-recommends adduser libcap2-bin libgcc-s1 gcc libc6-dev g++ python3 pkgconf dkms openssl $headers >>"$root.log" 2>&1

# The lists of modules that a kernel's package has made.
inside sh -c 'for modules in /lib/modules/*; do depmod "${modules##*/}"; done' >>"$root.log" 2>&1

# What apt, dpkg and adduser write down for themselves does not count, nor DKMS's key for all modules.
state() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path './var/lib/dkms/mok.*' -o -path ./run -o -path ./tmp -o -name 'gshadow-' -o -name 'group-' \) -prune -o -printf '%M %u %g %p %l\n' | sort)
    sort "$root/etc/group" "$root/etc/passwd"
}
state >"$root.before"

mkdir "$root/tmp/packages"
cp "$@" "$root/tmp/packages"
inside sh -c 'apt-get install -q -y --no-install-recommends /tmp/packages/*.deb' >>"$root.log"

inside sh -c 'modinfo --field signer /lib/modules/6.12*/updates/dkms/kutrace.ko*' | grep -q .
if [ "$suite" = bookworm ]; then
    inside sh -c 'modinfo --field signer /lib/modules/6.1.0-*/updates/dkms/kutrace.ko*' | grep -q .
fi
# One that it has not been tried on is left alone.
inside sh -ec 'mkdir -p /lib/modules/5.10.0-1-amd64/build/include
    /usr/lib/kutrace/build-module 5.10.0-1-amd64
    rm -r /lib/modules/5.10.0-1-amd64' | grep -q '^kutrace-dkms: no module for Linux 5.10.0-1-amd64: .* lists the kernels with one$'
# A kernel for which the build fails is installed all the same.
inside sh -ec 'version=$(dpkg-query --show --showformat "\${Version}" kutrace-dkms)
    dkms remove -m kutrace -v "$version" --all
    dkms add -m kutrace -v "$version"
    echo "#error broken" >>"/usr/src/kutrace-$version/shim.c"' >>"$root.log"
inside sh -ec 'headers=$(basename /usr/src/linux-headers-6.12*-cloud-amd64)
    apt-get install -q -y --reinstall "$headers"' >>"$root.log" 2>&1
grep -q '^kutrace-dkms: no module for Linux 6.12.*: DKMS could not build it' "$root.log"

inside getent group kutrace >/dev/null
inside getcap /usr/bin/kutrace_control | grep -q cap_perfmon=ep
test -L "$root/etc/systemd/system/multi-user.target.wants/kutrace.service"
# Disabled; as if a user had enabled it, which the purge below undoes.
test ! -e "$root/etc/systemd/system/multi-user.target.wants/kutrace-watch.service"
ln -s /usr/lib/systemd/system/kutrace-watch.service "$root/etc/systemd/system/multi-user.target.wants"
# A chroot has no recorder: every line names a fix, and the status reports that nothing can be recorded.
inside kutrace_control check >"$root.check" && exit 1
grep -q '^module  *wrong  *not loaded' "$root.check"

# The pipeline from a recorded trace to a page, and back.
cp "$(dirname "$0")/../../samples/disk.trace" "$root/tmp"
inside sh -ec 'cd /tmp; rawtoevent disk.trace | eventtospan | spantohtml >t.html; htmltospan t.html | spantoprof >p.json; kutrace_control why disk.trace --call write --top 3'

# Programs with marks, each way: shared, static, in C++, from Python, and as for the original's library.
cp "$(dirname "$0")/../vm/original.cc" "$root/tmp"
inside sh -ec 'cd /tmp
    examples=/usr/share/doc/libkutrace-dev/examples
    gcc $examples/service.c -o shared $(pkg-config --cflags --libs kutrace) && ./shared
    ldd shared | grep -q libkutrace.so.0
    gcc $examples/service.c -o static $(pkg-config --cflags kutrace) -l:libkutrace.a && ./static
    g++ -std=c++17 $examples/service.cc -o service $(pkg-config --cflags --libs kutrace) && ./service
    python3 $examples/service.py
    gcc $examples/original.c -o original_c -lkutrace && ./original_c
    g++ original.cc -I/usr/share/kutrace/original /usr/share/kutrace/original/kutrace_lib.cc -lkutrace -o original
    python3 $examples/original.py'

inside apt-get purge -q -y kutrace kutrace-dkms libkutrace-dev libkutrace0 >>"$root.log"
rm -r "$root/tmp"/*
state >"$root.after"
diff "$root.before" "$root.after" >&2
