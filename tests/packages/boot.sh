#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# boot.sh SUITE MIRROR FOLDER PACKAGE...: installs the packages in a fresh Debian SUITE in FOLDER, boots its kernel in
# QEMU and records there with what they hold; the same with the next kernel that SUITE offers; then removes them.
set -euo pipefail
suite=$1 mirror=$2 root=$3
shift 3

case $suite in
    bookworm) next="linux-image-6.12-cloud-amd64 linux-headers-6.12-cloud-amd64" ;;
    *) next="linux-image-cloud-amd64/$suite-backports linux-headers-cloud-amd64/$suite-backports" ;;
esac

debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" || { tail -5 "$root.log" >&2; exit 1; }
printf 'deb %s %s main\n' "${mirror%/}-security" "$suite-security" "$mirror" "$suite-backports" \
    >>"$root/etc/apt/sources.list"
trap 'umount "$root/proc"' EXIT
mount -t proc proc "$root/proc"
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" >>"$root.log" 2>&1; }
# No service of this machine is to be started from there.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

inside apt-get update -q
inside apt-get install -q -y --no-install-recommends systemd-sysv zstd linux-image-cloud-amd64 linux-headers-cloud-amd64
mkdir "$root/tmp/packages"
cp "$@" "$root/tmp/packages"
inside sh -c 'apt-get install -q -y --no-install-recommends /tmp/packages/*.deb'

# Acts of a user who has just installed them, when the machine has booted: kutrace.service has loaded the module.
cat >"$root/usr/local/bin/record-ls" <<'END'
#!/bin/sh
exec >/dev/ttyS0 2>&1
trap 'echo "record-ls: status $?"; poweroff --force' EXIT
set -e
cd /root
uname -r
kutrace_control check
kutrace_control record -o ls.trace -- ls -lR /etc >/dev/null
kutrace_control summary ls.trace
checktrace ls.trace
kutrace_control html ls.trace -o ls.html
grep -c '</html>' ls.html
END
chmod +x "$root/usr/local/bin/record-ls"
cat >"$root/etc/systemd/system/record-ls.service" <<'END'
[Unit]
After=kutrace.service
[Service]
Type=oneshot
ExecStart=/usr/local/bin/record-ls
END
ln -s ../record-ls.service "$root/etc/systemd/system/multi-user.target.wants"
# A login would take the console away from it.
ln -s /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"

# boot VERSION: boots the newest kernel of that version, which has a module.
boot() {
    local release console="$root.$1.console"
    release=$(basename "$(ls -d "$root/lib/modules/$1"* | sort -V | tail -n 1)")
    ls "$root/lib/modules/$release/updates/dkms/kutrace.ko"* >>"$root.log"
    umount "$root/proc"
    rm -f "$root.disk"
    truncate --size 3G "$root.disk"
    mke2fs -q -t ext4 -d "$root" "$root.disk"
    mount -t proc proc "$root/proc"
    timeout 600 qemu-system-x86_64 -nodefaults -display none -no-reboot -machine q35 \
        -accel tcg,thread=multi -cpu max,la57=off -smp 2 -m 1024 \
        -kernel "$root/boot/vmlinuz-$release" -initrd "$root/boot/initrd.img-$release" \
        -append "root=/dev/vda rw console=ttyS0 panic=-1 oops=panic tsc=reliable quiet" \
        -drive "file=$root.disk,if=virtio,format=raw" -serial "file:$console" || true
    if ! grep -q '^record-ls: status 0' "$console"; then
        tail -n 40 "$console" >&2
        exit 1
    fi
    echo "$suite: $release"
}

boot "$(basename "$(ls -d "$root"/lib/modules/*)")"
# shellcheck disable=SC2086
inside apt-get install -q -y --no-install-recommends $next
boot "$(ls "$root/lib/modules" | sort -V | tail -n 1)"

inside apt-get purge -q -y kutrace kutrace-dkms libkutrace-dev libkutrace0
rm -r "$root/tmp"/*
find "$root" -xdev -path "$root/proc" -prune -o -path "$root/var/log" -prune -o -name '*kutrace*' -print >"$root.left"
diff /dev/null "$root.left" >&2
